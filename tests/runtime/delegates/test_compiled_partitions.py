"""Files with partitions that a delegate has compiled: they run by themselves, or say why not."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import FailurePolicy, Interpreter, OpResolverType
from delegraph.delegation.compiled_partition import CUSTOM_OP
from delegraph.errors import (
    DelegateError,
    DelegateNodeError,
    MalformedModelError,
    NodeError,
    UnresolvedOpError,
)
from delegraph.native import LiteRtInterpreter
from delegraph.plugins import PluginSet, plugin_set
from delegraph.schema import tables
from delegraph.schema.reader import read_model
from delegraph.schema.tables import with_operators
from delegraph.schema.writer import write_model
from delegraph.testing import graph_model
from delegraph.tools import compile_model
from support.by_name import ByName, X, run, sines
from support.compiling_plugin import change_compiler, install_compiler, uninstall_compiler


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which delegate engine is installed; it leaves SIN."""
    install_compiler(tmp_path, monkeypatch, left=("SIN",))
    return tmp_path


@pytest.fixture
def compiled(engine: Path) -> bytes:
    return compile_model(sines(), ["engine:level=2"]).content


def refusal(model: bytes) -> str:
    with pytest.raises(UnresolvedOpError) as caught:
        Interpreter(model_content=model).allocate_tensors()
    assert caught.value.op == CUSTOM_OP
    return str(caught.value)


def with_custom_options(model: bytes, change: Any) -> bytes:
    """Return a model with the custom options of its operators changed."""

    def changed(operator: tables.Operator) -> tables.Operator:
        if operator.custom_options is None:
            return operator
        content = change(operator.custom_options.tobytes())
        return operator.replace(custom_options=np.frombuffer(content, np.uint8))

    return write_model(with_operators(read_model(np.frombuffer(model, np.uint8)), changed))


def test_a_compiled_file_applies_its_delegate_by_itself(compiled: bytes) -> None:
    with Interpreter(model_content=compiled) as interpreter:
        assert np.array_equal(run(interpreter), run(Interpreter(model_content=sines())))
        placement = interpreter.placement
    assert [node.op for node in placement.nodes] == ["SIN", CUSTOM_OP, "SIN", CUSTOM_OP]
    assert [node.delegate for node in placement.nodes] == [None, "engine", None, "engine"]
    assert placement.notes == {"engine": "3 nodes compiled by fake-engine 1.0"}


@pytest.mark.parametrize("resolver", list(OpResolverType))
def test_op_resolver_types_without_default_delegates_apply_it_too(
    compiled: bytes, resolver: OpResolverType
) -> None:
    interpreter = Interpreter(model_content=compiled, experimental_op_resolver_type=resolver)
    assert interpreter.placement.delegates == ("engine",)


def test_delegates_that_are_asked_for_come_after_it(compiled: bytes) -> None:
    interpreter = Interpreter(model_content=compiled, delegates=[ByName("SIN")])
    assert interpreter.placement.delegates == ("engine", "by_name")
    assert [n.delegate for n in interpreter.placement.nodes] == ["by_name", "engine"] * 2
    np.testing.assert_allclose(run(interpreter), np.sin(X) + X + np.sin(2 * X), rtol=1e-6)


def test_no_delegates_at_all_is_an_error_that_says_so(compiled: bytes) -> None:
    interpreter = Interpreter(model_content=compiled, delegates=[])
    with pytest.raises(UnresolvedOpError, match=r"'engine' of fake-engine 1.0, which was not appl"):
        interpreter.allocate_tensors()


