from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from delegraph.plugins.sources import pip_install
from delegraph.schema import read_model, write_model
from delegraph.schema.metadata import (
    AssociatedFile,
    AssociatedFileType,
    AudioProperties,
    BoundingBoxProperties,
    BoundingBoxType,
    ProcessUnit,
    RegexTokenizerOptions,
)
from delegraph.schema.options import FullyConnectedOptions
from delegraph.testing import constant, one_op_model, tensor
from support.chosen_plugins import use_plugins_of
from support.command import Command
from support.described_models import of_tensor, with_entry, with_metadata
from support.fake_distributions import write_distribution

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"


def test_a_model_is_shown_with_interface_and_operators(delegraph: Command, sines: Path) -> None:
    ran = delegraph("inspect", sines)
    assert (ran.code, ran.err) == (0, "")
    for line in (
        "912 B, schema version 3, 1 subgraph, 1 constant, 4 B",
        "description: f(x) = sin(x) + x + sin(2x)",
        "Subgraph 0 'main': 5 operators, 7 tensors",
        "input 0 x FLOAT32 [1]",
        "output 6 y FLOAT32 [1]",
        "ADD 2 1",
        "MUL 1 1",
        "serving_default 0 x (tensor 0) y (tensor 6)",
    ):
        assert line in ran.lines, line


def test_outputs_have_the_names_of_other_commands_beside_those_of_tensors(
    delegraph: Command, tmp_path: Path
) -> None:
    path = tmp_path / "nameless.tflite"
    path.write_bytes(one_op_model("NEG", [tensor((1,), name="x")], [tensor((1,), name="Identity")]))
    lines = delegraph("inspect", path).lines
    assert "input 0 x FLOAT32 [1]" in lines
    assert "output 1 NEG (Identity) FLOAT32 [1]" in lines


def test_quantization_is_shown_as_a_formula(delegraph: Command, tmp_path: Path) -> None:
    path = tmp_path / "fc.tflite"
    x = tensor((1, 2), "INT8", scale=0.5, zero_point=-3)
    weights = constant([[1, 2]], "INT8", scale=[0.25])
    y = tensor((1, 1), "INT8", scale=0.25, zero_point=7)
    path.write_bytes(
        one_op_model("FULLY_CONNECTED", [x, weights, None], [y], FullyConnectedOptions())
    )
    ran = delegraph("inspect", path)
    assert "input 0 t0 INT8 [1, 2] 0.5 * (q + 3)" in ran.lines
    assert "output 2 t2 INT8 [1, 1] 0.25 * (q - 7)" in ran.lines


def test_nodes_are_listed_with_tensors_and_options(delegraph: Command) -> None:
    ran = delegraph("inspect", DIGITS, "--nodes")
    assert (ran.code, ran.err) == (0, "")
    for line in (
        "node operator inputs input shapes outputs type output shape MACs constants options",
        "3 ADD 20, 22 [1, 8, 8, 16], [1, 8, 8, 16] 23 INT8 [1, 8, 8, 16]",
        "13 FULLY_CONNECTED 32, 3*, 2* [1, 32], [10, 32], [10] 33 INT8 [1, 10] 320 360 B",
    ):
        assert line in ran.lines, line
    pool = "4 MAX_POOL_2D 23 [1, 8, 8, 16] 24 INT8 [1, 4, 4, 16] padding=VALID, stride_w=2,"
    assert any(line.startswith(pool) for line in ran.lines)
    assert "Operators" not in ran.lines


def test_options_of_nodes_are_lines_below_them_where_a_line_is_short(
    fresh_delegraph: Command,
) -> None:
    lines = fresh_delegraph("inspect", DIGITS, "--nodes", COLUMNS="80").lines
    place = lines.index("4 MAX_POOL_2D 23 24 INT8 [1, 4, 4, 16]")  # no room for input shapes
    assert lines[place + 1].startswith("padding=VALID, stride_w=2, stride_h=2, filter_width=2")


def test_quantization_is_a_line_below_where_a_line_is_short(fresh_delegraph: Command) -> None:
    lines = fresh_delegraph("inspect", DIGITS, COLUMNS="60").lines
    place = lines.index("input 0 image INT8 [1, 8, 8, 1]")
    assert lines[place + 1] == "0.0039215689 * (q + 128)"


def test_tensors_are_listed_with_quantization_and_role(delegraph: Command) -> None:
    lines = delegraph("inspect", DIGITS, "--tensors").lines
    for line in (
        "tensor name type shape scale zero role",
        "0 image INT8 [1, 8, 8, 1] 0.00392157 -128 input",
        ".../ in names is digits_1/",
        "3 .../digit_1/MatMul INT8 [10, 32] 10 scales constant, 320 B",
    ):
        assert line in lines, line


