"""The context through which kernels and delegates access a running subgraph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, MutableMapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from delegraph.errors import ArgumentError, DelegateError, OperatorError, StateError, in_words
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.graph.model import variables_of
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import DTypeLike, NDArray

    from delegraph.delegation.blob_cache import BlobCache
    from delegraph.delegation.delegate import (
        Delegate,
        DelegateContext,
        DelegateParams,
        StopRequest,
    )
    from delegraph.delegation.model_entries import ModelEntries
    from delegraph.delegation.rejections import Rejection
    from delegraph.delegation.shared_objects import Shared
    from delegraph.graph.model import Model, OperatorSpec, SubgraphSpec
    from delegraph.operators.memory_limit import MemoryLimit
    from delegraph.operators.numerics import Numerics
    from delegraph.operators.registration import CallableSubgraph, Node, Registration, Scratch
    from delegraph.runtime.delegated_plan import DelegatedPlan
    from delegraph.runtime.delegates.buffer_handles import BufferHandles
    from delegraph.runtime.delegates.node_facts import Findings
    from delegraph.runtime.execution.steps import StepRunner
    from delegraph.runtime.shared_state import SharedState
    from delegraph.runtime.subgraph_memory import SubgraphMemory


class SubgraphState(Enum):
    """Whether a subgraph can be invoked or changed.

    Source: Subgraph::State, tflite/core/subgraph.h.

    * ``UNINVOKABLE``: it cannot run before it is allocated.
    * ``INVOKABLE``: it can run.
    * ``IMMUTABLE``: it can run, and a static delegate relies on the present types and shapes of
      tensors. A resize removes the delegates until the next allocation.
    """

    UNINVOKABLE = "uninvokable"
    INVOKABLE = "invokable"
    IMMUTABLE = "invokable and immutable"


class RunningSubgraph(Protocol):
    """The part of ``Subgraph`` that its context uses."""

    spec: SubgraphSpec
    session: SharedState
    tensors: list[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    variables: tuple[int, ...]
    plan: DelegatedPlan
    memory: SubgraphMemory
    steps: StepRunner

    @property
    def buffers(self) -> BufferHandles:
        """The delegates' own buffers of tensors."""

    @property
    def findings(self) -> Findings:
        """Errors, known tensors and unknown shapes that the last check of the nodes found."""

    @property
    def operators(self) -> Sequence[OperatorSpec]:
        """The nodes of the model file in file order, before any delegate replaced nodes."""

    @property
    def has_dynamic_tensors(self) -> bool:
        """Whether any tensor's shape is known only while the subgraph runs."""

    def invoke(self) -> None:
        """Run the execution plan once."""

    def readable(self, index: int) -> Tensor:
        """Return the tensor with *index*, with up-to-date ``data``."""

    @property
    def state(self) -> SubgraphState:
        """State that says whether the subgraph can be invoked or changed now."""


Running = TypeVar("Running", bound=RunningSubgraph)


class ModelContext:
    """Base class of every host's context; ``DelegateContext`` documents the members.

    Args:
        model: the whole model.
        spec: the subgraph as the model declares it.
        cache_dir: folder in which delegates store what they compile; None for the user's cache
            folder.
        objects: objects that this interpreter shares with other interpreters; they live as long as
            the interpreter.

    Attributes:
        spec: the subgraph as the model declares it.
        inputs: tensor indices of the subgraph's inputs.
        outputs: tensor indices of the subgraph's outputs.
        variables: tensor indices of the subgraph's variables.
        subgraph_index: position of this subgraph in the model.
    """

    def __init__(
        self,
        model: Model,
        spec: SubgraphSpec,
        cache_dir: Path | None = None,
        objects: dict[Any, Any] | None = None,
    ) -> None:
        self._model = model
        self._cache_dir = cache_dir
        self._written_entries: dict[str, bytes] | None = None
        self._objects = {} if objects is None else objects
        self.spec = spec
        self.inputs: Sequence[int] = spec.inputs
        self.outputs: Sequence[int] = spec.outputs
        self.variables: Sequence[int] = variables_of(spec)
        self.subgraph_index = spec.index

    @property
    def subgraph_names(self) -> Sequence[str]:
        """Names of the model's subgraphs, by index."""
        return tuple(spec.name for spec in self._model.subgraphs)

    @property
    def model_digest(self) -> str | None:
        """SHA-256 of the model file; None if the host does not provide it."""
        return None

    @property
    def recommended_num_threads(self) -> int:
        """Number of threads that the user allows; -1 if not set, 1 if the host does not know it."""
        return 1

    @property
    def num_threads(self) -> int:
        """Number of threads that a kernel may use, at least 1."""
        return max(self.recommended_num_threads, 1)

    def cache(self, namespace: str, version: str) -> BlobCache:
        """Return the cache for files of the delegate *namespace* in one *version* of it."""
        from delegraph.delegation.blob_cache import BlobCache

        return BlobCache(namespace, version, self._cache_dir)

    def model_entries(self, namespace: str) -> ModelEntries:
        """Return the entries of the model file that belong to the delegate *namespace*."""
        from delegraph.delegation.model_entries import ModelEntries

        return ModelEntries(self._model, namespace, self._written_entries)

    def shared(self, key: Hashable, make: Callable[[], Shared]) -> Shared:
        """Return the object that interpreters share under *key*; *make* creates it if missing."""
        from delegraph.delegation.shared_objects import shared_object  # lazy: few delegates share

        return shared_object(self._objects, key, make)

    def get_model_metadata(self, name: str) -> NDArray[np.uint8]:
        """Return the bytes of the model's metadata entry *name*."""
        metadata = self._model.metadata
        if name not in metadata:
            known = ", ".join(sorted(metadata)) or "none"
            raise ArgumentError(f"no metadata {name!r}; the model has: {known}")
        return metadata[name]

    def _require_callable(self, index: int, count: int) -> None:
        """Raise an error if a kernel cannot call the subgraph with *index* of a model's *count*.

        Raises:
            OperatorError: the subgraph does not exist, or contains the kernel's node.
        """
        if not 0 <= index < count:
            raise OperatorError(f"no subgraph {index}; the model has {count}")
        if index == self.subgraph_index:
            raise OperatorError(f"subgraph {index} cannot call itself")


