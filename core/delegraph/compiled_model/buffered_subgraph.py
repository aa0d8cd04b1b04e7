"""A subgraph that runs on tensor buffers, without copies where the memory layout allows it.

An input or output in the arena uses a buffer's memory directly, until a run has other buffers.
Strings, constants and variables are copied. So are outputs that overlap another buffer of the run,
except an input that may be overwritten, such as a KV cache. If shapes are known only while the
subgraph runs, everything is copied, since the arena is planned during the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.compiled_model.failures import (
    Status,
    allocation_failure,
    checked_c_int,
    failure,
    run_failure,
)
from delegraph.compiled_model.host_memory import HostMemory, as_bytes, overlapping, type_name
from delegraph.errors import ArgumentError, DelegateError, NodeError, OperatorError, ResizeError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.operators.tensor import Tensor
from delegraph.runtime.bound_state import may_move, may_share_memory
from delegraph.runtime.tensor_access import read_tensor, require_resizable, signature_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.runtime.session import Session
    from delegraph.runtime.subgraph import Subgraph


class BufferedSubgraph:
    """A subgraph whose inputs and outputs are in tensor buffers.

    Its methods must be called while no other call of the session runs.

    Args:
        session: the session.
        subgraph: one of its subgraphs.
        is_called: whether an operator of another subgraph calls it.

    Attributes:
        inputs: the input tensors, in the graph's order.
        outputs: the output tensors, in the graph's order.
        last_inputs: the memory that each input had in the last run; None before the first run.
    """

    def __init__(self, session: Session, subgraph: Subgraph, *, is_called: bool) -> None:
        self._session = session
        self._subgraph = subgraph
        self.inputs = [subgraph.tensors[index] for index in subgraph.inputs if index >= 0]
        self.outputs = [subgraph.tensors[index] for index in subgraph.outputs if index >= 0]
        self.last_inputs: list[HostMemory | None] = [None] * len(self.inputs)
        self._is_called = is_called
        # Whether buffers did not fit; then reading details fails, as in LiteRT.
        self._has_failed = False
        # Results of checks, for later runs with equal buffers:
        self._bound_inputs: list[Any] | None = None
        self._bound_outputs: list[HostMemory] | None = None
        self._pointed: list[tuple[Tensor, NDArray[Any], Any]] = []  # array, and the runtime's own
        self._results: list[tuple[Tensor, HostMemory, NDArray[Any] | None]] = []

    # -- description ---------------------------------------------------------------------------

    def allocate(self) -> None:
        """Prepare the nodes, so that shapes of outputs are known unless they depend on values.

        Raises:
            CompiledModelError: a node cannot be prepared, or the last run failed because of its
                buffers.
            DelegateError: a delegate failed.
        """
        if self._has_failed:
            raise allocation_failure("the buffers of the last run did not fit")
        self._allocate()

    def _allocate(self) -> None:
        self._session.check_placement()
        try:
            self._session.allocate(self._subgraph)
        except DelegateError:
            raise
        except (NodeError, OperatorError) as error:
            raise allocation_failure(str(error)) from error

    def allocate_if_possible(self) -> None:
        """Prepare the nodes; if that fails, shapes remain as declared."""
        try:
            self._session.allocate(self._subgraph)
        except (NodeError, OperatorError):
            return  # the next run reports the error

    def input_memory(self, position: int) -> HostMemory:
        """Return new memory for the input at *position*."""
        tensor = self.inputs[position]
        return HostMemory(tensor.type, tensor.shape)

    def output_memory(self, position: int) -> HostMemory:
        """Return new memory for the output at *position*; runs may change its size.

        Raises:
            CompiledModelError: the last run failed because of its buffers.
        """
        if self._has_failed:
            self.allocate()
        self.allocate_if_possible()
        tensor, is_open = self.outputs[position], self._subgraph.has_dynamic_tensors
        return HostMemory(tensor.type, tensor.shape, follows_runs=is_open)

    # -- shapes --------------------------------------------------------------------------------

    def resize(self, position: int, dims: Sequence[int], *, strict: bool) -> None:
        """Set the shape of an input.

        With *strict*, only the present shape, and changes where ``shape_signature`` has -1, are
        allowed.

        Raises:
            ArgumentTypeError: a dimension does not fit an int32.
            CompiledModelError: the input cannot have the shape.
        """
        shape = tuple(checked_c_int("a dimension", dim) for dim in dims)
        tensor = self.inputs[position]
        if strict:
            cause = _resize_obstacle(tensor, shape)
        elif not shape:
            cause = "New shape must not be empty."
        else:
            cause = "" if min(shape) > 0 else "Dimensions must be positive."
        if cause:
            raise failure(
                Status.INVALID_ARGUMENT,
                f"{cause} {tensor.name!r} is {list(signature_of(tensor))}, not {list(shape)}",
            )
        try:
            self._resize(tensor, shape)
        except OperatorError as error:
            raise failure(Status.INVALID_ARGUMENT, str(error)) from error

    def _resize(self, tensor: Tensor, shape: tuple[int, ...]) -> None:
        self._take_back()
        self._has_failed = False
        self._session.memory_limit.trust_shapes()
        self._session.resize_input(self._subgraph, tensor.index, shape)

    def _fit(self, tensor: Tensor, memory: HostMemory) -> None:
        """Set the shape of input *tensor* to the shape of its buffer *memory*, if allowed."""
        if memory.shape == tensor.shape:
            return
        change = f"tensor {tensor.name!r} from {list(tensor.shape)} to {list(memory.shape)}"
        if -1 not in tensor.shape_signature:
            raise run_failure(f"Cannot auto-resize {change}: no dimension of it is open")
        try:
            require_resizable(tensor, memory.shape)
            self._resize(tensor, memory.shape)
        except (ResizeError, OperatorError) as error:
            raise run_failure(f"Cannot auto-resize {change}: {error}") from error

    # -- running -------------------------------------------------------------------------------

    def run(self, inputs: list[HostMemory | None], outputs: list[HostMemory]) -> None:
        """Run the subgraph once.

        Args:
            inputs: memory of each input; None for an input whose value does not change.
            outputs: memory of each output.

        Raises:
            CompiledModelError: a buffer does not fit, or a node failed.
            DelegateError: a delegate failed.
        """
        if inputs != self._bound_inputs or outputs != self._bound_outputs or not self._is_bound():
            self._bind(inputs, outputs)
        try:
            self._subgraph.invoke()
            for tensor, memory, array in self._results:
                if tensor.data is not array or tensor.data_is_stale:
                    self._copy_out(tensor, memory, array)
        except NodeError as error:
            if isinstance(error, DelegateError):
                raise
            raise run_failure(str(error)) from error
        finally:
            if self._is_called:
                self._take_back()  # a node may write these tensors when it calls the subgraph

    def _is_bound(self) -> bool:
        if not self._subgraph.is_allocated:
            return False
        for tensor, array, _ in self._pointed:  # noqa: SIM110 - quicker than a generator
            if tensor.data is not array:
                return False
        return True

    def _take_back(self) -> None:
        """Let inputs and outputs use the arena's memory again, in place of users' buffers."""
        self._bound_inputs = None
        for tensor, array, own in self._pointed:
            if tensor.data is array:
                tensor.data = own
        self._pointed.clear()

    def _bind(self, inputs: list[HostMemory | None], outputs: list[HostMemory]) -> None:
        """Let inputs and outputs use the users' buffers as memory; copy inputs where not possible.

        An input of None keeps its values.
        """
        self._take_back()
        _require_buffers("input", self.inputs, [m for m in inputs if m is not None], len(inputs))
        _require_buffers("output", self.outputs, outputs, len(outputs))
        pairs = zip(self.inputs, inputs, strict=True)
        given = [(tensor, memory) for tensor, memory in pairs if memory is not None]
        for tensor, memory in given:
            self._fit(tensor, memory)
        self._allocate()
        self._require_room(given, list(zip(self.outputs, outputs, strict=True)))
        self.last_inputs = [m or last for m, last in zip(inputs, self.last_inputs, strict=True)]
        may_point = not self._subgraph.has_dynamic_tensors
        is_lasting = True
        for tensor, memory in given:
            if may_point and memory.is_plain and may_move(tensor) and tensor.delegate is None:
                self._point(tensor, memory)
            else:
                self._copy_in(tensor, memory)
                is_lasting = False
        in_place = self._in_place(given, outputs) if may_point else set()
        others = [memory for _, memory in given if memory not in in_place]
        copied = overlapping([*outputs, *others])
        taken = {tensor.index for tensor in self.inputs}
        self._results.clear()
        for tensor, memory in zip(self.outputs, outputs, strict=True):
            is_free = tensor.index not in taken and memory not in copied
            array = None
            if may_point and is_free and memory.is_plain and may_move(tensor):
                array = self._point(tensor, memory)
            taken.add(tensor.index)
            self._results.append((tensor, memory, array))
        self._has_failed = False
        self._bound_inputs = inputs if is_lasting else None
        self._bound_outputs = outputs

    def _in_place(
        self, given: Sequence[tuple[Tensor, HostMemory]], outputs: Sequence[HostMemory]
    ) -> set[HostMemory]:
        """Return the buffers that may be both an input and an output of this run.

        *given* has the input tensors with their memory; *outputs* has the memory of each output.
        """
        inputs = [memory for _, memory in given]
        return {
            memory
            for tensor, memory in given
            for made, other in zip(self.outputs, outputs, strict=True)
            if memory is other
            and inputs.count(memory) == 1
            and may_share_memory(self._subgraph, tensor.index, made.index)
        }

    def _point(self, tensor: Tensor, memory: HostMemory) -> NDArray[Any]:
        array = memory.view(tensor)
        # Set before the change, in case of an interrupt.
        self._pointed.append((tensor, array, tensor.data))
        tensor.data = array
        return array

    def _require_room(
        self,
        inputs: Sequence[tuple[Tensor, HostMemory]],
        outputs: Sequence[tuple[Tensor, HostMemory]],
    ) -> None:
        """Check that each buffer has as many bytes as its tensor needs, if this is known.

        *inputs* and *outputs* are tensors with their buffers. Outputs must be writable.

        Raises:
            CompiledModelError: a buffer is too small, or an output's buffer is read-only.
        """
        for tensor, memory in inputs:
            self._require_bytes(tensor, memory)
        for tensor, memory in outputs:
            if not memory.data.flags.writeable:
                raise run_failure(f"the buffer of output {tensor.name!r} is read-only memory")
            if not (self._subgraph.has_dynamic_tensors or memory.follows_runs):
                self._require_bytes(tensor, memory)

    def _require_bytes(self, tensor: Tensor, memory: HostMemory) -> None:
        is_object = tensor.type in OBJECT_TYPES
        if is_object == (memory.objects is not None) and len(memory.data) >= tensor.bytes:
            return
        self._has_failed = True
        what = "strings" if is_object else f"{tensor.bytes} bytes"
        raise run_failure(
            f"Failed to allocate tensors: {tensor.name!r} needs {what}, and its buffer has "
            f"{len(memory.data)} bytes of {type_name(memory.type)}"
        )

    def _copy_in(self, tensor: Tensor, memory: HostMemory) -> None:
        if memory.objects is not None or tensor.is_constant:
            value = memory.view(tensor) if memory.objects is None else memory.objects
            try:
                self._session.write(self._subgraph, tensor.index, value)
            except ArgumentError as error:
                raise run_failure(str(error)) from error
            return
        if tensor.data is not None:
            tensor.data[...] = memory.view(tensor)
        if tensor.delegate is not None:
            self._subgraph.buffers.write_through(tensor)

    def _copy_out(self, tensor: Tensor, memory: HostMemory, array: NDArray[Any] | None) -> None:
        self._subgraph.readable(tensor.index)
        if tensor.data is array and array is not None:
            return  # the array is the buffer's memory already
        if tensor.type in OBJECT_TYPES or memory.follows_runs:
            values = read_tensor(tensor) if tensor.type in OBJECT_TYPES else tensor.data
            memory.hold(np.asarray(values), tensor.type, tensor.shape)
            return
        self._require_bytes(tensor, memory)
        if tensor.data is not None:
            as_bytes(memory.view(tensor))[...] = as_bytes(np.ascontiguousarray(tensor.data))


def _require_buffers(
    kind: str, tensors: Sequence[Tensor], memories: Sequence[Any], count: int
) -> None:
    """Check that *count*, the number of buffers, is that of *tensors*, and that all are buffers.

    *kind* is ``"input"`` or ``"output"``. *memories* are the values that should be buffers' memory.

    Raises:
        CompiledModelError: the number of buffers is wrong, or a value is no buffer's memory.
    """
    if count != len(tensors):
        numbers = f"number of {kind}s:{len(tensors)} vs buffers:{count}"
        raise run_failure(f"{kind.capitalize()} buffer size mismatch: {numbers}")
    for memory in memories:
        if not isinstance(memory, HostMemory):
            raise run_failure(f"{kind}_caps_list element not a capsule: {memory!r}")


def _resize_obstacle(tensor: Tensor, shape: tuple[int, ...]) -> str:
    """Return the reason why a strict resize of *tensor* to *shape* is rejected, or ""."""
    if not shape:
        return "New shape must not be empty."
    if min(shape) <= 0:
        return "Dimensions must be positive."
    declared = signature_of(tensor)
    if shape == tensor.shape:
        return ""
    if len(shape) != len(declared):
        return "New shape rank does not match current shape rank."
    if any(known not in (-1, dim) for known, dim in zip(declared, shape, strict=True)):
        return "New shape is not compatible with current shape."
    return ""
