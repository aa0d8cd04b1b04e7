"""``compiled_model``: the official ``CompiledModel`` with our delegates, errors and placement."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateFlags,
    FailurePolicy,
    Limits,
    Node,
    PlacementPolicy,
    PlacementRule,
)
from delegraph.delegation import raise_if_requested
from delegraph.errors import (
    ArgumentError,
    ArgumentTypeError,
    CallCancelledError,
    DelegateError,
    PlacementError,
    StateError,
    TimeLimitError,
    UnknownDelegateError,
    UnresolvedOpError,
)
from delegraph.graph import load_model
from delegraph.native import (
    compiled_model,
    litert,
    litert_delegate,
    placement_of,
    register_accelerator,
)
from delegraph.native.litert import thunks
from delegraph.schema.options import AddOptions
from delegraph.testing import graph_model, one_op_model, tensor
from delegraph.tools import compile_model
from support.by_name import ByName, ByNameKernel, X, sines
from support.compiling_plugin import install_compiler, uninstall_compiler
from support.configured import configure
from support.signatures import two_signatures

sys.path.insert(0, str(Path(__file__).parents[1] / "compiled"))

from compiled import compile_library, needs_compiler

official = pytest.importorskip("ai_edge_litert.compiled_model")

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS


def wanted(x: Any) -> Any:
    return np.sin(x) + x + np.sin(2 * x)


def run(model: Any, x: Any = X) -> Any:
    """Return the only output for the only input *x*."""
    (source,), (target,) = model.create_input_buffers(0), model.create_output_buffers(0)
    source.write(x)
    model.run_by_index(0, [source], [target])
    return target.read(x.size, np.float32)


def takers(model: Any) -> list[str | None]:
    return [node.delegate for node in placement_of(model).nodes]


class Does(ByName):
    """Takes SIN, and calls a function before it computes."""

    def __init__(self, function: Any, flags: DelegateFlags = DYNAMIC) -> None:
        super().__init__("SIN", flags=flags, name="does", kernel=DoesKernel)
        self.function = function


class DoesKernel(ByNameKernel):
    delegate: Does

    def eval(self, context: DelegateContext, node: Node) -> None:
        self.delegate.function()
        super().eval(context, node)


def failing(error: BaseException) -> Any:
    def fail() -> None:
        raise error

    return fail


def test_both_packages_export_the_function() -> None:
    assert litert.compiled_model is compiled_model


# -- application -----------------------------------------------------------------------------------


def test_the_official_object_runs_delegates_in_order_and_xnnpack_the_rest() -> None:
    delegates = [ByName("SIN", name="sines"), ByName("SIN", "ADD", name="sums")]
    with compiled_model(sines(), delegates) as model:
        assert isinstance(model, official.CompiledModel)
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-6)
        assert takers(model) == ["sines", "sums", "XNNPACK", "sines", "sums"]
        assert model.is_fully_accelerated()


def test_xnnpack_comes_first_if_asked() -> None:
    with compiled_model(sines(), [ByName("SIN")], before=False) as model:
        assert set(takers(model)) == {"XNNPACK"}
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-5)


def test_without_xnnpack_the_rest_stays_with_litert() -> None:
    cpu = official.CpuOptions(kernel_mode=official.CpuKernelMode.BUILTIN)
    with compiled_model(
        sines(), [ByName("SIN")], options=official.Options(cpu_options=cpu), before=False
    ) as model:
        assert takers(model) == ["by_name", None, None, "by_name", None]
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-6)


def test_a_model_is_a_path_bytes_or_a_loaded_one(tmp_path: Path) -> None:
    path = tmp_path / "sines.tflite"
    path.write_bytes(sines())
    for source in (path, str(path), sines(), load_model(path)):
        with compiled_model(source, [ByName("SIN")]) as model:
            np.testing.assert_allclose(run(model), wanted(X), rtol=1e-6)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_delegates_learn_the_number_of_threads(threads: int) -> None:
    seen = []

    class Looks(ByName):
        def initialize(self, context: DelegateContext) -> None:
            seen.append(context.recommended_num_threads)

    cpu = official.CpuOptions(num_threads=threads)
    compiled_model(sines(), [Looks("SIN")], options=official.Options(cpu_options=cpu)).close()
    compiled_model(sines(), [Looks("SIN")]).close()
    assert seen == [threads or -1, 1]


def test_an_npu_only_model_needs_delegates_for_all_nodes() -> None:
    npu = official.HardwareAccelerator.NPU
    with pytest.raises(RuntimeError, match="not accelerated"):
        compiled_model(sines(), [ByName("SIN")], npu)
    with compiled_model(sines(), [ByName("SIN", "ADD", "MUL")], npu) as model:
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-6)


def test_delegates_of_the_configuration_are_applied_where_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sines: Path
) -> None:
    configure(monkeypatch, tmp_path, "delegates = ['sin']")
    assert "sin" in takers(compiled_model(sines))
    assert "sin" not in takers(compiled_model(sines, []))
    cpu = official.CpuOptions(kernel_mode=official.CpuKernelMode.BUILTIN)
    builtin = compiled_model(sines, options=official.Options(cpu_options=cpu))
    assert "sin" not in takers(builtin)


def test_an_isolated_delegate_runs_in_its_own_process(sines: Path) -> None:
    policy = FailurePolicy(isolate="process")
    with compiled_model(sines, ["sin"], failures=policy) as model:
        key = model.get_signature_by_index(0)["key"]
        (detail,) = model.get_input_tensor_details(key).values()
        x = np.linspace(-1, 1, int(np.prod(detail["shape"])), dtype=np.float32)
        np.testing.assert_allclose(run(model, x), run(official_of(sines), x), rtol=1e-5, atol=1e-6)
        assert "sin" in takers(model)


def official_of(path: Path) -> Any:
    return official.CompiledModel.from_file(str(path))


@needs_compiler
def test_delegates_of_official_libraries_take_part(tmp_path: Path) -> None:
    library = str(compile_library("adds", tmp_path))
    official_one = pytest.importorskip("ai_edge_litert.interpreter").load_delegate(library)
    nodes = [("ADD", "x x", "a", AddOptions()), ("SIN", "a", "y")]
    with compiled_model(
        graph_model(nodes, inputs="x", outputs="y"), [official_one, ByName("SIN")]
    ) as model:
        del official_one
        gc.collect()
        np.testing.assert_allclose(run(model), np.sin(2 * X), rtol=1e-6)
        assert takers(model) == ["Adds", "by_name"]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"delegates": ["no_such"]}, UnknownDelegateError, "no_such"),
        ({"delegates": "sin"}, AttributeError, "delegates is a list"),
        ({"switch_interval": 0}, ArgumentError, "seconds > 0"),
        ({"environment": "none"}, AttributeError, "capsule"),
        ({"options": official.Options(), "hardware_accel": 1}, ValueError, "not both"),
        ({"placement": PlacementPolicy(partitions="measured")}, ArgumentError, "partitions="),
    ],
)
def test_wrong_arguments(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        compiled_model(sines(), **arguments)


def test_other_code_may_only_ask_for_the_placement_of_what_was_made_here() -> None:
    with pytest.raises(ArgumentTypeError, match="compiled_model"):
        placement_of(official.CompiledModel.from_buffer(sines()))


def test_nodes_of_an_npu_are_an_accelerators() -> None:
    """Where LiteRT has an NPU accelerator, which only the first environment has."""
    content = one_op_model("DISPATCH_OP", [tensor((4,))], [tensor((4,))])
    with compiled_model(content, []) as model:
        assert takers(model) in (["accelerator"], [None])


# -- failures --------------------------------------------------------------------------------------


def test_a_kernels_exception_is_raised_itself_and_the_model_works_again() -> None:
    error = KeyError("100%s of it")
    delegate = Does(failing(error))
    with compiled_model(sines(), [delegate]) as model:
        for _ in range(2):
            with pytest.raises(KeyError) as caught:
                run(model)
            assert caught.value is error
        delegate.function = lambda: None
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-6)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_even_an_interrupt_gets_through(error: BaseException) -> None:
    with compiled_model(sines(), [Does(failing(error))]) as model:
        with pytest.raises(type(error)) as caught:
            run(model)
        assert caught.value is error


def test_a_delegate_that_fails_while_it_claims_says_so() -> None:
    class Fails(ByName):
        def is_node_supported_by_delegate(self, *arguments: Any) -> bool:
            raise ValueError("cannot claim")

    with pytest.raises(DelegateError, match="cannot claim"):
        compiled_model(sines(), [Fails("SIN")])


@pytest.mark.parametrize("flags", [DelegateFlags.NONE, DYNAMIC])
def test_a_kernel_that_cannot_be_prepared_says_so(flags: DelegateFlags) -> None:
    """Without the flag, LiteRT prepares nodes while it compiles."""

    class Unprepared(ByNameKernel):
        def prepare(self, context: DelegateContext, node: Node) -> None:
            raise OSError("no device")

    with pytest.raises(OSError, match="no device"):
        run(compiled_model(sines(), [ByName("SIN", flags=flags, kernel=Unprepared)]))


def test_a_refused_delegate_is_told_why() -> None:
    """LiteRT refuses a delegate without the flag where shapes are known only while invoking."""
    content = graph_model(
        [("WHERE", "x", "y")],
        inputs="x",
        outputs="y",
        tensors={"x": tensor((4,), "BOOL"), "y": tensor((4, 1), "INT64", shape_signature=(-1, 1))},
    )
    with pytest.raises(DelegateError, match="lack ALLOW_DYNAMIC_TENSORS"):
        compiled_model(content, [ByName("WHERE")])


def test_partitions_in_the_file_run_with_the_delegate_that_compiled_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_compiler(tmp_path, monkeypatch, left=("SIN",))
    content = compile_model(sines(), ["engine:level=2"]).content
    with compiled_model(content) as model:
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-5, atol=1e-6)
        assert takers(model).count("engine") == 2
    uninstall_compiler(tmp_path, monkeypatch)
    with pytest.raises(UnresolvedOpError, match="fake-engine"):
        run(compiled_model(content))


def test_fallback_computes_and_records_an_incident() -> None:
    delegate = Does(failing(OSError("device lost")))
    with compiled_model(sines(), [delegate], failures=FailurePolicy("fallback")) as model:
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-6)
        assert ["device lost" in incident.error for incident in model.incidents] == [True, True]


def test_rules_and_requirements_hold() -> None:
    rules = [PlacementRule("exclude", "by_name", nodes=0)]
    with compiled_model(sines(), [ByName("SIN")], placement=PlacementPolicy(rules)) as model:
        assert takers(model) == ["XNNPACK"] * 3 + ["by_name", "XNNPACK"]
    policy = PlacementPolicy(require="full")
    compiled_model(sines(), [ByName("ADD", "MUL", "SIN")], placement=policy).close()
    cpu = official.CpuOptions(kernel_mode=official.CpuKernelMode.BUILTIN)
    for options in (None, official.Options(cpu_options=cpu)):  # with XNNPACK, and without
        with pytest.raises(PlacementError, match="3 nodes stay behind"):
            compiled_model(sines(), [ByName("SIN")], options=options, placement=policy)
    with pytest.raises(PlacementError, match="XNNPACK has nodes that rules keep from it"):
        compiled_model(
            sines(), [], placement=PlacementPolicy([PlacementRule("exclude", operators="SIN")])
        )


class Waits(Does):
    """Waits in its first node until the call is asked to stop."""

    def __init__(self) -> None:
        super().__init__(self.wait)
        self.is_running = threading.Event()

    def initialize(self, context: DelegateContext) -> None:
        self.context = context

    def wait(self) -> None:
        self.is_running.set()
        while True:
            raise_if_requested(self.context)


@pytest.mark.parametrize("policy", ["raise", "fallback"])
def test_a_time_limit_stops_a_run(policy: Any) -> None:
    delegate = Waits()
    with compiled_model(
        sines(), [delegate], limits=Limits(time=0.2), failures=FailurePolicy(policy)
    ) as model:
        with pytest.raises(TimeLimitError, match=r"time limit of 0\.2 s"):
            run(model)
        assert model.incidents == ()
        delegate.function = lambda: None
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-6)


def test_another_thread_cancels_a_run_and_only_that() -> None:
    delegate = Waits()
    with compiled_model(sines(), [delegate]) as model:
        model.cancel()

        def cancel() -> None:
            delegate.is_running.wait()
            model.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(CallCancelledError):
            run(model)
        thread.join()
        delegate.function = lambda: None
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-6)


def test_a_profile_has_the_nodes_of_our_delegates() -> None:
    with compiled_model(sines(), [ByName("SIN")]) as model:
        with model.profile() as profile:
            run(model)
        run(model)
    assert [event.node_index for event in profile.events] == [5, 6]


# -- buffers, shapes, signatures -------------------------------------------------------------------


@pytest.mark.parametrize("flags", [DelegateFlags.NONE, DYNAMIC])
def test_inputs_are_resized_and_placed_again(flags: DelegateFlags) -> None:
    with compiled_model(sines(), [ByName("SIN", flags=flags)]) as model:
        for count in (9, 1, 4, 200):
            model.resize_input_tensor(0, [count], strict=False)
            x = np.linspace(-1, 1, count, dtype=np.float32)
            np.testing.assert_allclose(run(model, x), wanted(x), rtol=1e-5, atol=1e-6)
        assert takers(model).count("by_name") == 2
        assert placement_of(model).partitions[0].input_bytes == 200 * 4


def test_every_run_may_have_other_buffers() -> None:
    with compiled_model(sines(), [ByName("SIN", "ADD", "MUL")]) as model:
        inputs = [model.create_input_buffers(0) for _ in range(5)]
        outputs = [model.create_output_buffers(0) for _ in range(5)]
        for i, source in enumerate(inputs):
            source[0].write(X + np.float32(i))
        for source, target in zip(inputs, outputs, strict=True):
            model.run_by_index(0, source, target)
        for i, (target,) in enumerate(outputs):
            np.testing.assert_allclose(target.read(4, np.float32), wanted(X + i), rtol=1e-5)


def test_host_memory_is_read_in_place() -> None:
    raw = np.zeros(4 * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    x = raw[start : start + 16].view(np.float32)
    with compiled_model(sines(), [ByName("SIN", "ADD", "MUL")]) as model:
        source = official.TensorBuffer.create_from_host_memory(x)
        (target,) = model.create_output_buffers(0)
        for values in (X, -X):
            x[:] = values
            model.run_by_index(0, [source], [target])
            np.testing.assert_allclose(target.read(4, np.float32), wanted(values), rtol=1e-6)


def test_each_signature_has_its_delegates() -> None:
    content = two_signatures()
    alone = official.CompiledModel.from_buffer(content)
    with compiled_model(content, [ByName("ADD", "MUL", "SUB", "SIN")]) as model:
        assert model.get_signature_list() == alone.get_signature_list()
        for index in range(model.get_num_signatures()):
            found = []
            for each in (model, alone):
                inputs, outputs = (
                    each.create_input_buffers(index),
                    each.create_output_buffers(index),
                )
                for buffer in inputs:
                    size = int(np.prod(buffer.get_tensor_details()["shape"]))
                    buffer.write(np.arange(1, size + 1, dtype=np.float32))
                each.run_by_index(index, inputs, outputs)
                shapes = [buffer.get_tensor_details()["shape"] for buffer in outputs]
                found.append(
                    [
                        b.read(int(np.prod(s)), np.float32)
                        for b, s in zip(outputs, shapes, strict=True)
                    ]
                )
            np.testing.assert_allclose(*found, rtol=1e-6)
        assert {node.subgraph for node in placement_of(model).nodes if node.delegate == "by_name"}


# -- environments ----------------------------------------------------------------------------------


def test_models_of_one_environment_have_their_own_delegates() -> None:
    environment = official.Environment.create()
    first = compiled_model(sines(), [ByName("SIN", name="a")], environment=environment)
    second = compiled_model(
        sines(), [ByName("ADD", name="b"), ByName("MUL", name="c")], environment=environment
    )
    third = official.CompiledModel.from_buffer(sines(), environment=environment)
    assert first.environment is environment
    assert takers(first) == ["a", "XNNPACK", "XNNPACK", "a", "XNNPACK"]
    assert takers(second) == ["XNNPACK", "b", "c", "XNNPACK", "b"]
    for model in (first, second, third):
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-5)


def test_a_registered_accelerator_serves_models_that_other_code_makes() -> None:
    environment = official.Environment.create()
    calls: list[int] = []
    delegate = litert_delegate(Does(lambda: calls.append(1)), model=sines())
    with register_accelerator(environment, delegate) as accelerator:
        assert accelerator.name == "does"
        model = official.CompiledModel.from_buffer(sines(), environment=environment)
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-6)
        compiled_model(sines(), [], environment=environment).close()
    run(official.CompiledModel.from_buffer(sines(), environment=environment))
    assert calls == [1, 1]
    run(model)
    assert calls == [1, 1, 1, 1]


def test_a_registered_accelerator_may_come_last() -> None:
    environment = official.Environment.create()
    delegate = litert_delegate(ByName("SIN"), model=sines())
    register_accelerator(environment, delegate, before=False)
    official.CompiledModel.from_buffer(sines(), environment=environment)
    assert delegate.claims[0].partitions == []


def test_only_litert_delegates_can_be_registered() -> None:
    with pytest.raises(ArgumentTypeError, match="litert_delegate"):
        register_accelerator(official.Environment.create(), "sin")  # type: ignore[arg-type]  # wrong


def test_a_delegate_cannot_compile_in_the_same_environment() -> None:
    environment = official.Environment.create()

    class Compiles(ByName):
        def initialize(self, context: DelegateContext) -> None:
            compiled_model(sines(), [], environment=environment)

    with pytest.raises(DelegateError, match="use another environment"):
        compiled_model(sines(), [Compiles("SIN")], environment=environment)
    compiled_model(sines(), [], environment=environment).close()


def test_a_closed_environment_is_an_error() -> None:
    environment = official.Environment.create()
    environment.close()
    with pytest.raises(ValueError, match="no longer valid"):
        compiled_model(sines(), [], environment=environment)


# -- threads ---------------------------------------------------------------------------------------


def runs_in_threads(models: list[Any], threads: int, count: int) -> int:
    """Return the number of wrong answers of *threads* threads with *count* runs each."""
    wrong = []

    def work(number: int) -> None:
        model = models[number % len(models)]
        inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
        x = X + np.float32(number)
        inputs[0].write(x)
        right = wanted(x)
        for _ in range(count):
            model.run_by_index(0, inputs, outputs)
            if not np.allclose(outputs[0].read(4, np.float32), right, rtol=1e-5, atol=1e-5):
                wrong.append(number)

    all_of_them = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()
    return len(wrong)


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that change after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("count", [1, 8])
def test_eight_threads_get_right_answers(count: int) -> None:
    models = [compiled_model(sines(), [ByName("SIN", "ADD")]) for _ in range(count)]
    assert runs_in_threads(models, 8, 50) == 0


def test_different_models_run_side_by_side() -> None:
    """Each kernel waits until the kernels of both models run."""
    barrier = threading.Barrier(2, timeout=20)
    models = [compiled_model(sines(), [Does(lambda: barrier.wait() and None)]) for _ in range(2)]
    assert runs_in_threads(models, 2, 1) == 0


def test_a_kernel_cannot_call_its_own_model() -> None:
    found: list[Any] = []
    delegate = Does(lambda: found[0].get_signature_list())
    with compiled_model(sines(), [delegate]) as model:
        found.append(model)
        with pytest.raises(StateError, match="get_signature_list was called by a kernel of the"):
            run(model)
        delegate.function = lambda: None
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-6)


# -- end -------------------------------------------------------------------------------------------


def test_close_releases_the_delegates_and_buffers_live_on() -> None:
    delegate = ByName("SIN")
    with compiled_model(sines(), [delegate]) as model:
        (target,) = model.create_output_buffers(0)
        (source,) = model.create_input_buffers(0)
        source.write(X)
        model.run_by_index(0, [source], [target])
    np.testing.assert_allclose(target.read(4, np.float32), wanted(X), rtol=1e-6)
    model.close()
    with pytest.raises(StateError, match="closed"):
        placement_of(model)
    with pytest.raises(StateError, match="closed"), model.profile():
        pass
    gone = weakref.ref(delegate)
    del delegate, model
    gc.collect()
    assert gone() is None


def test_a_model_that_is_dropped_frees_its_kernels_at_once() -> None:
    model = compiled_model(sines(), [ByName("SIN")])
    run(model)
    before = thunks.living()[1]
    gc.disable()
    del model
    found = thunks.living()[1]
    gc.enable()
    assert found == before - 2