class SubgraphContext(ModelContext):
    """The runtime's ``DelegateContext`` of one subgraph.

    Attributes:
        is_profiling: see ``DelegateContext``; a plain attribute, since kernels read it at each run.
    """

    def __init__(self, subgraph: RunningSubgraph) -> None:
        session = subgraph.session
        super().__init__(session.model, subgraph.spec, session.cache_dir, session.shared)
        self._subgraph = subgraph
        self.is_profiling = False

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph, by index."""
        return self._subgraph.tensors

    @property
    def recommended_num_threads(self) -> int:
        """Number of threads that the user allows; -1 if the user has set none."""
        return self._subgraph.session.options.recommended_num_threads

    @property
    def numerics(self) -> Numerics:
        """Official kernels whose rounding is reproduced: ``"builtin"`` or ``"reference"``."""
        return self._subgraph.session.options.numerics

    @property
    def cancellation(self) -> StopRequest:
        """Object that holds the request to stop the running call, if any."""
        return self._subgraph.session.cancellation

    @property
    def memory_limit(self) -> MemoryLimit:
        """Limit that a kernel must check before it allocates memory itself."""
        return self._subgraph.session.memory_limit

    @property
    def resources(self) -> MutableMapping[Any, Any]:
        """Resources of the interpreter, such as hash tables, shared by all subgraphs."""
        return self._subgraph.session.resources

    @property
    def model_digest(self) -> str | None:
        """SHA-256 of the model file; None once a constant or the file has been changed."""
        return self._subgraph.session.model_digest

    def write_entries(self, entries: dict[str, bytes]) -> None:
        """From now on, let delegates add the entries that they keep to the mapping *entries*."""
        self._written_entries = entries

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """Set a tensor's shape; see ``OpContext.resize_tensor``."""
        self._subgraph.steps.resize_tensor(tensor, shape)

    def set_dynamic(self, tensor: Tensor) -> None:
        """Declare that a tensor's shape is known only while invoking."""
        self._subgraph.steps.set_dynamic(tensor)

    def scratch(self, shape: Sequence[int], dtype: DTypeLike) -> Scratch:
        """Reserve an array of *shape* and *dtype* as working memory for the node being prepared."""
        return self._subgraph.memory.workspace.reserve(shape, dtype)

    def subgraph(self, index: int) -> CallableSubgraph:
        """Return the subgraph with *index*; see ``OpContext.subgraph``."""
        callees = self._subgraph.session.callees
        self._require_callable(index, len(callees))
        return callees[index]

    @property
    def refused_nodes(self) -> Mapping[int, Rejection]:
        """Nodes that no delegate may claim, with the reasons; see ``DelegateContext``."""
        return self._subgraph.findings.rejections

    def get_execution_plan(self) -> tuple[int, ...]:
        """Return the node indices in execution order."""
        return tuple(self._subgraph.plan.execution_plan)

    def get_node_and_registration(self, node_index: int) -> tuple[Node, Registration]:
        """Return a node and its registration; see ``DelegateContext``."""
        nodes = self._subgraph.plan.nodes
        if not 0 <= node_index < len(nodes):
            raise ArgumentError(f"no node {node_index}; the subgraph has {len(nodes)}")
        return nodes[node_index]

    def preview_delegate_partitioning(self, nodes: Sequence[int]) -> list[DelegateParams]:
        """Return the partitions that replacing *nodes* would give, in execution order."""
        return self._subgraph.plan.preview(nodes, self)

    def replace_node_subsets_with_delegate_kernels(
        self, registration: Registration, nodes: Sequence[int], delegate: object
    ) -> None:
        """Replace *nodes* by delegate nodes with *registration*; see ``DelegateContext``."""
        self._subgraph.plan.replace(registration, nodes, delegate, self)

    def partition_failed(self, params: DelegateParams, error: DelegateError) -> Rejection:
        """Return a rejection of the partition *params*, or raise *error*, as the policy demands."""
        subgraph, nodes = self._subgraph, params.nodes_to_replace
        subgraph.session.cancellation.raise_if_requested()
        needs_delegate = any(subgraph.plan.node(index)[1].is_unresolved for index in nodes)
        policy = subgraph.session.policy_of(params.delegate)
        if policy.on_failure == "raise" or policy.is_default or needs_delegate:
            raise error
        from delegraph.delegation.incident import Incident  # lazy import: few partitions fail
        from delegraph.delegation.rejections import Rejection

        reason = in_words(error)
        subgraph.session.incidents.record(
            Incident(error.delegate, subgraph.spec.index, -1, nodes, error.phase or "init", reason)
        )
        return Rejection("init-failed", reason)

    def add_tensors(self, count: int) -> int:
        """Append *count* scalar FLOAT32 tensors; return the index of the first one."""
        first = len(self._subgraph.tensors)
        self._subgraph.tensors += [
            Tensor(first + i, TensorType.FLOAT32, ()) for i in range(max(count, 0))
        ]
        return first

    def set_tensor_type(self, tensor: Tensor, type: TensorType) -> None:
        """Set the element type of a tensor that a delegate added.

        Raises:
            ArgumentError: the tensor belongs to the model.
            StateError: the graph is immutable: a static delegate relies on it.
        """
        if self._subgraph.state is SubgraphState.IMMUTABLE:
            raise StateError(f"{tensor!r} cannot have another type when the graph is immutable")
        if tensor.index < len(self._subgraph.spec.tensors):
            raise ArgumentError(f"{tensor!r} belongs to the model and keeps its type")
        tensor.type, tensor.dtype, tensor.data = type, NUMPY_DTYPES[type], None

    def acquire_subgraph_context(self, index: int) -> DelegateContext:
        """Return the context of the subgraph with *index*; see ``DelegateContext``."""
        contexts = self._subgraph.session.contexts
        if not 0 <= index < len(contexts):
            raise ArgumentError(f"no subgraph {index}; the model has {len(contexts)}")
        return contexts[index]

    def mark_subgraph_as_delegation_skippable(self, index: int) -> None:
        """Declare that a delegate kernel computes subgraph *index*; see ``DelegateContext``."""
        if index == 0:
            raise ArgumentError("subgraph 0 is the model's entry and cannot be skipped")
        self._subgraph.plan.absorb(self.acquire_subgraph_context(index).subgraph_index)

    def set_buffer_handle(self, tensor: Tensor, handle: int, delegate: Delegate) -> None:
        """Record that the buffer *handle* of *delegate* has the value of *tensor*."""
        self._subgraph.buffers.set_handle(tensor, handle, delegate)

    def record_event(
        self, name: str, node_index: int, start: int, duration: int, fused: Sequence[int] = ()
    ) -> None:
        """Add a run of operator *name* to the profile; *start*, *duration* are in nanoseconds."""
        profile = self._subgraph.session.profile
        if profile is not None:
            delegate = self._subgraph.plan.delegate_of(node_index)
            index = self.subgraph_index
            profile.add(name, index, node_index, start, duration, delegate, tuple(fused))


