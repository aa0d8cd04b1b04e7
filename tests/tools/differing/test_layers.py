from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, OpResolverType
from delegraph.errors import NodeError
from delegraph.graph.loader import load_model
from delegraph.operators import memory_limit
from delegraph.schema.options import Conv2DOptions, SplitOptions, WhileOptions
from delegraph.testing import constant, graph_model, subgraphs_model, tensor
from delegraph.tools import Setup, diff_layers
from delegraph.tools.differing import watched_side
from delegraph.tools.differing.layer_difference import noise
from delegraph.tools.differing.side import Side
from support.corpus import corpus_file, needs_corpus
from support.faulty_delegate import Faulty, off_by
from support.layer_models import (
    RUNTIMES,
    WrongProduct,
    add,
    by_name,
    fed,
    file,
    greatest,
    mul,
    setup_of,
)
from support.seeded_faults import SoundKernel, with_kernel
from support.signatures import two_signatures


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_wrong_node_shows_when_each_is_alone(chain: str, runtime: str) -> None:
    setup = setup_of(chain, runtime, with_kernel(WrongProduct)())
    found = diff_layers(setup, inner="alone", runs=2)
    same = {layer.name: greatest(layer.same_inputs) for layer in found.layers}
    assert {name for name, value in same.items() if value} == {"b"}
    assert same["b"] == pytest.approx(1, rel=1e-6)
    drift = {layer.name for layer in found.layers if greatest(layer.drift)}
    assert drift == {"b", "c", "y"}
    worst = found.worst_first()[0]
    assert (worst.node, worst.op, worst.delegate) == (1, "MUL", "careful")
    assert worst.same_inputs is not None
    assert worst.same_inputs.worst.compared is not None
    assert worst.same_inputs.worst.compared.index == (0,)
    assert any("4 partitions here, 1 without" in note for note in found.notes)


@pytest.mark.parametrize("runtime", [*RUNTIMES, "litert2"])
def test_exposed_tensors_show_inside_of_one_partition(chain: str, runtime: str) -> None:
    setup = setup_of(chain, runtime, with_kernel(WrongProduct)())
    found = diff_layers(setup, inner="exposed", runs=2)
    assert {layer.partition for layer in found.layers} == {0}
    assert {layer.name for layer in found.layers if greatest(layer.drift)} == {"b", "c", "y"}
    assert {layer.name for layer in found.layers if greatest(layer.same_inputs)} == {"b", "c", "y"}
    assert not found.notes


@pytest.mark.parametrize("runtime", [*RUNTIMES, "litert2"])
def test_what_a_partition_keeps_to_itself_is_said(chain: str, runtime: str) -> None:
    setup = setup_of(chain, runtime, with_kernel(WrongProduct)())
    layers = by_name(diff_layers(setup, inner="boundaries", runs=1).layers)
    for name in "abc":
        assert layers[name].drift is None
        assert layers[name].drift_note == "inside partition 0 of careful"
        assert layers[name].same_inputs_note == "inside partition 0 of careful"
    assert greatest(layers["y"].drift) == greatest(layers["y"].same_inputs)
    assert greatest(layers["y"].drift) == pytest.approx(1, rel=1e-6)


def slow_layers(model: str, inputs: list[Any]) -> dict[int, Any]:
    """Compute every tensor by an interpreter that keeps all of them."""
    with Interpreter(
        model,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=True,
    ) as interpreter:
        interpreter.allocate_tensors()
        for entry, values in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(entry["index"], values)
        interpreter.invoke()
        operators = load_model(model).subgraphs[0].operators
        return {i: interpreter.get_tensor(i) for o in operators for i in o.outputs}


