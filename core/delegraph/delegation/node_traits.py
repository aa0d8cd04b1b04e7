"""Properties of a node that claims refer to: operator, types, version, fused activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delegraph.lazy_dataclass import dataclass
from delegraph.operators.registration import Node
from delegraph.operators.roles import operands
from delegraph.schema.enums import ActivationFunctionType

if TYPE_CHECKING:
    from delegraph.operators.tensor import Tensor

NO_ACTIVATION = ActivationFunctionType.NONE.name


@dataclass(frozen=True, slots=True)
class NodeTraits:
    """Operator of a node, with types by role, version and fused activation.

    >>> print(NodeTraits("CONV_2D", (("input", "FLOAT32"), ("weights", "INT8")), version=5))
    CONV_2D v5 of input FLOAT32, weights INT8

    Attributes:
        operator: operator name; for a custom operator its custom code.
        types: role and type of each operand, inputs first; absent operands are left out.
        version: version of the operator.
        activation: name of the activation function that is fused to the node, or ``NONE``.
    """

    operator: str
    types: tuple[tuple[str, str], ...]
    version: int = 1
    activation: str = NO_ACTIVATION

    @classmethod
    def of(cls, operator: str, node: Node, tensors: Sequence[Tensor]) -> NodeTraits:
        """Return the operator, types, version and fused activation of a node.

        Args:
            operator: operator name of the node.
            node: the node.
            tensors: tensors of its subgraph, by index.
        """
        types = tuple((role, tensors[index].type.name) for role, index in operands(operator, node))
        return cls(operator, types, node.version, fused_activation(node.options))

    def __str__(self) -> str:
        types = ", ".join(dict.fromkeys(f"{role} {type}" for role, type in self.types))
        fused = "" if self.activation == NO_ACTIVATION else f" with {self.activation}"
        return f"{self.operator} v{self.version} of {types}{fused}"


def fused_activation(options: object) -> str:
    """Return the name of the fused activation in a node's options; ``NONE`` if it has none."""
    found = getattr(options, "fused_activation_function", ActivationFunctionType.NONE)
    known = found in ActivationFunctionType.__members__.values()
    return ActivationFunctionType(found).name if known else str(found)
