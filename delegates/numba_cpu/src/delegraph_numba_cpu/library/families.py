"""The families of kernels, and the source modules of each family."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

PACKAGE = "delegraph_numba_cpu"
ROOT = Path(__file__).parents[1]

_FROM = re.compile(rf"^\s*from ({PACKAGE}[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
_IMPORT = re.compile(rf"^\s*import ({PACKAGE}[\w.]*)", re.MULTILINE)


def families() -> tuple[str, ...]:
    """Names of all families: the modules of ``instructions`` that also exist in ``kernels``."""
    modules = (path.name for path in (ROOT / "instructions").glob("[!_]*.py"))
    return tuple(sorted(Path(name).stem for name in modules if (ROOT / "kernels" / name).is_file()))


def source_digest(family: str) -> str:
    """Return a hash of all sources in this package that a family's machine code depends on.

    The sources are the imports of ``kernels/FAMILY.py``, direct and indirect, and the compiler's
    modules. An edit to one family leaves the objects of other families valid.
    """
    digest = hashlib.sha256()
    for module in sorted(_sources(f"{PACKAGE}.kernels.{family}", f"{PACKAGE}.codegen.compiling")):
        digest.update(module.encode() + b"\0" + source_text(module).encode() + b"\0")
    return digest.hexdigest()


def sources_digest() -> str:
    """Return a hash of all sources in this package that any family's machine code depends on."""
    digests = (source_digest(family) for family in families())
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:32]


def source_size(family: str) -> int:
    """Size of a family's source files in characters, a rough measure of its compile time."""
    return sum(len(source_text(module)) for module in _sources(f"{PACKAGE}.kernels.{family}"))


def _sources(*modules: str) -> set[str]:
    """Return the names of *modules* and of all modules of this package that they import."""
    waiting = list(modules)
    seen: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module not in seen and source_path(module) is not None:
            seen.add(module)
            waiting += imported_modules(module)
    return seen


@cache
def imported_modules(module: str) -> tuple[str, ...]:
    """Return the names that *module* imports and that may be modules of this package."""
    found = _IMPORT.findall(source_text(module))
    for origin, names in _FROM.findall(source_text(module)):
        found.append(origin)
        found += [f"{origin}.{name}" for name in re.findall(r"\w+", names)]
    return tuple(found)


@cache
def source_text(module: str) -> str:
    path = source_path(module)
    return "" if path is None else path.read_text(encoding="utf-8")


@cache
def source_path(module: str) -> Path | None:
    """Return the file of a module of this package; None if the module does not exist."""
    place = ROOT.joinpath(*module.split(".")[1:])
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None
