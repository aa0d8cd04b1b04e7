"""An interrupt at any line of a call: what is done next is right, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import DelegateFlags, Interpreter
from delegraph.testing import interrupted
from support.by_name import ByName, doubling_while, partitions, sines
from support.policy_models import positive_positions
from support.running import result_of

OURS = ["delegraph", "support"]
FLAGS = [DelegateFlags.NONE, DelegateFlags.ALLOW_DYNAMIC_TENSORS]
MODELS = {
    "chain": (sines(), 4),
    "open shapes": (positive_positions(), 4),
    "loop": (doubling_while(), 1),
}
SMALL, LARGE = (4,), (3, 4)


def at_each_line(call: Callable[[int], bool], every: int = 1) -> None:
    """Let *call* be interrupted at one line after another, or some, until there is none."""
    at = 0
    while call(at):
        at += every
    assert at > 10


SOME = 67
"""Of calls that run thousands of lines, every so many are tried."""


def inputs(at: int, *shape: int) -> NDArray[np.float32]:
    """Another array for each line: other values, and another number of positive ones."""
    count = int(np.prod(shape))
    values = np.arange(1, count + 1, dtype=np.float32) * np.float32(at % 7 + 1)
    values[at % count + 1 :] *= -1
    return values.reshape(shape)


def outputs(interpreter: Interpreter, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Resize, allocate and invoke."""
    interpreter.resize_tensor_input(0, x.shape)
    interpreter.allocate_tensors()
    return result_of(interpreter, x)


def without_delegate(content: bytes, x: NDArray[np.float32]) -> NDArray[np.float32]:
    with Interpreter(model_content=content, delegates=[]) as interpreter:
        return outputs(interpreter, x)


@pytest.mark.repetition(1)  # each is interrupted at every line
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("flags", FLAGS)
def test_an_invoke_may_be_interrupted(name: str, flags: DelegateFlags) -> None:
    content, size = MODELS[name]
    is_static = name == "open shapes" and not flags
    delegates = [] if is_static else [ByName("SIN", "MUL", "ADD", flags=flags)]
    interpreter = Interpreter(model_content=content, delegates=delegates)
    reference = Interpreter(model_content=content, delegates=[])
    for each in (interpreter, reference):
        each.allocate_tensors()

    def call(at: int) -> bool:
        new = inputs(at + 2, size)  # the last run had another number of positive values
        interpreter.set_tensor(0, new)
        is_interrupted = interrupted(interpreter.invoke, at, inside=OURS)
        for x in (new, inputs(at + 1, size)):
            np.testing.assert_allclose(result_of(interpreter, x), result_of(reference, x), 1e-5)
        return is_interrupted

    at_each_line(call)


@pytest.mark.repetition(1)
@pytest.mark.parametrize("flags", FLAGS)
def test_a_resize_and_an_allocation_may_be_interrupted(flags: DelegateFlags) -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN", flags=flags)])
    before = partitions(interpreter)
    shape = SMALL

    def resize() -> None:
        interpreter.resize_tensor_input(0, shape)
        interpreter.allocate_tensors()

    def call(at: int) -> bool:
        nonlocal shape
        shape = SMALL if at % 2 else LARGE
        is_interrupted = interrupted(resize, at, inside=OURS)
        x = inputs(at, *shape)
        np.testing.assert_allclose(outputs(interpreter, x), without_delegate(sines(), x), 1e-5)
        assert partitions(interpreter) == before
        return is_interrupted

    at_each_line(call, SOME)


def test_a_resize_that_was_interrupted_leaves_no_tensor_with_other_memory() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[])
    outputs(interpreter, inputs(0, *SMALL))

    def call(at: int) -> bool:
        shape = SMALL if at % 2 else LARGE
        is_interrupted = interrupted(
            lambda: interpreter.resize_tensor_input(0, shape), at, inside=OURS
        )
        for tensor in interpreter.session.subgraphs[0].tensors:
            assert tensor.data is None or tensor.data.shape == tensor.shape
        outputs(interpreter, inputs(at, *(LARGE if at % 2 else SMALL)))
        return is_interrupted

    at_each_line(call)


@pytest.mark.repetition(1)
@pytest.mark.parametrize("flags", FLAGS)
def test_applying_a_delegate_may_be_interrupted(flags: DelegateFlags) -> None:
    x = inputs(0, *SMALL)
    right = without_delegate(sines(), x)

    def call(at: int) -> bool:
        interpreter = Interpreter(model_content=sines(), delegates=[])
        outputs(interpreter, x)
        delegate = ByName("SIN", flags=flags)
        is_interrupted = interrupted(
            lambda: interpreter.modify_graph_with_delegate(delegate), at, inside=OURS
        )
        interpreter.invoke()  # what was allocated is so, with its data
        np.testing.assert_allclose(result_of(interpreter, x), right, 1e-5)
        assert len(partitions(interpreter)) in ((0, 2) if is_interrupted else (2,))
        interpreter.modify_graph_with_delegate(ByName("SIN", flags=flags))
        np.testing.assert_allclose(outputs(interpreter, inputs(at, *LARGE)).shape, LARGE)
        np.testing.assert_allclose(outputs(interpreter, x), right, 1e-5)
        return is_interrupted

    at_each_line(call, SOME)


@pytest.mark.repetition(1)
@pytest.mark.parametrize("flags", FLAGS)
def test_removing_delegates_may_be_interrupted(flags: DelegateFlags) -> None:
    x = inputs(0, *SMALL)
    right = without_delegate(sines(), x)

    def call(at: int) -> bool:
        interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN", flags=flags)])
        outputs(interpreter, x)
        is_interrupted = interrupted(interpreter.remove_all_delegates, at, inside=OURS)
        interpreter.invoke()
        np.testing.assert_allclose(result_of(interpreter, x), right, 1e-5)
        assert len(partitions(interpreter)) in (0, 2)
        outputs(interpreter, inputs(at, *LARGE))
        np.testing.assert_allclose(outputs(interpreter, x), right, 1e-5)
        return is_interrupted

    at_each_line(call, SOME)
