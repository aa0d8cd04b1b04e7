"""Runs pytest, and less of it where nothing has changed since the whole sample passed.

``python tests/unchanged.py RECORD COMMAND...`` is what ``make test`` runs. A command that passes
leaves in the file RECORD a digest of all that tests depend on: files that Git tracks or would add,
the kernel library, installed packages, Python, machine and environment variables. If the digest is
the same at the next run, COMMAND gets ``--part 4``: a fourth of a new sample, about two minutes of
cases that mostly have not run yet. Where CI or FRESH is set, without Git, and after a failure or an
interrupt, all of the sample runs.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MADE = (
    Path(sysconfig.get_path("purelib")),
    ROOT / "delegates/numba_cpu/src/delegraph_numba_cpu/libraries",
)
"""Folders that Git does not know; their files count with size and time."""
VARIABLES = ("CHROMIUM", "DELEGRAPH", "HYPOTHESIS", "LD_", "NUMBA", "PATH", "PY")


def digest(root: Path = ROOT, made: tuple[Path, ...] = MADE) -> str | None:
    """Return the digest of all that tests depend on; None where Git does not know the files."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
        names = sorted(set(os.fsdecode(listed).split("\0")) - {""})
        if "pyproject.toml" not in names:  # a folder that another checkout ignores
            return None
        facts = [*_surroundings(), *(_content(root, name) for name in names), *_times(made)]
    except (OSError, subprocess.CalledProcessError):  # no Git, or a file that vanishes meanwhile
        return None
    return hashlib.sha256(repr(facts).encode(errors="surrogateescape")).hexdigest()


def _surroundings() -> Iterator[object]:
    """Yield Python, machine and the environment variables that count."""
    yield sys.version, sys.prefix, platform.uname()
    yield sorted(pair for pair in os.environ.items() if pair[0].startswith(VARIABLES))


def _content(root: Path, name: str) -> tuple[object, ...]:
    path = root / name
    if path.is_symlink():
        return name, os.readlink(path)
    if not path.is_file():  # deleted, or a checkout of its own
        return name, None
    return name, path.stat().st_mode, hashlib.sha256(path.read_bytes()).digest()


def _times(folders: tuple[Path, ...]) -> Iterator[object]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if "__pycache__" not in path.parts and path.is_file():
                status = path.stat()
                yield str(path), status.st_size, status.st_mtime_ns


def main(record: Path, command: list[str]) -> int:
    """Run the command, all or a part; return its exit status."""
    before = digest()
    is_known = before is not None and record.is_file() and record.read_text() == before
    if is_known and not os.environ.get("CI") and not os.environ.get("FRESH"):
        print(
            "Nothing has changed since the whole sample passed, so a fourth of a new one runs; "
            "`make test FRESH=1` runs all of it.",
            flush=True,
        )
        command = [*command, "--part", "4"]
    record.unlink(missing_ok=True)  # a run that fails or is interrupted leaves none
    status = subprocess.run(command, check=False).returncode
    if status == 0 and before is not None and digest() == before:
        record.write_text(before)
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