class SubgraphCallee(Generic[Running]):
    """The runtime's ``CallableSubgraph``; it resizes and allocates through the session.

    A new shape removes static delegates, and allocating applies them again first; both need the
    session. Invoking needs only the subgraph.

    Args:
        subgraph: the subgraph.
        resize_input: function that gives an input of the subgraph another shape.
        allocate: function that allocates the subgraph.
        invoke: function that runs the subgraph; None for the subgraph's own ``invoke``.
    """

    def __init__(
        self,
        subgraph: Running,
        resize_input: Callable[[Running, int, Sequence[int]], None],
        allocate: Callable[[Running], None],
        invoke: Callable[[], None] | None = None,
    ) -> None:
        self._subgraph = subgraph
        self._resize_input = resize_input
        self._allocate = allocate
        self.inputs = subgraph.inputs
        self.outputs = subgraph.outputs
        # The list itself, because delegates append to it.
        self.tensors: Sequence[Tensor] = subgraph.tensors
        self.operators = subgraph.operators
        self.invoke = subgraph.invoke if invoke is None else invoke
        self.readable = subgraph.readable

    @property
    def has_dynamic_tensors(self) -> bool:
        """Whether a shape is known only while invoking."""
        return self._subgraph.has_dynamic_tensors

    def resize_input(self, tensor_index: int, shape: Sequence[int]) -> None:
        """Give input *tensor_index* the shape *shape*; :meth:`allocate` must follow."""
        self._resize_input(self._subgraph, tensor_index, shape)

    def allocate(self) -> None:
        """Prepare the subgraph's nodes and allocate its tensors; cheap when nothing has changed."""
        self._allocate(self._subgraph)
