"""``LiteRtInterpreter``: the official interpreter with our delegates, errors and placement."""

from __future__ import annotations

import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateFlags,
    Interpreter,
    Limits,
    Node,
    OpResolverType,
)
from delegraph.delegation import raise_if_requested
from delegraph.errors import (
    ArgumentError,
    CallCancelledError,
    DelegateError,
    StateError,
    TimeLimitError,
    UnknownDelegateError,
)
from delegraph.native import LiteRtInterpreter, litert_delegate
from support.asynchronous_delegate import Late
from support.by_name import ByName, ByNameKernel, X, run, sines
from support.half_weights import half_weights
from support.policy_models import doubling

litert = pytest.importorskip("ai_edge_litert.interpreter")

ALONE = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES


def interpreter(*delegates: Any, content: bytes | None = None, **arguments: Any) -> Any:
    arguments.setdefault("experimental_op_resolver_type", ALONE)
    return LiteRtInterpreter(
        model_content=content or sines(), delegates=list(delegates), **arguments
    )


class Fails(ByName):
    """Raises an exception at one place."""

    def __init__(self, where: str, error: BaseException) -> None:
        super().__init__(
            "SIN", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS, name="fails", kernel=FailsKernel
        )
        self.where, self.error = where, error

    def fail(self, where: str) -> None:
        if where == self.where:
            raise self.error

    def is_node_supported_by_delegate(self, *arguments: Any) -> Any:
        self.fail("claim")
        return super().is_node_supported_by_delegate(*arguments)


class FailsKernel(ByNameKernel):
    delegate: Fails

    def init(self, *arguments: Any) -> None:
        self.delegate.fail("init")
        super().init(*arguments)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        self.delegate.fail("prepare")
        super().prepare(context, node)

    def eval(self, context: DelegateContext, node: Node) -> None:
        self.delegate.fail("eval")
        super().eval(context, node)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["prepare", "eval"])
def test_a_kernels_exception_is_raised_itself_with_its_traceback(where: str) -> None:
    error = KeyError("100%s of it {}")
    with pytest.raises(KeyError) as caught:
        run(interpreter(Fails(where, error)))
    assert caught.value is error
    assert "in fail\n" in "".join(traceback.format_exception(error))
    if sys.version_info >= (3, 11):
        assert "The runtime reports: delegate 'fails': " in error.__notes__[0]
        assert "100%s of it {}" in error.__notes__[0]


@pytest.mark.parametrize(("where", "phase"), [("claim", "claim"), ("init", "init")])
def test_what_fails_while_a_delegate_is_applied_says_so_as_in_delegraph(
    where: str, phase: str
) -> None:
    error = ValueError("no")
    with pytest.raises(DelegateError, match="no") as caught:
        interpreter(Fails(where, error))
    assert caught.value.phase == phase
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_even_an_interrupt_gets_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        run(interpreter(Fails("eval", error)))
    assert caught.value is error


def test_an_interpreter_works_again_after_a_failure() -> None:
    delegate = Fails("eval", ValueError("once"))
    subject = interpreter(delegate)
    with pytest.raises(ValueError, match="once"):
        run(subject)
    delegate.where = ""
    np.testing.assert_allclose(run(subject), np.sin(X) + X + np.sin(2 * X), rtol=1e-6)


def test_the_runtimes_own_errors_come_without_the_earlier_ones() -> None:
    subject = interpreter()
    texts = []
    for _ in range(3):
        with pytest.raises(RuntimeError) as caught:
            subject.invoke()
        texts.append(str(caught.value))
    assert texts[0] == texts[1] == texts[2]
    official = litert.Interpreter(model_content=sines())
    for _ in range(2):
        with pytest.raises(RuntimeError) as caught:
            official.invoke()
    assert len(str(caught.value)) > len(texts[2])  # else there is nothing to leave out any more


def test_errors_of_two_threads_do_not_mix() -> None:
    found: dict[int, set[str]] = {}

    def work(number: int) -> None:
        subject = interpreter(Fails("eval", ValueError(str(number))))
        for _ in range(20):
            with pytest.raises(ValueError, match=str(number)) as caught:
                run(subject)
            found.setdefault(number, set()).add(str(caught.value))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: {str(number)} for number in range(4)}


