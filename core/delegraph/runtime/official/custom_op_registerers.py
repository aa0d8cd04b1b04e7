"""Registerers of custom operators, in the form of the official ``InterpreterWithCustomOps``.

A registerer adds operators to a resolver, a C++ object at an address. It is the name of a C
function, or a Python function.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence

from delegraph.errors import ArgumentTypeError
from delegraph.graph.model import Model
from delegraph.operators.custom_op import AnyCustomOp

CustomOps = Mapping[str, AnyCustomOp]

Registerer = str | Callable[[int], object]
"""Name of a C function that is loaded, or a Python function; it gets a resolver's address."""

NATIVE = "delegraph.native.compiled.registerers"
"""Name of the module that fills the official C++ resolver.

The module is in a higher layer, so it is loaded by name, and only if there are registerers.
"""


class PythonResolver:
    """Resolver passed to Python registerers when no official runtime is installed.

    Attributes:
        ops: the registered operators, by name.
    """

    def __init__(self) -> None:
        self.ops: dict[str, AnyCustomOp] = {}

    def add_custom(self, name: str, op: AnyCustomOp) -> None:
        """Register a ``Registration`` or a result of ``custom_op`` as operator *name*."""
        self.ops[name] = op


class Resolver(int, PythonResolver):
    """Address of the official resolver, with a method that adds operators written in Python."""

    def __init__(self, address: int) -> None:
        PythonResolver.__init__(self)


def registered_ops(registerers: Sequence[Registerer], model: Model) -> CustomOps:
    """Return the operators from *registerers* that the model uses.

    Raises:
        ArgumentTypeError: a registerer is neither a name nor a function.
        ArgumentError: no C function has the name of a registerer.
        UnsupportedRuntimeError: a registerer is a C function, and no official runtime is installed
            whose resolver it can fill, or the resolver's form is unknown.
    """
    for registerer in registerers:
        if not (isinstance(registerer, str) or callable(registerer)):
            raise ArgumentTypeError(
                f"a registerer is the name of a C function, or a function, not {registerer!r}"
            )
    names = {
        operator.name
        for subgraph in model.subgraphs
        for operator in subgraph.operators
        if operator.is_custom
    }
    found: CustomOps = importlib.import_module(NATIVE).registered_ops(registerers, names)
    return found
