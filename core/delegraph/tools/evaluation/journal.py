"""Journal of an evaluation, from which an interrupted evaluation continues.

The journal is a file of JSON lines. The first line identifies the evaluation. Each further line is
a sample that every set-up has answered, written when the sample is finished. If the process is
killed, at most the last line is incomplete, and it is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import IO, Any

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.identity import differing_parts

FORMAT = 2

Entry = dict[str, Any]


class Journal:
    """File that records the finished samples of one evaluation.

    Attributes:
        entries: mapping from a finished sample's key to its entry.
    """

    def __init__(self, path: str, identity: Mapping[str, Any]) -> None:
        """Open the journal of an evaluation, or create a new one.

        Args:
            path: path of the file.
            identity: mapping from the name of each part that determines the results to its JSON
                data.

        Raises:
            ArgumentError: the file belongs to another evaluation, is damaged before its last line,
                is no journal, cannot be written, or is in use by another process.
        """
        self.path = path
        header = {"format": FORMAT, **identity}
        try:
            self._file = open(path, "a+b")  # noqa: SIM115 - close() does it
        except OSError as error:
            raise ArgumentError(f"journal {path!r}: {error.strerror or error}") from error
        try:
            _lock(self._file, path)
            self.entries = self._read(json.loads(json.dumps(header)))
        except BaseException:
            self._file.close()
            raise

    def _read(self, header: Entry) -> dict[str, Entry]:
        """Return the entries of the file by key; an incomplete last line is removed.

        *header* is the expected first line.
        """
        self._file.seek(0)
        content = self._file.read()
        lines = content.splitlines(keepends=True)
        if len(lines) < 2 and _line(header).startswith(content):
            self._file.truncate(0)
            self._write(header)
            return {}
        found = [_parsed(line) for line in lines]
        first, *entries = found
        if first is None or "format" not in first:
            raise ArgumentError(
                f"{self.path!r} is no journal of an evaluation: name another output"
            )
        _require_same(self.path, first, header)
        if entries and entries[-1] is None:
            entries.pop()
            self._file.truncate(len(content) - len(lines[-1]))
        if None in entries:
            raise ArgumentError(
                f"journal {self.path!r} is damaged in line {entries.index(None) + 2}: delete it to "
                "begin anew"
            )
        return {entry["key"]: entry for entry in entries if entry is not None}

    def add(self, entry: Entry) -> None:
        """Write *entry*, a finished sample, so that it survives the end of the process."""
        self._write(entry)
        self.entries[entry["key"]] = entry

    def _write(self, entry: Entry) -> None:
        self._file.write(_line(entry))
        self._file.flush()

    def close(self) -> None:
        """Close the journal; the file is kept."""
        self._file.close()


def _line(entry: Entry) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _parsed(line: bytes) -> Entry | None:
    """Return the entry in a complete line; None for any other line."""
    if not line.endswith(b"\n"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and ("key" in entry or "format" in entry) else None


def _require_same(path: str, kept: Entry, wanted: Entry) -> None:
    """Check that *kept*, the journal's first line, equals this evaluation's first line, *wanted*.

    Raises:
        ArgumentError: the journal belongs to another evaluation; the message names the differences.
    """
    if kept == wanted:
        return
    other = differing_parts(kept, wanted)
    raise ArgumentError(
        f"journal {path!r} is of another evaluation: not the same {', '.join(other)}. Delete it to "
        "begin anew, or name another output"
    )


def _lock(file: IO[bytes], path: str) -> None:
    """Lock the journal *file* at *path* against other processes until the file is closed.

    Raises:
        ArgumentError: another process writes the journal.
    """
    if os.name != "posix":
        return  # Windows has no such lock
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ArgumentError(f"journal {path!r} is in use by another process") from error
