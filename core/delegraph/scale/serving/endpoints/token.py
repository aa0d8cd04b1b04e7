"""The bearer token that requests must have."""

from __future__ import annotations

import hmac
import os
from pathlib import Path

from delegraph.errors import ArgumentError
from delegraph.scale.serving.refusals import Kind, Refusal

VARIABLE = "DELEGRAPH_SERVE_TOKEN"
"""Name of the environment variable that may hold the token."""

OPEN = frozenset({"/v2/health/live", "/v2/health/ready"})
"""Paths of REST that need no token, because a cluster's probes request them."""


class Token:
    """The token that requests must have, or none.

    Args:
        token: the token; None if requests need none.
    """

    def __init__(self, token: str | None) -> None:
        self._expected = None if token is None else f"Bearer {token}".encode()

    @property
    def is_needed(self) -> bool:
        """Whether requests need a token."""
        return self._expected is not None

    def require(self, authorization: bytes | None) -> None:
        """Check the ``Authorization`` header of a request, in constant time.

        Raises:
            Refusal: the token is missing or wrong.
        """
        if self._expected is None:
            return
        if not hmac.compare_digest(authorization or b"", self._expected):
            raise Refusal(Kind.UNAUTHENTICATED, "unauthorized")


def read_token(file: str | None) -> Token:
    """Return the token in a file, or in the environment if no file is given.

    Args:
        file: path of a file whose only line is the token; None means the environment.

    Raises:
        ArgumentError: the file cannot be read, or contains no token.
    """
    if file is None:
        text, source = os.environ.get(VARIABLE), VARIABLE
        if text is None:
            return Token(None)
    else:
        source = f"--token-file {file!r}"
        try:
            text = Path(file).read_text("ascii")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ArgumentError(f"{source} cannot be read: {reason}") from error
    token = text.strip()
    if not token or not token.isascii() or any(character.isspace() for character in token):
        raise ArgumentError(f"{source} holds no token: expected one word of ASCII")
    return Token(token)
