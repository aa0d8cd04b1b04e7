"""The delegate contract: the context that a delegate receives, and the low-level interface.

Most delegates implement :class:`~delegraph.delegation.simple_delegate.SimpleDelegateInterface`;
:class:`Delegate` is for delegates that do their own partitioning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import IntFlag
from typing import TYPE_CHECKING, Any, Literal, Protocol

from delegraph.delegation.rejections import Rejection
from delegraph.errors import DelegateError
from delegraph.lazy_dataclass import dataclass, field
from delegraph.operators.registration import OpContext

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from delegraph.delegation.blob_cache import BlobCache
    from delegraph.delegation.capabilities import Capabilities
    from delegraph.delegation.model_entries import ModelEntries
    from delegraph.delegation.partition_model import PartitionModel
    from delegraph.delegation.shared_objects import Shared
    from delegraph.operators.registration import Node, Registration
    from delegraph.operators.tensor import Tensor
    from delegraph.schema.enums import TensorType

PartitionPolicy = Literal["largest", "measured"]
"""Way of choosing partitions: by their number of nodes, or also by measured times."""


class DelegateFlags(IntFlag):
    """Abilities of a delegate. Source: TfLiteDelegateFlags, tflite/core/c/common.h.

    Attributes:
        ALLOW_DYNAMIC_TENSORS: the delegate's kernels accept all shapes, including shapes that are
            known only while invoking. Without this flag, the delegate cannot be applied to graphs
            with dynamic tensors, and a resize removes the delegate and applies it again.
        REQUIRE_PROPAGATED_SHAPES: used with ALLOW_DYNAMIC_TENSORS. When shapes change, the tensors
            inside a partition get their new shapes before the kernel's ``prepare`` is called.
        PER_OPERATOR_PROFILING: the kernel records a profile event for each node it computes, so the
            profile omits the delegate node.
        HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE: the delegate must claim every node, else applying
            it fails. Nodes are not prepared beforehand.
    """

    NONE = 0
    ALLOW_DYNAMIC_TENSORS = 1
    REQUIRE_PROPAGATED_SHAPES = 2
    PER_OPERATOR_PROFILING = 4
    HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE = 8


@dataclass(frozen=True, slots=True)
class DelegateOptions:
    """Limits on the partitions that a delegate gets.

    Partitions of supported nodes are sorted by their number of nodes, largest first. Partitions of
    the same size keep the order of the plan. A limit of 0 or less means no limit.

    Source:
        SimpleDelegateInterface::Options, tflite/delegates/utils/simple_delegate.h.

    Attributes:
        max_delegated_partitions: maximal number of partitions; the largest are kept.
        min_nodes_per_partition: smallest number of nodes of a partition that is delegated.
        partition_policy: ``"measured"`` keeps only partitions that save time, measured while the
            delegate is applied. Users can ask for it, too.
    """

    max_delegated_partitions: int = 0
    min_nodes_per_partition: int = 0
    partition_policy: PartitionPolicy = "largest"


@dataclass(frozen=True, slots=True)
class DelegateParams:
    """The partition that one delegate node computes. Source: TfLiteDelegateParams, common.h.

    Attributes:
        delegate: the delegate that claimed the partition; None in a preview.
        nodes_to_replace: node indices in execution order.
        input_tensors: sorted indices of tensors that the partition reads and does not compute,
            including constants.
        output_tensors: sorted indices of computed tensors that other nodes or the user read.
    """

    delegate: object | None
    nodes_to_replace: tuple[int, ...]
    input_tensors: tuple[int, ...]
    output_tensors: tuple[int, ...]
    context: Any = field(default=None, repr=False, compare=False)

    def partition_model(self) -> PartitionModel:
        """Return the partition as a ``.tflite`` file, with the graph's tensor and node indices.

        Raises:
            DelegateError: a node belongs to another delegate, reads a resource that is created
                outside of the partition, or calls a subgraph that the host does not show.
        """
        from delegraph.delegation.partition_model import partition_model

        return partition_model(self.context, self)

    def as_model(self) -> bytes:
        """Return the partition as the bytes of a ``.tflite`` file.

        These are the ``content`` of :meth:`partition_model`, which raises the same errors.
        """
        return self.partition_model().content


class StopRequest(Protocol):
    """Request to stop the running call, an invoke or an allocation, early.

    ``Interpreter.cancel`` and ``Limits(time=...)`` make such requests. The host checks for a
    request between nodes. A slow kernel should call :meth:`raise_if_requested` from time to time;
    its outputs may then be incomplete.

    Attributes:
        word: array of shape [1], int32, always in the same memory; a nonzero value is a request.
    """

    word: NDArray[np.int32]

    def raise_if_requested(self) -> None:
        """Raise the error of a stopped call if there is a request; otherwise return.

        Raises:
            CallCancelledError: there is a request; a :class:`~delegraph.errors.TimeLimitError` if
                the call has used up its time.
        """


class DelegateContext(OpContext, Protocol):
    """A delegate's access to a subgraph. Source: TfLiteContext, tflite/core/c/common.h.

    Each host implements this protocol: Delegraph's runtime and the bridge to LiteRT.
    """

    @property
    def inputs(self) -> Sequence[int]:
        """Tensor indices of the subgraph's inputs."""

    @property
    def outputs(self) -> Sequence[int]:
        """Tensor indices of the subgraph's outputs."""

    @property
    def subgraph_names(self) -> Sequence[str]:
        """Names of the model's subgraphs, by index; an empty string for an unnamed subgraph."""

    @property
    def variables(self) -> Sequence[int]:
        """Tensor indices of the subgraph's variables."""

    @property
    def subgraph_index(self) -> int:
        """Index of this subgraph in the model."""

    @property
    def model_digest(self) -> str | None:
        """SHA-256 of the model file, as hexadecimal digits; None if the host does not know it.

        Delegates use this digest in the keys of files that they store. It does not depend on
        delegates' entries in the model file. It is also None once a constant has been changed.
        """

    @property
    def recommended_num_threads(self) -> int:
        """Number of threads that the user allows; -1 if the delegate may choose."""

    @property
    def cancellation(self) -> StopRequest | None:
        """Stop request for the running call; None if the host has no stop requests."""

    @property
    def refused_nodes(self) -> Mapping[int, Rejection]:
        """Mapping from each malformed node, which no delegate may claim, to the reason.

        Either Delegraph's kernels reject the node, or one of its inputs never gets a value.
        """

    def get_execution_plan(self) -> tuple[int, ...]:
        """Return node indices in execution order, earlier delegates' nodes included."""

    def get_node_and_registration(self, node_index: int) -> tuple[Node, Registration]:
        """Return the node with an index, and its registration.

        Raises:
            ArgumentError: no node has that index.
        """

    def preview_delegate_partitioning(self, nodes: Sequence[int]) -> list[DelegateParams]:
        """Return the partitions that replacing *nodes* would give, in execution order.

        Raises:
            PartitionError: the graph cannot be partitioned.
        """

    def replace_node_subsets_with_delegate_kernels(
        self, registration: Registration, nodes: Sequence[int], delegate: object
    ) -> None:
        """Replace *nodes* by delegate nodes that *registration* runs, one for each partition.

        Every delegate node has a :class:`DelegateParams` as its ``options``; ``registration.init``
        is called with it at once. If *nodes* is empty, nothing changes. The method may be called
        only while a delegate is being applied.

        Raises:
            PartitionError: the graph cannot be partitioned.
            DelegateError: no delegate is being applied, or ``registration.init`` failed.
        """

    def partition_failed(self, params: DelegateParams, error: DelegateError) -> Rejection:
        """Return a rejection of the partition *params*, or raise *error*, by the failure policy.

        With ``on_failure="fallback"`` or ``"shadow"``, the delegate loses only this partition, and
        the failure is recorded as an incident.

        Raises:
            DelegateError: *error* itself, if the policy demands it or no other kernel can compute
                the nodes.
        """

    def add_tensors(self, count: int) -> int:
        """Append *count* tensors without type or shape; return the index of the first."""

    def set_tensor_type(self, tensor: Tensor, type: TensorType) -> None:
        """Set the element type of a tensor that a delegate added."""

    def acquire_subgraph_context(self, index: int) -> DelegateContext:
        """Return the context of another subgraph, which a node of this subgraph calls.

        The method may be called while a delegate is being applied, and in the delegate's kernels.

        Raises:
            ArgumentError: the model has no such subgraph.
        """

    def mark_subgraph_as_delegation_skippable(self, index: int) -> None:
        """Declare that a kernel of this delegate computes the subgraph *index* as a whole.

        No delegate is applied to that subgraph until this delegate is removed. The method may be
        called only while a delegate is being applied.

        Raises:
            ArgumentError: the model has no such subgraph, or it is the first.
            DelegateError: no delegate is being applied.
        """

    def set_buffer_handle(self, tensor: Tensor, handle: int, delegate: Delegate) -> None:
        """Record that *delegate* keeps the value of *tensor* in the delegate's own buffer.

        The host releases the tensor's earlier handle by ``delegate.free_buffer_handle``, and the
        last handle when the delegate is removed. A kernel that has written the buffer but not
        ``tensor.data`` must set ``tensor.data_is_stale``. Then the host copies the value by
        ``copy_from_buffer_handle`` before the tensor is read.

        Raises:
            DelegateError: the tensor belongs to another delegate.
        """

    @property
    def is_profiling(self) -> bool:
        """Whether a profile is recorded; if so, a kernel may run slower to time its nodes."""

    def record_event(
        self, name: str, node_index: int, start: int, duration: int, fused: Sequence[int] = ()
    ) -> None:
        """Add the run of one of this delegate's operators to the profile, if one is recorded.

        Args:
            name: name of the operator.
            node_index: index of the model's node that the operator computes.
            start: ``time.perf_counter_ns()`` at the beginning of the run.
            duration: nanoseconds of the run.
            fused: indices of the model's other nodes that the operator computes.
        """

    def cache(self, namespace: str, version: str) -> BlobCache:
        """Return the cache for the partitions that a delegate compiles.

        ``context.cache("mine", engine_version).get_or_make(key, make)`` returns a file.
        ``Interpreter(cache_dir=...)`` or ``$DELEGRAPH_CACHE`` sets the folder.

        Args:
            namespace: the delegate's name.
            version: everything that the compiled partitions depend on besides their keys.

        Raises:
            ArgumentError: a name has characters other than letters, digits, ``.``, ``_`` and ``-``.
        """

    def model_entries(self, namespace: str) -> ModelEntries:
        """Return the entries of the model file that belong to the delegate *namespace*."""

    def shared(self, key: Hashable, make: Callable[[], Shared]) -> Shared:
        """Return an object that all interpreters of this process share; it is created if missing.

        The object is released when the last interpreter that requested it closes.

        Args:
            key: key of the object; its first item is the delegate's name: ``("mine", device)``.
            make: function that makes the object; called once, also when several threads ask.
        """

    def get_model_metadata(self, name: str) -> NDArray[np.uint8]:
        """Return the model's metadata entry *name*, ``[bytes], uint8``.

        Raises:
            ArgumentError: the model has no such entry.
        """


