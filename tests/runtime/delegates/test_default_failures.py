"""A delegate that is applied by default and fails costs an incident and a warning, nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import DelegateFlags, FailurePolicy, Interpreter
from delegraph.delegation.blob_cache import BlobCache
from delegraph.delegation.configuration import CACHE_VARIABLE, DEFAULT_DELEGATES_VARIABLE
from delegraph.errors import (
    DefaultDelegateWarning,
    DelegateError,
    DelegateNodeError,
    NodeError,
    PartitionRejected,
)
from delegraph.native import LiteRtInterpreter, compiled_model
from delegraph.plugins import known_packages
from delegraph.runtime.delegates import failure_memory
from delegraph.runtime.delegates.requested_delegates import as_delegate
from delegraph.schema.options import AddOptions
from delegraph.testing import constant, graph_model, tensor
from support import failing_default
from support.asynchronous_delegate import LateFaulty
from support.by_name import ByName, X, Y, doubling_while, run, sines
from support.chosen_plugins import use_plugins_of
from support.failing_default import Failing
from support.fake_distributions import write_plugin
from support.faulty_delegate import Faulty, FaultyKernel, spoil
from support.policy_models import MODELS, assert_same, stepped, undelegated
from support.running import result

Install = Callable[..., Failing]

STATIC = DelegateFlags.NONE
DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which failures are kept."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(params=["built in", "configured"])
def install(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return what makes a failing delegate the default one, in either of the two ways."""
    write_plugin(tmp_path / "site", "failing", failing_default.PLUGIN)
    use_plugins_of(monkeypatch, tmp_path / "site")
    if request.param == "built in":
        monkeypatch.delenv(DEFAULT_DELEGATES_VARIABLE)
        monkeypatch.setattr(known_packages, "OUR_DISTRIBUTIONS", {"fake-failing"})
    else:
        monkeypatch.setenv(DEFAULT_DELEGATES_VARIABLE, "failing")

    def make(at: str = "never", **arguments: Any) -> Failing:
        delegate = Failing(at, **arguments)
        monkeypatch.setattr(failing_default, "NEXT", [delegate])
        return delegate

    return make


def sines_of(interpreter: Interpreter, x: Any = X) -> Any:
    interpreter.resize_tensor_input(0, x.shape)
    return run(interpreter, x)


# -- each phase ----------------------------------------------------------------------------------


def test_shapes_that_it_rejects_cost_an_incident_and_no_warning(install: Install) -> None:
    delegate = install("prepare", n=3, error=PartitionRejected)
    with warnings.catch_warnings(), Interpreter(model_content=sines()) as interpreter:
        warnings.simplefilter("error")
        longer = np.linspace(0, 1, 7, dtype=np.float32)
        np.testing.assert_allclose(sines_of(interpreter), Y, rtol=1e-5)
        expected = np.sin(longer) + longer + np.sin(2 * longer)
        np.testing.assert_allclose(sines_of(interpreter, longer), expected, rtol=1e-5)
        assert interpreter.placement.incidents
        delegate.at = "never"
        before = delegate.visits["eval"]
        np.testing.assert_allclose(sines_of(interpreter), Y, rtol=1e-5)
        assert delegate.visits["eval"] > before