class WrongEnd(SoundKernel):
    """Adds 100 to the last element of everything."""

    def result(self, step: Any, registration: Any, a: Any, b: Any) -> Any:
        y = np.array(super().result(step, registration, a, b))
        y.reshape(-1)[-1] += 100
        return y


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_no_value_is_of_another_tensor_in_the_same_memory(tmp_path: Path, runtime: str) -> None:
    """A long chain, whose tensors take turns in two places of the arena."""
    nodes = [add(f"{'x' if i == 0 else f't{i}'} x", f"t{i + 1}") for i in range(9)]
    parts = {name: tensor((64, 8)) for name in ["x", *(f"t{i}" for i in range(1, 10))]}
    model = file(tmp_path, graph_model(nodes, inputs="x", outputs="t9", tensors=parts))
    given = np.random.default_rng(0).uniform(-1, 1, (64, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", given)
    expected = slow_layers(model, [given])
    setup = setup_of(model, runtime, with_kernel(WrongEnd)())
    found = diff_layers(setup, inner="alone", inputs=fed(values=(str(tmp_path / "x.npy"),)))
    assert len(found.layers) == 9
    for layer in found.layers:
        assert layer.drift is not None
        compared = layer.drift.worst.compared
        assert compared is not None
        assert compared.index == (63, 7)
        assert compared.expected == expected[layer.tensor][63, 7]
        assert compared.found == pytest.approx(compared.expected + 100 * (layer.node + 1))


def test_a_float_model_is_compared_with_its_int8_one_by_name(tmp_path: Path) -> None:
    nodes: list[Any] = [("ADD", "x x", "s"), ("RELU", "s", "y")]
    real = file(tmp_path, graph_model(nodes, inputs="x", outputs="y"), "float.tflite")
    parts = {n: tensor((4,), "INT8", scale=1 / 32) for n in ("x", "s", "y")}
    content = graph_model(nodes, inputs="x", outputs="y", tensors=parts)
    small = file(tmp_path, content, "int8.tflite")
    found = diff_layers(
        setup_of(small, "delegraph"),
        setup_of(real, "delegraph"),
        inputs=fed(values=("32,-16,8,1",)),
    )
    for layer in found.layers:
        assert greatest(layer.drift) == 0
        assert greatest(layer.same_inputs) == 0, layer.same_inputs_note
        assert layer.drift is not None
        assert (layer.drift.dtype, layer.drift.reference_dtype) == ("int8", "float32")


def test_tensors_that_the_reference_lacks_are_said(chain: str, tmp_path: Path) -> None:
    nodes: list[Any] = [("ADD", "x x", "a"), ("SUB", "a x", "other"), ("ADD", "other a", "y")]
    content = graph_model(nodes, inputs="x", outputs="y")
    other = setup_of(file(tmp_path, content, "o.tflite"), "delegraph")
    layers = by_name(diff_layers(setup_of(chain, "delegraph"), other, runs=1).layers)
    assert layers["b"].drift_note == "the reference has no tensor of this name"
    assert greatest(layers["a"].drift) == 0
    assert "has no values for its input" in layers["c"].same_inputs_note


def test_partitions_of_the_reference_hide_their_tensors_too(chain: str) -> None:
    plain = setup_of(chain, "delegraph")
    reference = setup_of(chain, "delegraph", with_kernel(SoundKernel)())
    layers = by_name(diff_layers(plain, reference, inner="boundaries", runs=1).layers)
    assert layers["a"].drift_note == "in the reference inside partition 0 of careful"


@pytest.mark.parametrize("runtime", [*RUNTIMES, "litert2"])
@pytest.mark.parametrize("signature", ["negate", "wave"])
def test_signatures_have_layers_too(tmp_path: Path, runtime: str, signature: str) -> None:
    setup = setup_of(file(tmp_path, two_signatures()), runtime)
    reference = setup_of(setup.model, "delegraph")
    (layer,) = diff_layers(
        setup, reference, signature=signature, inputs=fed(values=("x=0.5",))
    ).layers
    op, value = {"negate": ("NEG", -0.5), "wave": ("SIN", math.sin(0.5))}[signature]
    assert (layer.op, layer.subgraph) == (op, int(signature == "wave"))
    assert layer.drift is not None
    assert layer.drift.worst.compared is not None
    assert layer.drift.worst.compared.expected == pytest.approx(value)
    assert greatest(layer.drift) == pytest.approx(0, abs=1e-6)
    if runtime == "litert":
        assert greatest(layer.same_inputs) == greatest(layer.drift), layer.same_inputs_note


def test_shapes_may_be_open(tmp_path: Path) -> None:
    parts = {n: tensor((1,), shape_signature=(-1,), name=n) for n in ("x", "s", "y")}
    nodes: list[Any] = [add("x x", "s"), mul("s x", "y")]
    model = file(tmp_path, graph_model(nodes, inputs="x", outputs="y", tensors=parts))
    np.save(tmp_path / "x.npy", np.arange(7, dtype=np.float32))
    setup = setup_of(model, "delegraph", with_kernel(WrongProduct)())
    for inner in ("alone", "exposed"):
        layers = by_name(
            diff_layers(setup, inner=inner, inputs=fed(values=(str(tmp_path / "x.npy"),))).layers
        )
        assert greatest(layers["y"].same_inputs) == 1, layers["y"].same_inputs_note
        assert layers["s"].drift is not None
        assert layers["s"].drift.runs[0].count == 7


def loop(folder: Path) -> str:
    """Doubles x until it is over 10, then adds it to itself."""
    main: Any = (
        [
            ("WHILE", "x", "w", WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)),
            ("ADD", "w w", "y"),
        ],
        "x",
        "y",
        {n: tensor(()) for n in ("x", "w", "y")},
    )
    condition: Any = (
        [("LESS", "v ten", "go")],
        "v",
        "go",
        {"v": tensor(()), "ten": constant(np.float32(10)), "go": tensor((), "BOOL")},
    )
    body: Any = ([("ADD", "u u", "d")], "u", "d", {n: tensor(()) for n in ("u", "d")})
    return file(folder, subgraphs_model([main, condition, body]))


@pytest.mark.parametrize("runtime", [*RUNTIMES, "litert2"])
def test_a_loop_is_one_layer(tmp_path: Path, runtime: str) -> None:
    setup = setup_of(loop(tmp_path), runtime)
    reference = setup_of(setup.model, "delegraph")
    found = diff_layers(setup, reference, inputs=fed(values=("0.75",)))
    assert [layer.op for layer in found.layers] == ["WHILE", "ADD"]
    assert [greatest(layer.drift) for layer in found.layers] == [0, 0]
    if runtime == "litert":
        assert [greatest(layer.same_inputs) for layer in found.layers] == [0, 0]


def test_noise_is_a_share_of_the_signal(wrong: Setup) -> None:
    found = diff_layers(
        wrong,
        inner="alone",
        inputs=fed(values=("1,1,1,1",)),
    )
    b = by_name(found.layers)["b"]
    assert b.drift is not None
    assert noise(b.drift) == pytest.approx(1 / math.sqrt(4 * 2**2))


def test_the_zero_point_is_no_signal(tmp_path: Path) -> None:
    parts = {n: tensor((4,), "INT8", scale=1 / 32, zero_point=-100) for n in ("x", "y")}
    wide = {n: tensor((4,), "INT8", scale=1 / 32, zero_point=100) for n in ("x", "y")}
    nodes = [add("x x", "y")]
    shares = []
    for zero, kinds in ((-100, parts), (100, wide)):
        content = graph_model(nodes, inputs="x", outputs="y", tensors=kinds)
        setup = setup_of(file(tmp_path, content), "delegraph", Faulty(fault=off_by(1.0)))
        given = ",".join(str(zero + step) for step in (1, -2, 3, -4))
        (layer,) = diff_layers(setup, inputs=fed(values=(given,))).layers
        assert layer.drift is not None
        shares.append(noise(layer.drift))
    assert shares[0] == shares[1] == pytest.approx(1 / math.sqrt(4 * (1 + 4 + 9 + 16)))


def test_values_that_are_no_numbers_are_the_worst(tmp_path: Path, chain: str) -> None:
    class Broken(SoundKernel):
        def result(self, step: Any, registration: Any, a: Any, b: Any) -> Any:
            y = np.array(super().result(step, registration, a, b))
            if registration.name == "MUL":
                y[2] = np.nan
            return y

    setup = setup_of(chain, "delegraph", with_kernel(Broken)())
    found = diff_layers(setup, inner="alone", runs=1)
    worst = found.worst_first()[0]
    assert worst.name == "b"
    assert worst.same_inputs is not None
    assert worst.same_inputs.worst.nan == (1, 0)


def test_texts_are_compared(tmp_path: Path) -> None:
    nodes: list[Any] = [("RESHAPE", "x to", "s"), ("RESHAPE", "s to", "y")]
    parts = {n: tensor((1,), "STRING") for n in ("x", "s", "y")}
    parts["to"] = constant([1], "INT32")
    model = file(tmp_path, graph_model(nodes, inputs="x", outputs="y", tensors=parts))
    found = diff_layers(
        setup_of(model, "litert"), setup_of(model, "delegraph"), inputs=fed(values=("some words",))
    )
    assert [greatest(layer.same_inputs) for layer in found.layers] == [0, 0]


CORPUS = [
    "LiteRT__lstm_quantized",
    "tiny__pretrainedResnet_quant",
    "test_data__keras_lstm_mnist_ptq",
    "test_data__mobilenet_v1_0.25_128_quant",
    "LiteRT__multi_subgraphs_while",
    "tflm__trained_lstm",
]


@needs_corpus
@pytest.mark.parametrize("name", CORPUS)
def test_integers_of_litert_are_those_of_delegraph_in_each_layer(name: str) -> None:
    model = str(corpus_file(name))
    found = diff_layers(
        setup_of(model, "litert"),
        setup_of(model, "delegraph"),
        inputs=fed(distribution="benchmark"),
        runs=1,
    )
    assert found.layers
    for layer in found.layers:
        if layer.drift is not None and "float" not in layer.drift.dtype:
            assert greatest(layer.drift) == 0, layer.name
        if layer.same_inputs is not None and "float" not in layer.same_inputs.dtype:
            assert greatest(layer.same_inputs) == 0, layer.name


class Fuses(SoundKernel):
    """Is off by 5 where it computes several nodes at once."""

    def eval(self, context: Any, node: Any) -> None:
        super().eval(context, node)
        if len(self.nodes) > 1:
            context.tensors[node.outputs[-1]].data[...] += 5


def test_what_looking_inside_changes_is_said(chain: str) -> None:
    setup = setup_of(chain, "delegraph", with_kernel(Fuses)())
    found = diff_layers(setup, inner="alone", inputs=fed(values=("1",)))
    assert found.notes == (
        "test: 4 partitions here, 1 without looking inside",
        "test: looking inside changes output 'y' by up to 5",
    )
    assert not diff_layers(setup, inner="boundaries", inputs=fed(values=("1",))).notes


@pytest.mark.parametrize(
    ("runtime", "delegates", "inner", "runs"),
    [
        ("litert", ["none"], "boundaries", 1),  # all inputs are the reference's
        ("delegraph", [with_kernel(SoundKernel)()], "boundaries", 1),
        ("delegraph", [with_kernel(WrongProduct)()], "boundaries", 1),  # one partition
        ("delegraph", [with_kernel(WrongProduct)()], "alone", 2),  # as it is, alone
        ("litert", [with_kernel(WrongProduct)()], "alone", 3),  # as it is, alone, in a group
    ],
)
def test_each_side_runs_as_seldom_as_it_can(
    chain: str,
    monkeypatch: pytest.MonkeyPatch,
    runtime: str,
    delegates: list[Any],
    inner: Any,
    runs: int,
) -> None:
    computed = []
    given = Side.compute

    def counted(side: Side, *how: Any) -> None:
        computed.append(side.is_reference)
        given(side, *how)

    monkeypatch.setattr(Side, "compute", counted)
    diff_layers(setup_of(chain, runtime, *delegates), inner=inner)
    assert computed.count(True) == 1
    assert computed.count(False) == runs


def test_progress_is_told(wrong: Setup) -> None:
    told: list[str] = []
    diff_layers(wrong, inner="alone", progress=lambda what, done, total: told.append(what))
    assert {"computing all layers", "preparing layers", "comparing layers"} <= set(told)


def test_there_is_room_for_all_tensors_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_limit, "LEAST", 100_000)
    nodes = [("SIN", "x" if i == 0 else f"t{i}", f"t{i + 1}") for i in range(9)]
    parts = {name: tensor((8, 1000)) for name in ["x", *(f"t{i}" for i in range(1, 10))]}
    model = file(tmp_path, graph_model(nodes, inputs="x", outputs="t9", tensors=parts))
    found = diff_layers(setup_of(model, "delegraph"))
    assert len([layer for layer in found.layers if layer.drift is not None]) == 9
    with pytest.raises(NodeError, match="do not fit"):
        diff_layers(replace(setup_of(model, "delegraph"), memory_limit=100_000))


