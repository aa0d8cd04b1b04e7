"""``aot_compile`` with delegates as targets: files, statistics, and failures it may survive."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.aot.ai_pack import export_lib
from ai_edge_litert.aot.aot_compile import aot_compile
from ai_edge_litert.aot.core.aot_types import CompilationConfig, Model
from ai_edge_litert.aot.core.components import AieQuantizerT
from ai_edge_litert.aot.vendors.fallback_backend import FallbackTarget
from ai_edge_litert.aot.vendors.import_vendor import import_vendor

from delegraph import Interpreter, PlacementPolicy, PlacementRule
from delegraph.aot import DelegraphTarget
from delegraph.errors import (
    ArgumentError,
    CompilationError,
    DelegateError,
    MalformedModelError,
    UnknownDelegateError,
)
from delegraph.native import LiteRtInterpreter
from delegraph.tools import compile_model
from delegraph.tools.litert2 import LiteRt2Interpreter
from support.by_name import X, doubling_while, run, sines
from support.compiling_plugin import change_compiler, install_compiler


@pytest.fixture(autouse=True)
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which delegate engine is installed; it leaves SIN."""
    install_compiler(tmp_path / "site", monkeypatch, left=("SIN",))
    return tmp_path / "site"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "sines.tflite"
    path.write_bytes(sines())
    return path


def compiled(model: Any, *targets: Any, **arguments: Any) -> Any:
    if isinstance(model, bytes):
        model = Model.create_from_bytes(model)
    elif isinstance(model, Path):
        model = str(model)
    return aot_compile(model, target=list(targets), **{"keep_going": False, **arguments})


def test_the_file_is_the_one_that_compile_model_makes(model: Path) -> None:
    result = compiled(model, DelegraphTarget("engine", options={"level": 2}))
    (path,) = (found.path for found in result.models)
    assert path.parent == model.parent / "_compiled_models"
    assert path.read_bytes() == compile_model(sines(), ["engine:level=2"]).content


def test_the_file_runs_with_equal_results_in_each_host(model: Path) -> None:
    (found,) = compiled(model, DelegraphTarget("engine")).models
    for host in (Interpreter, LiteRtInterpreter):
        plain, own = host(model_content=sines()), host(model_path=str(found.path))
        np.testing.assert_array_equal(run(own), run(plain))
    call = LiteRt2Interpreter(str(found.path)).call()
    call.prepare([X])
    call.invoke()
    np.testing.assert_array_equal(call.outputs()[0][1], run(LiteRtInterpreter(str(model))))


def test_a_model_in_memory_stays_there() -> None:
    (found,) = compiled(sines(), DelegraphTarget("engine:level=2")).models
    assert found.model_bytes == compile_model(sines(), ["engine:level=2"]).content


def test_statistics_count_nodes_and_partitions() -> None:
    result = compiled(sines(), DelegraphTarget("engine"))
    assert str(result.models[0].partition_stats) == (
        "Subgraph 0 partially compiled:\t3 / 5 ops offloaded to 2 partitions."
    )
    assert "delegraph_engine\n=" in result.compilation_report()


def test_statistics_count_called_subgraphs_with_their_caller(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_compiler(engine, monkeypatch)
    (found,) = compiled(doubling_while(), DelegraphTarget("engine")).models
    assert [
        (s.num_ops_offloaded, s.num_total_ops, s.num_partitions_offloaded)
        for s in found.partition_stats.subgraph_stats
    ] == [(1, 1, 1), (1, 1, 0), (1, 1, 0)]


def test_export_names_files_by_delegate_and_options(model: Path, tmp_path: Path) -> None:
    result = compiled(
        model,
        DelegraphTarget("engine"),
        DelegraphTarget("engine:level=2"),
        DelegraphTarget("engine", {"level": 3, "least": 1}),
        FallbackTarget(),
    )
    result.export(tmp_path / "out", "sines")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "sines_delegraph_engine.tflite",
        "sines_delegraph_engine_level_2.tflite",
        "sines_delegraph_engine_level_3_least_1.tflite",
        "sines_fallback.tflite",
    ]


def test_an_ai_pack_has_the_file_beside_the_others(model: Path, tmp_path: Path) -> None:
    result = compiled(model, DelegraphTarget("engine"), FallbackTarget())
    export_lib.export(result, tmp_path / "out", "pack", "sines")
    assets = tmp_path / "out" / "pack" / "src" / "main" / "assets"
    file = assets / "model#group_delegraph_engine" / "sines.tflite"
    assert file.read_bytes() == compile_model(sines(), ["engine"]).content


