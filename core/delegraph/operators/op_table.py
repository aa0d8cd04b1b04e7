"""The op table: mapping from operator name to registration, filled by ``kernel``.

The decorator ``kernel`` adds a kernel when its module is imported. ``kernels/ops.py`` declares
modules and versions. A module is imported only when one of its kernels is about to be prepared.
A model uses few kernels, and delegates may need none. Importing the modules of all operators
takes longer than preparing a small model. :func:`delegraph.builtin_registration` looks up an
operator after all modules have been declared. ``docs/operators.md`` shows the table with versions,
types and files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

from delegraph.operators.registration import Eval, InPlace, Node, OpContext, Prepare, Registration
from delegraph.schema.enums import BuiltinOperator

T = TypeVar("T")


class LazyTable(MutableMapping[str, T]):
    """Table of entries by operator name, such as kernels; a look-up imports the entry's modules.

    Args:
        package: a package whose modules are all imported by the first look-up; None if modules are
            named by :meth:`declare`.

    Attributes:
        entered: entries that imported modules have added so far.

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
            ValueError: the table already has the operator.
        """
        if name in self.entered:
            raise ValueError(f"{name} is registered twice")
        self.entered[name] = entry

    def _import_package(self) -> None:
        if self._package is not None:
            from pkgutil import iter_modules  # here: few tables need it

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


_set = object.__setattr__
_LOADED = ("prepare", "inplace", "uses_blas")


class DeclaredRegistration(Registration):
    """Registration of an operator whose kernel is imported when it is first needed."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Import the kernel; return the field *name*, which has no value before the import."""
        if name in _LOADED:
            loaded = OP_TABLE.loaded(self.name)
            if loaded is not self:  # another thread has entered it meanwhile
                self.take(loaded)
        return object.__getattribute__(self, name)

    def take(self, loaded: Registration) -> None:
        """Copy the fields that the kernel's module sets from the registration *loaded*."""
        for field in _LOADED:
            _set(self, field, getattr(loaded, field))


class OpTable(LazyTable[Registration]):
    """Registrations by operator name; a look-up imports nothing.

    >>> table = OpTable()
    >>> table.declare("delegraph.kernels", {"conv": "CONV_2D:8", "cast": "CAST:2-4"})
    >>> table["CONV_2D"].versions, table["CAST"].versions
    ((1, 8), (2, 4))
    """

    def __init__(self) -> None:
        super().__init__()
        self._versions: dict[str, str] = {}
        self._declared: dict[str, DeclaredRegistration] = {}  # those that wait for their kernels

    def declare(self, package: str, names: Mapping[str, str]) -> None:
        """Declare which modules add entries for which operators, and versions of the operators.

        Args:
            package: package of the modules.
            names: mapping from a module's name to its operators, separated by spaces. ``:8`` after
                an operator means versions 1 to 8, and ``:2-4`` versions 2 to 4. Without a suffix,
                only version 1 is declared.
        """
        plain = {}
        for module, operators in names.items():
            pairs = [each.partition(":") for each in operators.split()]
            self._versions.update((name, versions) for name, _, versions in pairs)
            plain[module] = " ".join(name for name, _, _ in pairs)
        super().declare(package, plain)

    def versions(self, name: str) -> tuple[int, int]:
        """Return the first and the last declared version of the operator *name*."""
        first, _, last = self._versions.get(name, "").rpartition("-")
        return int(first or 1), int(last or 1)

    def enter(self, name: str, entry: Registration) -> None:
        """Add *entry*, the registration of operator *name* from the module being imported.

        If the operator was declared, the declared registration gets the fields of *entry*.

        Raises:
            ValueError: the table already has the operator.
        """
        declared = self._declared.pop(name, None)
        if declared is not None:
            declared.take(entry)
            entry = declared
        super().enter(name, entry)

    def loaded(self, name: str) -> Registration:
        """Import the module of the operator *name*, and return the operator's registration."""
        return super().__getitem__(name)

    def is_declared(self, registration: Registration) -> bool:
        """Whether a registration belongs to this table and its kernel is not imported yet."""
        return self._declared.get(registration.name) is registration

    def __getitem__(self, name: str) -> Registration:
        if name in self.entered or name not in self._versions:
            return super().__getitem__(name)
        found = self._declared.get(name)
        if found is None:
            found = DeclaredRegistration.__new__(DeclaredRegistration)
            code = BuiltinOperator.__members__.get(name, BuiltinOperator.CUSTOM)
            plain = name, code, self.versions(name), None, None, False, ""
            for field, value in zip(_PLAIN, plain, strict=True):
                _set(found, field, value)
            found = self._declared.setdefault(name, found)
        return found


_PLAIN = ("name", "builtin_code", "versions", "init", "free", "is_unresolved", "plugin")

OP_TABLE = OpTable()
"""Builtin operators by schema name, custom operators of TFLite and TFLM by custom name."""


def has_own_kernel(registration: Registration) -> bool:
    """Whether a registration uses the kernel of the op table, not a replacement."""
    own = OP_TABLE.get(registration.name)
    return own is registration or (own is not None and own.prepare is registration.prepare)


def kernel(
    name: str,
    *,
    inplace: InPlace = InPlace.NONE,
    uses_blas: bool = False,
    sparse_inputs: Collection[int] = (),
) -> Callable[[Prepare], Prepare]:
    """Register the decorated ``prepare`` function as the kernel of operator *name*.

    Args:
        name: operator name such as ``CONV_2D``; any other name is a custom operator.
        inplace: inputs that may share memory with output 0.
        uses_blas: whether the kernel multiplies matrices with NumPy.
        sparse_inputs: positions of inputs that may be sparse constants, which have fewer values
            than their shape. Nodes with other sparse inputs are rejected before *prepare*.
    """
    from delegraph.operators.checks import require_dense  # lazy: delegates' nodes have no kernels

    def register(prepare: Prepare) -> Prepare:
        code = BuiltinOperator.__members__.get(name, BuiltinOperator.CUSTOM)
        versions = OP_TABLE.versions(name)

        @wraps(prepare)
        def checked(context: OpContext, node: Node) -> Eval:
            require_dense(context, node, sparse_inputs)
            return prepare(context, node)

        entry = Registration(name, checked, code, versions, inplace, uses_blas=uses_blas)
        OP_TABLE.enter(name, entry)
        return prepare

    return register
