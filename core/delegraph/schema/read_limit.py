"""How many bytes may be copied out of a model file before anything is prepared.

Parts of a flatbuffer may be shared: a small file can name one long list thousands of times. Lists
that are shared are copied once; what is copied is counted.
"""

from __future__ import annotations

from delegraph.errors import MalformedModelError

TIMES_FILE = 64
"""Without other word, quantization, sparsity and options may take this many times the file."""

LEAST = 1 << 20
"""Bytes that every file may take."""


class ReadLimit:
    """What is left of the bytes that one file may take.

    Args:
        file_bytes: size of the file.
        chosen: bytes that the user grants (``memory_limit``); None for 64 times the file.

    Attributes:
        bytes: the remaining ones.
        is_chosen: whether the user has granted them.
    """

    def __init__(self, file_bytes: int, chosen: int | None = None) -> None:
        self.is_chosen = chosen is not None
        self._file_bytes = file_bytes
        self._granted = max(LEAST, TIMES_FILE * file_bytes if chosen is None else chosen)
        self.bytes = self._granted

    def take(self, count: int, what: str) -> None:
        """Take *count* bytes; ask before copying them.

        Args:
            count: bytes.
            what: needs them, for the error.

        Raises:
            MalformedModelError: they are more than the remaining ones.
        """
        self.bytes -= count
        if self.bytes < 0:
            limit = f"the limit of {self._granted} bytes"
            if not self.is_chosen and self._granted > LEAST:
                limit = f"{TIMES_FILE} times the file's {self._file_bytes} bytes"
            raise MalformedModelError(
                f"{what}: with it, what the file describes takes more than {limit}; "
                "Interpreter(memory_limit=...) sets another"
            )
