"""Finds the implementation of each operator of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import delegraph.kernels.ops  # noqa: F401 - declares the kernels
from delegraph.errors import ArgumentError, OperatorError, UnsupportedModelError
from delegraph.graph.model import OperatorSpec
from delegraph.lazy_dataclass import replace
from delegraph.operators.op_table import OP_TABLE
from delegraph.operators.registration import Registration
from delegraph.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from delegraph.operators.custom_op import AnyCustomOp
    from delegraph.operators.registration import Eval, Node, OpContext


def builtin_registration(name: str) -> Registration | None:
    """Return Delegraph's registration of a builtin operator, or None if it has none.

    A delegate may run the kernel on values of its own, for example to tabulate an 8-bit operator.

    Args:
        name: name of an operator, such as ``ADD``, or of a custom operator that TFLite or TFLM
            ships.
    """
    return OP_TABLE.get(name)


class OpResolver:
    """Finds registrations: builtin operators by name and version, custom operators by name.

    A custom operator is searched in this order: ``custom_ops``; operators registered in this
    process (``register_custom_op``, ``custom_op``); operators that TFLite and TFLM ship; installed
    plugins. An operator that is not found gets an unresolved registration: it stays in the graph,
    where a delegate may claim it.
    """

    def __init__(self, custom_ops: Mapping[str, AnyCustomOp] | None = None) -> None:
        self._custom_ops: dict[str, Registration] = {}
        self._found: dict[tuple[BuiltinOperator, int], Registration] = {}  # by code and version
        if custom_ops:
            from delegraph.operators.custom_op import as_registration  # lazy: few models have any

            if not isinstance(custom_ops, Mapping):
                raise ArgumentError(
                    f"custom_ops is {type(custom_ops).__name__}, expected a dictionary: write "
                    'custom_ops={"Name": function}, with @delegraph.custom_op("Name") above the '
                    "function"
                )
            self._custom_ops = {name: as_registration(op, name) for name, op in custom_ops.items()}

    def resolve(self, operator: OperatorSpec | tuple[Any, ...]) -> Registration:
        """Return the registration of *operator*, an ``OperatorSpec`` or the tuple of its fields.

        Raises:
            UnsupportedModelError: a builtin operator or version that has no kernel.
        """
        _, name, builtin_code, version, _, _, _, _, _ = operator  # `*_` would make a list
        key = builtin_code, version
        if (found := self._found.get(key)) is not None:
            return found
        if builtin_code == BuiltinOperator.CUSTOM:
            return self._resolve_custom(name)
        found = self._found[key] = self._resolve_builtin(OperatorSpec._make(operator))
        return found

    @staticmethod
    def _resolve_builtin(operator: OperatorSpec) -> Registration:
        found = builtin_registration(operator.name)
        first, last = (1, 0) if found is None else found.versions
        if found is None or not first <= operator.version <= last:
            known = "no version" if found is None else f"versions {first} to {last}"
            raise UnsupportedModelError(
                f"Didn't find op for builtin opcode {operator.name!r} version "
                f"'{operator.version}' (operator {operator.index}); {known} implemented"
            )
        return found

    def _resolve_custom(self, name: str) -> Registration:
        from delegraph import plugins  # lazy import: few models have custom operators
        from delegraph.operators.custom_op import as_registration, registered_custom_ops

        for source in (self._custom_ops, registered_custom_ops(), OP_TABLE):
            if name in source:
                return replace(source[name], name=name)
        offered = plugins.installed()
        spec = offered.custom_ops().get(name)
        if spec is not None:
            plugin = offered.custom_op_providers()[name][0].name
            return replace(as_registration(spec.load(), name), name=name, plugin=plugin)
        return Registration(name, _prepare_unresolved, is_unresolved=True)


def _prepare_unresolved(context: OpContext, node: Node) -> Eval:
    raise OperatorError("no kernel and no delegate provides this custom operator")