@pytest.mark.parametrize("copied", [0, 1 << 26])
def test_litert_keeps_all_tensors_only_without_large_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: int
) -> None:
    options = Conv2DOptions(stride_w=1, stride_h=1)
    parts = {n: tensor((1, 8, 8, 2)) for n in ("x", "s", "y")}
    parts["w"] = constant(np.ones((2, 3, 3, 2), np.float32))
    parts["b"] = constant(np.zeros(2, np.float32))
    nodes: list[Any] = [("CONV_2D", f"{i} w b", o, options) for i, o in ("xs", "sy")]
    model = file(tmp_path, graph_model(nodes, inputs="x", outputs="y", tensors=parts))
    assert watched_side.copied_bytes(load_model(model).subgraphs[0]) == 2 * 4 * 8 * 8 * 3 * 3 * 2
    monkeypatch.setattr(watched_side, "MOST_COPIED", copied)
    kept = []
    given = Side.__init__

    def made(side: Side, *given_too: Any, **how: Any) -> None:
        kept.append("experimental_preserve_all_tensors" in how)
        given(side, *given_too, **how)

    monkeypatch.setattr(Side, "__init__", made)
    found = diff_layers(setup_of(model, "litert"), setup_of(model, "delegraph"))
    assert kept[0] == bool(copied)
    assert [layer.drift is None for layer in found.layers] == [False, False]


