"""Refusals: reasons for rejecting requests, with their codes in each protocol."""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """Kind of rejection of a request, with its HTTP status and gRPC status code."""

    INVALID = (400, "INVALID_ARGUMENT")
    UNAUTHENTICATED = (401, "UNAUTHENTICATED")
    FORBIDDEN = (403, "PERMISSION_DENIED")
    NOT_FOUND = (404, "NOT_FOUND")
    WRONG_METHOD = (405, "UNIMPLEMENTED")
    TOO_SLOW = (408, "DEADLINE_EXCEEDED")
    TOO_LARGE = (413, "RESOURCE_EXHAUSTED")
    UNKNOWN_ENCODING = (415, "INVALID_ARGUMENT")
    FAILED = (500, "INTERNAL")
    UNSUPPORTED = (501, "UNIMPLEMENTED")
    UNAVAILABLE = (503, "UNAVAILABLE")

    @property
    def status(self) -> int:
        """HTTP status code."""
        return self.value[0]

    @property
    def code(self) -> str:
        """Name of the gRPC status code."""
        return self.value[1]


OUTCOMES = {
    Kind.INVALID: "invalid",
    Kind.TOO_LARGE: "invalid",
    Kind.UNKNOWN_ENCODING: "invalid",
    Kind.FAILED: "failed",
}
"""Mapping from a kind to its outcome in the metrics; kinds that are missing are ``refused``."""


class Refusal(Exception):
    """Raised for a request that is rejected.

    Attributes:
        kind: kind of the refusal.
        reason: text for the client that says what was found and what was expected.
    """

    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason

    @property
    def outcome(self) -> str:
        """Name of the outcome under which metrics count the request."""
        return OUTCOMES.get(self.kind, "refused")


def invalid(reason: str) -> Refusal:
    """Return the exception for a request that the client must correct; *reason* says why."""
    return Refusal(Kind.INVALID, reason)
