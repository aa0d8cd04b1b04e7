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
from delegraph.runtime.execution.calls import Cancellation

KernelScratch = Literal["outside", "arena"]
"""Place of the working memory of Delegraph's own kernels: outside the arena or inside."""


class CalledSubgraph(Protocol):
    """The functions of a subgraph that a calling node uses; ``MicroSubgraph`` has these."""

    @property
    def callee(self) -> CallableSubgraph:
        """The subgraph in the form that control-flow operators use, available after prepare."""

    def prepare(self, layout: Layout) -> None:
        """Prepare the nodes, unless they are prepared; *layout* reserves memory in the arena."""


@dataclass(slots=True)
class MicroRun:
    """State that the subgraphs of one micro interpreter share.

    Attributes:
        model: the model.
        allocator: allocator of the arena.
        numerics: whether kernels round like the official builtin or reference ones.
        kernel_scratch: place of the working memory of Delegraph's kernels.
        cancellation: stop request for the running call.
        stage: present stage of the interpreter.
        resources: resource variables and hash tables.
        subgraphs: all subgraphs in the model's order.
        workspace: working memory outside the arena.
        scratch: scratch buffers in the arena by number; set when memory is planned.
        external_context: object that the application passes to its kernels, or None.
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
        addresses: addresses of the tensor's structures in the arena.
    """

    __slots__ = ("addresses", "spec")

    def __init__(self, spec: TensorSpec, addresses: Sequence[int]) -> None:
        self.spec = spec
        self.addresses = addresses


class ArenaScratch:
    """A kernel's working memory as a scratch buffer in the arena."""

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
        """The array in the arena; before the first invoke, memory outside the arena."""
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
        tensors: tensors of the subgraph, by index.
        run: state that all subgraphs share.
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
        """The official kernels, builtin or reference, whose rounding the kernels reproduce."""
        return self._run.numerics

    @property
    def memory_limit(self) -> MemoryLimit:
        """Limit for memory outside the arena; the arena has its own limit."""
        return MemoryLimit.of_machine()

    @property
    def resources(self) -> MutableMapping[Any, Any]:
        """Resources of the interpreter (variables and hash tables), which all subgraphs share."""
        return self._run.resources

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """Check that *shape* is the declared shape of *tensor*; no tensor can be resized.

        Raises:
            OperatorError: *shape* has another number of elements than declared or, while invoking,
                is another shape.
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
        """Do nothing: the declared shape of *tensor* holds, and is checked during invoke."""

    def scratch(self, shape: Sequence[int], dtype: DTypeLike) -> Scratch:
        """Reserve working memory for one of Delegraph's kernels; allowed only while preparing."""
        self._run.stage.require("scratch", MicroState.PREPARE)
        if self._run.kernel_scratch == "outside":
            return self._run.workspace.reserve(shape, dtype)
        dims, type_ = tuple(shape), np.dtype(dtype)
        size = math.prod(dims) * type_.itemsize
        return ArenaScratch(self._run, self._request_scratch(size), dims, type_)

    def subgraph(self, index: int) -> CallableSubgraph:
        """Return subgraph *index* of the model, which the node calls.

        Raises:
            OperatorError: the subgraph does not exist, or is the node's own.
        """
        subgraphs = self._run.subgraphs
        self._require_callable(index, len(subgraphs))
        return subgraphs[index].callee

    # -- as in TFLM ------------------------------------------------------------------------------

    def allocate_persistent_buffer(self, size: int) -> NDArray[np.uint8]:
        """Return ``[size], uint8`` of persistent memory; allowed while initialising and preparing.

        Raises:
            StateError: the interpreter is in another state.
            ArenaTooSmallError: the arena has fewer free bytes.
        """
        stage = self._run.stage
        stage.require("allocate_persistent_buffer", MicroState.INIT, MicroState.PREPARE)
        return self._run.allocator.allocate_persistent_buffer(size)

    def request_scratch_buffer_in_arena(self, size: int) -> int:
        """Reserve *size* bytes as a scratch buffer of the node; return its number.

        The call is allowed only while preparing.

        Raises:
            StateError: the interpreter is in another state.
            OperatorError: the node has already requested 12 buffers.
        """
        self._run.stage.require("request_scratch_buffer_in_arena", MicroState.PREPARE)
        return self._request_scratch(size)

    def _request_scratch(self, size: int) -> int:
        index = self.spec.index
        return self._run.allocator.request_scratch_buffer_in_arena(size, index)

    def get_scratch_buffer(self, number: int) -> NDArray[np.uint8]:
        """Return scratch buffer *number*, ``[bytes], uint8``, during invoke.

        The content of the buffer is undefined.

        Raises:
            StateError: the interpreter is in another state.
            ArgumentError: the buffer does not exist.
        """
        self._run.stage.require("get_scratch_buffer", MicroState.INVOKE)
        if not 0 <= number < len(self._run.scratch):
            count = len(self._run.scratch)
            raise ArgumentError(f"scratch buffer {number} is out of range, there are {count}")
        return self._run.scratch[number]

    def allocate_temp_buffer(self, size: int, alignment: int = 16) -> int:
        """Return the address of *size* aligned bytes that the node may use while it is prepared.

        The call is allowed only while preparing.

        Raises:
            StateError: the interpreter is in another state.
            ArenaTooSmallError: the arena has fewer free bytes.
        """
        self._run.stage.require("allocate_temp_buffer", MicroState.PREPARE)
        return self._run.allocator.allocate_temp_buffer(size, alignment)

    def deallocate_temp_buffer(self, address: int) -> None:
        """Free the temporary memory at *address*; every node must do so while preparing.

        Raises:
            StateError: the interpreter is in another state.
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
        """Free a temporary tensor; every node must free its temporary tensors."""
        self._run.allocator.deallocate_temp_tensor(tensor.addresses)

    @property
    def external_context(self) -> object:
        """Object that the application has passed to the interpreter; None if none was set."""
        return self._run.external_context

    def set_external_context(self, payload: object) -> None:
        """Pass *payload* to all kernels; allowed once.

        Raises:
            ArgumentError: *payload* is None.
            StateError: an object was already passed, or memory is being planned.
        """
        stage = self._run.stage
        allowed = (MicroState.INIT, MicroState.PREPARE, MicroState.INVOKE)
        stage.require("set_external_context", *allowed)
        if payload is None:
            raise ArgumentError("the external context is None, needs to be an object")
        if self._run.external_context is not None:
            raise StateError("there is an external context already; it cannot be replaced")
        self._run.external_context = payload