@pytest.mark.parametrize("flags", [STATIC, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("phase", ["initialize", "claim", "init", "prepare", "eval"])
def test_it_costs_one_warning_and_the_answers_are_right(
    install: Install, phase: str, flags: DelegateFlags
) -> None:
    delegate = install(phase, flags=flags)
    with pytest.warns(DefaultDelegateWarning) as given:
        interpreter = _used()
    assert len(given) == 1
    assert Path(given[0].filename).is_relative_to(Path(__file__).parents[2])
    text = str(given[0].message)
    assert f"'failing', which is applied by default, failed in phase {phase}" in text
    assert f"boom at {phase}" in text
    assert "report this text" in text
    assert "fake-failing" in text
    assert delegate.visits[phase] == 1
    [incident] = interpreter.incidents
    assert (incident.delegate, incident.phase) == ("failing", phase)
    placement = interpreter.placement
    assert placement.incidents == (incident,)
    assert str(placement) == (
        f"5 nodes: 5 stay with Delegraph's kernels; failing failed in {phase}"
    )
    assert placement.to_json()["incidents"][0]["error"] == incident.error


def _used(**arguments: Any) -> Interpreter:
    """Return an interpreter that has been used, and resized up and back."""
    core = Interpreter(model_content=sines(), delegates=[])
    interpreter = Interpreter(model_content=sines(), **arguments)
    np.testing.assert_allclose(run(interpreter), run(core), rtol=1e-6)
    for x in (X[:1], X, X * 2):
        np.testing.assert_allclose(sines_of(interpreter, x), sines_of(core, x), rtol=1e-6)
    return interpreter


def test_one_that_does_not_fail_gives_neither(install: Install) -> None:
    delegate = install()
    interpreter = Interpreter(model_content=sines())
    np.testing.assert_allclose(sines_of(interpreter, X[:1]), Y[:1], rtol=1e-6)
    np.testing.assert_allclose(sines_of(interpreter), Y, rtol=1e-6)
    assert delegate.visits["eval"] == 4
    assert interpreter.incidents == ()
    assert interpreter.placement.delegates == ("failing",)


@pytest.mark.parametrize("flags", [STATIC, DYNAMIC], ids=["static", "dynamic"])
def test_failing_after_a_resize(install: Install, flags: DelegateFlags) -> None:
    install("prepare", n=4 if flags is STATIC else 3, flags=flags)
    interpreter = Interpreter(model_content=sines())
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
    assert interpreter.placement.partitions
    interpreter.resize_tensor_input(0, (1,))
    with pytest.warns(DefaultDelegateWarning, match="prepare"):
        interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter, X[:1]), Y[:1], rtol=1e-6)
    assert interpreter.placement.partitions == ()
    np.testing.assert_allclose(sines_of(interpreter), Y, rtol=1e-6)
    assert interpreter.placement.delegates == ()


@pytest.mark.parametrize("invoke", [1, 3])
def test_failing_in_an_invoke(install: Install, invoke: int) -> None:
    """With results half written, and in the second of two partitions."""
    delegate = install("eval", n=2 * invoke, spoil=_spoil_outputs)
    interpreter = Interpreter(model_content=sines())
    interpreter.allocate_tensors()
    for i in range(1, 6):
        interpreter.set_tensor(0, X * i)
        if i == invoke:
            with pytest.warns(DefaultDelegateWarning, match="eval"):
                interpreter.invoke()
        else:
            interpreter.invoke()
        np.testing.assert_allclose(
            result(interpreter), np.sin(X * i) + X * i + np.sin(2 * X * i), rtol=1e-5
        )
    assert delegate.visits["eval"] == 2 * invoke
    assert "failing takes 4 in 2 partitions (quarantined" in str(interpreter.placement)
    np.testing.assert_allclose(sines_of(interpreter, X[:1]), Y[:1], rtol=1e-6)
    assert interpreter.placement.delegates == ()


def _spoil_outputs(context: Any, node: Any) -> None:
    for index in node.outputs:
        context.tensors[index].data[...] = np.nan


def test_failing_while_it_is_closed_is_only_logged(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install("free")
    with Interpreter(model_content=sines()) as interpreter:
        np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
    assert "failed to close: RuntimeError: boom at free" in caplog.text


def test_in_a_subgraph_that_another_one_calls(install: Install) -> None:
    for phase, n in (("claim", 1), ("init", 1), ("prepare", 1), ("eval", 1), ("eval", 3)):
        install(phase, n=n, ops=("ADD", "LESS"))
        with pytest.warns(DefaultDelegateWarning, match=f"phase {phase}") as given:
            interpreter = _doubled()
        assert len(given) == 1
        assert len({incident.phase for incident in interpreter.incidents}) == 1


@pytest.mark.parametrize("install", ["configured"], indirect=True)
@pytest.mark.parametrize("phase", ["initialize", "claim", "init", "prepare", "eval"])
@pytest.mark.parametrize("host", ["interpreter", "compiled_model"])
def test_in_litert_it_costs_one_warning_too(install: Install, phase: str, host: str) -> None:
    pytest.importorskip("ai_edge_litert.compiled_model")
    install(phase)
    use = _used_litert if host == "interpreter" else _used_compiled_model
    with pytest.warns(DefaultDelegateWarning, match=f"phase {phase}.*boom at {phase}") as given:
        interpreter = use()
    assert len(given) == 1
    assert {incident.phase for incident in interpreter.incidents} == {phase}
    assert interpreter.placement.incidents == interpreter.incidents


def _used_litert() -> LiteRtInterpreter:
    interpreter = LiteRtInterpreter(model_content=sines())
    for _ in range(2):
        np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)  # type: ignore[arg-type]
    return interpreter