def test_columns_without_any_text_are_left_out(delegraph: Command, sines: Path) -> None:
    lines = delegraph("inspect", sines, "--nodes", "--tensors").lines
    assert "node operator inputs input shapes outputs type output shape constants" in lines
    assert "tensor name type shape role" in lines


def test_json_has_nodes_and_tensors_on_demand(delegraph: Command) -> None:
    shown = delegraph("inspect", DIGITS, "--nodes", "--tensors", "--json").json
    assert {name: shown["nodes"][4][name] for name in ("node", "op", "inputs", "outputs")} == {
        "node": 4,
        "op": "MAX_POOL_2D",
        "inputs": [23],
        "outputs": [24],
    }
    assert shown["nodes"][4]["options"]["padding"] == "VALID"
    assert [shown["nodes"][13][name] for name in ("macs", "constant_bytes")] == [320, 360]
    constant = shown["tensors"][3]
    assert (constant["role"], constant["bytes"], constant["channels"]) == ("constant", 320, 10)
    assert "nodes" not in delegraph("inspect", DIGITS, "--json").json


def test_open_dimensions_are_shown(delegraph: Command, tmp_path: Path) -> None:
    path = tmp_path / "open.tflite"
    x = tensor((1, 2), shape_signature=(-1, 2))
    path.write_bytes(one_op_model("SIN", [x], [tensor((1, 2))]))
    assert "input 0 t0 FLOAT32 [-1, 2]" in delegraph("inspect", path).lines


def test_arithmetic_of_an_unknown_shape_is_a_least_number(
    delegraph: Command, tmp_path: Path
) -> None:
    path = tmp_path / "open.tflite"
    x = tensor((1, 20), shape_signature=(-1, 20))
    y = tensor((1, 50), shape_signature=(-1, 50))
    weights = constant(np.zeros((50, 20), np.float32))
    path.write_bytes(one_op_model("FULLY_CONNECTED", [x, weights], [y], FullyConnectedOptions()))
    ran = delegraph("inspect", path)
    assert "1.0 k parameters, at least 1.0 k multiply-accumulates (MACs)" in ran.lines
    assert "FULLY_CONNECTED 1 1 1.0 k+ 100.0 %" in ran.lines
    assert "+: at least so many, since the file lacks a shape" in ran.lines
    shown = delegraph("inspect", path, "--nodes", "--json").json
    assert (shown["macs"], shown["macs_are_least"]) == (1000, True)
    model = one_op_model("FULLY_CONNECTED", [x, weights], [tensor(())], FullyConnectedOptions())
    path.write_bytes(unranked(model))
    ran = delegraph("inspect", path, "--nodes")
    assert "1.0 k parameters, an unknown number of multiply-accumulates (MACs)" in ran.lines
    assert "0 FULLY_CONNECTED 0, 1* [-1, 20], [50, 20] 2 FLOAT32 ? ? 4.0 kB" in ran.lines
    shown = delegraph("inspect", path, "--nodes", "--json").json
    assert (shown["nodes"][0]["macs"], shown["nodes"][0]["macs_are_least"]) == (None, True)


def test_a_shape_that_the_file_does_not_say_is_no_scalars(
    delegraph: Command, tmp_path: Path
) -> None:
    path = tmp_path / "open.tflite"
    path.write_bytes(unranked(one_op_model("MyOp", [tensor(())], [tensor(())])))
    ran = delegraph("inspect", path)
    assert "input 0 t0 FLOAT32 []" in ran.lines
    assert "output 1 t1 FLOAT32 ?" in ran.lines
    shown = delegraph("inspect", path, "--tensors", "--json").json
    assert [each["shape"] for each in shown["tensors"]] == [[], None]


def unranked(model: bytes) -> bytes:
    """The model as old converters write it: an empty shape is a scalar's, or is unknown."""
    record = read_model(np.frombuffer(model, np.uint8))
    (graph,) = record.subgraphs or ()
    tensors = tuple(each.replace(has_rank=False) for each in graph.tensors or ())
    return write_model(record.replace(subgraphs=(graph.replace(tensors=tensors),)))


def test_a_memory_plan_inside_is_told(delegraph: Command, tmp_path: Path) -> None:
    path = tmp_path / "planned.tflite"
    assert delegraph("memory", DIGITS, "-d", "none", "--write-offline", path).code == 0
    plan = "places of 16 of 35 tensors in TFLM's arena"
    assert f"OfflineMemoryAllocation 152 B {plan}" in delegraph("inspect", path).lines
    ran = delegraph("memory", path, "-d", "none")
    told = f"a memory plan is in the model: {plan}; only TFLM follows it (--micro)"
    assert told in ran.lines


