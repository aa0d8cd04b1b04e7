"""A delegate in a process of its own gives what it gives in this one, and says where it is."""

from __future__ import annotations

import gc
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import DelegateSpec, FailurePolicy, Interpreter, load_delegate
from delegraph.errors import (
    ArgumentError,
    ArgumentTypeError,
    DelegateError,
    PluginLoadError,
    PluginOptionError,
    UnknownDelegateError,
)
from delegraph.native import LiteRtInterpreter
from delegraph.runtime.delegates.requested_delegates import as_delegates
from delegraph.runtime.isolation.isolation import Isolation
from support.by_name import ByName, Y, doubling_while, run, sines
from support.chosen_plugins import use_plugins_of
from support.dangerous_delegate import Dangerous, Options
from support.fake_distributions import pip_install
from support.isolated import DANGEROUS, Watched, interpreter_with, isolated, pid_of
from support.policy_models import remembering

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches processes by Linux's ways")


def test_results_and_reasons_are_those_of_the_delegate_in_this_process() -> None:
    delegate = isolated()
    own = interpreter_with(Dangerous(Options()))  # type: ignore[arg-type]  # any delegate
    with interpreter_with(delegate) as other:
        assert np.array_equal(run(other), run(own))
        np.testing.assert_allclose(run(other), Y, rtol=1e-6)
        assert other.incidents == ()
        found, expected = other.placement.nodes, own.placement.nodes
        assert [n.delegate for n in found] == [n.delegate for n in expected]
        assert [n.rejections for n in found] == [n.rejections for n in expected]


def test_the_placement_says_that_it_is_isolated() -> None:
    with interpreter_with(isolated()) as interpreter:
        assert "mind the gap; in a process of its own" in str(interpreter.placement)


def test_a_partition_may_be_refused_as_a_whole() -> None:
    with interpreter_with(isolated(refuses=True)) as interpreter:
        np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
        reason = interpreter.placement.nodes[1].rejections["dangerous"]
        assert (reason.constraint, str(reason)) == ("pair", "two at a time are too many")
        assert interpreter.incidents == ()


def test_a_resize_takes_a_static_and_a_dynamic_delegate_along() -> None:
    for dynamic in (False, True):
        delegate = isolated(dynamic=dynamic)
        with interpreter_with(delegate) as interpreter:
            run(interpreter)
            interpreter.resize_tensor_input(0, (2, 3))
            x = np.arange(6, dtype=np.float32).reshape(2, 3)
            found = run(interpreter, x)
            np.testing.assert_allclose(found, np.sin(x) + x + np.sin(2 * x), rtol=1e-6)
            assert interpreter.incidents == ()


def test_outputs_may_have_shapes_that_are_known_only_while_invoking() -> None:
    with interpreter_with(isolated(opens=True)) as interpreter:
        np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
        assert interpreter.incidents == ()


def test_what_it_prints_is_no_output_of_the_host(capfd: pytest.CaptureFixture[str]) -> None:
    with interpreter_with(isolated(noise=True)) as interpreter:
        run(interpreter)
    out, err = capfd.readouterr()
    assert out == ""
    assert "noise at eval" in err
    assert "noise of C" in err


def test_nodes_that_call_subgraphs_or_keep_values_stay_in_the_host() -> None:
    delegate = isolated()
    with Interpreter(model_content=doubling_while(), delegates=[delegate]) as interpreter:
        loop, _, add = interpreter.placement.nodes
        assert loop.rejections["dangerous"].constraint == "isolated"
        assert "calls a subgraph" in str(loop.rejections["dangerous"])
        assert add.delegate == "dangerous"
    with Interpreter(model_content=remembering(), delegates=[delegate]) as interpreter:
        (rnn,) = interpreter.placement.nodes
        assert "its variable would be lost" in str(rnn.rejections["dangerous"])


