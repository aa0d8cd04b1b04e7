"""Partitions compiled by OpenVINO: what is refused, resized, kept in the cache, and not copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import ActivationFunctionType, Interpreter, load_delegate
from delegraph.errors import NodeError
from delegraph.native import LiteRtInterpreter
from delegraph.schema import options as o
from delegraph.testing import constant, graph_model, one_op_model, tensor
from delegraph.tools import compile_model

openvino = pytest.importorskip(
    "openvino", reason="OpenVINO is not installed; `make test-engines` has it"
)
from delegraph_openvino import program  # noqa: E402 - imports openvino

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models"
CHAIN = graph_model(
    [("ABS", "x", "a"), ("ADD", "a x", "y", o.AddOptions())], inputs="x", outputs="y"
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path / "cache"))


def opened(model: bytes | Path, spec: str = "openvino", **more: Any) -> Interpreter:
    given = {"model_content": model} if isinstance(model, bytes) else {"model_path": str(model)}
    interpreter = Interpreter(**given, delegates=[load_delegate(spec)], **more)
    interpreter.allocate_tensors()
    return interpreter


def result(interpreter: Any, values: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
    interpreter.invoke()
    return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def reasons(interpreter: Interpreter) -> set[str]:
    nodes = interpreter.placement.nodes
    return {str(r) for node in nodes for r in node.rejections.values()}


def test_a_float_model_runs_whole_as_by_the_kernels() -> None:
    plain = Interpreter(str(DIGITS / "digits_float.tflite"))
    plain.allocate_tensors()
    shape = plain.get_input_details()[0]["shape"]
    values = np.random.default_rng(1).random(shape, np.float32)
    interpreter = opened(DIGITS / "digits_float.tflite")
    assert all(node.delegate for node in interpreter.placement.nodes)
    np.testing.assert_allclose(result(interpreter, values), result(plain, values), 1e-4, 1e-5)


def test_a_target_of_litert_s_aot_gives_a_file_that_runs_equally(tmp_path: Path) -> None:
    aot = pytest.importorskip("ai_edge_litert.aot.aot_compile")
    from delegraph.aot import DelegraphTarget

    model = DIGITS / "digits_float.tflite"
    target = DelegraphTarget("openvino", options={"device": "CPU"})
    made = aot.aot_compile(str(model), str(tmp_path), target=[target], keep_going=False)
    assert made.models[0].partition_stats.subgraph_stats[0].num_ops_offloaded == 15
    values = np.random.default_rng(1).random((1, 8, 8, 1), np.float32)
    expected = result(opened(model), values)
    for host in (Interpreter, LiteRtInterpreter):
        interpreter = host(model_path=str(made.models[0].path))
        interpreter.allocate_tensors()
        np.testing.assert_array_equal(result(interpreter, values), expected)


def test_8_bit_nodes_need_the_option() -> None:
    model = DIGITS / "digits_int8.tflite"
    assert any("quantized=true" in reason for reason in reasons(opened(model)))
    assert not any(
        node.delegate for node in opened(model).placement.nodes if "QUANT" not in node.op
    )
    taken = [n.delegate for n in opened(model, "openvino:quantized=true").placement.nodes]
    assert any(taken)


def test_an_activation_without_translation_is_refused_with_the_reason() -> None:
    options = o.AddOptions(fused_activation_function=ActivationFunctionType.RELU_N1_TO_1)
    model = one_op_model("ADD", [tensor([4]), tensor([4])], [tensor([4])], options)
    assert reasons(opened(model)) == {"activation: is RELU_N1_TO_1, needs NONE, RELU or RELU6"}


INT32 = tensor([4], "INT32")


def node(op: str, inputs: list[Any], output: Any, options: Any = None) -> bytes:
    return one_op_model(op, inputs, [output], options)


AXES = constant(np.int32([1, -1]))
REFUSED = {
    "OpenVINO needs AddOptions, and the node has none": node("ADD", [tensor([4])] * 2, tensor([4])),
    "OpenVINO crashes on an axis that is named twice": node(
        "MEAN", [tensor([2, 3]), AXES], tensor([2]), o.ReducerOptions()
    ),
    "OpenVINO crashes when they are left out": node(
        "SQUEEZE", [tensor([1, 3])], tensor([3]), o.SqueezeOptions()
    ),
    "OpenVINO takes no axes that are counted from the end": node(
        "TRANSPOSE", [tensor([2, 3]), constant(np.int32([-1, 0]))], tensor([3, 2])
    ),
    "OpenVINO computes it in floats, which are not exact over 2**24": node(
        "LESS", [INT32, INT32], tensor([4], "BOOL"), o.LessOptions()
    ),
    "OpenVINO gives another result for the largest numbers": node("CAST", [tensor([4])], INT32),
    "OpenVINO gives a number for a division by zero": node(
        "FLOOR_DIV", [INT32, INT32], tensor([4], "INT32"), o.FloorDivOptions()
    ),
    "OpenVINO does not check the indices or shapes of BROADCAST_ARGS": node(
        "BROADCAST_ARGS", [tensor([1], "INT32")] * 2, tensor([1], "INT32")
    ),
    "OpenVINO does not check the indices or shapes of REVERSE_SEQUENCE": node(
        "REVERSE_SEQUENCE",
        [tensor([2, 3]), tensor([2], "INT32")],
        tensor([2, 3]),
        o.ReverseSequenceOptions(seq_dim=1),
    ),
    "OpenVINO pads with zeros": node(
        "PADV2",
        [tensor([3]), constant(np.int32([[1, 1]])), constant(np.float32(2))],
        tensor([5]),
        o.PadV2Options(),
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_openvino_gets_wrong_is_refused_with_the_reason(reason: str) -> None:
    assert reasons(opened(REFUSED[reason])) == {reason}


def test_8_bit_comparisons_are_refused() -> None:
    given = [tensor([4], "INT8", scale=scale) for scale in (0.5, 1)]
    model = node("LESS", given, tensor([4], "BOOL"), o.LessOptions())
    found = reasons(opened(model, "openvino:quantized=true"))
    assert found == {"OpenVINO compares 8-bit numbers in another way"}


def test_an_activation_of_whole_numbers_is_refused() -> None:
    options = o.AddOptions(fused_activation_function=ActivationFunctionType.RELU)
    (reason,) = reasons(opened(node("ADD", [INT32, INT32], tensor([4], "INT32"), options)))
    assert reason == "OpenVINO computes it in floats, which are not exact over 2**24"


def test_large_whole_numbers_are_exact_across_nodes() -> None:
    model = graph_model(
        [("ADD", "x y", "a", o.AddOptions()), ("MUL", "a y", "b", o.MulOptions())],
        inputs="x y",
        outputs="b",
        tensors=dict.fromkeys("xyab", INT32),
    )
    x, y = np.int32([2**24 + 1, -(2**31), 2**31 - 1, 7]), np.int32([3, -1, 46341, 2**30])
    interpreter = opened(model)
    assert all(each.delegate for each in interpreter.placement.nodes)
    interpreter.set_tensor(interpreter.get_input_details()[1]["index"], y)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(result(interpreter, x), (x + y) * y)


def test_an_axis_after_a_convolution_is_the_one_of_the_model() -> None:
    """OpenVINO moves a transposition across LOG_SOFTMAX, and then takes its axis of another."""
    random = np.random.default_rng(2)
    weights = constant(random.normal(size=(4, 3, 3, 3)).astype(np.float32))
    model = graph_model(
        [
            ("CONV_2D", "x w b", "c", o.Conv2DOptions(stride_w=1, stride_h=1)),
            ("LOG_SOFTMAX", "c", "y", o.LogSoftmaxOptions()),
        ],
        inputs="x",
        outputs="y",
        tensors={
            "x": tensor([1, 6, 6, 3]),
            "w": weights,
            "b": constant(np.zeros(4, np.float32)),
            "c": tensor([1, 6, 6, 4]),
            "y": tensor([1, 6, 6, 4]),
        },
    )
    x = random.normal(size=(1, 6, 6, 3)).astype(np.float32)
    found = result(opened(model), x)
    np.testing.assert_allclose(np.exp(found).sum(-1), np.ones((1, 6, 6)), rtol=1e-5)


def test_a_partition_with_other_outputs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As OpenVINO has made them of TILE and others, until it was refused."""
    read = program.read_network
    two = graph_model([("ABS", "x", "y"), ("NEG", "x", "z")], inputs="x", outputs="y z")
    monkeypatch.setattr(program, "read_network", lambda content: read(two))
    interpreter = opened(CHAIN)
    assert reasons(interpreter) == {
        "OpenVINO's outputs are float32[4], float32[4], expected float32[4]"
    }
    values = np.float32([-1, 2, -3, 4])
    np.testing.assert_array_equal(result(interpreter, values), np.abs(values) + values)


