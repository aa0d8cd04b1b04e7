"""Facts about nodes and tensors that are known before the first run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delegraph.delegation.rejections import Rejection
from delegraph.errors import DelegraphError, NodeError, in_words
from delegraph.graph.model import OperatorSpec, SubgraphSpec
from delegraph.lazy_dataclass import NamedTuple, dataclass, field
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.runtime.execution.steps import Step
from delegraph.schema.enums import TensorType


class KnownTensor(NamedTuple):
    """Shape, type and perhaps value of a tensor, known before the first run.

    Attributes:
        shape: dimensions of the tensor.
        type: element type, as the node that writes the tensor has decided it.
        has_value: whether the values are known as well.
        digest: hash of the values that a node has computed in prepare. These values may depend on
            shapes, and shapes on these values.
    """

    shape: tuple[int, ...]
    type: TensorType
    has_value: bool
    digest: bytes = b""

    @classmethod
    def of(cls, tensor: Tensor) -> KnownTensor:
        """Return the present type, shape and value of a tensor."""
        digest = b""
        if tensor.allocation_type is AllocationType.PERSISTENT_RO and tensor.data is not None:
            import hashlib  # lazy: it takes milliseconds, and few nodes compute while prepared

            data = tensor.data
            values = repr(data.tolist()).encode() if data.dtype.hasobject else data.tobytes()
            digest = hashlib.blake2b(values, digest_size=16).digest()
        return cls(tensor.shape, tensor.type, tensor.is_constant_or_persistent, digest)


@dataclass(frozen=True, slots=True)
class Findings:
    """Results of checking nodes: nodes that kernels reject, and shapes that are known or not.

    Attributes:
        errors: errors of the kernels that reject a node, by node index.
        known: tensors that the nodes read and write, as far as their shapes are known.
        left_open: outputs whose shapes are known only after their nodes have run.
        custom_errors: errors of custom operators whose kernels reject a node. As in LiteRT, a
            delegate may have these nodes, unless it requires propagated shapes.
    """

    errors: Mapping[int, DelegraphError]
    known: Mapping[int, KnownTensor]
    left_open: frozenset[int] = frozenset()
    custom_errors: Mapping[int, DelegraphError] = field(default_factory=dict)

    @classmethod
    def of_prepared(
        cls, tensors: Sequence[Tensor], errors: Mapping[int, DelegraphError]
    ) -> Findings:
        """Return the result of a check for a graph that is prepared, with all shapes known.

        *errors* are those of rejected nodes, by node index.
        """
        return cls(errors, {tensor.index: KnownTensor.of(tensor) for tensor in tensors})

    @property
    def rejections(self) -> dict[int, Rejection]:
        """Return the errors as rejections, since no delegate may claim these nodes."""
        return {
            index: Rejection("not-well-formed", f"no delegate gets it: {in_words(error)}")
            for index, error in self.errors.items()
        }

    def raise_first(self, *, needs_shapes: bool) -> None:
        """Raise the error of the first node that a kernel rejects, if there is one.

        Args:
            needs_shapes: whether rejected custom operators count, too.
        """
        errors = {**self.errors, **self.custom_errors} if needs_shapes else self.errors
        for index in sorted(errors):
            raise errors[index].with_traceback(None)  # without the traceback of an earlier raise

    def give_shapes(self, nodes: Sequence[Step], tensors: Sequence[Tensor]) -> None:
        """Give those of *tensors* that *nodes* write the shapes that the check of nodes has found.

        Raises:
            UnresolvedOpError: one of the nodes is a custom operator without a kernel.
        """
        for node, registration in nodes:
            if registration.is_unresolved:
                from delegraph.runtime.execution.node_errors import require_kernel  # lazy: few are

                require_kernel(node, registration)
            for index in node.outputs:
                if index in self.known:
                    tensors[index].shape = self.known[index].shape

    def give_types(self, nodes: Sequence[Step], tensors: Sequence[Tensor]) -> None:
        """Give the tensors that *nodes* write the element types that the nodes have decided."""
        for node, _ in nodes:
            for index in node.outputs:
                known = self.known.get(index)
                if known is not None and tensors[index].type is not known.type:
                    tensors[index].adopt_type(known.type)

    def hold_for(self, nodes: Sequence[Step], tensors: Sequence[Tensor]) -> bool:
        """Whether the results of the check are still true for *nodes* and the present *tensors*."""
        known = self.known
        written = {i for node, _ in nodes for i in node.outputs if i >= 0}
        read = {i for node, _ in nodes for i in node.inputs if i >= 0} - written
        return (
            not any(node.index in self.errors for node, _ in nodes)
            and written <= known.keys()
            and all(known.get(i) == KnownTensor.of(tensors[i]) for i in read)
        )


NOTHING_KNOWN = Findings({}, {})


def order_errors(subgraph: SubgraphSpec) -> dict[int, DelegraphError]:
    """Return errors for all nodes if a tensor is written twice or read before it is written.

    In such a graph the values that nodes read depend on their order. Partitions do not keep that
    order, because they order nodes by tensors only. Nodes that depend on each other in a cycle fit
    in no partition.
    """
    made = {index for index in subgraph.inputs if index >= 0}
    later = {index for operator in subgraph.operators for index in operator.outputs if index >= 0}
    for operator in subgraph.operators:
        again, early = made.intersection(operator.outputs), later.intersection(operator.inputs)
        if again or early - made:
            verb = f"makes tensor {min(again)} once more" if again else ""
            verb = verb or f"reads tensor {min(early - made)}, which it or a later node makes"
            reason = f"node {operator.index} ({operator.name}) {verb}"
            return {o.index: _order_error(o, reason) for o in subgraph.operators}
        made.update(output for output in operator.outputs if output >= 0)
    return {}


def _order_error(operator: OperatorSpec, reason: str) -> NodeError:
    return NodeError(
        f"Node number {operator.index} ({operator.name}) must keep its place: {reason}",
        node_index=operator.index,
        op=operator.name,
    )
