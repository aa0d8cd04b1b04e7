"""A table of operators whose modules are imported when an operator is looked up.

A model uses few operators, and importing the modules of all operators takes longer than preparing a
small model. So a table declares which module adds entries for which operators, or only the package
of the modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")


class LazyTable(MutableMapping[str, T]):
    """Entries by operator name; a look-up imports the modules that add the operator's entry.

    Args:
        package: a package whose modules are all imported by the first look-up; None if modules are
            named by :meth:`declare`.

    Attributes:
        entered: entries that the modules imported so far have added.

    >>> table = LazyTable[object]()
    >>> table.declare("delegraph.kernels", {"arg_min_max": "ARG_MAX ARG_MIN", "cast": "CAST"})
    >>> sorted(table), "ADD" in table, len(table.entered)
    (['ARG_MAX', 'ARG_MIN', 'CAST'], False, 0)
    """

    def __init__(self, package: str | None = None) -> None:
        self.entered: dict[str, T] = {}
        self._package = package
        self._modules: dict[str, list[str]] = {}
        self._complete: set[str] = set()

    def declare(self, package: str, names: Mapping[str, str]) -> None:
        """Declare which modules add entries for which operators.

        Args:
            package: package of the modules.
            names: mapping from a module's name, without ``package.``, to the names of its
                operators, separated by spaces. Several modules may contribute to one operator.
        """
        for module, operators in names.items():
            for name in operators.split():
                self._modules.setdefault(name, []).append(f"{package}.{module}")

    def enter(self, name: str, entry: T) -> None:
        """Add *entry* to the table under the operator's name.

        Raises:
            ValueError: the table has the operator already.
        """
        if name in self.entered:
            raise ValueError(f"{name} is registered twice")
        self.entered[name] = entry

    def _import_package(self) -> None:
        if self._package is not None:
            from pkgutil import iter_modules  # lazy import: few tables need it

            path = import_module(self._package).__path__
            for module in sorted(found.name for found in iter_modules(path)):
                import_module(f"{self._package}.{module}")
            self._package = None

    def __getitem__(self, name: str) -> T:
        self._import_package()
        if name not in self._complete:
            for module in self._modules.get(name, ()):
                import_module(module)
        entry = self.entered[name]
        self._complete.add(name)
        return entry

    def __setitem__(self, name: str, entry: T) -> None:
        self._complete.add(name)
        self.entered[name] = entry

    def __delitem__(self, name: str) -> None:
        del self.entered[name]

    def __contains__(self, name: object) -> bool:
        self._import_package()
        return name in self.entered or name in self._modules

    def __iter__(self) -> Iterator[str]:
        self._import_package()
        return iter({**self._modules, **self.entered})

    def __len__(self) -> int:
        self._import_package()
        return len(self._modules.keys() | self.entered)
