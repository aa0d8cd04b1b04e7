"""Job folder beside the output, with finished pieces, so that a killed job can continue.

A piece is a number of consecutive rows. Its file is written first, then its record, each completely
or not at all. So a piece that has a record is finished.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delegraph.delegation.blob_cache import BlobCache
from delegraph.errors import ArgumentError
from delegraph.json_records import from_json, to_json
from delegraph.scale.sources import stamp
from delegraph.tools.evaluation.identity import differing_parts
from delegraph.tools.whole_file import write_whole

FORMAT = 1
_JOB, _LOCK = "job.json", "lock"


@dataclass(frozen=True, slots=True)
class Record:
    """Record of a finished piece (some consecutive rows) of a job.

    Attributes:
        start: number of the piece's first row.
        rows: number of rows, good or bad.
        written: number of rows in the piece's file.
        bad: mapping from the number of a bad row, as text, to the reason why it is bad.
        seconds: duration of reading, computing and writing, in seconds.
        incidents: number of delegate failures after which Delegraph went on.
        lost_processes: number of child processes that the piece's rows have killed.
    """

    start: int
    rows: int
    written: int
    bad: Mapping[str, str]
    seconds: float
    incidents: int
    lost_processes: int


class JobFolder:
    """Folder of a job; call ``leave`` when the job stops early, ``remove`` when it is complete.

    Args:
        output: path of the job's output; the folder is ``OUTPUT.job``.
        identity: JSON data of each part that determines the results, by the part's name.
        resume: whether the folder may exist already.

    Raises:
        ArgumentError: the folder exists although *resume* is False, belongs to another job, or is
            in use.
    """

    def __init__(self, output: str, identity: Mapping[str, Any], *, resume: bool) -> None:
        from filelock import FileLock, Timeout

        self.path = Path(f"{output}.job")
        self._output = output
        self._identity = identity
        if self.path.exists() and not resume:
            raise ArgumentError(
                f"{str(self.path)!r} is of a job that has not ended, with "
                f"{sum(record.rows for record in self.records().values()):,} rows done: "
                "resume=True goes on with it; delete the folder to begin anew"
            )
        try:
            self.path.mkdir(exist_ok=True)
        except OSError as error:
            raise ArgumentError(
                f"{str(self.path)!r}, the folder of finished rows, cannot be made: "
                f"{error.strerror or error}"
            ) from error
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
        """Store the job's identity, or check that it equals the stored one.

        Raises:
            ArgumentError: the identity differs; the message names the differences.
        """
        file = self.path / _JOB
        wanted = json.loads(json.dumps(identity))
        if not file.exists():
            write_whole(str(file), json.dumps(wanted, indent=2).encode())
            return
        try:
            kept = json.loads(file.read_bytes())
        except ValueError as error:
            raise ArgumentError(f"{str(file)!r} is damaged: delete {str(self.path)!r}") from error
        if kept != wanted:
            same = {"placement": None}  # another model or set-up has another placement
            other = [*differing_parts(kept | same, wanted | same)] or ["placement"]
            raise ArgumentError(
                f"{str(self.path)!r} is of another job: not the same {', '.join(other)}. Restore "
                "that to go on; or delete the folder to begin anew, or name another output"
            )

    def piece(self, number: int) -> str:
        """Return the path of the file of piece *number*."""
        return str(self.path / f"{number:08}{Path(self._output).suffix}")

    def add(self, number: int, record: Record) -> None:
        """Store the record of the finished piece *number*."""
        write_whole(str(self.path / f"{number:08}.done"), json.dumps(to_json(record)).encode())

    def records(self) -> dict[int, Record]:
        """Return the records of finished pieces, by number; damaged records count as missing."""
        found = {}
        for path in sorted(self.path.glob("*.done")):
            with suppress(ValueError):
                found[int(path.stem)] = from_json(Record, json.loads(path.read_bytes()))
        return found

    def finish(self, records: Sequence[Record]) -> None:
        """Store in the cache that the output is complete, with the *records* of all pieces."""
        _cache().keep(self._key(), json.dumps(to_json(records)).encode())

    def finished(self) -> dict[int, Record]:
        """Return the records of all pieces, by number, if the output is complete and unchanged."""
        with suppress(OSError, ValueError):  # there is no output
            kept = json.loads(_cache().read(self._key()) or b"[]")
            return {number: from_json(Record, each) for number, each in enumerate(kept)}
        return {}

    def _key(self) -> str:
        return json.dumps([self._identity, self._output, stamp(self._output)], sort_keys=True)

    def leave(self) -> None:
        """Unlock the folder for a later run; remove it if no piece is finished."""
        if self.records():
            self._lock.release()
        else:
            self.remove()

    def remove(self) -> None:
        """Delete the folder."""
        self._lock.release()
        shutil.rmtree(self.path)


def _cache() -> BlobCache:
    """Cache of finished jobs."""
    return BlobCache("predict-jobs", "1")
