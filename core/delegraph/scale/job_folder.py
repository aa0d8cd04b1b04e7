"""Folder with the finished pieces of a job, from which a killed job continues.

A piece is some rows after each other. Its file is written first, then its record, each whole or
not at all; a piece with a record is done.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delegraph.errors import ArgumentError
from delegraph.json_records import from_json, to_json
from delegraph.tools.whole_file import write_whole

FORMAT = 1
_JOB, _LOCK = "job.json", "lock"


@dataclass(frozen=True, slots=True)
class Record:
    """Counts and times of a finished piece.

    Attributes:
        start: number of its first row.
        rows: how many it has, good or bad.
        written: how many of them its file has.
        bad: number of a bad row, as text, to why it is bad.
        seconds: that reading, computing and writing it took.
        incidents: failures of delegates after which Delegraph went on.
        lost_processes: that its rows have ended.
    """

    start: int
    rows: int
    written: int
    bad: Mapping[str, str]
    seconds: float
    incidents: int
    lost_processes: int


class JobFolder:
    """Folder of a job: leave it when the job ends early, remove it when the job is done.

    Args:
        output: of the job; the folder is ``OUTPUT.job``.
        identity: what decides the results, as JSON: parts by their names.
        resume: whether it may be there already.

    Raises:
        ArgumentError: it is there and may not be, is of another job, or another process writes it.
    """

    def __init__(self, output: str, identity: Mapping[str, Any], *, resume: bool) -> None:
        from filelock import FileLock, Timeout

        self.path = Path(f"{output}.job")
        self._suffix = Path(output).suffix
        if self.path.exists() and not resume:
            raise ArgumentError(
                f"{str(self.path)!r} is of a job that has not ended: --resume (resume=True) goes "
                "on with it; delete the folder to begin anew"
            )
        try:
            self.path.mkdir(exist_ok=True)
        except OSError as error:
            raise ArgumentError(f"{str(self.path)!r}: {error.strerror or error}") from error
        self._lock = FileLock(self.path / _LOCK)
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise ArgumentError(f"{str(self.path)!r} is in use by another process") from error
        try:
            self._begin({"format": FORMAT, **identity})
        except BaseException:
            self._lock.release()
            raise

    def _begin(self, identity: Mapping[str, Any]) -> None:
        """Write the job's identity, or check that it equals the stored identity.

        Raises:
            ArgumentError: it is not; the message names what differs.
        """
        file = self.path / _JOB
        wanted = json.loads(json.dumps(identity))
        if not file.exists():
            write_whole(str(file), json.dumps(wanted, indent=2).encode())
            return
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept != wanted:
            other = ", ".join(_differing(kept, wanted))
            raise ArgumentError(
                f"{str(self.path)!r} is of another job: not the same {other}. Its rows "
                "would not go with those of this one: delete the folder to begin anew, or name "
                "another output"
            )

    def piece(self, number: int) -> str:
        """Return the path of the file of a piece."""
        return str(self.path / f"{number:08}{self._suffix}")

    def add(self, number: int, record: Record) -> None:
        """Note that a piece is done."""
        write_whole(str(self.path / f"{number:08}.done"), json.dumps(to_json(record)).encode())

    def records(self) -> dict[int, Record]:
        """Return the records of finished pieces, by piece number."""
        found = {}
        for path in sorted(self.path.glob("*.done")):
            found[int(path.stem)] = from_json(Record, json.loads(path.read_text(encoding="utf-8")))
        return found

    def leave(self) -> None:
        """Unlock the folder for a later job; remove it if no piece is finished."""
        if self.records():
            self._lock.release()
        else:
            self.remove()

    def remove(self) -> None:
        """Delete the folder of the job."""
        self._lock.release()
        shutil.rmtree(self.path)


def _differing(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the identity's parts that differ."""
    for name in _unequal(kept, wanted):
        before, now = kept.get(name), wanted.get(name)
        if isinstance(before, dict) and isinstance(now, dict):
            yield f"{name} ({', '.join(_unequal(before, now))})"
        else:
            yield name


def _unequal(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return [name for name in sorted({*a, *b}) if a.get(name) != b.get(name)]
