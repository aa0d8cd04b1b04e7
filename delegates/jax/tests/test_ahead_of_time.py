"""Partitions compiled into the model file, run in both hosts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from chain_model import chain
from delegraph import DelegraphError, Interpreter, OpResolverType
from delegraph.delegation.compiled_partition import CUSTOM_OP
from delegraph.graph import parse_model
from delegraph.native import LiteRtInterpreter
from delegraph.tools import compile_model
from delegraph_jax import ahead_of_time, compiling
from delegraph_jax.executable import Contents
from loop_model import loop, run
from support.corpus import corpus_file, needs_corpus


def test_a_compiled_chain_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    content = compile_model(chain("TANH", "SQUARE"), ["jax"]).content
    monkeypatch.setattr(ahead_of_time, "compiled", lambda *given: pytest.fail("compiled again"))
    x = np.float32([1, -2, 3])
    for host in (Interpreter, LiteRtInterpreter):
        with host(model_content=content) as interpreter:
            np.testing.assert_allclose(run(interpreter, x), np.tanh(x) ** 2, rtol=1e-5)


def test_a_target_of_litert_s_aot_gives_a_file_that_runs(tmp_path: Path) -> None:
    aot = pytest.importorskip("ai_edge_litert.aot.aot_compile")
    from delegraph.aot import DelegraphTarget

    path = tmp_path / "chain.tflite"
    path.write_bytes(chain("TANH", "SQUARE"))
    made = aot.aot_compile(str(path), target=[DelegraphTarget("jax")], keep_going=False)
    x = np.float32([1, -2, 3])
    for host in (Interpreter, LiteRtInterpreter):
        with host(model_path=str(made.models[0].path)) as interpreter:
            np.testing.assert_allclose(run(interpreter, x), np.tanh(x) ** 2, rtol=1e-5)


def test_a_loop_is_compiled_with_its_body() -> None:
    content = compile_model(loop(), ["jax"]).content
    assert [o.name for o in parse_model(content).subgraphs[0].operators] == [CUSTOM_OP]
    for host in (Interpreter, LiteRtInterpreter):
        with host(model_content=content) as interpreter:
            np.testing.assert_array_equal(run(interpreter, [1, 2]), [-8, -16])


@needs_corpus
def test_a_real_model_gives_what_it_gave_before() -> None:
    path = corpus_file("test_data__mobilenet_v1_0.25_128_quant")
    compiled = compile_model(path, ["jax"]).content
    x = np.random.default_rng(0).integers(0, 256, (1, 128, 128, 3), np.uint8)
    with Interpreter(str(path), delegates=[]) as interpreter:
        expected = run(interpreter, x)
    for host in (Interpreter, LiteRtInterpreter):
        with host(model_content=compiled) as interpreter:
            np.testing.assert_array_equal(run(interpreter, x), expected)


def test_another_version_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    content = compile_model(chain("SQUARE"), ["jax"]).content
    monkeypatch.setattr(compiling, "version", lambda: "other")
    with (
        Interpreter(model_content=content) as interpreter,
        pytest.raises(DelegraphError, match=r"installed is .* of version 'other'.*-d jax"),
    ):
        interpreter.allocate_tensors()


def test_other_numerics_are_refused() -> None:
    content = compile_model(chain("SQUARE"), ["jax"]).content
    with (
        pytest.raises(DelegraphError, match="rounds like the builtin kernels"),
        Interpreter(
            model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
        ) as interpreter,
    ):
        interpreter.allocate_tensors()


def test_an_absent_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = compile_model(chain("SQUARE"), ["jax"]).content
    contents_of = ahead_of_time.contents_of

    def elsewhere(blob: bytes) -> Contents:
        return replace(contents_of(blob), device="cpu:99")

    monkeypatch.setattr(ahead_of_time, "contents_of", elsewhere)
    with (
        pytest.raises(DelegraphError, match=r"device 'cpu:99' is not there; JAX finds"),
        Interpreter(model_content=content) as interpreter,
    ):
        interpreter.allocate_tensors()