def test_a_custom_operator_comes_with_the_package_that_runs_it(
    delegraph: Command, custom: Path, tmp_path: Path
) -> None:
    ran = delegraph("inspect", custom)
    assert f"FlexErf runs with: {pip_install('delegraph-flex')}" in ran.lines
    command = pip_install("delegraph-flex", "tensorflow")
    assert f"with {command} it runs all" in " ".join(ran.lines)
    path = tmp_path / "mine.tflite"
    path.write_bytes(one_op_model("MyOp", [tensor((2,))], [tensor((2,))]))
    unknown = "MyOp unknown: give it a kernel by register_custom_op()"
    assert unknown in delegraph("inspect", path).lines
    path.write_bytes(one_op_model("TFLite_Detection_PostProcess", [tensor((2,))], [tensor((2,))]))
    assert "TFLite_Detection_PostProcess runs with delegraph" in delegraph("inspect", path).lines


def test_an_unknown_custom_operator_comes_with_a_guess_who_made_it(
    delegraph: Command, tmp_path: Path
) -> None:
    path = tmp_path / "segmenter.tflite"
    content = one_op_model("Convolution2DTransposeBias", [tensor((2,))], [tensor((2,))])
    path.write_bytes(content)
    guess = "probably MediaPipe: give it a kernel by register_custom_op()"
    assert f"Convolution2DTransposeBias {guess}" in delegraph("inspect", path).lines
    (operator,) = delegraph("inspect", path, "--json").json["operators"]
    assert operator["guess"] == guess
    assert guess in delegraph("run", path).err


def test_arithmetic_parameters_and_quantization_are_shown(
    delegraph: Command, tmp_path: Path
) -> None:
    path = tmp_path / "fc.tflite"
    x, y = tensor((1, 2), "INT8", scale=0.5), tensor((1, 3), "INT8", scale=0.25)
    weights = constant([[1, 2]] * 3, "INT8", scale=[0.25])
    content = one_op_model("FULLY_CONNECTED", [x, weights, None], [y], FullyConnectedOptions())
    path.write_bytes(content)
    ran = delegraph("inspect", path)
    assert "6 parameters, 6 multiply-accumulates (MACs)" in ran.lines
    assert "quantized to integers: INT8 weights per tensor, INT8 activations" in ran.lines
    assert "FULLY_CONNECTED 1 1 6 100.0 %" in ran.lines
    assert "INT8 1 6 6 B 100.0 %" in ran.lines


def test_totals_say_what_they_lack_of_custom_operators(delegraph: Command, custom: Path) -> None:
    note = "MACs of custom operators, and parameters inside them, are not counted: FlexErf"
    assert note in delegraph("inspect", custom).lines
    assert delegraph("inspect", custom, "--json").json["uncounted_operators"] == ["FlexErf"]
    assert "not counted" not in delegraph("inspect", DIGITS).out


def test_bytes_that_tensors_of_two_types_share_are_told(delegraph: Command, tmp_path: Path) -> None:
    path = tmp_path / "shared.tflite"
    zeros = constant(np.zeros(4, np.float32)), constant(np.zeros(4, np.int32))
    model = one_op_model("MyOp", zeros, [tensor((4,))])
    path.write_bytes(model)
    assert "more than once" not in delegraph("inspect", path).out
    record = read_model(np.frombuffer(model, np.uint8))
    (graph,) = record.subgraphs or ()
    first, second, y = graph.tensors or ()
    tensors = (first, second.replace(buffer=first.buffer), y)
    path.write_bytes(write_model(record.replace(subgraphs=(graph.replace(tensors=tensors),))))
    note = "16 B count more than once: tensors of several types share them"
    assert note in delegraph("inspect", path).lines


def test_columns_without_room_are_named(fresh_delegraph: Command) -> None:
    note = "no room for scale, zero, role: wider terminals and --json show more"
    words = ("inspect", DIGITS, "--tensors")
    assert note in " ".join(fresh_delegraph(*words, COLUMNS="60").lines)
    assert "no room" not in fresh_delegraph(*words, COLUMNS="160").out


def test_json_holds_the_same(delegraph: Command, custom: Path) -> None:
    shown = delegraph("inspect", custom, "--json").json
    assert shown["operators"] == [
        {
            "op": "FlexErf",
            "version": 1,
            "count": 1,
            "custom": True,
            "package": "delegraph-flex",
            "installed": False,
            "macs": 0,
            "macs_are_least": False,
            "guess": None,
        }
    ]
    assert shown["subgraphs"][0]["inputs"][0]["shape"] == [2]
    assert shown["model"] == str(custom)