@pytest.mark.parametrize("value", ["x" * 300, "../a/b", "ä"])
def test_an_id_of_any_options_is_a_short_plain_file_name(value: str) -> None:
    targets = [DelegraphTarget("engine", {"path": value + end}) for end in "12"]
    ids = {_backend(target).target_id for target in targets}
    assert len(ids) == 2
    assert all(len(name) < 100 and name.isascii() and "/" not in name for name in ids)


def _backend(target: DelegraphTarget) -> Any:
    return import_vendor("delegraph").create(target.flatten())


def test_targets_are_equal_when_delegate_and_options_are() -> None:
    one, other = (DelegraphTarget("engine", {"level": 2}) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != DelegraphTarget("engine", {"level": 3})
    assert _backend(one).target == one


FAILURES = {
    "unknown": (DelegraphTarget("nonsense"), UnknownDelegateError, "no installed plugin"),
    "option": (DelegraphTarget("engine", {"depth": 1}), ValueError, "has no option 'depth'"),
    "none": (
        DelegraphTarget("engine:least=9"),
        CompilationError,
        "ADD x2, MUL: it has too few nodes",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_a_value_error_that_says_why(name: str, model: Path) -> None:
    target, kind, words = FAILURES[name]
    with pytest.raises(kind, match=words):
        compiled(model, target)
    result = compiled(model, target, DelegraphTarget("engine"), keep_going=True)
    assert len(result.models) == 1
    ((backend, error),) = result.failed_backends
    assert backend.target == target
    assert error in result.compilation_report()


def test_a_failing_compiler_fails_the_target_with_its_cause(
    engine: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_compiler(engine, monkeypatch, 'return b"LEVEL', 'raise OSError("full") or b"LEVEL')
    with pytest.raises(CompilationError, match=r"'engine'.*full") as raised:
        compiled(model, DelegraphTarget("engine"))
    assert isinstance(raised.value.__cause__, DelegateError)


def test_a_damaged_model_fails_the_target(model: Path) -> None:
    model.write_bytes(b"damaged")
    with pytest.raises(MalformedModelError):
        compiled(model, DelegraphTarget("engine"))


def test_a_target_needs_a_name() -> None:
    for wrong in (None, ""):
        with pytest.raises(ArgumentError, match=f"delegate is {wrong!r}, expected a name"):
            DelegraphTarget(wrong)  # type: ignore[arg-type]  # the mistake under test


def test_placement_and_limits_are_those_of_compile_model() -> None:
    policy = PlacementPolicy([PlacementRule("exclude", nodes=[1])])
    content = compile_model(sines(), ["engine"], placement=policy).content
    target = DelegraphTarget("engine")
    (found,) = compiled(sines(), target, placement=policy).models
    assert found.model_bytes == content
    model = Model.create_from_bytes(sines())
    (found,) = aot_compile(model, config=CompilationConfig(target, placement=policy)).models
    assert found.model_bytes == content


def test_an_argument_of_the_configuration_that_is_unknown_is_an_error(model: Path) -> None:
    config = CompilationConfig(DelegraphTarget("engine"), level=2)
    with pytest.raises(CompilationError, match=r"'level'.*knows limits, placement"):
        aot_compile(str(model), config=config, keep_going=False)


def test_subgraphs_to_compile_is_refused_with_what_does_it(model: Path) -> None:
    with pytest.raises(CompilationError, match="PlacementRule"):
        compiled(model, DelegraphTarget("engine"), subgraphs_to_compile=[0])


class Quantizer(AieQuantizerT):
    """Writes another model, for the recipe ``"other"``."""

    def __call__(self, input_model: Any, output_model: Any, *args: Any, **kwargs: Any) -> None:
        assert kwargs == {"quantization_recipe": "other"}
        output_model.set_bytes(doubling_while())


def test_a_quantizer_runs_before_the_compiler() -> None:
    config = CompilationConfig(DelegraphTarget("engine"), quantize_recipe="other")
    model = Model.create_from_bytes(sines())
    (found,) = aot_compile(model, config=config, quantizer=Quantizer(), keep_going=False).models
    assert found.model_bytes == compile_model(doubling_while(), ["engine"]).content


def test_without_a_target_every_delegate_that_can_compile_does() -> None:
    every = import_vendor("delegraph").create({"backend_id": "delegraph"})
    targets = [backend.target for backend in every.specialize()]
    assert DelegraphTarget("engine") in targets
    assert DelegraphTarget("sin") not in targets


def test_a_missing_litert_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "delegraph.aot.backend", raising=False)
    monkeypatch.setitem(sys.modules, "ai_edge_litert.aot.core", None)
    with pytest.raises(ImportError, match="pip install --upgrade ai-edge-litert"):
        importlib.import_module("delegraph.aot.backend")
