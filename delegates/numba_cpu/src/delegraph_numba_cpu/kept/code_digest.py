"""Digest of the code of the core and of this package, for programs in model files."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

import delegraph
from delegraph.delegation import BlobCache, code_state


@cache
def version_everywhere() -> str:
    """Return a digest of the code that is equal on all machines; any change of code changes it.

    It covers the Python files of the core and of this package, from which kernels are made.
    """
    packages = Path(delegraph.__file__).parent, Path(__file__).parents[1]
    if all(map(_record, packages)):
        return _digest_of(map(recorded_files, packages))
    state = sha256(repr([code_state(str(package)) for package in packages]).encode()).hexdigest()
    found = BlobCache("numba_cpu-sources", "2").read_or_make(
        state, lambda: _digest_of(map(hashed_files, packages)).encode()
    )
    return found.decode()


def _digest_of(packages: Iterable[Iterable[str]]) -> str:
    lines = sorted(line for package in packages for line in package)
    return sha256("\n".join(lines).encode()).hexdigest()[:32]


def _record(package: Path) -> Path | None:
    """Return the path of pip's list of the files of *package*.

    The result is None for a package that runs from sources.
    """
    for described in sorted(package.parent.glob("*.dist-info")):
        record = described / "RECORD"
        if described.name.partition("-")[0].lower() == package.name and record.is_file():
            return record
    return None


def recorded_files(package: Path) -> Iterable[str]:
    """Yield path and digest of each Python file of an installed package, from pip's record."""
    record = _record(package)
    assert record is not None, "the package is installed"
    for line in record.read_text("utf-8").splitlines():
        path, _, digest = line.rpartition(",")[0].rpartition(",")
        if path.startswith(f"{package.name}/") and path.endswith(".py"):
            yield f"{path},{digest}"


def hashed_files(package: Path) -> Iterable[str]:
    """Yield path and digest of each Python file of a package, computed from the files."""
    for path in package.rglob("*.py"):
        digest = urlsafe_b64encode(sha256(path.read_bytes()).digest()).decode().rstrip("=")
        yield f"{path.relative_to(package.parent).as_posix()},sha256={digest}"