def test_each_delegate_ends_its_process_when_its_interpreter_is_closed() -> None:
    interpreter = Interpreter(
        model_content=sines(),
        delegates=[isolated(), isolated()],
        failures=FailurePolicy(isolate="process"),
    )
    pids = [pid_of(delegate) for delegate in interpreter.session.delegates]
    with Watched(pids[0]) as first, Watched(pids[1]) as second:
        run(interpreter)
        assert not first.ends(0)
        interpreter.close()
        assert first.ends(0)
        assert second.ends(0)


def test_an_interpreter_that_nobody_has_ends_the_process() -> None:
    interpreter: Any = interpreter_with(isolated())
    run(interpreter)
    with Watched(pid_of(interpreter.session.delegates[0])) as process:
        del interpreter
        gc.collect()
        assert process.ends(0)


def test_a_litert_interpreter_that_is_closed_ends_the_process() -> None:
    pytest.importorskip("ai_edge_litert")
    delegate = isolated()
    interpreter = LiteRtInterpreter(model_content=sines(), delegates=[delegate])
    interpreter.allocate_tensors()
    with Watched(pid_of(delegate)) as process:
        interpreter.close()
        assert process.ends(0)


def test_threads_that_share_a_delegate_take_turns() -> None:
    delegate = isolated()
    interpreters = [interpreter_with(delegate) for _ in range(3)]

    def results(interpreter: Interpreter) -> bool:
        steps = np.random.default_rng(id(interpreter)).random((50, 4), np.float32)
        return all(np.allclose(run(interpreter, x), np.sin(x) + x + np.sin(2 * x)) for x in steps)

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(results, interpreters))
    assert [interpreter.incidents for interpreter in interpreters] == [()] * 3
    for interpreter in interpreters:
        interpreter.close()


def test_interpreters_that_share_a_delegate_share_its_process() -> None:
    delegate = isolated()
    first, second = interpreter_with(delegate), interpreter_with(delegate)
    with Watched(pid_of(delegate)) as process:
        np.testing.assert_array_equal(run(first), run(second))
        first.close()
        assert not process.ends(0)
        np.testing.assert_allclose(run(second), Y, rtol=1e-6)
        second.close()
        assert process.ends(0)
    with interpreter_with(delegate) as third:  # a new process
        np.testing.assert_allclose(run(third), Y, rtol=1e-6)


def test_its_kernels_close_when_the_delegate_is_taken_off(tmp_path: Path) -> None:
    journal = tmp_path / "closed"
    delegate = isolated(at="close", how="raise", journal=str(journal))
    with interpreter_with(delegate) as interpreter:
        run(interpreter)
        before = journal.exists() and len(journal.read_text().splitlines())
        interpreter.remove_all_delegates()
        assert len(journal.read_text().splitlines()) == before + 1
        np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


def test_nothing_is_left_in_shared_memory() -> None:
    before = set(os.listdir("/dev/shm"))
    with interpreter_with(isolated()) as interpreter:
        run(interpreter)
        assert set(os.listdir("/dev/shm")) == before


PLUGIN = """\
from pathlib import Path
from delegraph import DelegateSpec, hookimpl
{extra}

def _load():
    import sys
    sys.path.insert(0, {folder!r})
    from dangerous_delegate import Dangerous
    return Dangerous

def _options():
    import sys
    sys.path.insert(0, {folder!r})
    from dangerous_delegate import Options
    return Options

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("danger", "takes ADD", _load, _options(), rank=7{spec})]
"""


def plugin(extra: str = "", spec: str = "") -> str:
    return PLUGIN.format(extra=extra, spec=spec, folder=str(DANGEROUS.parent))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def test_an_installed_delegate_is_not_imported_here(site: Path) -> None:
    pip_install(site, "fake_danger", plugin(), "danger")
    with Interpreter(
        model_content=sines(),
        delegates={"danger": {"dynamic": True}},
        failures=FailurePolicy(isolate="process"),
    ) as interpreter:
        np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
        assert interpreter.session.delegates[0].rank == 7  # type: ignore[attr-defined]  # an isolated one
        assert "dangerous takes 2" in str(interpreter.placement)
    assert "fake_danger" not in sys.modules


