"""Models with partitions compiled ahead of time: what the file keeps, and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, OpResolverType, PlacementPolicy, PlacementRule
from delegraph.delegation.compiled_partition import CUSTOM_OP, compiled_partitions
from delegraph.delegation.control_edges import moved_control_edges, parse_control_edges
from delegraph.errors import (
    ArgumentError,
    DelegateError,
    PlacementError,
    PluginError,
    PluginOptionError,
    UnknownDelegateError,
)
from delegraph.graph.associated_files import AssociatedFiles
from delegraph.graph.loader import parse_model
from delegraph.graph.model import CONTROL_EDGES
from delegraph.native import LiteRtInterpreter
from delegraph.schema import read_model, tables, write_model
from delegraph.testing import graph_model, tensor
from delegraph.tools import CompiledModel, compile_model
from support.by_name import X, doubling_while, run, sines
from support.chosen_plugins import use_plugins_of
from support.compiling_plugin import (
    change_compiler,
    compiling_plugin,
    install_compiler,
    uninstall_compiler,
)
from support.corpus import corpus_file, needs_corpus
from support.described_models import with_metadata
from support.fake_distributions import pip_install, write_plugin
from support.policy_models import positive_positions, remembering
from support.signatures import two_signatures


@pytest.fixture(autouse=True)
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which delegate engine is installed; it leaves SIN."""
    install_compiler(tmp_path, monkeypatch, left=("SIN",))
    return tmp_path


def operators(model: bytes, subgraph: int = 0) -> list[str]:
    return [operator.name for operator in parse_model(model).subgraphs[subgraph].operators]


def assert_same(compiled: bytes, model: bytes, x: Any = X) -> None:
    """Check that each host computes what it computes without delegates, bit for bit."""
    for host in (Interpreter, LiteRtInterpreter):
        alone = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        plain, own = (
            host(model_content=content, experimental_op_resolver_type=alone)
            for content in (model, compiled)
        )
        assert np.array_equal(run(own, x), run(plain, x))


def test_partitions_become_one_operator_each_and_the_rest_stays() -> None:
    compiled = compile_model(sines(), ["engine:level=2"])
    assert operators(compiled.content) == ["SIN", CUSTOM_OP, "SIN", CUSTOM_OP]
    first, second = compiled.partitions
    assert list(compiled_partitions(parse_model(compiled.content)).values()) == [first, second]
    assert (first.operators, second.operators) == ({"ADD": 1, "MUL": 1}, {"ADD": 1})
    assert (first.delegate, first.provider, first.version) == ("engine", "fake-engine 1.0", "1.0")
    assert first.options == "level=2"
    assert (first.inputs, first.outputs) == (((4,), (4,)), ((4,), (4,)))
    assert_same(compiled.content, sines())


def test_the_same_model_gives_the_same_bytes() -> None:
    again = [compile_model(sines(), {"engine": {"level": 2}}).content for _ in range(2)]
    assert again[0] == again[1] == compile_model(sines(), ["engine:level=2"]).content


def test_what_nothing_needs_any_more_is_left_out() -> None:
    content = compile_model(sines(), ["engine"]).content
    (subgraph,) = parse_model(content).subgraphs
    assert [tensor.name for tensor in subgraph.tensors if tensor.data is None] == list("xabcdy")
    blobs = [tensor for tensor in subgraph.tensors if tensor.data is not None]
    assert [tensor.name.partition("/")[0] for tensor in blobs] == ["engine", "engine"]


def test_a_partition_that_the_compiler_leaves_stays_as_it_is() -> None:
    compiled = compile_model(sines(), ["engine:least=2"])
    assert operators(compiled.content) == ["SIN", CUSTOM_OP, "SIN", "ADD"]
    (refusal,) = [r for r in compiled.explanation.refusals if r.constraint == "small"]
    assert (refusal.nodes, refusal.reason) == ((4,), "it has too few nodes")
    assert_same(compiled.content, sines())


def test_nothing_to_compile_leaves_the_file_alone() -> None:
    compiled = compile_model(sines(), ["engine:least=9"])
    assert (compiled.content, compiled.partitions) == (sines(), ())


