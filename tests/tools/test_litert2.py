"""The official ``CompiledModel`` as a runtime of tools, beside the official ``Interpreter``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from delegraph.errors import ArgumentError, StateError, UnresolvedOpError, UnsupportedModelError
from delegraph.schema import read_model, write_model
from delegraph.schema.options import CastOptions, RNNOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from delegraph.tools import Setup, diff
from delegraph.tools.litert2 import LiteRt2Interpreter
from delegraph.tools.model_call import model_call
from support.by_name import ByName
from support.signatures import two_signatures


def opened(folder: Path, content: bytes, **options: Any) -> LiteRt2Interpreter:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return LiteRt2Interpreter(str(path), **options)


def computed(host: LiteRt2Interpreter, *values: Any, signature: str | None = None) -> list[Any]:
    call = model_call(host, signature)
    call.prepare(values)
    call.invoke()
    return [array for _, array in call.outputs()]


@pytest.mark.parametrize("name", ["digits_float", "digits_int8"])
def test_results_are_those_of_the_official_interpreter(name: str) -> None:
    model = str(Path(__file__).parents[2] / "docs" / "demo" / "models" / f"{name}.tflite")
    found = diff(Setup(model, "litert2"), Setup(model, "litert"), runs=3)
    assert found.outputs[0].worst.unequal == 0
    assert found.test_placement.to_json()["totals"] == found.reference_placement.to_json()["totals"]


@pytest.mark.parametrize("kind", ["INT16", "INT64", "FLOAT64", "BOOL", "UINT32", "FLOAT16"])
def test_types_that_buffers_do_not_list_are_copied_as_bytes(tmp_path: Path, kind: str) -> None:
    parts = {"x": tensor((3,)), "y": tensor((3,), kind), "z": tensor((3,))}
    nodes = [("CAST", "x", "y", CastOptions()), ("CAST", "y", "z", CastOptions())]
    content = graph_model(nodes, inputs="x", outputs="y z", tensors=parts)
    y, z = computed(opened(tmp_path, content, delegates=[]), np.float32([0, 1, 7]))
    assert y.dtype.name == kind.lower()
    np.testing.assert_array_equal(z, y.astype(np.float32))
    content = graph_model(nodes[1:], inputs="y", outputs="z", tensors=parts)
    np.testing.assert_array_equal(computed(opened(tmp_path, content, delegates=[]), y), [z])


def test_details_are_those_of_the_interpreter(tmp_path: Path) -> None:
    host = opened(tmp_path, two_signatures())
    with Setup(str(tmp_path / "model.tflite"), "litert").interpreter() as interpreter:
        for signature in (None, "wave"):
            ours, theirs = model_call(host, signature), model_call(interpreter, signature)
            assert str(ours.input_details()) == str(theirs.input_details())
            assert str(ours.output_details()) == str(theirs.output_details())
        assert str(host.get_tensor_details()) == str(interpreter.get_tensor_details())
        assert list(host.get_signature_list()) == list(interpreter.get_signature_list())


def test_each_signature_is_called_with_shapes_of_its_own(tmp_path: Path) -> None:
    host = opened(tmp_path, two_signatures())
    x = np.float32([1, 2, 3])
    np.testing.assert_array_equal(computed(host, x), [-x])
    np.testing.assert_allclose(computed(host, x[:2], signature="wave"), [np.sin(x[:2])], 1e-6)
    np.testing.assert_array_equal(computed(host, x, signature="negate"), [-x])
    assert model_call(host).output_details()[0]["shape"].tolist() == [3]


def test_a_model_without_tensors_runs(tmp_path: Path) -> None:
    assert computed(opened(tmp_path, graph_model([], inputs="", outputs=""))) == []


def test_inputs_of_one_name_are_told_apart_by_position(tmp_path: Path) -> None:
    parts = {"a": tensor((2,), name="same"), "b": tensor((2,), name="same"), "y": tensor((2,))}
    content = graph_model([("SUB", "a b", "y")], inputs="a b", outputs="y", tensors=parts)
    x, y = np.float32([5, 7]), np.float32([1, 2])
    np.testing.assert_array_equal(computed(opened(tmp_path, content), x, y), [x - y])


def test_a_first_subgraph_without_signature_cannot_be_called(tmp_path: Path) -> None:
    record = read_model(np.frombuffer(two_signatures(), np.uint8))
    (_, wave) = record.signature_defs or ()
    host = opened(tmp_path, write_model(record.replace(signature_defs=(wave,))))
    np.testing.assert_allclose(
        computed(host, np.float32([1]), signature="wave"), [np.sin([1])], 1e-6
    )
    with pytest.raises(ArgumentError, match=r"no signature calls .* first subgraph; .*: wave"):
        model_call(host)


def test_values_of_another_type_or_shape_are_refused(tmp_path: Path) -> None:
    host = opened(tmp_path, one_op_model("NEG", [tensor((2,))], [tensor((2,))]))
    call = model_call(host)
    call.allocate([np.float32([1, 2])])
    for wrong in (np.float64([1, 2]), np.float32([1])):
        with pytest.raises(ArgumentError, match=r"expected float32\[2\]"):
            call.fill([wrong])


def test_an_operator_that_nothing_knows_is_named(tmp_path: Path) -> None:
    nodes = [("SIN", "x", "a"), ("Unknown", "a", "y")]
    host = opened(tmp_path, graph_model(nodes, inputs="x", outputs="y"))
    with pytest.raises(UnresolvedOpError, match="custom op: Unknown") as raised:
        host.allocate_tensors()
    assert (raised.value.node_index, raised.value.op) == (1, "Unknown")


def test_variable_tensors_are_refused_in_words(tmp_path: Path) -> None:
    one, bias = (constant(np.full(shape, 1, np.float32)) for shape in ((1, 1), (1,)))
    state = tensor((1, 1), is_variable=True, name="state")
    inputs = [tensor((1, 1)), one, one, bias, state]
    content = one_op_model("RNN", inputs, [tensor((1, 1))], RNNOptions())
    with pytest.raises(UnsupportedModelError, match=r"variable tensors.*'state'.*'litert' runs"):
        opened(tmp_path, content)


def test_strings_are_refused_in_words(tmp_path: Path) -> None:
    content = one_op_model("RESHAPE", [tensor((1,), "STRING")], [tensor((1,), "STRING")])
    with pytest.raises(UnsupportedModelError, match="no buffers for strings"):
        model_call(opened(tmp_path, content))


def test_the_profile_has_nodes_of_delegates(sines: Path) -> None:
    host = LiteRt2Interpreter(str(sines), delegates=[ByName("SIN", "ADD")])
    call = model_call(host)
    call.prepare([np.float32([2])])
    with host.profile(whole_partitions=True) as profile:
        call.invoke()
    assert {event.delegate for event in profile.events} == {"by_name"}


def test_a_closed_one_says_so(tmp_path: Path) -> None:
    host = opened(tmp_path, two_signatures())
    host.close()
    host.close()
    with pytest.raises(StateError, match="closed"):
        _ = host.placement


def test_options_that_it_has_not_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="CompiledModel has no nonsense"):
        opened(tmp_path, two_signatures(), nonsense=1)