def test_neighbours_have_a_kernel_each(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = graph_model(
        [("NEG", "x", "a"), ("SIN", "a", "b"), ("ABS", "b", "y")], inputs="x", outputs="y"
    )
    once = compile_model(chain, ["engine"]).content
    install_compiler(engine, monkeypatch)
    interpreter = Interpreter(model_content=compile_model(once, ["engine"]).content)
    assert [node.op for node in interpreter.placement.nodes] == [CUSTOM_OP] * 3
    assert [partition.nodes for partition in interpreter.placement.partitions] == [(0,), (1,), (2,)]
    assert np.array_equal(run(interpreter), run(Interpreter(model_content=chain)))


def test_a_missing_package_is_named_with_its_pip_line(
    engine: Path, compiled: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    uninstall_compiler(engine, monkeypatch)
    text = refusal(compiled)
    assert f"{CUSTOM_OP} (2 nodes): delegate 'engine' refuses it" in text
    assert "compiled by fake-engine 1.0, whose delegate 'engine' is not installed" in text
    assert text.endswith("pip install 'fake-engine==1.0'")


def test_a_disabled_plugin_is_named_with_its_remedy(
    engine: Path, compiled: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_set, "found_plugins", PluginSet(["*"], ["engine"]))
    assert "disabled by the disable list; take 'engine' off that list" in refusal(compiled)


def test_another_version_is_refused_with_the_remedy(
    engine: Path, compiled: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_compiler(engine, monkeypatch, release="1.1")
    text = refusal(compiled)
    assert "as version '1.0', installed is plugin 'engine' of fake-engine 1.1" in text
    assert "with: delegraph compile MODEL -d engine:level=2 -o OUT.tflite" in text
    assert text.endswith("or go back with: pip install 'fake-engine==1.0'")


def test_the_version_of_blobs_counts_and_not_the_distribution(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_compiler(engine, monkeypatch, version="b7")
    model = compile_model(sines(), ["engine"]).content
    install_compiler(engine, monkeypatch, version="b7", release="1.1")
    run(Interpreter(model_content=model))
    install_compiler(engine, monkeypatch, version="b8", release="1.1")
    assert "as version 'b7', installed is" in refusal(model)


def test_a_plugin_that_no_longer_compiles_is_named(
    engine: Path, compiled: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_compiler(engine, monkeypatch, "def delegraph_compilers", "def _not_any_more")
    change_compiler(engine, monkeypatch, "@hookimpl\ndef _not", "def _not")
    assert "loads no compiled partitions: pip install 'fake-engine==1.0'" in refusal(compiled)


def test_a_damaged_blob_is_refused_by_its_digest(compiled: bytes) -> None:
    at = compiled.index(b"LEVEL2")
    damaged = compiled[: at + 40] + bytes([compiled[at + 40] ^ 1]) + compiled[at + 41 :]
    assert "the file is damaged: its blob has the SHA-256 " in refusal(damaged)


@pytest.mark.parametrize("change", [lambda c: c[:-1], lambda c: b"", lambda c: b"[" * 60000])
def test_damaged_options_are_a_damaged_model(compiled: bytes, change: Any) -> None:
    with pytest.raises(MalformedModelError, match=rf"^operator 1 of subgraph 0 \({CUSTOM_OP}\): "):
        Interpreter(model_content=with_custom_options(compiled, change))


def test_a_resize_is_refused_with_what_to_do(compiled: bytes) -> None:
    with Interpreter(model_content=compiled) as interpreter:
        interpreter.resize_tensor_input(0, [3])
        with pytest.raises(NodeError, match=r"\[3\] was compiled as \[4\], and .* compile that"):
            interpreter.allocate_tensors()
        interpreter.resize_tensor_input(0, [4])
        run(interpreter)


FULL_LIFE = """\
    def memory_changed(self, context, node):
        assert node.inputs == self.params.input_tensors
        CALLS.append("memory_changed")

    def eval_async(self, context, node):
        CALLS.append("eval_async")
        self.eval(context, node)
        done = Future()
        done.set_result(None)
        return done

    def close(self):
        CALLS.append("close")
"""


@pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])
def test_a_compiled_kernel_has_all_that_kernels_have(
    engine: Path, compiled: bytes, monkeypatch: pytest.MonkeyPatch, host: Any
) -> None:
    head = "from concurrent.futures import Future\nCALLS = []\nVERSION"
    change_compiler(engine, monkeypatch, "VERSION =", f"{head} =")
    change_compiler(engine, monkeypatch, "    def close(self):\n", FULL_LIFE)
    interpreter = host(model_content=compiled)
    assert np.allclose(run(interpreter), run(Interpreter(model_content=sines())), atol=1e-6)
    calls = sys.modules["fake_engine"].CALLS
    if host is Interpreter:
        assert [p.is_asynchronous for p in interpreter.placement.partitions] == [True, True]
    assert calls.count("memory_changed") == 2
    interpreter.close()
    gc.collect()
    assert calls.count("close") == 2


@pytest.mark.skipif(sys.platform != "linux", reason="processes of delegates are Linux's")
def test_an_isolated_delegate_loads_what_is_compiled_in_its_own_process(
    engine: Path, compiled: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(engine))
    body = "def _load_compiled(blob, context, params):\n"
    spoilt = f"{body}    import os\n    assert os.getpid() != {os.getpid()}, 'loaded here'\n"
    change_compiler(engine, monkeypatch, body, spoilt)
    assert "loaded here" in failure_of(lambda: Interpreter(model_content=compiled))
    for host in (Interpreter, LiteRtInterpreter):
        with host(model_content=compiled, failures=FailurePolicy(isolate="process")) as interpreter:
            expected = run(Interpreter(model_content=sines()))
            assert np.allclose(run(interpreter), expected, atol=1e-6)
            note = interpreter.placement.notes["engine"]
            assert note == "compiled by fake-engine; in a process of its own"
    install_compiler(engine, monkeypatch, release="1.1")
    with pytest.raises(UnresolvedOpError, match=r"as version '1.0', installed is"):
        Interpreter(
            model_content=compiled, failures=FailurePolicy(isolate="process")
        ).allocate_tensors()


def failure_of(call: Callable[[], object]) -> str:
    with pytest.raises(DelegateError) as caught:
        call()
    return str(caught.value)


def test_a_compiled_kernel_that_fails_is_named(
    engine: Path, compiled: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_compiler(engine, monkeypatch, "self.engine.invoke()", "1 / 0")
    with pytest.raises(DelegateNodeError, match=r"engine.*division by zero"):
        run(Interpreter(model_content=compiled))
    with pytest.raises(DelegateNodeError, match=r"engine.*division by zero"):
        run(Interpreter(model_content=compiled, failures=FailurePolicy(on_failure="fallback")))


@pytest.mark.parametrize("policy", ["fallback", "shadow"])
def test_failure_policies_run_a_compiled_file(compiled: bytes, policy: Any) -> None:
    with Interpreter(
        model_content=compiled, failures=FailurePolicy(on_failure=policy, shadow_share=1.0)
    ) as interpreter:
        assert np.array_equal(run(interpreter), run(Interpreter(model_content=sines())))
        assert not interpreter.incidents
