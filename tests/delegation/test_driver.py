"""Partitions that a delegate refuses as a whole, and the life of its kernels, in both hosts."""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Interpreter,
    Node,
    Rejection,
)
from delegraph.errors import DelegateError, DelegraphError, PartitionRejected
from delegraph.native import LiteRtInterpreter
from delegraph.testing import graph_model
from support.by_name import ByName, ByNameKernel, X, Y, partitions, run, sines

HOSTS = pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])

Host = Callable[..., Any]


class Choosy(ByName):
    """Refuses partitions that hold one of *unwanted*: when asked, or in its kernel's ``init``."""

    def __init__(self, *ops: str, unwanted: str = "", by: str = "check", **how: Any) -> None:
        super().__init__(*ops, **{"kernel": LivingKernel} | how)
        self.unwanted, self.by = unwanted, by
        self.asked: list[tuple[int, ...]] = []

    def has_unwanted(self, context: DelegateContext, params: DelegateParams) -> bool:
        found = [context.get_node_and_registration(i)[1].name for i in params.nodes_to_replace]
        return self.unwanted in found

    def check_partition(self, context: DelegateContext, params: DelegateParams) -> bool | Rejection:
        self.asked.append(params.nodes_to_replace)
        if self.by == "check" and self.has_unwanted(context, params):
            return Rejection("too-big", "the engine has room for less")
        return True


class LivingKernel(ByNameKernel):
    """Notes what becomes of it in ``calls``."""

    delegate: Choosy

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        super().init(context, params)
        if self.delegate.by == "init" and self.delegate.has_unwanted(context, params):
            raise PartitionRejected("the engine has room for less", constraint="too-big")

    def memory_changed(self, context: DelegateContext, node: Node) -> None:
        self.delegate.calls.append("memory_changed")
        self.arrays = [context.tensors[i].data for i in (*node.inputs, *node.outputs)]

    def eval(self, context: DelegateContext, node: Node) -> None:
        found = [context.tensors[i].data for i in (*node.inputs, *node.outputs)]
        assert all(a is b for a, b in zip(found, self.arrays, strict=True))
        super().eval(context, node)

    def close(self) -> None:
        self.delegate.calls.append("close")


# -- results ---------------------------------------------------------------------------------------


