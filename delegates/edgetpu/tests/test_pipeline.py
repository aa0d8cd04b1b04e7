"""Every test has a watchdog: a pipeline that waits for ever ends the run, and shows where."""

from __future__ import annotations

import faulthandler
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compiled_models import compiled, random_inputs
from delegraph import CustomOp, Interpreter
from delegraph.errors import ArgumentError, StateError
from delegraph.testing import graph_model, tensor
from delegraph.testing.outputs import outputs_of
from delegraph_edgetpu import (
    PipelinedModelRunner,
    PipelineError,
    compile,
    edgetpu_custom_op,
    statistics,
)
from delegraph_edgetpu.custom_options import CUSTOM_OP
from delegraph_edgetpu.devices import VARIABLE
from support.corpus import corpus_file, needs_corpus

SECONDS = 60
NAMES = "xhky"
Compute = Callable[[NDArray[Any]], NDArray[Any]]


@pytest.fixture(autouse=True)
def _watchdog() -> Iterator[None]:
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def int8(scale: float = 0.1) -> Any:
    return tensor((1, 8), "INT8", scale=scale)


def segment(i: int) -> bytes:
    """Return the i-th of three compiled models that form a chain."""
    start, end = NAMES[i], NAMES[i + 1]
    op = ("RELU", "LOGISTIC", "TANH")[i]
    scale = (0.1, 1 / 256, 1 / 128)[i]
    y = tensor((1, 8), "INT8", scale=scale, zero_point=(0, -128, 0)[i])
    x = tensor((1, 8), "INT8", scale=(0.1, 0.1, 1 / 256)[i], zero_point=(0, 0, -128)[i])
    return graph_model([(op, start, end)], inputs=start, outputs=end, tensors={start: x, end: y})


def segments() -> list[Interpreter]:
    """Return three interpreters of compiled segments, each on a device of its own."""
    return [
        Interpreter(
            model_content=compiled(segment(i)), custom_ops={CUSTOM_OP: edgetpu_custom_op(f":{i}")}
        )
        for i in range(3)
    ]


def one_by_one(x: NDArray[Any]) -> NDArray[Any]:
    """Return the output of the segments for *x*, without a pipeline."""
    for i in range(3):
        (x,) = outputs_of(Interpreter(model_content=segment(i)), [x])
    return x


def given(seed: int) -> NDArray[Any]:
    return np.random.default_rng(seed).integers(-128, 128, (1, 8)).astype(np.int8)


def python_segments(*computes: Compute) -> list[Interpreter]:
    """Return interpreters whose one operator is a Python function."""
    made = []
    for i, compute in enumerate(computes):
        op = CustomOp("Python", lambda x, compute=compute: compute(x))
        op.shape(lambda x: x.shape)
        content = graph_model(
            [("Python", f"t{i}", f"t{i + 1}")],
            inputs=f"t{i}",
            outputs=f"t{i + 1}",
            tensors={f"t{i}": int8(), f"t{i + 1}": int8()},
        )
        made.append(Interpreter(model_content=content, custom_ops={"Python": op}))
    return made


def same(x: NDArray[Any]) -> NDArray[Any]:
    return x


def number(n: int) -> NDArray[Any]:
    return np.full((1, 8), n, np.int8)


def failing_at(n: int) -> Compute:
    def compute(x: NDArray[Any]) -> NDArray[Any]:
        if x[0, 0] == n:
            raise ZeroDivisionError(f"no {n}")
        return x

    return compute


def failing_segments(position: int, n: int) -> list[Interpreter]:
    """Return three segments, of which the one at *position* fails at the number *n*."""
    computes: list[Compute] = [same, same, same]
    computes[position] = failing_at(n)
    return python_segments(*computes)


def popped(runner: PipelinedModelRunner, count: int) -> list[int]:
    """Return the first number of each of the next *count* results, which are lists."""
    return [runner.pop(SECONDS)[0][0, 0] for _ in range(count)]  # type: ignore[index]  # lists


def finish(thread: threading.Thread) -> None:
    thread.join(SECONDS)
    assert not thread.is_alive()


