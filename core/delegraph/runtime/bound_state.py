"""State of a signature, such as a KV cache, that stays in the caller's arrays between calls.

A state is an input and an output with one name, type and shape: a call reads the array and writes
the new values into it. If the plan allows it, both tensors lie in the array, and nothing is copied.
Otherwise only the input lies in the array, and the output is copied after the call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import ArgumentError, DelegateError, in_words
from delegraph.lazy_dataclass import dataclass
from delegraph.memory.buffers import BUFFER_ALIGNMENT, aligned_buffer
from delegraph.operators.registration import InPlace
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.runtime.delegated_plan import delegate_name
from delegraph.runtime.tensor_access import STORED_AS_SEEN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.graph.model import Signature
    from delegraph.runtime.subgraph import Subgraph


def state_names(
    inputs: Mapping[str, Mapping[str, Any]], outputs: Mapping[str, Mapping[str, Any]]
) -> tuple[str, ...]:
    """Sorted names that an input and an output of equal type, shape and quantization share.

    String tensors and tensors with several names are no states.
    """
    counts = Counter(entry["index"] for entry in (*inputs.values(), *outputs.values()))
    pairs = {name: (inputs[name], outputs[name]) for name in inputs.keys() & outputs.keys()}
    alike = [name for name, pair in pairs.items() if _are_alike(*pair)]
    return tuple(sorted(n for n in alike if all(counts[e["index"]] == 1 for e in pairs[n])))


def _are_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (
        np.dtype(one["dtype"]).kind not in "SOU"
        and np.dtype(one["dtype"]) == np.dtype(other["dtype"])
        and list(one["shape"]) == list(other["shape"])
        and one["quantization"] == other["quantization"]
    )


@dataclass(slots=True)
class _State:
    """One state of a signature, such as a KV cache.

    Attributes:
        name: name of the input and of the output.
        given: the input tensor, which has the old value.
        made: the output tensor, which gets the new value.
        array: the caller's array.
        is_in_place: whether the last run wrote the output into that array, without a copy.
    """

    name: str
    given: Tensor
    made: Tensor
    array: NDArray[Any]
    is_in_place: bool = False


class BoundState:
    """States of one subgraph in arrays of the caller.

    Its methods must be called while no other call of the session runs.

    Args:
        subgraph: the subgraph of the signature.
        signature: the signature.
        arrays: an array for each state, by name; see ``SignatureRunner.bind_state``.

    Attributes:
        indices: tensors of the states, inputs and outputs, which a call neither takes nor returns.

    Raises:
        ArgumentError: an array does not fit.
    """

    def __init__(
        self, subgraph: Subgraph, signature: Signature, arrays: Mapping[str, NDArray[Any]]
    ) -> None:
        tensors = subgraph.tensors
        self._states = []
        for name, array in arrays.items():
            given, made = tensors[signature.inputs[name]], tensors[signature.outputs[name]]
            _require_fitting(name, array, given)
            self._states.append(_State(name, given, made, array))
        for (name, array), (other, another) in combinations(arrays.items(), 2):
            if np.may_share_memory(array, another):
                raise ArgumentError(f"the arrays of {name!r} and {other!r} share memory")
        self.indices = frozenset(t.index for s in self._states for t in (s.given, s.made))

    @property
    def in_place(self) -> tuple[str, ...]:
        """Names of the states that the last call did not copy."""
        return tuple(state.name for state in self._states if state.is_in_place)

    def put(self, subgraph: Subgraph, write: Callable[[int, NDArray[Any]], object]) -> None:
        """Place inputs, and outputs that may share their memory, in the caller's arrays.

        It is called before each run. *write* copies values into an input that cannot lie in the
        caller's array.

        Raises:
            ArgumentError: the shape of an input has changed since.
        """
        for state in self._states:
            given, made, array = state.given, state.made, state.array
            if given.data is array and (made.data is array) == state.is_in_place:
                continue
            _require_fitting(state.name, array, given)
            if subgraph.has_dynamic_tensors or given.delegate is not None or not may_move(given):
                write(given.index, array)
                state.is_in_place = False
                continue
            state.is_in_place = may_share_memory(subgraph, given.index, made.index)
            given.data = array
            if state.is_in_place:
                made.data = array

    def take(self, subgraph: Subgraph) -> None:
        """Copy new states to the caller's arrays after a run, unless they are there already.

        Raises:
            ArgumentError: the run has changed the shape of an output.
        """
        copied = [state for state in self._states if not state.is_in_place]
        values = [subgraph.readable(state.made.index).data for state in copied]
        for state, value in zip(copied, values, strict=True):
            if value.shape != state.array.shape:
                found, expected = list(value.shape), list(state.array.shape)
                raise ArgumentError(f"state {state.name!r} became {found}, expected {expected}")
        for state, value in zip(copied, values, strict=True):
            np.copyto(state.array, value)


def may_move(tensor: Tensor) -> bool:
    """Whether a tensor may have other memory at the next run."""
    return tensor.allocation_type == AllocationType.ARENA_RW


def may_share_memory(subgraph: Subgraph, given: int, made: int) -> bool:
    """Whether an output of an allocated subgraph may lie in the memory of an input.

    This is allowed if only the node that writes the output reads the input, and if that node
    overwrites the input element by element. Then no node reads a new value instead of the old one,
    and a failed node can be computed again.
    """
    tensors, spec = subgraph.tensors, subgraph.spec
    one, other = tensors[given], tensors[made]
    is_alike = (one.type, one.shape) == (other.type, other.shape)
    if not is_alike or one.delegate is not None or not (may_move(one) and may_move(other)):
        return False
    readers = [operator for operator in spec.operators if given in operator.inputs]
    if len(readers) != 1 or given in subgraph.outputs or made not in readers[0].outputs:
        return False
    steps = [(n, r) for n, r in subgraph.steps.nodes if given in n.inputs or made in n.outputs]
    if len(steps) != 1:
        return False
    node, registration = steps[0]
    if node.delegate is None:
        is_first = node.inputs[0] == given not in node.inputs[1:] and node.outputs[0] == made
        return is_first and bool(registration.inplace & InPlace.INPUT_0)
    return _kernel_allows(subgraph, node, given, made)


def _kernel_allows(subgraph: Subgraph, node: Any, given: int, made: int) -> bool:
    from delegraph.delegation.simple_delegate import SimpleDelegateKernelInterface

    policy, kernel = subgraph.session.policy_of(node.delegate), node.user_data
    compares = policy.validate or policy.on_failure == "shadow"
    if compares or (policy.on_failure != "raise" and not policy.is_default):
        return False  # the original nodes need unchanged inputs
    if not isinstance(kernel, SimpleDelegateKernelInterface):
        return False
    try:
        return bool(kernel.may_share_memory(subgraph.context, given, made))
    except Exception as error:
        name = delegate_name(node.delegate)
        text = f"delegate {name!r}, may_share_memory(): {in_words(error)}"
        raise DelegateError(text, delegate=name, phase="prepare", node_index=node.index) from error


def is_bindable(tensor: Tensor) -> bool:
    """Whether a user's array can hold a tensor's values: not texts, nor numbers below 8 bits."""
    return tensor.type in STORED_AS_SEEN


def new_array(tensor: Tensor) -> NDArray[Any]:
    """Return an aligned array of zeros with the type and shape of *tensor*, for a state."""
    memory = aligned_buffer(tensor.bytes)
    memory[...] = 0
    array: NDArray[Any] = memory.view(tensor.dtype).reshape(tensor.shape)
    return array


def _require_fitting(name: str, array: NDArray[Any], tensor: Tensor) -> None:
    if type(array) is not np.ndarray or array.dtype != tensor.dtype or array.shape != tensor.shape:
        found = f"{array.dtype.name} {list(array.shape)}" if hasattr(array, "shape") else array
        raise ArgumentError(
            f"state {name!r} is {found}, expected {tensor.dtype.name} {list(tensor.shape)}"
        )
    address: int = array.__array_interface__["data"][0]
    if not (array.flags.c_contiguous and array.flags.writeable) or address % BUFFER_ALIGNMENT:
        raise ArgumentError(
            f"the array of state {name!r} is not contiguous, writeable and at a multiple of "
            f"{BUFFER_ALIGNMENT} bytes: copy its values into an array that bind_state() returns"
        )
