"""The context through which kernels access a running micro interpreter.

Source:
    MicroInterpreterContext, tflite-micro/micro/micro_interpreter_context.cc.
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from delegraph.errors import ArgumentError, OperatorError, StateError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.graph.model import Model, SubgraphSpec, TensorSpec
from delegraph.memory.workspace import Workspace
from delegraph.micro.allocator import MicroAllocator
from delegraph.micro.layout import Layout
from delegraph.micro.stage import MicroState, Stage
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.numerics import Numerics
from delegraph.operators.registration import CallableSubgraph, Node, Scratch
from delegraph.operators.tensor import Tensor
from delegraph.runtime.context import ModelContext
from delegraph.runtime.execution.cancellation import Cancellation

KernelScratch = Literal["outside", "arena"]
"""Where the working memory of Delegraph's own kernels is."""


class CalledSubgraph(Protocol):
    """The part of a subgraph that calling nodes use; see ``MicroSubgraph``."""

    @property
    def callee(self) -> CallableSubgraph:
        """Control-flow view of the subgraph, available after prepare."""

    def prepare(self, layout: Layout) -> None:
        """Prepare the nodes, unless that is done."""


@dataclass(slots=True)
class MicroRun:
    """State that the subgraphs of one micro interpreter share.

    Attributes:
        model: the model.
        allocator: its arena.
        numerics: which official kernels to round like.
        kernel_scratch: where the working memory of Delegraph's kernels is.
        cancellation: what stops the call that runs.
        stage: what is going on.
        resources: variables and tables.
        subgraphs: in the model's order.
        workspace: working memory outside the arena.
        scratch: scratch buffers in the arena, by number; filled when memory is planned.
        external_context: what the application handed over for its kernels; None without any.
    """

    model: Model
    allocator: MicroAllocator
    numerics: Numerics
    kernel_scratch: KernelScratch
    cancellation: Cancellation
    stage: Stage = field(default_factory=Stage)
    resources: dict[Any, Any] = field(default_factory=dict)
    subgraphs: list[CalledSubgraph] = field(default_factory=list)
    workspace: Workspace = field(default_factory=Workspace)
    scratch: Sequence[NDArray[np.uint8]] = ()
    external_context: object = None


class TempTensor:
    """Description of a tensor in temporary memory, freed after its node is prepared.

    Attributes:
        spec: the tensor.
        addresses: of its structures in the arena.
    """

    __slots__ = ("addresses", "spec")

    def __init__(self, spec: TensorSpec, addresses: Sequence[int]) -> None:
        self.spec = spec
        self.addresses = addresses