def test_a_partition_of_constants_is_left() -> None:
    model = one_op_model("ABS", [constant(np.float32([1, -2]))], [tensor([2])])
    assert reasons(opened(model)) == {"its inputs are all constant"}


def test_a_resize_compiles_for_the_new_shape() -> None:
    interpreter = opened(CHAIN)
    for size in (4, 7, 4):
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [size])
        interpreter.allocate_tensors()
        values = np.linspace(-1, 1, size, dtype=np.float32)
        np.testing.assert_array_equal(result(interpreter, values), np.abs(values) + values)


def test_a_second_start_takes_the_blob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(CHAIN, cache_dir=tmp_path)
    monkeypatch.setattr(program, "compiled", lambda *given: pytest.fail("it was compiled again"))
    values = np.float32([-1, 2, -3, 4])
    again = result(opened(CHAIN, cache_dir=tmp_path), values)
    np.testing.assert_array_equal(again, np.abs(values) + values)


def test_other_options_are_other_blobs(tmp_path: Path) -> None:
    for spec in ("openvino", "openvino:precision=f16", "openvino:num_threads=1"):
        opened(CHAIN, spec, cache_dir=tmp_path)
    assert len(list(tmp_path.rglob("*.blob"))) == 3


def test_a_damaged_blob_is_made_again(tmp_path: Path) -> None:
    opened(CHAIN, cache_dir=tmp_path)
    (blob,) = tmp_path.rglob("*.blob")
    blob.chmod(0o600)
    blob.write_bytes(b"no model")
    values = np.float32([-1, 2, -3, 4])
    again = result(opened(CHAIN, cache_dir=tmp_path), values)
    np.testing.assert_array_equal(again, np.abs(values) + values)