def test_two_delegates_in_one_file(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_compiler(engine, monkeypatch, "sine", left=("ADD", "MUL"))
    at_once = compile_model(sines(), ["engine", "sine"])
    assert operators(at_once.content) == [CUSTOM_OP] * 4
    assert [found.delegate for found in at_once.partitions] == ["sine", "engine"] * 2
    twice = compile_model(compile_model(sines(), ["engine"]).content, ["sine"])
    assert [found.delegate for found in twice.partitions] == ["sine", "sine"]
    for content in (at_once.content, twice.content):
        interpreter = Interpreter(model_content=content)
        assert np.array_equal(run(interpreter), run(Interpreter(model_content=sines())))
        assert set(interpreter.placement.notes.values()) == {
            "3 nodes compiled by fake-engine 1.0",
            "2 nodes compiled by fake-sine 1.0",
        }


def test_compiling_again_loads_nothing_that_is_compiled(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = compile_model(sines(), ["engine"]).content
    install_compiler(engine, monkeypatch, "sine", left=("ADD", "MUL"))
    body = "def _load_compiled(blob, context, params):\n"
    change_compiler(engine, monkeypatch, body, f"{body}    1 / 0\n")
    assert operators(compile_model(once, ["sine"]).content) == [CUSTOM_OP] * 4
    uninstall_compiler(engine, monkeypatch)
    assert operators(compile_model(once, ["sine"]).content) == [CUSTOM_OP] * 4


def allow_dynamic_tensors(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = "    def is_node_supported"
    flags = "    def flags(self):\n        return DelegateFlags.ALLOW_DYNAMIC_TENSORS\n\n"
    change_compiler(engine, monkeypatch, named, flags + named)
    change_compiler(engine, monkeypatch, "import Comp", "import DelegateFlags, Comp")


def test_a_partition_with_an_input_of_a_shape_known_late_is_left(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_compiler(engine, monkeypatch, left=("WHERE",))
    allow_dynamic_tensors(engine, monkeypatch)
    compiled = compile_model(positive_positions(), ["engine"])
    assert operators(compiled.content) == [CUSTOM_OP, "WHERE", "CAST", "MUL"]
    left = {refusal.constraint for refusal in compiled.explanation.refusals}
    assert left == {"op", "dynamic-shape"}
    assert_same(compiled.content, positive_positions())


def test_shapes_are_those_that_run_and_not_those_that_the_file_declares(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_dynamic_tensors(engine, monkeypatch)
    stale = graph_model(
        [("SIN", "x", "a"), ("ABS", "a", "b"), ("NEG", "b", "c"), ("SIN", "c", "y")],
        inputs="x",
        outputs="y",
        tensors={"a": tensor((1,)), "b": tensor((2,)), "c": tensor((3,))},
    )
    compiled = compile_model(stale, ["engine"])
    (found,) = compiled.partitions
    assert (found.inputs, found.outputs) == (((4,),), ((4,),))
    tensors = {t.name: t.shape for t in parse_model(compiled.content).subgraphs[0].tensors}
    assert tensors["c"] == (4,)
    assert_same(compiled.content, stale)
    record = read_model(np.frombuffer(compiled.content, np.uint8))
    (subgraph,) = record.subgraphs or ()
    changed = [t.replace(shape=(7,)) if t.name == "c" else t for t in subgraph.tensors or ()]
    other = record.replace(subgraphs=(subgraph.replace(tensors=tuple(changed)),))
    assert_same(write_model(other), stale)


def test_signatures_and_metadata_are_kept() -> None:
    install = with_metadata(two_signatures(), name="both", files={"labels.txt": b"a\nb"})
    content = compile_model(install, ["engine"]).content
    model, source = parse_model(content), parse_model(install)
    assert [operators(content, i) for i in (0, 1)] == [[CUSTOM_OP], ["SIN"]]
    assert [s.key for s in model.signatures] == [s.key for s in source.signatures]
    assert model.metadata.keys() == source.metadata.keys()
    assert AssociatedFiles(model.content).read("labels.txt") == b"a\nb"
    negate = Interpreter(model_content=content).get_signature_runner("negate")
    np.testing.assert_array_equal(negate(x=np.array([3], np.float32))["y"], [-3])


def test_control_edges_name_the_operators_of_the_new_plan() -> None:
    edges = moved_control_edges([[(0, 2), (1, 2), (2, 3), (0, 4)]], [{i: i for i in range(5)}])
    record = read_model(np.frombuffer(sines(), np.uint8))
    entry = tables.Metadata(name=CONTROL_EDGES, buffer=len(record.buffers or ()))
    buffer = tables.Buffer(data=np.frombuffer(edges, np.uint8))
    model = record.replace(buffers=(*(record.buffers or ()), buffer), metadata=(entry,))
    compiled = compile_model(write_model(model), ["engine"])
    assert [node.nodes for node in compiled.explanation.placement.partitions] == [(1, 2), (4,)]
    found = parse_control_edges(parse_model(compiled.content).metadata, 1)
    assert found == [[(0, 1), (0, 3), (1, 2)]]


def test_a_loop_is_compiled_with_the_subgraphs_that_it_calls() -> None:
    content = compile_model(doubling_while(), ["engine"]).content
    assert [operators(content, i) for i in range(3)] == [[CUSTOM_OP], ["LESS"], ["ADD"]]
    assert_same(content, doubling_while(), np.array([3], np.float32))


def test_bodies_are_compiled_where_the_loop_stays(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_compiler(engine, monkeypatch, left=("WHILE",))
    content = compile_model(doubling_while(), ["engine"]).content
    assert [operators(content, i) for i in range(3)] == [["WHILE"], [CUSTOM_OP], [CUSTOM_OP]]
    assert_same(content, doubling_while(), np.array([3], np.float32))


def test_a_variable_is_an_input_that_comes_after_the_others() -> None:
    content = compile_model(remembering(), ["engine"]).content
    (operator,) = parse_model(content).subgraphs[0].operators
    tensors = parse_model(content).subgraphs[0].tensors
    assert [tensors[i].is_variable for i in operator.inputs] == [False, True, False]


def test_rules_keep_nodes_out_and_pins_must_hold() -> None:
    policy = PlacementPolicy([PlacementRule("exclude", operators=["MUL"])])
    compiled = compile_model(sines(), ["engine"], placement=policy)
    assert operators(compiled.content) == ["SIN", "MUL", "SIN", CUSTOM_OP]
    with pytest.raises(PlacementError, match="SIN"):
        compile_model(sines(), ["engine"], placement=PlacementPolicy(require="full"))


def test_progress_names_each_partition() -> None:
    told: list[str] = []
    compile_model(sines(), ["engine"], progress=lambda what, done, total: told.append(what))
    assert told == [
        "engine: compiling partition 1, 2 nodes",
        "engine: compiling partition 2, 1 nodes",
    ]


@pytest.mark.parametrize(
    ("delegates", "error", "message"),
    [
        ([], ArgumentError, "expected a list of at least one name"),
        ("engine", ArgumentError, "expected a list of at least one name"),
        (["not-there"], UnknownDelegateError, "no installed plugin provides"),
        (["engine:speed=1"], PluginOptionError, "has no option 'speed'"),
    ],
)
def test_delegates_that_cannot_be_had_are_refused(
    delegates: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compile_model(sines(), delegates)


def test_a_delegate_without_compiler_is_refused(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugin(engine, "plain")
    use_plugins_of(monkeypatch, engine)
    with pytest.raises(PluginError, match=r"'plain' cannot be compiled.*file: .*fake-engine"):
        compile_model(sines(), ["plain"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("1 / 0", r"compile_partition\(\) of plugin 'engine' of fake-engine 1.0 failed: ZeroDiv"),
        ("return 'text'", r"compile_partition\(\) of .* returned a str, expected bytes"),
    ],
)
def test_a_compiler_that_fails_is_named(
    engine: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, message: str
) -> None:
    body = "def _compile(model, options):\n"
    change_compiler(engine, monkeypatch, body, f"{body}    {wrong}\n")
    with pytest.raises(DelegateError, match=message):
        compile_model(sines(), ["engine"])


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    compiled = compile_model(sines(), ["engine"])
    compiled.write(tmp_path / "out.tflite")
    assert (tmp_path / "out.tflite").read_bytes() == compiled.content
    with pytest.raises(ArgumentError, match="cannot be written: No such file"):
        compiled.write(tmp_path / "missing" / "out.tflite")
    assert list(tmp_path.glob("**/*.partial")) == []


@needs_corpus
def test_a_mobilenet_compiled_for_a_plugin_that_pip_installs_runs_in_both_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    pip_install(site, "fake_pipped", compiling_plugin("pipped", left=("SOFTMAX",)), "pipped")
    use_plugins_of(monkeypatch, site)
    path = corpus_file("test_data__mobilenet_v1_0.25_128_quant")
    compiled: CompiledModel = compile_model(path, ["pipped"])
    assert operators(compiled.content) == [CUSTOM_OP, "SOFTMAX"]
    x = np.random.default_rng(0).integers(0, 256, (1, 128, 128, 3), np.uint8)
    assert_same(compiled.content, path.read_bytes(), x)
