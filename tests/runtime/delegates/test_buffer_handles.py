"""Tensors that a delegate keeps in buffers of its own: copied when needed, released once."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph import DelegateContext, Interpreter, Node, SimpleDelegateKernelInterface
from delegraph.errors import DelegateError, DelegateNodeError
from delegraph.schema.options import AddOptions
from delegraph.testing import graph_model
from support.buffered_delegate import Buffered
from support.by_name import ByName, ByNameKernel, X, run

SIN_THEN_ADD = graph_model(
    [("SIN", "x", "s"), ("ADD", "s x", "y", AddOptions())], inputs="x", outputs="y s"
)
SIN_ALONE = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")


class FailsInPrepare(ByName):
    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        class Kernel(ByNameKernel):
            def prepare(self, context: DelegateContext, node: Node) -> None:
                raise RuntimeError("no memory")

        return Kernel(self)


def test_data_is_copied_out_when_another_node_reads_it_and_once() -> None:
    delegate = Buffered()
    interpreter = Interpreter(model_content=SIN_THEN_ADD, delegates=[delegate])
    np.testing.assert_allclose(run(interpreter), np.sin(X) + X, rtol=1e-6)
    assert delegate.count("out") == 1
    np.testing.assert_allclose(interpreter.get_tensor(1), np.sin(X), rtol=1e-6)
    assert delegate.count("out") == 1


def test_data_is_copied_out_when_another_delegate_reads_it_and_once() -> None:
    delegate = Buffered()
    interpreter = Interpreter(model_content=SIN_THEN_ADD, delegates=[delegate, ByName("ADD")])
    np.testing.assert_allclose(run(interpreter), np.sin(X) + X, rtol=1e-6)
    assert delegate.count("out") == 1


def test_a_delegate_that_fails_gives_up_the_buffers_of_tensors_it_added() -> None:
    class Adding(Buffered):
        def prepare(self, context: DelegateContext) -> None:
            added = context.tensors[context.add_tensors(1)]
            context.set_buffer_handle(added, self.new_handle(), self)
            raise OSError("no device")

    delegate = Adding()
    with pytest.raises(DelegateError, match="no device"):
        Interpreter(model_content=SIN_ALONE, delegates=[delegate])
    assert delegate.log == ["new 100", "free 100"]


def test_a_graph_output_is_copied_out_only_when_it_is_asked_for() -> None:
    delegate = Buffered()
    interpreter = Interpreter(model_content=SIN_ALONE, delegates=[delegate])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    interpreter.invoke()
    assert delegate.count("out") == 0
    np.testing.assert_allclose(interpreter.tensor(1)(), np.sin(X), rtol=1e-6)
    assert delegate.count("out") == 1


def test_a_tensor_that_the_user_sets_is_copied_in() -> None:
    delegate = Buffered(keeps_input=True)
    interpreter = Interpreter(model_content=SIN_ALONE, delegates=[delegate])
    np.testing.assert_allclose(run(interpreter), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(run(interpreter, 2 * X), np.sin(2 * X), rtol=1e-6)
    assert delegate.count("in") == 2


def test_another_handle_for_the_same_tensor_releases_the_one_before() -> None:
    delegate = Buffered()
    interpreter = Interpreter(model_content=SIN_ALONE, delegates=[delegate])
    run(interpreter)
    first = delegate.log[0].split()[1]
    interpreter.resize_tensor_input(0, [2])
    run(interpreter, X[:2])
    assert f"free {first}" in delegate.log
    assert delegate.count("free") == delegate.count("new") - 1


@pytest.mark.parametrize("way", ["remove", "close", "failed second delegate"])
def test_handles_are_released_once_when_the_delegate_comes_off(way: str) -> None:
    delegate = Buffered(keeps_input=True)
    interpreter = Interpreter(model_content=SIN_THEN_ADD, delegates=[delegate])
    run(interpreter)
    if way == "remove":
        interpreter.remove_all_delegates()
        np.testing.assert_allclose(run(interpreter), np.sin(X) + X, rtol=1e-6)
    elif way == "failed second delegate":
        with pytest.raises(DelegateError):
            interpreter.modify_graph_with_delegate(FailsInPrepare("ADD"))
        np.testing.assert_allclose(run(interpreter), np.sin(X) + X, rtol=1e-6)
    interpreter.close()
    assert delegate.buffers == {}
    assert delegate.count("free") == delegate.count("new")


def test_a_failed_copy_names_the_delegate_and_never_passes_for_data() -> None:
    interpreter = Interpreter(model_content=SIN_ALONE, delegates=[Buffered(fails=True)])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    for _ in range(2):
        with pytest.raises(DelegateNodeError, match=r"'buffered' failed to copy .*'y'.*bus error"):
            interpreter.get_tensor(1)
    interpreter.remove_all_delegates()
    np.testing.assert_allclose(run(interpreter), np.sin(X), rtol=1e-6)


def test_a_failed_copy_while_invoking_says_whose_it_is() -> None:
    interpreter = Interpreter(model_content=SIN_THEN_ADD, delegates=[Buffered(fails=True)])
    with pytest.raises(DelegateNodeError, match="'buffered' failed to copy") as caught:
        run(interpreter)
    assert (caught.value.delegate, caught.value.phase) == ("buffered", "copy")


def test_a_tensor_has_one_delegate() -> None:
    class Second(Buffered):
        def prepare(self, context: DelegateContext) -> None:
            context.set_buffer_handle(context.tensors[1], 1, self)

    interpreter = Interpreter(model_content=SIN_THEN_ADD, delegates=[Buffered()])
    with pytest.raises(DelegateError, match="belongs to another delegate"):
        interpreter.modify_graph_with_delegate(Second())


def test_a_handle_that_cannot_be_freed_is_logged_and_the_rest_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Leaking(Buffered):
        def free_buffer_handle(self, context: DelegateContext, handle: int) -> None:
            raise RuntimeError("device gone")

    interpreter = Interpreter(model_content=SIN_ALONE, delegates=[Leaking()])
    run(interpreter)
    interpreter.remove_all_delegates()
    assert "'buffered' failed to free its buffer" in caplog.text
    np.testing.assert_allclose(run(interpreter), np.sin(X), rtol=1e-6)