DESCRIBING = """\
from delegraph import CustomOpSpec, hookimpl

def _describe(options):
    {body}

@hookimpl
def delegraph_custom_ops():
    return [CustomOpSpec("MyOp", "a fake operator", lambda: None, _describe)]
"""


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A model of a custom operator with a plugin whose ``describe`` has this body."""

    def write(body: str) -> Path:
        sources = {"my_plugin": DESCRIBING.format(body=body)}
        write_distribution(tmp_path / "site", "my-dist", sources, {"mine": "my_plugin"})
        monkeypatch.delitem(sys.modules, "my_plugin", raising=False)
        use_plugins_of(monkeypatch, tmp_path / "site")
        path = tmp_path / "mine.tflite"
        x, y = tensor((2,)), tensor((2,))
        path.write_bytes(one_op_model("MyOp", [x], [y], custom_options=b"abc"))
        return path

    return write


def test_a_plugin_describes_its_custom_operators(
    delegraph: Command, described: Callable[[str], Path]
) -> None:
    path = described('return {"options": options.decode(), "count": len(options)}')
    lines = delegraph("inspect", path).lines
    assert "Operator 0, MyOp" in lines
    assert {"options abc", "count 3"} <= set(lines)
    (shown,) = delegraph("inspect", path, "--json").json["described"]
    facts = {"options": "abc", "count": "3"}
    assert shown == {"op": "MyOp", "subgraph": 0, "operator": 0, "facts": facts}


def test_a_plugin_with_nothing_to_say_is_not_shown(
    delegraph: Command, described: Callable[[str], Path]
) -> None:
    path = described("return {}")
    assert "Operator 0, MyOp" not in delegraph("inspect", path).lines
    assert delegraph("inspect", path, "--json").json["described"] == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("raise KeyError('x')", "could not be described by plugin 'mine' of my-dist 1.0: KeyError"),
        ("return 1", "describe() of plugin 'mine' of my-dist 1.0 returned a int, expected a dict"),
        ("from delegraph.errors import ModelError; raise ModelError('torn')", "torn"),
    ],
)
def test_a_plugin_that_cannot_describe_an_operator_does_not_stop_the_others(
    delegraph: Command, described: Callable[[str], Path], body: str, text: str
) -> None:
    ran = delegraph("inspect", described(body), "--json")
    assert ran.code == 0
    assert text in ran.json["described"][0]["facts"]["error"]
    assert ran.json["operators"][0]["package"] == "my-dist"


def test_what_the_author_says_is_shown(delegraph: Command, tmp_path: Path) -> None:
    path = tmp_path / "described.tflite"
    box = BoundingBoxProperties(type=BoundingBoxType.BOUNDARIES, index=(1, 0, 3, 2))
    path.write_bytes(
        with_metadata(
            one_op_model("RELU", [tensor((1, 4))], [tensor((1, 4))]),
            (of_tensor("sound", AudioProperties(sample_rate=8000, channels=1)),),
            (of_tensor("where", box, value_labels="labels.txt"),),
            {"labels.txt": b"ant, red\nbee\ncat\ndog\n"},
            name="toy\x1b[2J",
        )
    )
    ran = delegraph("inspect", path)
    assert ran.code == 0
    assert "name toy\\x1b[2J" in ran.lines
    assert "input 0 sound audio 8000 Hz; 1 channel" in ran.lines
    assert (
        "output 1 where bounding boxes top, left, bottom, right as parts of the picture's size; "
        "4 labels: 'ant, red', 'bee', 'cat', ..."
    ) in ran.lines
    assert "labels.txt 21 B tensor value labels" in ran.lines
    shown = delegraph("inspect", path, "--json").json["author_metadata"]
    assert shown["outputs"][0]["value_labels"] == ["ant, red", "bee", "cat", "dog"]
    assert shown["files"] == {"labels.txt": 21}


def test_damaged_metadata_is_told_and_stops_nothing(delegraph: Command, tmp_path: Path) -> None:
    path = tmp_path / "damaged.tflite"
    path.write_bytes(with_entry(one_op_model("RELU", [tensor((2,))], [tensor((2,))]), b"damaged\0"))
    ran = delegraph("inspect", path)
    assert ran.code == 0
    assert "not used: TFLITE_METADATA is damaged: its file identifier is not 'M001'" in ran.lines


def test_a_tokenizer_is_shown_without_its_words(delegraph: Command, tmp_path: Path) -> None:
    path = tmp_path / "text.tflite"
    file = AssociatedFile(name="vocab.txt", type=AssociatedFileType.VOCABULARY)
    units = (
        ProcessUnit(options=RegexTokenizerOptions(delim_regex_pattern=" ", vocab_file=(file,))),
    )
    content = one_op_model("NEG", [tensor((1, 4), "INT32")], [tensor((1, 4), "INT32")])
    files = {"vocab.txt": b"<PAD> 0\n<UNKNOWN> 1"}
    path.write_bytes(with_metadata(content, (of_tensor("text"),), files=files, units=units))
    assert "input 0 text - regex tokenizer, 2 words" in delegraph("inspect", path).lines
    said = delegraph("inspect", path, "--json").json["author_metadata"]["inputs"][0]
    assert said["tokenizer"] == {"kind": "regex", "pattern": " "}
