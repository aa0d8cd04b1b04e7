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
    """Return a digest of the source code of the core and of this package, equal on all machines.

    It covers all Python files of both, and changes with any change of code. Programs in model files
    are used only by the code that they were made for.
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
    """Return the path of the list of a package's files that pip wrote at the installation.

    The result is None for a package, given by its folder, that runs from sources.
    """
    for described in sorted(package.parent.glob("*.dist-info")):
        record = described / "RECORD"
        if described.name.partition("-")[0].lower() == package.name and record.is_file():
            return record
    return None


def recorded_files(package: Path) -> Iterable[str]:
    """Yield a text ``path,digest`` for each Python file of a package, from pip's list of its files.

    The package must be installed.

    Args:
        package: folder of the package.
    """
    record = _record(package)
    assert record is not None, "the package is installed"
    for line in record.read_text("utf-8").splitlines():
        path, _, digest = line.rpartition(",")[0].rpartition(",")
        if path.startswith(f"{package.name}/") and path.endswith(".py"):
            yield f"{path},{digest}"


def hashed_files(package: Path) -> Iterable[str]:
    """Yield the texts of :func:`recorded_files` for a package, computed from the files themselves.

    Args:
        package: folder of the package.
    """
    for path in package.rglob("*.py"):
        digest = urlsafe_b64encode(sha256(path.read_bytes()).digest()).decode().rstrip("=")
        yield f"{path.relative_to(package.parent).as_posix()},sha256={digest}"