class ArenaScratch:
    """A kernel's working memory as a scratch buffer of the arena."""

    __slots__ = ("_data", "_dtype", "_number", "_run", "_shape")

    def __init__(
        self, run: MicroRun, number: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._run = run
        self._number = number
        self._shape = shape
        self._dtype = dtype
        self._data: NDArray[Any] | None = None

    @property
    def data(self) -> NDArray[Any]:
        """The array in the arena, or memory outside the arena before invoke."""
        if self._run.stage.state is not MicroState.INVOKE:
            return np.empty(self._shape, self._dtype)
        if self._data is None:
            raw = self._run.scratch[self._number]
            self._data = raw.view(self._dtype).reshape(self._shape)
        return self._data


class MicroContext(ModelContext):
    """Context of a kernel: ``OpContext``, extended by the functions of TFLM's context.

    Args:
        spec: the kernel's subgraph, as declared.
        tensors: of that subgraph, by index.
        run: what all subgraphs share.
    """

    def __init__(self, spec: SubgraphSpec, tensors: Sequence[Tensor], run: MicroRun) -> None:
        super().__init__(run.model, spec)
        self._tensors = tensors
        self._run = run

    # -- as in every interpreter -----------------------------------------------------------------

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph, by index."""
        return self._tensors

    @property
    def numerics(self) -> Numerics:
        """Which official kernels to round like."""
        return self._run.numerics

    @property
    def memory_limit(self) -> MemoryLimit:
        """Limit for memory outside the arena; the arena has its own limit."""
        return MemoryLimit.of_machine()

    @property
    def resources(self) -> MutableMapping[Any, Any]:
        """Resources of the interpreter, which all subgraphs share."""
        return self._run.resources

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """Check that *shape* is the declared shape, since tensors cannot be resized here.

        Raises:
            OperatorError: *shape* does not have as many elements as declared; while invoking, any
                other shape.
        """
        dims = tuple(int(dim) for dim in shape)
        if dims == tensor.shape and tensor.data is not None:
            return
        is_invoking = self._run.stage.state is MicroState.INVOKE
        if is_invoking or math.prod(dims) != math.prod(tensor.shape):
            raise OperatorError(
                f"{tensor!r} works out as {list(dims)}; a micro interpreter keeps declared shapes"
            )
        tensor.shape = dims
        if tensor.type in OBJECT_TYPES:
            tensor.data = np.empty(dims, object)

    def set_dynamic(self, tensor: Tensor) -> None:
        """Do nothing: the declared shape holds, and is checked during invoke."""

    def scratch(self, shape: Sequence[int], dtype: DTypeLike) -> Scratch:
        """Reserve working memory for one of Delegraph's kernels, during prepare only."""
        self._run.stage.require("scratch", MicroState.PREPARE)
        if self._run.kernel_scratch == "outside":
            return self._run.workspace.reserve(shape, dtype)
        dims, type_ = tuple(shape), np.dtype(dtype)
        size = math.prod(dims) * type_.itemsize
        return ArenaScratch(self._run, self._request_scratch(size), dims, type_)

    def subgraph(self, index: int) -> CallableSubgraph:
        """Return another subgraph of the model.

        Raises:
            OperatorError: no such subgraph, or the node's own.
        """
        subgraphs = self._run.subgraphs
        self._require_callable(index, len(subgraphs))
        return subgraphs[index].callee

    # -- as in TFLM ------------------------------------------------------------------------------

    def allocate_persistent_buffer(self, size: int) -> NDArray[np.uint8]:
        """Return ``[size], uint8`` of the arena's tail, for good; while initialising, preparing.

        Raises:
            StateError: in another state.
            ArenaTooSmallError: the arena has not that much left.
        """
        stage = self._run.stage
        stage.require("allocate_persistent_buffer", MicroState.INIT, MicroState.PREPARE)
        return self._run.allocator.allocate_persistent_buffer(size)

    def request_scratch_buffer_in_arena(self, size: int) -> int:
        """Reserve a scratch buffer for the node's run, during prepare only; return its number.

        Raises:
            StateError: in another state.
            OperatorError: the node has 12 already.
        """
        self._run.stage.require("request_scratch_buffer_in_arena", MicroState.PREPARE)
        return self._request_scratch(size)

    def _request_scratch(self, size: int) -> int:
        index = self.spec.index
        return self._run.allocator.request_scratch_buffer_in_arena(size, index)

    def get_scratch_buffer(self, number: int) -> NDArray[np.uint8]:
        """Return a scratch buffer, ``[bytes], uint8``, undefined when a node starts; invoking.

        Raises:
            StateError: in another state.
            ArgumentError: no such buffer.
        """
        self._run.stage.require("get_scratch_buffer", MicroState.INVOKE)
        if not 0 <= number < len(self._run.scratch):
            count = len(self._run.scratch)
            raise ArgumentError(f"scratch buffer {number} is out of range, there are {count}")
        return self._run.scratch[number]

    def allocate_temp_buffer(self, size: int, alignment: int = 16) -> int:
        """Return the address of memory for this preparation alone; while preparing.

        Raises:
            StateError: in another state.
            ArenaTooSmallError: the arena has not that much left.
        """
        self._run.stage.require("allocate_temp_buffer", MicroState.PREPARE)
        return self._run.allocator.allocate_temp_buffer(size, alignment)

    def deallocate_temp_buffer(self, address: int) -> None:
        """Give temporary memory back; every node must, while preparing.

        Raises:
            StateError: in another state.
        """
        self._run.stage.require("deallocate_temp_buffer", MicroState.PREPARE)
        self._run.allocator.deallocate_temp_buffer(address)

    def allocate_temp_input_tensor(self, node: Node, i: int) -> TempTensor | None:
        """Return input *i*, described in temporary memory; None if the input is absent."""
        return self._temp_tensor(node.inputs, i)

    def allocate_temp_output_tensor(self, node: Node, i: int) -> TempTensor | None:
        """Return output *i*, described in temporary memory; None if the output is absent."""
        return self._temp_tensor(node.outputs, i)

    def allocate_temp_intermediate_tensor(self, node: Node, i: int) -> TempTensor | None:
        """Return intermediate tensor *i*, in temporary memory; None if the tensor is absent."""
        return self._temp_tensor(node.intermediates, i)

    def _temp_tensor(self, indices: Sequence[int], i: int) -> TempTensor | None:
        if not 0 <= i < len(indices) or indices[i] < 0:
            return None
        spec = self.spec.tensors[indices[i]]
        return TempTensor(spec, self._run.allocator.allocate_temp_tensor(spec))

    def deallocate_temp_tensor(self, tensor: TempTensor) -> None:
        """Give a temporary tensor back; every node must."""
        self._run.allocator.deallocate_temp_tensor(tensor.addresses)

    @property
    def external_context(self) -> object:
        """Object that the application has passed to the interpreter; None without one."""
        return self._run.external_context

    def set_external_context(self, payload: object) -> None:
        """Hand *payload* over to all kernels, once.

        Raises:
            ArgumentError: it is None.
            StateError: there is one already, or memory is being planned.
        """
        stage = self._run.stage
        allowed = (MicroState.INIT, MicroState.PREPARE, MicroState.INVOKE)
        stage.require("set_external_context", *allowed)
        if payload is None:
            raise ArgumentError("the external context is None, needs to be an object")
        if self._run.external_context is not None:
            raise StateError("there is an external context already; it cannot be replaced")
        self._run.external_context = payload