def test_a_kernel_may_run_another_interpreter_and_handle_its_errors() -> None:
    class Nests(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            with pytest.raises(ValueError, match="inner"):
                run(interpreter(Fails("eval", ValueError("inner"))))
            raise LookupError("outer")

    with pytest.raises(LookupError, match="outer"):
        run(interpreter(ByName("SIN", kernel=Nests)))


def test_the_official_class_gets_a_text_and_the_delegate_keeps_the_exception() -> None:
    error = KeyError("100%s")
    delegate = litert_delegate(Fails("eval", error), model=sines())
    official = litert.Interpreter(model_content=sines(), experimental_delegates=[delegate])
    official.allocate_tensors()
    with pytest.raises(RuntimeError, match="delegate 'fails': eval: KeyError: '100%s'"):
        official.invoke()
    assert delegate.last_exception is error


def test_an_unknown_op_resolver_is_refused() -> None:
    with pytest.raises(
        ArgumentError, match="experimental_op_resolver_type is 'FAST', expected one of: 'AUTO'"
    ):
        interpreter(experimental_op_resolver_type="FAST")


# -- delegates and arguments -----------------------------------------------------------------------


def test_delegates_come_by_name_as_in_delegraph() -> None:
    with pytest.raises(UnknownDelegateError, match="'nobody_has_it'"):
        interpreter("nobody_has_it")


def test_delegates_of_all_kinds_stand_in_one_list() -> None:
    ready = litert_delegate(ByName("MUL", name="ready"), model=sines())
    subject = LiteRtInterpreter(
        model_content=sines(), experimental_delegates=[ready, ByName("SIN", name="object")]
    )
    assert [partition.delegate for partition in subject.placement.partitions][:3] == [
        "object",
        "ready",
        "object",
    ]


def test_a_single_delegate_is_no_list() -> None:
    with pytest.raises(ArgumentError, match=r"write \['sin'\]"):
        LiteRtInterpreter(model_content=sines(), experimental_delegates="sin")


def test_a_file_is_as_good_as_bytes(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(sines())
    subject = LiteRtInterpreter(path, delegates=[ByName("SIN")])
    np.testing.assert_allclose(run(subject), np.sin(X) + X + np.sin(2 * X), rtol=1e-6)


@pytest.mark.parametrize("arguments", [{}, {"model_path": "a", "model_content": b"b"}])
def test_there_is_just_one_model(arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="model_path"):
        LiteRtInterpreter(**arguments)


def test_a_closed_interpreter_says_so() -> None:
    with interpreter(ByName("SIN")) as subject:
        run(subject)
    with pytest.raises(StateError, match="closed"):
        subject.invoke()
    with pytest.raises(StateError, match="closed"):
        subject.get_input_details()


def test_what_litert_cannot_do_with_delegates_says_what_to_do() -> None:
    made = interpreter("sin", ByName("ADD"))
    for call, expected in (
        (lambda: made.remove_delegate("sin"), r"with delegates=\['by_name'\], and set its tensors"),
        (made.remove_all_delegates, r"with delegates=\[\], and"),
        (lambda: made.modify_graph_with_delegate("flex"), r"'by_name'\] and this one, and"),
    ):
        with pytest.raises(DelegateError, match=f"cannot remove them: make another .* {expected}"):
            call()


def test_the_switch_interval_lasts_as_long_as_an_invoke() -> None:
    seen = []

    class Sees(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            seen.append(sys.getswitchinterval())
            super().eval(context, node)

    before = sys.getswitchinterval()
    run(interpreter(ByName("SIN", kernel=Sees), switch_interval=1e-4))
    assert seen == pytest.approx([1e-4, 1e-4])
    assert sys.getswitchinterval() == before
    with pytest.raises(ArgumentError, match="switch_interval is 0, expected seconds > 0"):
        interpreter(switch_interval=0)


def test_signatures_raise_what_delegates_raise() -> None:
    from delegraph.schema import tables
    from delegraph.schema.reader import read_model
    from delegraph.schema.writer import write_model

    record = read_model(np.frombuffer(sines(), np.uint8))
    maps = {
        name: (tables.TensorMap(name=name, tensor_index=i),) for name, i in (("x", 0), ("y", 6))
    }
    outputs = record.subgraphs[0].outputs
    maps["y"] = (tables.TensorMap(name="y", tensor_index=outputs[0]),)
    signature = tables.SignatureDef(
        inputs=maps["x"], outputs=maps["y"], signature_key="serve", subgraph_index=0
    )
    content = write_model(record.replace(signature_defs=(signature,)))
    delegate = Fails("", ValueError("in a signature"))
    runner = interpreter(delegate, content=content).get_signature_runner("serve")
    np.testing.assert_allclose(runner(x=X)["y"], np.sin(X) + X + np.sin(2 * X), rtol=1e-6)
    delegate.where = "eval"
    with pytest.raises(ValueError, match="in a signature"):
        runner(x=X)


# -- placement -------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [sines(), doubling()], ids=["sines", "doubling"])
def test_the_placement_is_that_of_delegraphs_own_interpreter(content: bytes) -> None:
    def delegates() -> list[ByName]:
        flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS
        return [ByName("SIN", flags=flags), ByName("ADD", name="second", flags=flags)]

    found = interpreter(*delegates(), content=content).placement
    own = Interpreter(model_content=content, delegates=delegates()).placement
    assert found.nodes == own.nodes
    assert found.partitions == own.partitions
    assert set(found.crossings) == set(own.crossings)
    assert found.delegates == own.delegates
    assert found.rows() == own.rows()
    assert str(found) == str(own).replace("Delegraph's kernels", "LiteRT's kernels")


def test_what_the_runtime_takes_by_itself_shows_once_tensors_are_allocated() -> None:
    subject = interpreter(ByName("SIN"), experimental_op_resolver_type=OpResolverType.AUTO)
    assert str(subject.placement) == (
        "5 nodes: by_name takes 2 in 2 partitions, 3 stay with LiteRT's kernels"
    )
    subject.allocate_tensors()
    placement = subject.placement
    assert [node.delegate for node in placement.nodes] == [
        "by_name", "XNNPACK", "XNNPACK", "by_name", "XNNPACK"
    ]  # fmt: skip
    assert placement.delegates == ("by_name", "XNNPACK")


class Holds(ByName):
    """Takes SIN; its kernels wait before they compute, and fail with *error* where there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__("SIN", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS, name="holds")
        self.go, self.error = threading.Event(), error

    def create_delegate_kernel_interface(self) -> Any:
        kernel = super().create_delegate_kernel_interface()
        compute = kernel.eval

        def eval_later(context: DelegateContext, node: Node) -> None:
            assert self.go.wait(20)
            if self.error is not None:
                raise self.error
            compute(context, node)

        kernel.eval = eval_later  # type: ignore[method-assign]  # of this object only
        return kernel


def test_an_invoke_in_the_background_refuses_other_calls_until_it_is_done() -> None:
    holds = Holds()
    found = interpreter(holds)
    found.allocate_tensors()
    found.set_tensor(found.get_input_details()[0]["index"], X)
    index = found.get_output_details()[0]["index"]
    future = found.invoke_async()
    for call in (found.invoke, found.invoke_async, lambda: found.get_tensor(index)):
        with pytest.raises(StateError, match=r"invoke_async runs in .*: wait for its Future"):
            call()
    holds.go.set()
    future.result(20)
    np.testing.assert_allclose(found.get_tensor(index), np.sin(X) + X + np.sin(2 * X), 1e-6)


def test_a_call_in_the_background_can_be_stopped() -> None:
    with interpreter(holds := Holds()) as found:
        found.allocate_tensors()
        future = found.invoke_async()
        assert not future.cancel()
        holds.go.set()
        with pytest.raises(CallCancelledError):
            future.result(20)


def test_a_time_limit_stops_an_invoke() -> None:
    class Sleeps(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            while True:
                raise_if_requested(context)

    subject = interpreter(ByName("SIN", kernel=Sleeps), limits=Limits(time=0.2))
    with pytest.raises(TimeLimitError, match=r"time limit of 0\.2 s"):
        run(subject)


def test_what_fails_in_the_background_comes_by_the_future_as_it_was() -> None:
    error = OSError("device lost")
    holds = Holds(error)
    holds.go.set()
    with interpreter(holds) as found:
        found.allocate_tensors()
        future = found.invoke_async()
    assert future.exception() is error


def test_kernels_with_eval_async_compute_by_eval_in_an_official_interpreter() -> None:
    late = Late("SIN", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
    found = interpreter(late)
    np.testing.assert_allclose(run(found), np.sin(X) + X + np.sin(2 * X), 1e-6)
    assert {entry.split()[0] for entry in late.log} == {"eval"}
    assert not any(p.is_asynchronous for p in found.placement.partitions)


def test_constants_that_are_computed_once_are_counted_apart_in_the_official_interpreter() -> None:
    with interpreter(ByName("SIN"), content=half_weights()) as made:
        assert str(made.placement).endswith("; 2 constants, computed once")
        assert str(made.placement).startswith("3 nodes: by_name takes 1 in 1 partition")
    auto = OpResolverType.AUTO
    with interpreter(content=half_weights(), experimental_op_resolver_type=auto) as made:
        made.allocate_tensors()
        assert str(made.placement) == (
            "3 nodes: XNNPACK takes 3 in 1 partition; 2 constants, computed once"
        )
        (partition,) = made.placement.partitions
        assert (partition.input_bytes, len(made.placement.crossings)) == (16, 2)
