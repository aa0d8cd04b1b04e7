"""Which implementation each operator of a model gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum

import delegraph.kernels.ops  # noqa: F401 - importing the kernels fills the op table
from delegraph.errors import ArgumentError, OperatorError, UnsupportedModelError
from delegraph.graph.model import Operator
from delegraph.kernels.op_table import OP_TABLE
from delegraph.kernels.registration import Eval, Node, Numerics, OpContext, Registration
from delegraph.plugins.plugin_set import installed

_CUSTOM_OPS: dict[str, Registration] = {}


class OpResolverType(IntEnum):
    """Which kernels the official interpreter would use; here, which of them ours round like.

    Source:
        OpResolverType, tflite/python/interpreter.py.
    """

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


def numerics_of(resolver: OpResolverType) -> Numerics:
    """Return the rounding that the kernels of *resolver* have."""
    return "reference" if resolver == OpResolverType.BUILTIN_REF else "builtin"


def register_custom_op(name: str, registration: Registration) -> None:
    """Make a custom operator known to every interpreter created from now on.

    Args:
        name: the custom code that models carry. A later registration replaces an earlier one.
        registration: its implementation; its own ``name`` need not be the same.

    Raises:
        ArgumentError: *name* is empty.
    """
    if not name:
        raise ArgumentError("a custom operator needs a name")
    _CUSTOM_OPS[name] = registration


class OpResolver:
    """Finds registrations: builtin operators by version, custom ones by name.

    A custom operator is looked for in ``custom_ops``, then among those registered with
    :func:`register_custom_op`, then those TFLite itself ships, then in installed plugins. One that
    is nowhere gets an unresolved registration: it stays in the graph for a delegate to claim.
    """

    def __init__(self, custom_ops: Mapping[str, Registration] | None = None) -> None:
        self._custom_ops = dict(custom_ops or {})

    def resolve(self, operator: Operator) -> Registration:
        """Return the implementation of *operator*.

        Raises:
            UnsupportedModelError: a builtin operator or version that has no kernel.
        """
        if operator.is_custom:
            return self._resolve_custom(operator.name)
        found = OP_TABLE.get(operator.name)
        first, last = (1, 0) if found is None else found.versions
        if found is None or not first <= operator.version <= last:
            known = "no version" if found is None else f"versions {first} to {last}"
            raise UnsupportedModelError(
                f"Didn't find op for builtin opcode {operator.name!r} version "
                f"'{operator.version}' (operator {operator.index}); {known} implemented"
            )
        return found

    def _resolve_custom(self, name: str) -> Registration:
        for source in (self._custom_ops, _CUSTOM_OPS, OP_TABLE):
            if name in source:
                return replace(source[name], name=name)
        spec = installed().custom_ops().get(name)
        if spec is not None:
            return replace(spec.load(), name=name)
        return Registration(name, _prepare_unresolved, is_unresolved=True)


def _prepare_unresolved(context: OpContext, node: Node) -> Eval:
    raise OperatorError("no kernel and no delegate provides this custom operator")