def raise_if_requested(context: DelegateContext) -> None:
    """Raise the error of a stopped call if a stop was requested; otherwise return.

    Raises:
        CallCancelledError: the call was asked to stop; a :class:`~delegraph.errors.TimeLimitError`
            if the call has used up its time.
    """
    request: StopRequest | None = getattr(context, "cancellation", None)
    if request is not None:
        request.raise_if_requested()


class Delegate(ABC):
    """Delegate that partitions the graph itself. Source: TfLiteDelegate, tflite/core/c/common.h.

    The same object may be applied to several interpreters.
    """

    is_isolated = False
    """Whether the delegate runs in a separate process, which may end before this process."""

    @property
    def flags(self) -> DelegateFlags:
        """Abilities of the delegate; by default none, so it rejects graphs with dynamic tensors."""
        return DelegateFlags.NONE

    @property
    def partition_policy(self) -> PartitionPolicy:
        """Way in which the runtime selects among the partitions that :meth:`prepare` has chosen."""
        return "largest"

    def capabilities(self) -> Capabilities:
        """Operators that the delegate claims to compute, with tolerances; none by default."""
        from delegraph.delegation.capabilities import Capabilities

        return Capabilities()

    def note(self) -> str:
        """Remark of a few words on the results, for users; empty by default.

        A placement shows it after the delegate's nodes. Example: ``within 1 unit``.
        """
        return ""

    @abstractmethod
    def name(self) -> str:
        """Return the name that reports and errors show."""

    @abstractmethod
    def prepare(self, context: DelegateContext) -> None:
        """Claim nodes of one subgraph; called once each time the delegate is applied.

        An implementation looks at the nodes of ``context`` and calls
        ``replace_node_subsets_with_delegate_kernels``. If it raises an error, applying the delegate
        fails, and the graph is restored.
        """

    def rejections(self) -> dict[int, Rejection]:
        """Reasons for rejected nodes, by node index, in the last subgraph prepared."""
        return {}

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Copy the delegate's own buffer ``tensor.buffer_handle`` to ``tensor.data``.

        Raises:
            DelegateError: always, unless a subclass overrides the method.
        """
        raise DelegateError(f"delegate {self.name()!r} has no buffer to copy {tensor!r} from")

    def copy_to_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Copy ``tensor.data`` to the delegate's own buffer ``tensor.buffer_handle``.

        Raises:
            DelegateError: always, unless a subclass overrides the method.
        """
        raise DelegateError(f"delegate {self.name()!r} has no buffer to copy {tensor!r} to")

    def free_buffer_handle(  # noqa: B027 - optional: most delegates keep no buffers
        self, context: DelegateContext, handle: int
    ) -> None:
        """Free the delegate's own buffer *handle*; the default does nothing."""
