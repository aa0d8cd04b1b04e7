"""The op table: operator name to registration, filled by the ``kernel`` decorator.

Each kernel enters itself when its module is imported. ``kernels/ops.py`` declares which module that
is, and a module is imported when one of its operators is looked up: a model uses few of them, and
all together take longer than running a small one. :func:`delegraph.builtin_registration` looks an
operator up with all of them declared. The table, with versions, types and files, is
``docs/operators.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping
from functools import wraps
from importlib import import_module

from delegraph.operators.checks import require_dense
from delegraph.operators.registration import Eval, InPlace, Node, OpContext, Prepare, Registration
from delegraph.schema.enums import BuiltinOperator


class OpTable(MutableMapping[str, Registration]):
    """Registrations by name; the module of a declared one is imported when it is looked up."""

    def __init__(self) -> None:
        self._registered: dict[str, Registration] = {}
        self._modules: dict[str, str] = {}

    def declare(self, module: str, names: Iterable[str]) -> None:
        """Say that importing *module* registers operators."""
        self._modules.update(dict.fromkeys(names, module))

    def __getitem__(self, name: str) -> Registration:
        if name not in self._registered:
            import_module(self._modules[name])
        return self._registered[name]

    def __setitem__(self, name: str, registration: Registration) -> None:
        self._registered[name] = registration

    def register(self, registration: Registration) -> None:
        """Enter a kernel under its name, which no other one has."""
        name = registration.name
        assert name not in self._registered, f"{name} is registered twice"
        self[name] = registration

    def __delitem__(self, name: str) -> None:
        del self._registered[name]

    def __contains__(self, name: object) -> bool:
        return name in self._registered or name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter({**self._modules, **self._registered})

    def __len__(self) -> int:
        return len(self._modules.keys() | self._registered)


OP_TABLE = OpTable()
"""Builtin operators by schema name, custom operators of TFLite and TFLM by custom name."""


def kernel(
    name: str,
    *,
    versions: tuple[int, int] = (1, 1),
    inplace: InPlace = InPlace.NONE,
    uses_blas: bool = False,
    sparse_inputs: Collection[int] = (),
) -> Callable[[Prepare], Prepare]:
    """Register the decorated ``prepare`` function as the kernel of operator *name*.

    Args:
        name: ``CONV_2D``; any name that is no builtin operator is a custom one.
        versions: first and last version implemented, as ``register.cc`` of TFLite gives them.
        inplace: inputs that may share memory with output 0.
        uses_blas: whether it multiplies matrices with NumPy.
        sparse_inputs: positions of inputs that may be sparse constants, which hold fewer values
            than their shape says; others are refused before *prepare* sees the node.
    """

    def register(prepare: Prepare) -> Prepare:
        code = BuiltinOperator.__members__.get(name, BuiltinOperator.CUSTOM)

        @wraps(prepare)
        def checked(context: OpContext, node: Node) -> Eval:
            require_dense(context, node, sparse_inputs)
            return prepare(context, node)

        OP_TABLE.register(Registration(name, checked, code, versions, inplace, uses_blas=uses_blas))
        return prepare

    return register
