"""Puts a mutant into this process: into functions that are there, or at the import of its module.

Functions of a module may have been imported under many names. All of them share their code object,
so it is that which is replaced.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from mutation.mutants import Mutant

Key = tuple[str, int]
"""Name and first line of a function."""


def functions_by_file() -> Mapping[str, Sequence[FunctionType]]:
    """Return all existing functions by source file."""
    found: dict[str, list[FunctionType]] = {}
    for thing in gc.get_objects():
        if type(thing) is FunctionType:
            found.setdefault(thing.__code__.co_filename, []).append(thing)
    return found


def patch(mutant: Mutant, functions: Iterable[FunctionType]) -> bool:
    """Replace the code of *functions*, the functions of the mutant's module, by changed code.

    Returns:
        Whether any function changed. It does not where the names of two functions on one line are
        alike, as those of two lambdas, or where the change takes another set of closed-over names.
    """
    codes = dict(_unique(mutant.code()))
    did_change = False
    for function in functions:
        old = function.__code__
        new = codes.get((old.co_name, old.co_firstlineno))
        if new is not None and new != old:
            try:
                function.__code__ = new
            except ValueError:
                return False
            did_change = True
    return did_change


def _unique(code: CodeType) -> Iterator[tuple[Key, CodeType]]:
    inner = list(_inner(code))
    count = Counter(key for key, _ in inner)
    return ((key, code) for key, code in inner if count[key] == 1)


def _inner(code: CodeType) -> Iterator[tuple[Key, CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield (constant.co_name, constant.co_firstlineno), constant
            yield from _inner(constant)


class MutantFinder(MetaPathFinder):
    """Import finder that loads one module in its changed form; first in ``sys.meta_path``."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = mutant.module.name
        self._path = mutant.module.path
        self._code = mutant.code()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the changed module; None for other modules."""
        if name != self._name:
            return None
        loader = _Loader(name, self._path, self._code)
        is_package = self._path.name == "__init__.py"
        return spec_from_file_location(
            name,
            self._path,
            loader=loader,
            submodule_search_locations=[str(self._path.parent)] if is_package else None,
        )

    def install(self) -> None:
        """Insert the finder at the start of ``sys.meta_path``.

        Raises:
            RuntimeError: the module was imported before.
        """
        if self._name in sys.modules:
            raise RuntimeError(f"{self._name} was imported before its mutant")
        sys.meta_path.insert(0, self)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        super().__init__(name, str(path))
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code
