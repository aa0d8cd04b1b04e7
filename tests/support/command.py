"""Running the ``delegraph`` command in tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


class Ran:
    """What a command printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self) -> list[str]:
        """Standard output, line by line, with runs of blanks as one."""
        return [" ".join(line.split()) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


Command = Callable[..., Ran]