def test_a_plugin_whose_import_aborts_cannot_hurt_the_host(site: Path) -> None:
    extra = "import faulthandler, os\nfaulthandler.disable()\nos.abort()"
    pip_install(site, "fake_danger", plugin(extra), "danger")
    with Interpreter(
        model_content=sines(), delegates=["danger"], failures=FailurePolicy(isolate="process")
    ) as interpreter:
        np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
        (incident,) = interpreter.incidents
        assert "ended with SIGABRT while it was importing" in incident.error
        assert interpreter.placement.nodes[1].delegate is None


def test_a_spec_may_ask_for_a_process(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_install(site, "fake_danger", plugin(spec=", isolate='process', timeout=9"), "danger")
    use_plugins_of(monkeypatch, site)
    delegate: Any = load_delegate("danger")
    assert delegate.is_isolated
    assert delegate.process.timeout == 9
    assert not load_delegate("danger", isolate="none").is_isolated


@pytest.mark.parametrize(
    ("given", "text"),
    [({"isolate": "thread"}, "isolate is 'thread'"), ({"isolate": "process", "timeout": 0}, "0")],
)
def test_a_wrong_spec_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        DelegateSpec("x", "", lambda: ByName, **given)
    with pytest.raises(ArgumentError, match="timeout needs isolate"):
        DelegateSpec("x", "", lambda: ByName, timeout=3)


def test_what_cannot_be_had_is_an_error_at_once() -> None:
    with pytest.raises(UnknownDelegateError, match="no installed plugin provides delegate 'nix'"):
        load_delegate("nix", isolate="process")
    with pytest.raises(PluginOptionError, match="no option 'shape'"):
        isolated(shape=1)
    with pytest.raises(PluginLoadError, match=r"could not be made .* device lost"):
        isolated(at="load", how="raise")
    with pytest.raises(ArgumentError, match=r"no delegate file 'nowhere\.py'"):
        load_delegate("nowhere.py", isolate="process")


def test_an_object_cannot_be_sent_to_another_process() -> None:
    with pytest.raises(
        ArgumentError, match="ByName is an object, which cannot be passed to another"
    ):
        Interpreter(
            model_content=sines(),
            delegates=[ByName("ADD")],
            failures=FailurePolicy(isolate="process"),
        )
    with pytest.raises(ArgumentTypeError, match="the options of a delegate are a dictionary"):
        load_delegate(DANGEROUS, Options(), isolate="process")  # type: ignore[arg-type]  # wrong
    with pytest.raises(PluginOptionError, match=r"option 'at' .* is a object"):
        load_delegate(DANGEROUS, {"at": object()}, isolate="process")


def test_a_timeout_needs_a_process() -> None:
    with pytest.raises(ArgumentError, match="timeout=3 needs isolate='process' for delegate ByN"):
        as_delegates([ByName("ADD")], Isolation(timeout=3))
    with pytest.raises(ArgumentError, match="needs isolate='process' for delegate file"):
        load_delegate(DANGEROUS, timeout=3)
    with pytest.raises(ArgumentError, match="timeout is a positive number of seconds, not -1"):
        Interpreter(model_content=sines(), failures=FailurePolicy(timeout=-1))
    with pytest.raises(ArgumentError, match="isolate is 'thread'"):
        Interpreter(model_content=sines(), failures=FailurePolicy(isolate="thread"))  # type: ignore[arg-type]  # wrong


def test_an_error_of_its_claims_names_the_hosts_node() -> None:
    with pytest.raises(DelegateError, match=r"asked about node 0 \(SIN\): OSError: device lost"):
        interpreter_with(isolated(at="claim", how="raise"))