@HOSTS
@pytest.mark.parametrize("is_sequence", [False, True])
def test_a_kernel_that_returns_its_values_is_an_error(host: Host, is_sequence: bool) -> None:
    class Returns(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            value = np.sin(context.tensors[node.inputs[0]].data)
            return [value] if is_sequence else value  # type: ignore[return-value]

    made = host(model_content=sines(), delegates=[ByName("SIN", kernel=Returns)])
    wanted = r"Returns\.eval returned float32 \[4\] and did not write it into the output: write"
    with made, pytest.raises(DelegraphError, match=wanted):
        run(made)


@HOSTS
def test_a_kernel_that_writes_nothing_is_logged_at_the_first_run(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    class Forgets(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            y = context.tensors[node.outputs[0]].data
            y = np.sin(context.tensors[node.inputs[0]].data)  # noqa: F841 - the mistake

    with host(model_content=sines(), delegates=[ByName("SIN", kernel=Forgets)]) as made:
        for _ in range(2):
            run(made)
    told = [record.getMessage() for record in caplog.records]
    wanted = r"Forgets\.eval did not write its output Tensor\(\d, '\w', FLOAT32\[4\]\): write with"
    assert told
    assert all(re.match(wanted, line) for line in told)
    assert len(told) == len(set(told))  # once for each node


@HOSTS
def test_an_array_in_the_place_of_an_output_is_logged(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    class Replaces(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
            y.data = np.sin(x.data)

    made = host(model_content=sines(), delegates=[ByName("SIN", kernel=Replaces)])
    with made:
        run(made)
    wanted = "Replaces.eval put another array in the place of Tensor(1, 'a', FLOAT32[4]): write"
    assert caplog.records[0].getMessage().startswith(wanted)


@HOSTS
def test_flags_that_are_none_are_named(host: Host) -> None:
    class Delegate(ByName):
        def flags(self) -> DelegateFlags:
            return "ALLOW_DYNAMIC_TENSORS"  # type: ignore[return-value]  # the mistake

    with pytest.raises(DelegateError, match=r"flags\(\) returned 'ALLOW_DYN.*', not DelegateFlags"):
        run(host(model_content=sines(), delegates=[Delegate("SIN")]))


@HOSTS
def test_data_that_was_read_while_preparing_is_named(host: Host) -> None:
    class Early(ByNameKernel):
        def prepare(self, context: DelegateContext, node: Node) -> None:
            self.data = context.tensors[node.outputs[0]].data

        def eval(self, context: DelegateContext, node: Node) -> None:
            self.data[...] = 1

    made = host(model_content=sines(), delegates=[ByName("SIN", kernel=Early)])
    wanted = r"'NoneType'.*; data that is read while preparing is None: keep the tensor"
    with made, pytest.raises(DelegraphError, match=wanted):
        run(made)


# -- refused partitions ----------------------------------------------------------------------------


@HOSTS
@pytest.mark.parametrize("by", ["check", "init"])
def test_nodes_of_a_refused_partition_go_back(host: Host, by: str) -> None:
    delegate = Choosy("ADD", "MUL", unwanted="MUL", by=by)  # (1, 2) and (4)
    with host(model_content=sines(), delegates=[delegate]) as made:
        np.testing.assert_allclose(run(made), Y, rtol=1e-6)
        assert ("by_name", (4,)) in partitions(made)
        for index in (1, 2):
            rejection = made.placement.nodes[index].rejections["by_name"]
            assert rejection.constraint == "too-big"
            assert str(rejection) == "the engine has room for less"
    gc.collect()
    assert delegate.calls.count("init") == delegate.calls.count("close")


def test_the_next_delegate_gets_them() -> None:
    first, second = Choosy("ADD", "MUL", unwanted="MUL"), ByName("MUL", name="second")
    with Interpreter(model_content=sines(), delegates=[first, second]) as made:
        assert partitions(made) == [("second", (2,)), ("by_name", (4,))]
        np.testing.assert_allclose(run(made), Y, rtol=1e-6)


def test_partitions_that_come_about_by_a_refusal_are_asked_about_too() -> None:
    """Node 3 waits for 1, and 1 for 0; without 0, nodes 2 and 3 are cut in another way."""
    nodes = [("SIN", "x", "a"), ("ABS", "a", "b"), ("SIN", "x", "c"), ("ADD", "b c", "d")]
    content = graph_model(nodes, inputs="x", outputs="d")
    delegate = Choosy("SIN", "ADD")

    def check(context: DelegateContext, params: DelegateParams) -> bool | Rejection:
        delegate.asked.append(params.nodes_to_replace)
        return len(delegate.asked) > 1 or Rejection("first", "not this one")

    delegate.check_partition = check  # type: ignore[method-assign]  # one delegate's own
    with Interpreter(model_content=content, delegates=[delegate]) as made:
        assert delegate.asked[0] == (0, 2)
        assert set(delegate.asked[1:]) == {nodes for _, nodes in partitions(made)} == {(3,)}


@HOSTS
@pytest.mark.parametrize("answer", [None, "yes"])
def test_an_answer_that_is_none_names_the_partition(host: Host, answer: Any) -> None:
    delegate = Choosy("SIN")
    delegate.check_partition = lambda context, params: answer  # type: ignore[method-assign]
    with pytest.raises(DelegateError, match=r"partition of nodes 0: its answer is (None|'yes')"):
        host(model_content=sines(), delegates=[delegate]).allocate_tensors()


# -- the life of a kernel --------------------------------------------------------------------------


@HOSTS
def test_closing_the_interpreter_closes_every_kernel_once(host: Host) -> None:
    delegate = Choosy("ADD", "MUL")
    with host(model_content=sines(), delegates=[delegate]) as made:
        run(made)
        assert "close" not in delegate.calls
    gc.collect()
    assert delegate.calls.count("init") == delegate.calls.count("close") == 2
    assert delegate.calls[-1] == "close"


@HOSTS
def test_an_interpreter_that_nobody_has_any_more_closes_them(host: Host) -> None:
    delegate = Choosy("ADD", "MUL")
    made = host(model_content=sines(), delegates=[delegate])
    run(made)
    del made
    gc.collect()
    assert delegate.calls.count("init") == delegate.calls.count("close") == 2


@HOSTS
def test_a_resize_closes_those_of_static_delegates_and_makes_new_ones(host: Host) -> None:
    delegate = Choosy("SIN", "MUL", "ADD")
    made = host(model_content=sines(), delegates=[delegate])
    made.resize_tensor_input(made.get_input_details()[0]["index"], (2, 4))
    run(made, np.stack([X, X]))
    made.close()
    gc.collect()
    assert delegate.calls.count("init") == delegate.calls.count("close") == 2


def test_taking_a_delegate_off_closes_its_kernels() -> None:
    delegate = Choosy("ADD", "MUL")
    with Interpreter(model_content=sines(), delegates=[delegate]) as made:
        made.remove_all_delegates()
        assert delegate.calls.count("close") == 2


@HOSTS
def test_failing_later_closes_what_was_begun(host: Host) -> None:
    class FailsLate(LivingKernel):
        def init(self, context: DelegateContext, params: DelegateParams) -> None:
            super().init(context, params)
            if 4 in params.nodes_to_replace:
                raise OSError("no device")

    delegate = Choosy("ADD", "MUL", kernel=FailsLate)
    with pytest.raises(DelegateError, match="no device"):
        host(model_content=sines(), delegates=[delegate]).allocate_tensors()
    gc.collect()
    assert delegate.calls == ["init", "init", "close", "close"]


def test_a_kernel_that_fails_to_close_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(LivingKernel):
        def close(self) -> None:
            super().close()
            raise OSError("stuck")

    delegate = Choosy("ADD", "MUL", kernel=Stuck)
    with caplog.at_level(logging.WARNING):
        Interpreter(model_content=sines(), delegates=[delegate]).close()
    assert delegate.calls.count("close") == 2
    assert "Stuck failed to close: OSError: stuck" in caplog.text


@HOSTS
def test_memory_is_told_of_once_until_it_moves(host: Host) -> None:
    delegate = Choosy("SIN", "MUL", "ADD", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
    with host(model_content=sines(), delegates=[delegate]) as made:
        run(made)
        for _ in range(3):
            made.invoke()
        assert delegate.calls.count("memory_changed") == 1
        made.resize_tensor_input(made.get_input_details()[0]["index"], (2, 4))
        run(made, np.stack([X, X]))
        assert delegate.calls.count("memory_changed") == 2
