"""The delegate: what it takes, what it refuses and why, and how partitions run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

from delegraph import Interpreter, TensorType
from delegraph.errors import NodeError, PluginLoadError, UnresolvedOpError
from delegraph.schema import tables
from delegraph.schema.options import AddOptions, MulOptions
from delegraph_flex.custom_options import write_custom_options
from delegraph_flex.data_types import DataType
from delegraph_flex.executors import has_tensorflow
from delegraph_flex.extras import install_command
from delegraph_flex.node_def import NodeDef
from flex_models import FLOAT, flex_model, results

X = np.array([-1.5, 0, 0.25, 2], np.float32)
NUMPY = ["flex:executor=numpy"]


def erf_model(**changes: Any) -> bytes:
    return flex_model([("FlexErf", "x", "y", FLOAT)], inputs="x", outputs="y", **changes)


def refusal(model: bytes, options: str = "executor=numpy") -> str:
    """Return the reason for which the delegate refuses node 0, also in the error of allocate."""
    interpreter = Interpreter(model_content=model, delegates=[f"flex:{options}"])
    with pytest.raises(UnresolvedOpError, match=r"Encountered unresolved custom op") as caught:
        interpreter.allocate_tensors()
    reason = str(interpreter.placement.nodes[0].rejections["flex"])
    assert reason in str(caught.value)
    return reason


def test_a_model_with_flex_operators_needs_no_option() -> None:
    interpreter = Interpreter(model_content=erf_model())
    assert interpreter.placement.delegates == ("flex",)
    np.testing.assert_allclose(results(interpreter, X)[0], special.erf(X), rtol=1e-6)


def test_an_empty_list_of_delegates_switches_it_off() -> None:
    interpreter = Interpreter(model_content=erf_model(), delegates=[])
    with pytest.raises(UnresolvedOpError, match="delegate 'flex' is there for it"):
        interpreter.allocate_tensors()


def test_a_partition_holds_as_many_nodes_as_dependencies_allow() -> None:
    nodes = [
        ("FlexErf", "x", "a", FLOAT),
        ("MUL", "x x", "b", MulOptions()),
        ("FlexErfc", "x", "c", FLOAT),
        ("ADD", "a b", "d", AddOptions()),
        ("FlexSinh", "c", "e", FLOAT),
        ("FlexCosh", "d", "y", FLOAT),
    ]
    interpreter = Interpreter(
        model_content=flex_model(nodes, inputs="x", outputs="e y"), delegates=NUMPY
    )
    assert [p.nodes for p in interpreter.placement.partitions] == [(0, 2, 4), (5,)]
    e, y = results(interpreter, X)
    np.testing.assert_allclose(e, np.sinh(special.erfc(X)), rtol=1e-6)
    np.testing.assert_allclose(y, np.cosh(special.erf(X) + X * X), rtol=1e-6)


def test_the_placement_says_which_executor_runs_the_nodes() -> None:
    interpreter = Interpreter(model_content=erf_model(), delegates=NUMPY)
    assert "by numpy" in str(interpreter.placement)


@pytest.mark.skipif(has_tensorflow(), reason="TensorFlow is installed")
def test_tensorflow_asked_for_and_not_installed_is_an_error_with_the_remedy() -> None:
    with pytest.raises(PluginLoadError, match=re.escape(install_command("tensorflow"))):
        Interpreter(model_content=erf_model(), delegates=["flex:executor=tensorflow"])


# -- what is refused ---------------------------------------------------------------------------


def test_an_operator_that_the_executor_lacks_is_refused_with_the_name_of_the_other() -> None:
    model = flex_model([("FlexDecodeJpeg", "x", "y", {})], inputs="x", outputs="y")
    reason = refusal(model)
    assert "the numpy executor does not have DecodeJpeg; executor=tensorflow may run it" in reason


def test_a_newer_version_is_refused() -> None:
    assert refusal(erf_model(version=2)) == "version: is 2, needs 1"


def test_an_attribute_of_the_wrong_kind_is_refused() -> None:
    model = flex_model([("FlexErf", "x", "y", {"T": 1})], inputs="x", outputs="y")
    assert "attribute 'T' is 1, expected type" in refusal(model)


def test_fields_and_attributes_that_nobody_knows_are_passed_over() -> None:
    data = write_custom_options(NodeDef("Erf", {**FLOAT, "_newer": 3}, 1))
    model = flex_model([("FlexErf", "x", "y", data)], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model, delegates=NUMPY)
    np.testing.assert_allclose(results(interpreter, X)[0], special.erf(X), rtol=1e-6)


def test_any_damage_to_the_options_is_refused_or_changes_nothing_of_the_rest() -> None:
    data = write_custom_options(NodeDef("Erf", FLOAT, 1))
    rng = np.random.default_rng(3)
    for _ in range(300):
        damaged = bytearray(data[: int(rng.integers(0, len(data) + 1))] or b"\0")
        for place in rng.integers(0, len(damaged), int(rng.integers(1, 4))):
            damaged[place] = rng.integers(0, 256)
        model = flex_model([("FlexErf", "x", "y", bytes(damaged))], inputs="x", outputs="y")
        interpreter = Interpreter(model_content=model, delegates=NUMPY)
        if interpreter.placement.partitions:
            continue
        with pytest.raises(UnresolvedOpError, match=r"FlexErf \(1 node\): delegate 'flex' refuses"):
            interpreter.allocate_tensors()


def test_options_that_name_another_operator_than_their_node_def_are_refused() -> None:
    data = write_custom_options(NodeDef("Erf", FLOAT, 1)).replace(b"Erf", b"Abs", 1)
    model = flex_model([("FlexErf", "x", "y", data)], inputs="x", outputs="y")
    assert refusal(model) == "custom options name the operator 'Abs', their NodeDef 'Erf'"


def test_a_node_def_of_another_number_of_inputs_is_refused() -> None:
    model = flex_model(
        [("FlexErf", "x y", "z", write_custom_options(NodeDef("Erf", FLOAT, 1)))],
        inputs="x y",
        outputs="z",
    )
    assert refusal(model) == "its NodeDef has 1 inputs, the node 2"


# -- how partitions run ------------------------------------------------------------------------


def test_the_name_inside_the_options_counts_and_not_the_custom_code() -> None:
    data = write_custom_options(NodeDef("Erfc", FLOAT, 1))
    model = flex_model([("FlexErf", "x", "y", data)], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model, delegates=NUMPY)
    np.testing.assert_allclose(results(interpreter, X)[0], special.erfc(X), rtol=1e-6)


def test_an_error_names_node_and_operator() -> None:
    shape = tables.Tensor(shape=(1,), type=TensorType.INT32, has_rank=True)
    model = flex_model(
        [
            ("FlexErf", "x", "a", FLOAT),
            ("FlexReshape", "a s", "y", {**FLOAT, "Tshape": DataType.INT32}),
        ],
        inputs="x s",
        outputs="y",
        tensors={"s": shape},
    )
    interpreter = Interpreter(model_content=model, delegates=NUMPY)
    with pytest.raises(NodeError, match=r"node 1 \(FlexReshape\): .*delegate 'flex'"):
        results(interpreter, X, np.array([3], np.int32))


def test_values_of_another_shape_than_a_static_output_has_are_an_error() -> None:
    one = tables.Tensor(shape=(1,), type=TensorType.FLOAT32, has_rank=True)
    interpreter = Interpreter(model_content=erf_model(tensors={"x": one}), delegates=NUMPY)
    with pytest.raises(NodeError, match=r"got values of shape \[1\]"):  # not repeated to [4]
        results(interpreter, X[:1])


def test_values_of_another_type_than_the_output_has_are_an_error() -> None:
    double = tables.Tensor(shape=(4,), type=TensorType.FLOAT64, has_rank=True)
    interpreter = Interpreter(model_content=erf_model(tensors={"y": double}), delegates=NUMPY)
    with pytest.raises(NodeError, match="got values of float32, expected float64"):
        results(interpreter, X)


def test_an_open_output_takes_the_shape_of_each_invoke() -> None:
    places = tables.Tensor(
        shape=(1, 1), shape_signature=(-1, 1), type=TensorType.INT64, has_rank=True
    )
    where = flex_model(
        [("FlexWhere", "x", "y", FLOAT)], inputs="x", outputs="y", tensors={"y": places}
    )
    interpreter = Interpreter(model_content=where, delegates=NUMPY)
    for found in ([2], [0, 3], [], [1, 2, 3]):  # first as many as the file declares
        x = np.zeros(4, np.float32)
        x[found] = 1
        assert results(interpreter, x)[0].tolist() == [[i] for i in found]


def six_partitions() -> bytes:
    """Return a model of six Flex operators with builtin ones between; its output is not zero."""
    nodes: list[Any] = []
    value = "x"
    for i in range(5):
        nodes.append(("FlexErf", value, f"e{i}", FLOAT))
        nodes.append(("ADD", f"e{i} x", f"a{i}", AddOptions()))
        value = f"a{i}"
    open_shape = tables.Tensor(
        shape=(1, 1), shape_signature=(-1, 1), type=TensorType.INT64, has_rank=True
    )
    nodes.append(("FlexWhere", value, "y", FLOAT))
    return flex_model(nodes, inputs="x", outputs=f"{value} y", tensors={"y": open_shape})


@pytest.mark.parametrize("executor", ["numpy", "tensorflow"])
def test_six_partitions_with_a_resize_and_a_dynamic_output(executor: str) -> None:
    if executor == "tensorflow" and not has_tensorflow():
        pytest.skip("TensorFlow is not installed")
    interpreter = Interpreter(
        model_content=six_partitions(), delegates=[f"flex:executor={executor}"]
    )
    assert len(interpreter.placement.partitions) == 6
    for x in (X, np.array([0, 1, 0, 0, -3, 0], np.float32), np.zeros(2, np.float32), X):
        expected = x
        for _ in range(5):
            expected = special.erf(expected) + x
        values, places = results(interpreter, x)
        np.testing.assert_allclose(values, expected, rtol=1e-5)
        np.testing.assert_array_equal(places, np.argwhere(values))


def test_a_variable_is_shared_by_partitions_and_belongs_to_its_interpreter() -> None:
    handle = tables.Tensor(type=TensorType.RESOURCE, has_rank=True)
    named = {"container": b"", "shared_name": b"v", "allowed_devices": []}
    kind = {"dtype": DataType.FLOAT32}
    nodes = [
        ("FlexVarHandleOp", "", "h", {**named, **kind, "shape": (4,)}),
        ("FlexAssignVariableOp", "h x", "", {**kind, "validate_shape": False}),
        ("FlexReadVariableOp", "h", "y", kind),
    ]
    model = flex_model(nodes, inputs="x", outputs="y", tensors={"h": handle})
    reading = flex_model([nodes[0], nodes[2]], inputs="", outputs="y", tensors={"h": handle})
    interpreter = Interpreter(model_content=model, delegates=NUMPY)
    np.testing.assert_array_equal(results(interpreter, X)[0], X)
    with pytest.raises(NodeError, match="variable 'v' is read before it is assigned"):
        results(Interpreter(model_content=reading, delegates=NUMPY))


# -- what is imported --------------------------------------------------------------------------


def test_tensorflow_is_imported_for_flex_models_only(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('TensorFlow is imported')")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import delegraph, delegraph_flex.plugin\n"
        "from delegraph.testing import run_command; listed = run_command('plugins', 'list')\n"
        "assert 'scipy' not in sys.modules and 'google.protobuf' not in sys.modules\n"
        "print(listed.out); print(listed.err, end='', file=sys.stderr); sys.exit(listed.code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "flex" in done.stdout