def _used_compiled_model() -> Any:
    model = compiled_model(sines())
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    inputs[0].write(X)
    for _ in range(2):
        model.run_by_index(0, inputs, outputs)
        np.testing.assert_allclose(outputs[0].read(4, np.float32), Y, rtol=1e-6)
    return model


def _doubled() -> Interpreter:
    interpreter = Interpreter(model_content=doubling_while())
    for _ in range(2):
        assert run(interpreter, np.array([1.5], np.float32)) == [12]
    return interpreter


# -- what the core refuses -----------------------------------------------------------------------


@pytest.mark.parametrize("flags", [STATIC, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("at", ["never", "prepare"])
def test_what_the_core_refuses_is_its_error_and_no_incident(
    install: Install, at: str, flags: DelegateFlags
) -> None:
    model = _adding_four()
    refused = _error(Interpreter(model_content=model, delegates=[]), (3,))
    install(at, n=2, flags=flags)
    interpreter = Interpreter(model_content=model)
    x = np.ones(4, np.float32)
    np.testing.assert_array_equal(run(interpreter, x), x + x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = _error(interpreter, (3,))
        assert (type(found), str(found)) == (type(refused), str(refused))
        assert found.node_index == refused.node_index
    assert interpreter.incidents == ()
    interpreter.resize_tensor_input(0, (4,))
    if at == "prepare":
        with pytest.warns(DefaultDelegateWarning, match="prepare"):
            interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, x), x + x)
    assert interpreter.placement.delegates == (() if at == "prepare" else ("failing",))


def _adding_four() -> bytes:
    """Return a model that adds a constant of four elements."""
    return graph_model(
        [("ADD", "x ones", "y", AddOptions())],
        inputs="x",
        outputs="y",
        tensors={"x": tensor((4,)), "ones": constant(np.ones(4, np.float32))},
    )


def _error(interpreter: Interpreter, shape: tuple[int, ...]) -> NodeError:
    interpreter.resize_tensor_input(0, shape)
    with pytest.raises(NodeError) as caught:
        interpreter.allocate_tensors()
    return caught.value


# -- named ones ----------------------------------------------------------------------------------


def test_one_that_is_named_raises_as_before(install: Install) -> None:
    install("eval")
    interpreter = Interpreter(model_content=sines(), delegates=["failing"])
    with pytest.raises(DelegateError, match="boom at eval"):
        run(interpreter)
    assert interpreter.incidents == ()


@pytest.mark.parametrize("on_failure", ["raise", "fallback", "shadow"])
def test_on_failure_is_about_named_ones(install: Install, on_failure: Any) -> None:
    install("eval")
    with pytest.warns(DefaultDelegateWarning) as given:
        _used(failures=FailurePolicy(on_failure=on_failure))
    assert len(given) == 1


@pytest.mark.parametrize("install", ["built in"], indirect=True)
def test_another_delegate_stays_applied(install: Install) -> None:
    install("eval", ops=("ADD", "MUL"))
    with pytest.warns(DefaultDelegateWarning):
        interpreter = _used(delegates=[ByName("SIN")])
    np.testing.assert_allclose(sines_of(interpreter, X[:1]), Y[:1], rtol=1e-6)
    assert interpreter.placement.delegates == ("by_name",)


def test_it_does_not_come_back_with_a_delegate_that_is_applied_later(install: Install) -> None:
    install("eval")
    interpreter = Interpreter(model_content=sines())
    with pytest.warns(DefaultDelegateWarning):
        run(interpreter)
    interpreter.modify_graph_with_delegate(ByName("SIN"))
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
    interpreter.remove_delegate("by_name")
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
    assert interpreter.placement.delegates == ()


def test_as_an_error_the_warning_is_raised_and_the_next_call_works(install: Install) -> None:
    install("eval")
    interpreter = Interpreter(model_content=sines())
    with pytest.raises(DefaultDelegateWarning, match="boom at eval"):
        run(interpreter)
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


# -- models with everything that delegates may meet ----------------------------------------------


def _by_default(name: str, delegate: Faulty, **policy: Any) -> tuple[Interpreter, list[Any]]:
    """Return an interpreter that has a delegate by default, and its results."""
    model, steps = MODELS[name]
    interpreter = Interpreter(model_content=model, delegates=[], **policy)
    session, applied = interpreter.session, as_delegate(delegate)
    session.by_default, session.rest = [applied], applied
    session.apply(applied)
    if name in ("resource", "branch"):
        session.resources["", "v"] = np.zeros(4, np.float32)
    return interpreter, stepped(interpreter, steps)


@pytest.mark.parametrize(
    "policy", [FailurePolicy(), FailurePolicy(validate=True), FailurePolicy("shadow")], ids=str
)
@pytest.mark.parametrize("run", [1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_run_that_fails_is_repeated_from_the_state_before_it(
    name: str, run: int, policy: FailurePolicy
) -> None:
    def fail(context: Any, node: Any, number: int) -> None:
        if number >= run:
            for index in node.outputs:
                spoil(context.tensors[index].data)
            raise OSError("device lost")

    delegate = Faulty(fault=fail, dynamic=True)
    with pytest.warns(DefaultDelegateWarning, match=r"phase eval.*device lost") as given:
        interpreter, results = _by_default(name, delegate, failures=policy)
    assert len(given) == 1
    assert_same(results, undelegated(name))
    calls_others = name in ("loop", "branch")  # there the caller's partition runs meanwhile
    assert 1 <= len(interpreter.incidents) <= 1 + calls_others
    assert run <= delegate.runs <= run + calls_others
    assert all(incident.count == 1 for incident in interpreter.incidents)


@pytest.mark.parametrize("run", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_an_asynchronous_run_that_fails_is_repeated_too(name: str, run: int) -> None:
    def fail(context: Any, node: Any, number: int) -> None:
        if number >= run:
            raise OSError("device lost")

    late = LateFaulty("SIN", "ADD", "MUL", "RNN", "IF", fault=fail, dynamic=True)
    with pytest.warns(DefaultDelegateWarning, match=r"phase eval.*device lost") as given:
        _, results = _by_default(name, late)
    assert len(given) == 1
    assert_same(results, undelegated(name))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("when", [1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_preparation_that_fails_leaves_the_model_to_the_core(
    name: str, when: int, dynamic: bool
) -> None:
    count = 0

    def fail(context: Any, node: Any, number: int) -> None:
        nonlocal count
        count += 1
        if count == when:
            raise ValueError("too large")

    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        delegate = Faulty(before_prepare=fail, dynamic=dynamic)
        interpreter, results = _by_default(name, delegate)
    assert_same(results, undelegated(name))
    assert len(given) == len(interpreter.incidents)
    assert len(given) == 1 or (count < when or "static-sized" in interpreter.incidents[0].error)


@pytest.mark.parametrize("ops", [("WHERE",), ("CAST", "MUL"), ("GREATER", "CAST")])
def test_what_is_prepared_while_invoking_falls_back_there(ops: tuple[str, ...]) -> None:
    def fail(context: Any, node: Any, number: int) -> None:
        raise ValueError("no")

    with pytest.warns(DefaultDelegateWarning, match="phase prepare"):
        _, results = _by_default("dynamic", Faulty(*ops, before_prepare=fail, dynamic=True))
    assert_same(results, undelegated("dynamic"))


def test_an_operator_without_kernel_is_still_the_delegates_error() -> None:
    model = graph_model([("Twice", "x", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model, delegates=[])
    applied = as_delegate(Failing("eval", ops=("Twice",)))
    interpreter.session.by_default = [applied]
    interpreter.session.apply(applied)
    with pytest.raises(DelegateNodeError, match="boom at eval"):
        run(interpreter)
    assert interpreter.incidents == ()


def test_a_kernel_that_says_it_fails_at_once_or_not_at_all_gets_no_copies() -> None:
    """Its word is taken: what it did to a variable stays."""

    class Kernel(FaultyKernel):
        def may_fail_halfway(self) -> bool:
            return False

    class Trusted(Faulty):
        def create_delegate_kernel_interface(self) -> Any:
            return Kernel(self)

    def fail(context: Any, node: Any, number: int) -> None:
        raise OSError("device lost")

    with pytest.warns(DefaultDelegateWarning):
        _, results = _by_default("variable", Trusted(fault=fail, dynamic=True))
    assert not np.array_equal(results[0], undelegated("variable")[0])


# -- remembering ---------------------------------------------------------------------------------


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any time counts as long."""
    monkeypatch.setattr(failure_memory, "SLOW", 0.0)


configured = pytest.mark.parametrize("install", ["configured"], indirect=True)


@configured
@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("flags", [STATIC, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("phase", ["init", "prepare"])
def test_what_took_long_to_fail_is_not_tried_at_the_next_start(
    install: Install, phase: str, flags: DelegateFlags, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(phase, flags=flags)
    with pytest.warns(DefaultDelegateWarning):
        _used()
    again = install(phase, flags=flags)
    with pytest.warns(DefaultDelegateWarning, match="known from an earlier process") as given:
        interpreter = _used()
    assert len(given) == 1
    assert again.visits == {}
    assert interpreter.incidents[0].phase == phase
    [known] = failure_memory.known_failures()
    assert (known.delegate, known.phase, known.is_skipped) == ("failing", phase, True)
    monkeypatch.setattr(failure_memory, "version", lambda name: "99")
    updated = install(phase, flags=flags)
    with pytest.warns(DefaultDelegateWarning, match=f"boom at {phase}"):
        _used()
    assert updated.visits[phase] == 1


@configured
@pytest.mark.usefixtures("slow")
def test_only_the_shapes_that_it_failed_for_are_remembered(install: Install) -> None:
    for warning in ("boom at prepare", "known from an earlier process"):
        install("prepare", n=3)
        interpreter = Interpreter(model_content=sines())
        np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
        assert interpreter.placement.partitions
        interpreter.resize_tensor_input(0, (1,))
        with pytest.warns(DefaultDelegateWarning, match=warning):
            interpreter.allocate_tensors()
        np.testing.assert_allclose(run(interpreter, X[:1]), Y[:1], rtol=1e-6)


def test_what_failed_at_once_is_tried_again_and_known_to_the_doctor(install: Install) -> None:
    for _ in range(2):
        delegate = install("prepare")
        with pytest.warns(DefaultDelegateWarning, match="boom"):
            _used()
        assert delegate.visits["prepare"] == 1
    [known] = failure_memory.known_failures()
    assert known.origin.startswith("fake-failing ")
    assert "boom at prepare" in known.error
    assert not known.is_skipped


def test_a_process_that_tries_generated_models_keeps_none(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_memory.FailureMemory, "is_kept", False)
    install("prepare")
    with pytest.warns(DefaultDelegateWarning, match="boom"):
        _used()
    assert failure_memory.known_failures() == []


@configured
@pytest.mark.usefixtures("slow")
def test_what_may_pass_is_tried_again(install: Install) -> None:
    for _ in range(2):
        delegate = install("prepare", error=MemoryError)
        with pytest.warns(DefaultDelegateWarning, match="boom"):
            _used()
        assert delegate.visits["prepare"] == 1


@configured
@pytest.mark.usefixtures("slow")
def test_a_cache_that_cannot_be_used_costs_nothing(install: Install, cache: Path) -> None:
    cache.write_text("no folder")
    for _ in range(2):
        install("prepare")
        with pytest.warns(DefaultDelegateWarning, match="boom"):
            _used()
    cache.unlink()
    install("prepare")
    with pytest.warns(DefaultDelegateWarning, match="boom"):
        _used()
    for file in cache.rglob("*.blob"):
        file.write_bytes(b"{")
    install("prepare")
    with pytest.warns(DefaultDelegateWarning, match="boom"):
        _used()


@configured
def test_a_compilation_that_fails_leaves_no_file_and_no_lock(install: Install, cache: Path) -> None:
    def compile_badly(context: Any, params: Any) -> None:
        context.cache("engine", "1").read_or_make("key", lambda: 1 / 0)

    install("init", spoil=compile_badly)
    with pytest.warns(DefaultDelegateWarning, match="division by zero"):
        _used()
    assert [file.name for file in cache.rglob("*.blob") if "engine" in file.parts] == []
    blobs = BlobCache("engine", "1")
    assert blobs.read("key") is None
    assert blobs.read_or_make("key", lambda: b"compiled") == b"compiled"