class Gate:
    """A station that waits: ``inside`` is set when it has begun, ``opened`` lets it go on."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.opened = threading.Event()

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        self.inside.set()
        assert self.opened.wait(SECONDS)
        return x


@pytest.fixture(autouse=True)
def _three_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "3")


# -- results -----------------------------------------------------------------------------------


def test_results_are_those_of_the_segments_one_by_one() -> None:
    before = [each.inferences for each in statistics()]
    with PipelinedModelRunner(segments()) as runner:
        for seed in range(20):
            assert runner.push({"x": given(seed)})
        for seed in range(20):
            result = runner.pop(SECONDS)
            assert isinstance(result, dict)
            assert list(result) == ["y"]
            np.testing.assert_array_equal(result["y"], one_by_one(given(seed)), strict=True)
    assert [each.inferences for each in statistics()] == [n + 20 for n in before]


def test_results_come_in_the_order_of_the_inputs() -> None:
    with PipelinedModelRunner(python_segments(same, same, same, same)) as runner:
        pusher = threading.Thread(target=lambda: [runner.push([number(n)]) for n in range(100)])
        pusher.start()
        found = popped(runner, 100)
        pusher.join()
    assert found == list(range(100))


def test_segments_compute_at_the_same_time() -> None:
    first, second = Gate(), Gate()
    with PipelinedModelRunner(python_segments(first, second)) as runner:
        runner.push([number(1)])
        first.opened.set()
        assert second.inside.wait(SECONDS)
        first.inside.clear()
        runner.push([number(2)])
        assert first.inside.wait(SECONDS)  # while the second still has the first item
        second.opened.set()
        assert popped(runner, 2) == [1, 2]


def test_inputs_in_order_give_results_in_order() -> None:
    with PipelinedModelRunner(segments()) as runner:
        runner.push([given(0)])
        result = runner.pop(SECONDS)
    assert isinstance(result, list)
    np.testing.assert_array_equal(result, [one_by_one(given(0))])


def test_inputs_are_copied() -> None:
    gate = Gate()
    with PipelinedModelRunner(python_segments(gate)) as runner:
        runner.push([number(0)])
        mine = number(1)
        runner.push([mine])
        mine[...] = 7
        gate.opened.set()
        assert popped(runner, 2) == [0, 1]


def test_a_segment_may_read_what_a_much_earlier_one_made() -> None:
    tensors = {name: int8() for name in "abcd"}
    contents = [
        graph_model([("RELU", "a", "b")], inputs="a", outputs="b", tensors=tensors),
        graph_model([("RELU", "b", "c")], inputs="b", outputs="c", tensors=tensors),
        graph_model([("MAXIMUM", "a c", "d")], inputs="a c", outputs="d", tensors=tensors),
    ]
    with PipelinedModelRunner([Interpreter(model_content=c) for c in contents]) as runner:
        runner.push({"a": given(3)})
        result = runner.pop(SECONDS)
    assert isinstance(result, dict)
    np.testing.assert_array_equal(result["d"], np.maximum(given(3), 0))


def test_outputs_that_no_segment_reads_are_results_as_well() -> None:
    tensors = {name: int8() for name in "abcd"}
    contents = [
        graph_model(
            [("RELU", "a", "b"), ("ABS", "a", "c")], inputs="a", outputs="b c", tensors=tensors
        ),
        graph_model([("RELU", "b", "d")], inputs="b", outputs="d", tensors=tensors),
    ]
    with PipelinedModelRunner([Interpreter(model_content=c) for c in contents]) as runner:
        runner.push({"a": given(3)})
        result = runner.pop(SECONDS)
    assert isinstance(result, dict)
    assert list(result) == ["d", "c"]


# -- the end -----------------------------------------------------------------------------------


def test_an_empty_push_ends_the_results() -> None:
    with PipelinedModelRunner(python_segments(same, same)) as runner:
        for n in range(3):
            assert runner.push([number(n)])
        assert runner.push([])
        assert not runner.push([number(3)])
        assert not runner.push({})
        assert popped(runner, 3) == [0, 1, 2]
        assert runner.pop(SECONDS) is None
        assert runner.pop(SECONDS) is None


def test_closed_it_refuses_everything() -> None:
    runner = PipelinedModelRunner(python_segments(same))
    runner.push([number(1)])
    runner.close()
    runner.close()
    for call in (lambda: runner.push([number(1)]), runner.pop, lambda: runner.push([])):
        with pytest.raises(StateError, match="the pipeline is closed"):
            call()


def test_it_stops_in_the_middle_of_work() -> None:
    gate = Gate()
    runner = PipelinedModelRunner(python_segments(same, gate, same), output_queue_size=1)
    for n in range(3):
        runner.push([number(n)])
    assert gate.inside.wait(SECONDS)
    closing = threading.Thread(target=runner.close)
    closing.start()
    gate.opened.set()
    finish(closing)


def test_close_wakes_who_waits_in_push_and_pop() -> None:
    gate = Gate()
    runner = PipelinedModelRunner(python_segments(gate), input_queue_size=1)
    found: list[str] = []

    def wait(call: Callable[[], object]) -> None:
        try:
            while True:
                call()
        except StateError as error:
            found.append(str(error))

    calls: list[Callable[[], object]] = [lambda: runner.push([number(1)]), runner.pop]
    threads = [threading.Thread(target=wait, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    assert gate.inside.wait(SECONDS)
    closing = threading.Thread(target=runner.close)
    closing.start()
    gate.opened.set()
    for thread in (*threads, closing):
        finish(thread)
    assert found == ["the pipeline is closed"] * 2


def test_a_forgotten_runner_leaves_no_thread() -> None:
    runner = PipelinedModelRunner(python_segments(same, same))
    runner.push([number(1)])
    threads = [t for t in threading.enumerate() if t.name.startswith("segment-")]
    assert len(threads) == 2
    del runner
    gc.collect()
    for thread in threads:
        finish(thread)


# -- queues ------------------------------------------------------------------------------------


def test_push_waits_while_the_input_queue_is_full() -> None:
    gate, pushed = Gate(), threading.Semaphore(0)
    runner = PipelinedModelRunner(python_segments(gate), input_queue_size=2)

    def push() -> None:
        for n in range(5):
            runner.push([number(n)])
            pushed.release()

    with runner:
        pusher = threading.Thread(target=push)
        pusher.start()
        assert gate.inside.wait(SECONDS)
        assert all(pushed.acquire(timeout=SECONDS) for _ in range(3))  # one inside, two waiting
        assert not pushed.acquire(timeout=0.05)
        gate.opened.set()
        finish(pusher)


def test_a_full_output_queue_holds_everything_up() -> None:
    counted: list[int] = []

    def count(x: NDArray[Any]) -> NDArray[Any]:
        counted.append(int(x[0, 0]))
        return x

    with PipelinedModelRunner(python_segments(count), 0, output_queue_size=2) as runner:
        for n in range(10):
            runner.push([number(n)])
        threading.Event().wait(0.05)
        assert len(counted) <= 3  # two that wait, one in the hand
        runner.set_output_queue_size(0)
        assert popped(runner, 10) == list(range(10))


def test_pop_may_wait_for_a_limited_time() -> None:
    with (
        PipelinedModelRunner(python_segments(same)) as runner,
        pytest.raises(TimeoutError, match=r"no result within 0\.01 seconds"),
    ):
        runner.pop(0.01)


# -- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_failure_reaches_pop_behind_the_results_before_it(position: int) -> None:
    with PipelinedModelRunner(failing_segments(position, 3), input_queue_size=0) as runner:
        for n in range(3):
            runner.push([number(n)])
        runner.push([number(3)])
        assert popped(runner, 3) == [0, 1, 2]
        for _ in range(2):
            with pytest.raises(PipelineError, match=f"segment {position}: .*Python.*no 3") as error:
                runner.pop(SECONDS)
            assert error.value.segment == position
            assert error.value.__cause__ is not None


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_failure_reaches_push_even_when_the_queues_are_full(position: int) -> None:
    runner = PipelinedModelRunner(failing_segments(position, 5), input_queue_size=1)

    def push() -> None:
        for n in range(100):
            runner.push([number(n % 10)])

    with runner, pytest.raises(PipelineError, match="no 5"):
        push()


def test_a_failure_wakes_who_waits_in_push() -> None:
    gate, pushed = Gate(), threading.Semaphore(0)
    found: list[str] = []

    def gated(x: NDArray[Any]) -> NDArray[Any]:
        return failing_at(0)(gate(x))

    def push() -> None:
        try:
            while runner.push([number(0)]):
                pushed.release()
        except PipelineError as error:
            found.append(str(error))

    with PipelinedModelRunner(python_segments(gated), input_queue_size=1) as runner:
        pusher = threading.Thread(target=push)
        pusher.start()
        assert all(pushed.acquire(timeout=SECONDS) for _ in range(2))  # one inside, one waiting
        assert not pushed.acquire(timeout=0.05)
        gate.opened.set()
        finish(pusher)
    assert "no 0" in found[0]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_after_a_failure_the_threads_end_by_themselves(position: int) -> None:
    with PipelinedModelRunner(failing_segments(position, 0)) as runner:
        threads = [t for t in threading.enumerate() if t.name.startswith("segment-")]
        runner.push([number(0)])
        for thread in threads:
            finish(thread)


def test_two_failures_show_the_one_of_the_earlier_input() -> None:
    gate = Gate()

    def gated(x: NDArray[Any]) -> NDArray[Any]:
        return failing_at(1)(gate(x))

    with PipelinedModelRunner(python_segments(failing_at(2), same, gated), 0) as runner:
        runner.push([number(1)])
        runner.push([number(2)])
        assert gate.inside.wait(SECONDS)
        gate.opened.set()
        with pytest.raises(PipelineError, match="no 1"):
            runner.pop(SECONDS)


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"z": number(1)}, r"inputs \['z'\] are given, expected \['t0'\]"),
        ([number(1)] * 2, "2 inputs are given, expected 1"),
        ([np.ones((1, 8), np.float32)], "'t0' is float32.*expected int8"),
        ([number(1)[0]], r"is int8 \[8\], expected int8 \[1, 8\]"),
    ],
)
def test_wrong_inputs_are_refused_by_push(inputs: Any, text: str) -> None:
    with PipelinedModelRunner(python_segments(same)) as runner:
        with pytest.raises(ArgumentError, match=text):
            runner.push(inputs)
        runner.push([number(4)])
        assert popped(runner, 1) == [4]


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ([], "at least one interpreter"),
        ([0, 0], "is there twice"),
        ([1, 0], "input 't0' of segment 1 is no output of an earlier"),
    ],
)
def test_segments_that_are_no_chain_are_refused(order: list[int], text: str) -> None:
    made = python_segments(same, same)
    with pytest.raises(ArgumentError, match=text):
        PipelinedModelRunner([made[i] for i in order])


def test_segments_that_do_not_fit_are_refused() -> None:
    first, second = python_segments(same, same)
    second.resize_tensor_input(0, [1, 9])
    with pytest.raises(
        ArgumentError, match=r"is int8 \[1, 9\], an earlier segment makes int8 \[1, 8\]"
    ):
        PipelinedModelRunner([first, second])


def test_it_tells_its_interpreters() -> None:
    made = python_segments(same, same)
    with PipelinedModelRunner(made) as runner:
        assert runner.interpreters() == made


# -- throughput --------------------------------------------------------------------------------


def test_it_tells_its_throughput_and_which_segment_limits_it() -> None:
    gate = Gate()
    with PipelinedModelRunner(python_segments(same, gate)) as runner:
        assert runner.statistics().results_per_second == 0
        runner.push([number(1)])
        assert gate.inside.wait(SECONDS)
        threading.Event().wait(0.05)
        gate.opened.set()
        runner.pop(SECONDS)
        runner.push([number(1)])
        runner.pop(SECONDS)
        found = runner.statistics()
    first, second = found.busy_seconds
    assert found.results == 2
    assert first >= 0
    assert second > 0.04
    assert found.seconds > second
    assert found.to_json()["results_per_second"] == 2 / found.seconds


@needs_corpus
def test_a_classifier_in_three_segments_gives_the_same_answers() -> None:
    path = corpus_file("test_data__mobilenet_v1_0.25_128_quant")
    compilations = compile(str(path), segments=3)
    assert len(compilations) == 3
    interpreters = [
        Interpreter(model_content=each.model, delegates=[f"edgetpu:device=:{i}"])
        for i, each in enumerate(compilations)
    ]
    pictures = [random_inputs(path.read_bytes(), seed)[0] for seed in range(6)]
    plain = Interpreter(str(path))
    with PipelinedModelRunner(interpreters) as runner:
        for picture in pictures:
            runner.push([picture])
        for picture in pictures:
            np.testing.assert_array_equal(runner.pop(SECONDS), outputs_of(plain, [picture]))
        assert runner.statistics().results == len(pictures)
