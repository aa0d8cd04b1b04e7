"""The delegate contract: the context that a delegate receives, and the low-level interface.

Most delegates implement :class:`~delegraph.delegation.simple_delegate.SimpleDelegateInterface`;
:class:`Delegate` is for those that do their own partitioning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import IntFlag
from typing import TYPE_CHECKING, Any, Literal, Protocol

from delegraph.delegation.rejections import Rejection
from delegraph.delegation.shared_objects import Shared
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
    from delegraph.operators.registration import Node, Registration
    from delegraph.operators.tensor import Tensor
    from delegraph.schema.enums import TensorType

PartitionPolicy = Literal["largest", "measured"]
"""How partitions are chosen: by their number of nodes, or also by the time they save."""


class DelegateFlags(IntFlag):
    """Abilities of a delegate. Source: TfLiteDelegateFlags, tflite/core/c/common.h.

    Attributes:
        ALLOW_DYNAMIC_TENSORS: the delegate's kernels take any shapes, also shapes that are known
            only while invoking. Without this flag the delegate is refused on graphs with dynamic
            tensors, and a resize removes the delegate and applies it again.
        REQUIRE_PROPAGATED_SHAPES: used with ALLOW_DYNAMIC_TENSORS. When shapes change, the tensors
            inside a partition get their new shapes before the kernel's ``prepare`` is called.
        PER_OPERATOR_PROFILING: the kernel records profile events of its own nodes, so its node as
            a whole is left out of the profile.
        HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE: the delegate takes every node, or applying it
            fails; no node needs to be prepared beforehand.
    """

    NONE = 0
    ALLOW_DYNAMIC_TENSORS = 1
    REQUIRE_PROPAGATED_SHAPES = 2
    PER_OPERATOR_PROFILING = 4
    HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE = 8


@dataclass(frozen=True, slots=True)
class DelegateOptions:
    """Limits on the partitions that a delegate takes.

    Partitions of supported nodes are sorted by their number of nodes, largest first, and equally
    large ones by their order in the plan. A limit of 0 or less is no limit.

    Source:
        SimpleDelegateInterface::Options, tflite/delegates/utils/simple_delegate.h.

    Attributes:
        max_delegated_partitions: take at most this many partitions.
        min_nodes_per_partition: leave partitions with fewer nodes.
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
        delegate: the delegate that took it; None in a preview.
        nodes_to_replace: node indices in execution order.
        input_tensors: tensor indices read from outside, sorted; constants are among them.
        output_tensors: tensor indices that others read, sorted.
    """

    delegate: object | None
    nodes_to_replace: tuple[int, ...]
    input_tensors: tuple[int, ...]
    output_tensors: tuple[int, ...]
    context: Any = field(default=None, repr=False, compare=False)

    def partition_model(self) -> PartitionModel:
        """Return the partition as a stand-alone ``.tflite`` file, with the maps to the graph.

        Raises:
            DelegateError: a node is another delegate's, reads a resource that is made outside, or
                calls a subgraph that the host does not show.
        """
        from delegraph.delegation.partition_model import partition_model

        return partition_model(self.context, self)

    def as_model(self) -> bytes:
        """Return the partition as the bytes of a ``.tflite`` file.

        These are the ``content`` of :meth:`partition_model`, which raises the same errors.
        """
        return self.partition_model().content


class StopRequest(Protocol):
    """Request that the running call, an invoke or an allocation, stops early.

    ``Interpreter.cancel`` and ``Limits(time=...)`` make such requests. The host looks for a request
    between nodes. A slow kernel calls :meth:`raise_if_requested` from time to time; its outputs may
    be incomplete then.

    Attributes:
        word: array of shape [1], int32, always in the same memory; a value other than 0 is a
            request.
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

    Each host (runtime, LiteRT bridge) implements this protocol.
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
        """Position of this subgraph in the model."""

    @property
    def model_digest(self) -> str | None:
        """SHA-256 of the model file, as hexadecimal digits; None if the host does not know it.

        Delegates use it in the keys of files that they store; ``model_entries`` in the file do not
        change it. It is None, too, once a constant has been changed.
        """

    @property
    def recommended_num_threads(self) -> int:
        """Number of threads that the user allows; -1 when the delegate may choose."""

    @property
    def cancellation(self) -> StopRequest | None:
        """Request that the running call stops; None in hosts that have no such requests."""

    @property
    def refused_nodes(self) -> Mapping[int, Rejection]:
        """Mapping from each malformed node, which no delegate may claim, to the reason.

        Either Delegraph's kernels refuse the node, or one of its inputs never gets a value.
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
        is called with it at once. Without nodes nothing changes. The method may be called only
        while a delegate is being applied.

        Raises:
            PartitionError: the graph cannot be partitioned.
            DelegateError: no delegate is being applied, or ``registration.init`` failed.
        """

    def partition_failed(self, params: DelegateParams, error: DelegateError) -> Rejection:
        """Return a rejection of the failed partition *params* if the failure policy allows it.

        With ``on_failure="fallback"`` or ``"shadow"`` the delegate loses this partition only, and
        the failure is recorded as an incident.

        Raises:
            DelegateError: *error* itself, if the policy does not allow it, or no other kernel can
                compute the nodes.
        """

    def add_tensors(self, count: int) -> int:
        """Append *count* tensors without type or shape; return the index of the first."""

    def set_tensor_type(self, tensor: Tensor, type: TensorType) -> None:
        """Set the element type of a tensor that a delegate added."""

    def acquire_subgraph_context(self, index: int) -> DelegateContext:
        """Return the context of another subgraph, which a node of this subgraph calls.

        Valid while a delegate is being applied, and in the delegate's kernels.

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

        An earlier handle of the tensor is released by ``delegate.free_buffer_handle``; the last
        handle when the delegate is removed. A kernel that has written the buffer, and not
        ``tensor.data``, sets ``tensor.data_is_stale``; before the next read of the tensor, the host
        copies the value by ``copy_from_buffer_handle``.

        Raises:
            DelegateError: the tensor belongs to another delegate.
        """

    @property
    def is_profiling(self) -> bool:
        """Whether a profile is recorded, so that a kernel may run slower to time its nodes."""

    def record_event(
        self, name: str, node_index: int, start: int, duration: int, fused: Sequence[int] = ()
    ) -> None:
        """Add the run of one of this delegate's operators to the profile, if one is recorded.

        Args:
            name: name of the operator.
            node_index: index of the model's node that the operator computes.
            start: ``time.perf_counter_ns()`` at the beginning of the run.
            duration: nanoseconds of the run.
            fused: indices of the model's other nodes that it computes.
        """

    def cache(self, namespace: str, version: str) -> BlobCache:
        """Return the cache for the partitions that a delegate compiles.

        ``context.cache("mine", engine_version).get_or_make(key, make)`` gives the file.
        ``Interpreter(cache_dir=...)`` and ``$DELEGRAPH_CACHE`` say where they are.

        Args:
            namespace: the delegate's name.
            version: everything that the compiled partitions depend on besides their keys.

        Raises:
            ArgumentError: other characters than letters, digits, ``.``, ``_`` and ``-``.
        """

    def model_entries(self, namespace: str) -> ModelEntries:
        """Return the entries of the model file that belong to the delegate *namespace*."""

    def shared(self, key: Hashable, make: Callable[[], Shared]) -> Shared:
        """Return an object that the interpreters of this process share; the first one makes it.

        The object is released when the last interpreter that has asked for it closes.

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
    """A delegate that partitions the graph itself. Source: TfLiteDelegate, tflite/core/c/common.h.

    The same object may be applied to several interpreters.
    """

    is_isolated = False
    """Whether the delegate runs in a process of its own, which may end before this one."""

    @property
    def flags(self) -> DelegateFlags:
        """Abilities of the delegate; by default none: it is static and rejects dynamic graphs."""
        return DelegateFlags.NONE

    @property
    def partition_policy(self) -> PartitionPolicy:
        """How the runtime chooses among the partitions that ``prepare`` asks for."""
        return "largest"

    def capabilities(self) -> Capabilities:
        """Operators that the delegate claims to compute, and how exactly; none by default."""
        from delegraph.delegation.capabilities import Capabilities

        return Capabilities()

    def note(self) -> str:
        """Remark on the results for users, a few words; empty by default.

        Placements show it after the nodes of the delegate. Example: ``within 1 unit``.
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
        """Reasons for rejected nodes, by node index, in the last prepared subgraph."""
        return {}

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Copy the delegate's own buffer ``tensor.buffer_handle`` to ``tensor.data``.

        Raises:
            DelegateError: by default: the delegate keeps no buffers.
        """
        raise DelegateError(f"delegate {self.name()!r} has no buffer to copy {tensor!r} from")

    def copy_to_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Copy ``tensor.data`` to the delegate's own buffer ``tensor.buffer_handle``.

        Raises:
            DelegateError: by default: the delegate keeps no buffers.
        """
        raise DelegateError(f"delegate {self.name()!r} has no buffer to copy {tensor!r} to")

    def free_buffer_handle(  # noqa: B027 - optional: most delegates keep no buffers
        self, context: DelegateContext, handle: int
    ) -> None:
        """Free the delegate's own buffer *handle*; the default does nothing."""
