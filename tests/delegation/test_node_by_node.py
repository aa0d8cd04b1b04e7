"""Kernels that compute one node after the other, in both hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph import (
    DelegateFlags,
    Eval,
    Interpreter,
    NodeByNodeKernel,
    NodeCall,
)
from delegraph.errors import DelegateError, DelegraphError
from delegraph.native import LiteRtInterpreter
from delegraph.schema.options import AddOptions, SplitOptions
from delegraph.testing import constant, graph_model, tensor
from support.by_name import COMPUTE, ByName, X, Y, run, sines

HOSTS = pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])

Host = Callable[..., Any]


class Kernel(NodeByNodeKernel):
    def __init__(self, delegate: NodeByNode) -> None:
        self.delegate = delegate

    def prepare_node(self, call: NodeCall) -> Eval:
        self.delegate.seen.append(call)
        inputs, y = [call.input(i) for i in range(len(call.inputs))], call.output()
        assert all(tensor.data is None for tensor in inputs if not tensor.is_constant)
        call.resize(np.broadcast_shapes(*(x.shape for x in inputs)))
        compute = COMPUTE[call.name]
        return lambda: compute(*(x.data for x in inputs), out=y.data)


class NodeByNode(ByName):
    def __init__(self, *ops: str, kernel: type[Kernel] = Kernel, **how: Any) -> None:
        super().__init__(*ops, kernel=kernel, **how)
        self.seen: list[NodeCall] = []


@HOSTS
def test_a_whole_model_is_computed(host: Host) -> None:
    delegate = NodeByNode("SIN", "ADD", "MUL")
    with host(model_content=sines(), delegates=[delegate]) as made:
        np.testing.assert_allclose(run(made), Y, rtol=1e-6)
        assert [call.name for call in delegate.seen[-5:]] == ["SIN", "ADD", "MUL", "SIN", "ADD"]
        assert delegate.seen[-4].options == AddOptions()


@HOSTS
def test_other_shapes_reach_the_tensors_inside(host: Host) -> None:
    delegate = NodeByNode("SIN", "ADD", "MUL", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
    with host(model_content=sines(), delegates=[delegate]) as made:
        run(made)
        made.resize_tensor_input(made.get_input_details()[0]["index"], (3, 4))
        np.testing.assert_allclose(run(made, np.stack([X] * 3)), np.stack([Y] * 3), rtol=1e-6)


def chain(length: int) -> bytes:
    nodes = [("SIN", f"t{i}", f"t{i + 1}") for i in range(length)]
    tensors = {f"t{i}": tensor((1, 1000)) for i in range(length + 1)}
    return graph_model(nodes, inputs="t0", outputs=f"t{length}", tensors=tensors)


def test_tensors_that_are_not_needed_at_one_time_share_memory() -> None:
    """Of a chain of 100 nodes two tensors of 4,000 bytes are in use at a time."""
    delegate = NodeByNode("SIN")
    with Interpreter(model_content=chain(100), delegates=[delegate]) as made:
        x = np.linspace(-2, 2, 1000, dtype=np.float32).reshape(1, 1000)
        expected = x
        for _ in range(100):
            expected = np.sin(expected)
        np.testing.assert_allclose(run(made, x), expected, rtol=1e-6)
        arrays = [call.output().data for call in delegate.seen[-100:-1]]
        assert len({array.ctypes.data for array in arrays}) == 2


def test_tensors_inside_are_none_of_the_hosts() -> None:
    delegate = NodeByNode("SIN", "ADD", "MUL")
    with Interpreter(model_content=sines(), delegates=[delegate]) as made:
        run(made)
        inner = delegate.seen[-5].output()
        assert inner is not delegate.seen[-5].context.tensors[inner.index]
        assert delegate.seen[-5].context.tensors[inner.index].data is None


@HOSTS
def test_several_outputs_absent_inputs_and_constants(host: Host) -> None:
    nodes = [("SPLIT", "axis x", "a b", SplitOptions(num_splits=2)), ("Sum", "a - b", "y")]
    tensors = {
        "axis": constant(np.array(0, np.int32)),
        "x": tensor((4,)),
        **{name: tensor((2,)) for name in "aby"},
    }
    content = graph_model(nodes, inputs="x", outputs="y", tensors=tensors)

    class Splits(Kernel):
        def prepare_node(self, call: NodeCall) -> Eval:
            if call.name == "Sum":
                a, absent, b = call.inputs
                assert (a is not None, absent, b is not None) == (True, None, True)
                return lambda: np.add(
                    call.input(0).data, call.input(2).data, out=call.output().data
                )
            assert call.input(0).data == 0
            x, first, second = call.input(1), call.output(0), call.output(1)
            for i in range(2):
                call.resize((2,), output=i)

            def split() -> None:
                first.data[:], second.data[:] = x.data[:2], x.data[2:]

            return split

    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS  # LiteRT prepares Sum itself before, without it
    delegate = NodeByNode("SPLIT", "Sum", flags=flags, kernel=Splits)
    with host(model_content=content, delegates=[delegate]) as made:
        found = run(made, np.array([1, 2, 30, 40], np.float32))
        assert found.tolist() == [31, 42]


@pytest.mark.parametrize("type", ["INT4", "INT16", "BOOL", "INT64"])
def test_elements_of_any_size_have_room(type: str) -> None:
    content = graph_model(
        [("Make", "x", "a"), ("Make", "a", "y")],
        inputs="x",
        outputs="y",
        tensors={name: tensor((3, 5), type) for name in "xay"},
    )
    seen: list[tuple[int, ...]] = []

    class Copies(Kernel):
        def prepare_node(self, call: NodeCall) -> Eval:
            def copy() -> None:
                seen.append(call.output().data.shape)
                np.copyto(call.output().data, call.input(0).data)

            return copy

    delegate = NodeByNode("Make", kernel=Copies)
    with Interpreter(model_content=content, delegates=[delegate]) as made:
        made.allocate_tensors()
        made.invoke()
        assert len(set(seen)) == 1


@HOSTS
@pytest.mark.parametrize("phase", ["prepare", "invoke"])
def test_an_error_names_the_node_inside(host: Host, phase: str) -> None:
    class Fails(Kernel):
        def prepare_node(self, call: NodeCall) -> Eval:
            def fail() -> None:
                raise OSError("device lost")

            if call.name != "MUL":
                return super().prepare_node(call)
            if phase == "prepare":
                fail()
            return fail

    delegate = NodeByNode("SIN", "ADD", "MUL", kernel=Fails)
    with pytest.raises(DelegraphError, match=r"node 2 \(MUL\): OSError: device lost"):
        run(host(model_content=sines(), delegates=[delegate]))


@HOSTS
def test_a_node_without_a_function_is_an_error_of_prepare(host: Host) -> None:
    class Forgets(Kernel):
        def prepare_node(self, call: NodeCall) -> Eval:
            super().prepare_node(call)
            return None  # type: ignore[return-value]

    delegate = NodeByNode("SIN", kernel=Forgets)
    with pytest.raises(DelegraphError, match="prepare_node returned NoneType, expected"):
        run(host(model_content=sines(), delegates=[delegate]))


@HOSTS
def test_data_that_is_read_too_early_is_named(host: Host) -> None:
    class Reads(Kernel):
        def prepare_node(self, call: NodeCall) -> Eval:
            y = call.input(0).data + 1
            return lambda: np.copyto(call.output().data, y)

    delegate = NodeByNode("SIN", kernel=Reads)
    with pytest.raises(DelegraphError, match=r"'NoneType'.*; while preparing, only constants have"):
        run(host(model_content=sines(), delegates=[delegate]))


@HOSTS
def test_a_function_that_returns_its_value_is_an_error_of_the_first_run(host: Host) -> None:
    class Returns(Kernel):
        def prepare_node(self, call: NodeCall) -> Eval:
            super().prepare_node(call)
            return lambda: np.sin(call.input(0).data)

    delegate = NodeByNode("SIN", kernel=Returns)
    wanted = r"SIN.*function returned float32 \[4\] and did not write it into the output: "
    with host(model_content=sines(), delegates=[delegate]) as made:
        for _ in range(2):  # it stays one
            with pytest.raises(DelegraphError, match=wanted):
                run(made)


@HOSTS
@pytest.mark.parametrize("claimed", [["SIN"], ["SIN", "ADD", "MUL"]], ids=len)
def test_a_node_that_does_not_write_is_logged_once_even_inside_a_partition(
    host: Host, claimed: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    class Forgets(Kernel):
        def prepare_node(self, call: NodeCall) -> Eval:
            step = super().prepare_node(call)
            return (lambda: None) if call.name == name else step

    name, delegate = claimed[-1], NodeByNode(*claimed, kernel=Forgets)
    with host(model_content=sines(), delegates=[delegate]) as made:
        run(made)
    told = [record.getMessage() for record in caplog.records]
    assert told
    assert all(line.startswith(f"{name}'s function did not write its output T") for line in told)
    assert len(told) == len(set(told))


@pytest.mark.parametrize("returned", [lambda y: y, lambda y: [y[:2], y[2:]], lambda y: y.size])
def test_a_function_may_return_its_output_or_what_is_no_array(returned: Any) -> None:
    class Returns(Kernel):
        def prepare_node(self, call: NodeCall) -> Eval:
            step, y = super().prepare_node(call), call.output()

            def run() -> Any:
                step()
                return returned(y.data)

            return run

    delegate = NodeByNode("SIN", "ADD", "MUL", kernel=Returns)
    with Interpreter(model_content=sines(), delegates=[delegate]) as made:
        np.testing.assert_allclose(run(made), Y, rtol=1e-6)


def test_an_absent_input_and_output_are_named() -> None:
    class Asks(Kernel):
        def prepare_node(self, call: NodeCall) -> Eval:
            call.input(3)
            raise AssertionError

    delegate = NodeByNode("SIN", kernel=Asks)
    with pytest.raises(DelegateError, match=r"node 0 \(SIN\): input 3 is required and absent"):
        Interpreter(model_content=sines(), delegates=[delegate])


@HOSTS
def test_a_profile_tells_of_each_node_where_the_delegate_says_so(host: Host) -> None:
    delegate = NodeByNode("SIN", "ADD", "MUL", flags=DelegateFlags.PER_OPERATOR_PROFILING)
    with host(model_content=sines(), delegates=[delegate]) as made:
        run(made)
        with made.profile() as profile:
            made.invoke()
    found = [(event.name, event.node_index) for event in profile.events]
    assert found == [("SIN", 0), ("ADD", 1), ("MUL", 2), ("SIN", 3), ("ADD", 4)]


def test_other_delegates_appear_as_a_whole() -> None:
    with Interpreter(model_content=sines(), delegates=[NodeByNode("SIN", "ADD", "MUL")]) as made:
        run(made)
        with made.profile() as profile:
            made.invoke()
    assert [event.name for event in profile.events] == ["by_name"]