def test_tensors_are_bound_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[int] = []
    real = program.ov.Tensor

    def spy(data: Any, shared_memory: bool) -> Any:
        made = real(data, shared_memory=shared_memory)
        bound.append(made.data.ctypes.data)
        return made

    monkeypatch.setattr(program.ov, "Tensor", spy)
    interpreter = opened(CHAIN)
    for _ in range(3):
        result(interpreter, np.float32([-1, 2, -3, 4]))
    details = (*interpreter.get_input_details(), *interpreter.get_output_details())
    own = [interpreter.tensor(detail["index"])().ctypes.data for detail in details]
    assert bound == own  # once for three invokes


def test_a_device_that_is_not_there_leaves_the_nodes_and_says_so() -> None:
    interpreter = opened(CHAIN, "openvino:device=NOSUCH")
    (reason,) = reasons(interpreter)
    assert "NOSUCH" in reason
    values = np.float32([-1, 2, -3, 4])
    np.testing.assert_array_equal(result(interpreter, values), np.abs(values) + values)


def test_it_runs_in_the_official_interpreter() -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    from delegraph.native import litert_delegate

    content = (DIGITS / "digits_float.tflite").read_bytes()
    delegate = litert_delegate("openvino", model=content)
    interpreter = litert.Interpreter(model_content=content, experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    values = np.random.default_rng(1).random(
        interpreter.get_input_details()[0]["shape"], np.float32
    )
    np.testing.assert_allclose(
        result(interpreter, values), result(opened(content), values), 1e-5, 1e-6
    )


def test_a_file_compiled_ahead_of_time_runs_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compile_model(CHAIN, ["openvino:precision=f32"])
    monkeypatch.setattr(program, "compiled", lambda *given: pytest.fail("it was compiled again"))
    interpreter = Interpreter(model_content=made.content)
    interpreter.allocate_tensors()
    values = np.float32([-1, 2, -3, 4])
    np.testing.assert_array_equal(result(interpreter, values), np.abs(values) + values)


def test_a_node_without_its_axes_is_no_crash_while_claiming() -> None:
    """Its kernel refuses it; where a shape is known only while invoking, only then."""
    nodes: list[Any] = [("RESHAPE", "x shape", "r"), ("TRANSPOSE", "r", "y")]
    tensors = {"x": tensor((2, 3)), "shape": tensor((2,), "INT32"), "r": tensor(())}
    model = graph_model(nodes, inputs="x shape", outputs="y", tensors=tensors)
    interpreter = opened(model)
    interpreter.set_tensor(interpreter.get_input_details()[1]["index"], np.int32([3, 2]))
    with pytest.raises(NodeError, match="TRANSPOSE"):
        interpreter.invoke()


def test_constants_that_share_a_name_with_another_tensor_keep_their_values() -> None:
    shape = (1, 1, 1, 1)
    tensors = {name: tensor(shape) for name in ("name_x", "a", "y")}
    tensors["name_c"] = constant(np.full(shape, 3.0, np.float32))
    nodes: list[Any] = [("LOGISTIC", "name_x", "a"), ("MUL", "name_c a", "y", o.MulOptions())]
    model = graph_model(nodes, inputs="name_x", outputs="a y", tensors=tensors)
    model = model.replace(b"name_c", b"name_x")
    interpreter = opened(model)
    result(interpreter, np.zeros(shape, np.float32))
    y = interpreter.get_tensor(interpreter.get_output_details()[1]["index"])
    np.testing.assert_array_equal(y, np.full(shape, 1.5, np.float32))
