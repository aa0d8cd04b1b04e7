"""Limit on the bytes that may be copied from a model file before any node is prepared.

Parts of a flatbuffer may be shared, so a small file can refer to one long list thousands of times.
Shared lists are copied once, and copied bytes are counted.
"""

from __future__ import annotations

from delegraph.errors import MalformedModelError

TIMES_FILE = 64
"""Default ratio of the bytes of quantization, sparsity and options to the file's bytes."""

MOST = 128 << 20
"""Default largest number of copied bytes, to which four times the file's bytes are added."""

LEAST = 1 << 20
"""Number of copied bytes that is allowed for every file."""

LEAST_OBJECTS = 32 << 20
"""Number of bytes of tables' records that is allowed for every file."""


class ReadLimit:
    """Number of bytes that may still be copied while one file is read.

    Args:
        file_bytes: size of the file.
        chosen: user's limit in bytes (``memory_limit``); None means 64 times the file's size.

    Attributes:
        bytes: number of remaining bytes.
    """

    def __init__(self, file_bytes: int, chosen: int | None = None) -> None:
        self._file_bytes = file_bytes
        default = min(TIMES_FILE * file_bytes, MOST + 4 * file_bytes)
        self._granted = max(LEAST, default if chosen is None else chosen)
        self.bytes = self._granted
        self._objects = max(self._granted, TIMES_FILE * file_bytes, LEAST_OBJECTS)

    def take(self, count: int, what: str) -> None:
        """Reserve *count* bytes; called before the bytes are copied.

        Args:
            count: number of bytes.
            what: name of the part that needs the bytes, for the error.

        Raises:
            MalformedModelError: *count* exceeds the number of remaining bytes.
        """
        self.bytes -= count
        if self.bytes < 0:
            limit = f"the limit of {self._granted} bytes"
            if self._granted == TIMES_FILE * self._file_bytes:
                limit = f"{TIMES_FILE} times the file's {self._file_bytes} bytes"
            raise MalformedModelError(
                f"{what}: with it, what the file describes takes more than {limit}; "
                "Interpreter(limits=Limits(memory=...)) sets another"
            )

    def take_objects(self, count: int, size: int, what: str) -> None:
        """Reserve the memory of *count* tables; a lower limit that the user chose does not apply.

        Args:
            count: number of tables.
            size: number of bytes that one table takes until the model is prepared.
            what: name of the tables, for the error.

        Raises:
            MalformedModelError: the tables would take more than 64 times the file's bytes.
        """
        self._objects -= count * size
        if self._objects < 0:
            raise MalformedModelError(
                f"{count} {what}: what the file describes takes more than {TIMES_FILE} times the "
                f"file's {self._file_bytes} bytes; Interpreter(limits=Limits(memory=...)) sets "
                "another limit"
            )