@pytest.mark.parametrize(("inner", "copies"), [("alone", 0), ("exposed", 1)])
def test_litert_keeps_all_tensors_of_single_nodes_without_a_copy_of_the_model(
    chain: str, monkeypatch: pytest.MonkeyPatch, inner: Any, copies: int
) -> None:
    written = []
    given = watched_side.tapped_model

    def counted(*how: Any) -> bytes:
        written.append(how)
        return given(*how)

    monkeypatch.setattr(watched_side, "tapped_model", counted)
    setup = setup_of(chain, "litert", with_kernel(WrongProduct)())
    layers = by_name(diff_layers(setup, inner=inner, inputs=fed(), runs=2).layers)
    assert len(written) == copies
    assert all(layer.delegate for layer in layers.values())
    assert bool(greatest(layers["a"].drift)) is False
    assert greatest(layers["b"].drift)


def test_tensors_that_no_node_reads_are_compared_in_xnnpack(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    parts = {"axis": constant(np.int32([0]).reshape(())), "x": tensor((4,))}
    parts |= {name: tensor((2,)) for name in "ab"}
    nodes: list[Any] = [("SPLIT", "axis x", "a b", SplitOptions(num_splits=2))]
    model = file(tmp_path, graph_model(nodes, inputs="x", outputs="a", tensors=parts))
    found = diff_layers(Setup(model, "litert"), setup_of(model, "delegraph"), runs=1)
    assert [layer.delegate for layer in found.layers] == ["XNNPACK"] * 2
    assert [greatest(layer.drift) for layer in found.layers] == [0, 0]


def test_litert_keeps_all_tensors_without_a_warning(chain: str) -> None:
    pytest.importorskip("ai_edge_litert")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = diff_layers(Setup(chain, "litert"), setup_of(chain, "delegraph"), runs=1)
    assert {layer.delegate for layer in found.layers} == {"XNNPACK"}


@pytest.mark.parametrize("inner", ["boundaries", "exposed", "alone"])
def test_main_figures_are_enough_for_the_table(wrong: Setup, inner: Any) -> None:
    told = [
        diff_layers(wrong, inner=inner, inputs=fed(), figures=figures).layers
        for figures in ("all", "main")
    ]
    for whole, main in zip(*told, strict=True):
        for a, b in ((whole.drift, main.drift), (whole.same_inputs, main.same_inputs)):
            assert greatest(b) == pytest.approx(greatest(a))
            if a is not None and b is not None:
                assert noise(b) == pytest.approx(noise(a))
                assert [d.unequal for d in b.runs] == [d.unequal for d in a.runs]
