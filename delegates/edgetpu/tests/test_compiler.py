"""Models that are compiled: what is kept, what is refused, and that results stay the same."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import delegraph_edgetpu
from compiled_models import DIGITS, random_inputs
from delegraph import BuiltinOperator, Interpreter
from delegraph.errors import ArgumentError, MalformedModelError
from delegraph.graph import parse_model
from delegraph.schema import read_model, tables, write_model
from delegraph.schema.options import Conv2DOptions
from delegraph.testing import constant, subgraphs_model, tensor
from delegraph.testing.outputs import outputs_of
from delegraph_edgetpu.custom_options import CUSTOM_OP, read_custom_options
from delegraph_edgetpu.devices import CACHE_BYTES
from delegraph_edgetpu.errors import CannotCompile
from delegraph_edgetpu.executable import Executable, parse
from quantised_chains import bias, chain, q, weights

MIXED = chain(
    [
        ("QUANTIZE", "x", "a"),
        ("CONV_2D", "a w b", "c", Conv2DOptions(stride_w=1, stride_h=1)),
        ("HARD_SWISH", "c", "d"),
        ("DEQUANTIZE", "d", "y"),
    ],
    outputs="y c",
    tensors={
        "x": tensor((1, 4, 4, 3)), "a": q(1, 4, 4, 3), "w": weights(5, 1, 1, 3), "b": bias(5),
        "c": q(1, 4, 4, 5, scale=8.0), "d": q(1, 4, 4, 5, scale=8.0), "y": tensor((1, 4, 4, 5)),
    },
    metadata={"notes": b"kept as they are"},
)  # fmt: skip


def records_of(model: bytes) -> tables.Model:
    return read_model(np.frombuffer(model, np.uint8))


def compiled(model: bytes, **settings: Any) -> delegraph_edgetpu.compilation.Compilation:
    (compilation,) = delegraph_edgetpu.compile(model, **settings)
    return compilation


def executable_in(model: bytes) -> Executable:
    operators = parse_model(model).subgraphs[0].operators
    (options,) = [o.custom_options for o in operators if o.name == CUSTOM_OP]
    assert options is not None
    executable = parse(read_custom_options(bytes(options)))
    assert isinstance(executable, Executable)
    return executable


def test_mapped_operators_become_one_custom_operator() -> None:
    operators = parse_model(compiled(MIXED).model).subgraphs[0].operators
    assert [o.name for o in operators] == ["QUANTIZE", CUSTOM_OP, "HARD_SWISH", "DEQUANTIZE"]
    assert operators[1].version == 1


def test_results_are_those_of_the_source() -> None:
    for model in (MIXED, DIGITS.read_bytes()):
        details = Interpreter(model_content=model).get_input_details()
        rng = np.random.default_rng(0)
        inputs = [rng.uniform(-100, 100, d["shape"]).astype(d["dtype"]) for d in details]
        expected = outputs_of(Interpreter(model_content=model), inputs)
        found = outputs_of(Interpreter(model_content=compiled(model).model), inputs)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_executable_holds_the_mapped_part_as_a_model() -> None:
    executable = executable_in(compiled(MIXED).model)
    inner = parse_model(executable.model).subgraphs[0]
    assert [o.name for o in inner.operators] == ["CONV_2D"]
    assert [inner.tensors[i].name for i in inner.inputs] == ["a"]
    assert [inner.tensors[i].name for i in inner.outputs] == ["c"]
    assert executable.parameter_bytes == executable.cached_bytes == 16 * 4 + 16 * 4
    assert executable.multiply_adds == 4 * 4 * 3 * 5


def test_metadata_description_names_and_quantization_are_kept() -> None:
    before, after = parse_model(MIXED), parse_model(compiled(MIXED).model)
    assert after.description == before.description
    assert bytes(after.metadata["notes"]) == b"kept as they are"
    old = {tensor.name: tensor for tensor in before.subgraphs[0].tensors}
    for new in after.subgraphs[0].tensors:
        kept = old[new.name]
        assert (new.type, new.shape) == (kept.type, kept.shape)
        if kept.quantization is not None and new.quantization is not None:
            assert new.quantization.scale == kept.quantization.scale
            assert new.quantization.zero_point == kept.quantization.zero_point
    assert {t.name for t in after.subgraphs[0].tensors} == {"x", "a", "c", "d", "y"}


def test_metadata_without_a_buffer_is_left_out() -> None:
    record = records_of(MIXED)
    astray = tables.Metadata(name="astray", buffer=999)
    model = write_model(record.replace(metadata=(*(record.metadata or ()), astray)))
    assert list(parse_model(compiled(model).model).metadata) == ["notes"]


def test_weights_are_in_the_executable_alone() -> None:
    after = records_of(compiled(MIXED).model)
    held = [b for b in after.buffers or () if b.data is not None and len(b.data)]
    assert [bytes(b.data) for b in held if b.data is not None] == [b"kept as they are"]


def test_signatures_follow_their_tensors() -> None:
    record = records_of(MIXED)
    names = [t.name for t in (record.subgraphs or ())[0].tensors or ()]
    maps = {n: (tables.TensorMap(name=f"my_{n}", tensor_index=names.index(n)),) for n in "xyc"}
    signature = tables.SignatureDef(
        inputs=maps["x"], outputs=(*maps["y"], *maps["c"]), signature_key="serve"
    )
    model = compiled(write_model(record.replace(signature_defs=(signature,)))).model
    runner = Interpreter(model_content=model).get_signature_runner("serve")
    picture = np.ones((1, 4, 4, 3), np.float32)
    expected = Interpreter(model_content=MIXED)
    y, c = outputs_of(expected, [picture])
    found = runner(my_x=picture)
    np.testing.assert_array_equal(found["my_y"], y)
    np.testing.assert_array_equal(found["my_c"], c)


def test_state_is_a_variable_outside_and_can_be_reset() -> None:
    model = _with_state()
    after = Interpreter(model_content=compiled(model).model)
    before = Interpreter(model_content=model)
    inputs = random_inputs(model)
    for interpreter in (before, after):
        interpreter.allocate_tensors()
    for _ in range(3):
        np.testing.assert_array_equal(outputs_of(after, inputs)[0], outputs_of(before, inputs)[0])
    operators = parse_model(compiled(model).model).subgraphs[0].operators
    assert len(operators[0].inputs) == 3  # as in files of the real compiler
    sent = 3 * 2 + 3 * 4  # input and output alone: state stays on the device
    assert compiled(model).estimate.transfer == pytest.approx(sent / 500e6)


def _with_state() -> bytes:
    """Return a recurrent layer, whose state lives in two variables."""
    from delegraph.schema.options import UnidirectionalSequenceLSTMOptions
    from delegraph.testing import one_op_model

    units, rng = 4, np.random.default_rng(0)

    def matrix(columns: int) -> Any:
        return constant(rng.integers(-127, 128, (units, columns)).astype(np.int8), scale=0.01)

    biases = [constant(np.zeros(units, np.int32), scale=0.0001) for _ in range(4)]
    state = tensor((1, units), "INT8", scale=1 / 128, is_variable=True)
    cell = tensor((1, units), "INT16", scale=2**-12, is_variable=True)
    inputs = [
        tensor((1, 3, 2), "INT8", scale=1 / 128),
        *(matrix(2) for _ in range(4)),
        *(matrix(units) for _ in range(4)),
        *[None] * 3, *biases, None, None, state, cell, *[None] * 4,
    ]  # fmt: skip
    gates = [tensor((0,), "INT16", scale=2**-12) for _ in range(4)]
    hidden = tensor((0,), "INT8", scale=1 / 128)
    return one_op_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        [tensor((1, 3, units), "INT8", scale=1 / 128)],
        UnidirectionalSequenceLSTMOptions(fused_activation_function=4),
        intermediates=[*gates, hidden],
    )


def test_models_of_one_call_share_token_and_cache_in_order() -> None:
    big = chain([("CONV_2D", "x w b", "y", Conv2DOptions(stride_w=1, stride_h=1))], outputs="y",
        tensors={"x": q(1, 1, 1, 2048), "w": weights(2100, 1, 1, 2048), "b": bias(2100),
                 "y": q(1, 1, 1, 2100)},
    )  # fmt: skip
    first, second = delegraph_edgetpu.compile([big, big])
    digits = DIGITS.read_bytes()
    third, fourth = compiled(digits), delegraph_edgetpu.compile([big, digits])[1]
    size = 33 * 64 * (2048 + 4)
    assert first.executable.caching_token == second.executable.caching_token
    tokens = {c.executable.caching_token for c in (first, third, fourth)}
    assert len(tokens) == 3  # of one model twice, of another one alone, of both
    assert fourth.executable.caching_token == _token_of_first(big, digits)
    assert (first.memory.cached_bytes, first.memory.streamed_bytes) == (size, 0)
    assert first.memory.remaining_bytes == CACHE_BYTES - size
    assert (second.memory.cached_bytes, second.memory.streamed_bytes) == (0, size)
    assert second.estimate.streaming == pytest.approx(size / 500e6)


def _token_of_first(*models: bytes) -> int:
    return delegraph_edgetpu.compile(list(models))[0].executable.caching_token


def test_compiling_twice_gives_the_same_bytes() -> None:
    assert compiled(MIXED).model == compiled(MIXED).model


def test_older_runtime_leaves_newer_operators_on_the_cpu() -> None:
    model = chain([("RELU", "x", "a"), ("QUANTIZE", "a", "y")], outputs="y")
    assert len(compiled(model).mapped) == 2
    older = compiled(model, min_runtime_version=12)
    assert [str(o.reasons[0]) for o in older.unmapped] == [
        "QUANTIZE needs runtime version 13, limit 12"
    ]
    assert older.executable.runtime_version == 12


BROKEN_AT_THE_END = chain(
    [
        ("RELU", "x", "a"),
        ("CONV_2D", "a w b", "y", Conv2DOptions(stride_w=1, stride_h=1)),
    ],
    outputs="y",
    tensors={"x": q(1, 4, 4, 3), "a": q(1, 4, 4, 3), "w": weights(5, 1, 1, 2), "b": bias(5),
             "y": q(1, 4, 4, 5)},
)  # fmt: skip


def test_a_part_that_cannot_run_is_an_error_that_names_the_node() -> None:
    with pytest.raises(CannotCompile, match=r"cannot run: node 1 \(CONV_2D\): .*--search"):
        compiled(BROKEN_AT_THE_END)


@pytest.mark.parametrize("step", [1, 2])
def test_search_finds_the_longest_part_that_runs(step: int) -> None:
    if step == 2:  # leaves out both at once, and then nothing is left
        with pytest.raises(CannotCompile, match="none of 2 operators maps"):
            compiled(BROKEN_AT_THE_END, search=True, search_step=step)
        return
    found = compiled(BROKEN_AT_THE_END, search=True)
    assert [o.name for o in found.mapped] == ["RELU"]
    assert "the longest part that can be compiled" in str(found.unmapped[0].reasons[0])


def test_intermediate_tensor_becomes_an_output_of_the_custom_operator() -> None:
    nodes = [("RELU", "x", "a"), ("TANH", "a", "b"), ("LOGISTIC", "b", "y")]
    model = compiled(chain(nodes, outputs="y"), intermediate_tensors=["a"]).model
    subgraph = parse_model(model).subgraphs[0]
    assert [o.name for o in subgraph.operators] == [CUSTOM_OP, "TANH", "LOGISTIC"]
    assert [subgraph.tensors[i].name for i in subgraph.operators[0].outputs] == ["a"]


FLOAT = chain([("RELU", "x", "y")], outputs="y", tensors={n: tensor((1, 4)) for n in "xy"})
DYNAMIC = chain(
    [("RELU", "x", "y")],
    outputs="y",
    tensors={n: tensor((1, 4), "INT8", scale=0.5, shape_signature=[-1, 4]) for n in "xy"},
)
UNSCALED = chain([("RELU", "x", "y")], outputs="y", tensors={n: tensor((4,), "INT8") for n in "xy"})
LOOP = subgraphs_model(
    [([("RELU", "x", "y")], "x", "y", {n: q(1, 4) for n in "xy"})] * 2, names=["main", "body"]
)
SIGNATURES = write_model(
    read_model(np.frombuffer(LOOP, np.uint8)).replace(
        signature_defs=tuple(
            tables.SignatureDef(signature_key=key, subgraph_index=index)
            for index, key in enumerate(("first", "second"))
        )
    )
)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FLOAT, r"not quantised: .* node 0 \(RELU\), has 'x' as FLOAT32, expected INT8 or UINT8"),
        (UNSCALED, r"not quantised: .* node 0 \(RELU\), has 'x' as INT8 without a scale"),
        (DYNAMIC, r"input 'x' has the shape \[-1, 4\].*expected fixed numbers, such as \[1, 4\]"),
        (LOOP, r"2 subgraphs, expected 1: 'body' belongs to a loop"),
        (
            SIGNATURES,
            r"2 subgraphs, expected 1: 'body' is the subgraph of the signature 'second'; convert "
            r"each signature to a model of its own, with signature_keys=\[KEY\]",
        ),
        (
            chain([("HARD_SWISH", "x", "y")], outputs="y"),
            r"none of 1 operator maps.*node 0 \(HARD_SWISH\): it is no operator of the Edge TPU",
        ),
    ],
)
def test_a_model_that_cannot_be_compiled_is_an_error_that_names_what_and_where(
    model: bytes, message: str
) -> None:
    with pytest.raises(CannotCompile, match=message):
        compiled(model)


def test_a_compiled_model_is_not_compiled_again() -> None:
    with pytest.raises(CannotCompile, match=r"node 1 is edgetpu-custom-op: .* compiled already"):
        compiled(compiled(MIXED).model)


def test_a_model_in_a_bundle_is_compiled(tmp_path: Path) -> None:
    path = tmp_path / "x.task"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m", MIXED)
    (compilation,) = delegraph_edgetpu.compile(f"{path}#m")
    assert compilation.model == compiled(MIXED).model


def with_labels(model: bytes) -> bytes:
    """Return *model* followed by a zip with the file ``labels.txt``."""
    stream = io.BytesIO(model)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("labels.txt", "zero\none")
    return stream.getvalue()


def test_files_packed_after_the_model_are_kept() -> None:
    described = compiled(with_labels(DIGITS.read_bytes())).model
    assert described.startswith(compiled(DIGITS.read_bytes()).model)
    with zipfile.ZipFile(io.BytesIO(described)) as archive:
        assert archive.read("labels.txt") == b"zero\none"


def test_a_damaged_zip_after_the_model_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "labelled.tflite"
    path.write_bytes(with_labels(MIXED).replace(b"zero\none", b"zero\ntwo"))
    with pytest.raises(MalformedModelError, match=r"labelled\.tflite: the zip after the model is"):
        delegraph_edgetpu.compile(path)


def test_a_damaged_model_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "damaged.tflite"
    path.write_bytes(MIXED[:100])
    with pytest.raises(MalformedModelError, match=r"damaged\.tflite: "):
        delegraph_edgetpu.compile(path)
    with pytest.raises(ArgumentError, match=r"Could not open .*absent.tflite.: No such file"):
        delegraph_edgetpu.compile(tmp_path / "absent.tflite")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_runtime_version": 15}, "min_runtime_version is 15, expected 10 to 14"),
        ({"segments": 0}, "segments is 0"),
        ({"search_step": 0}, "search_step is 0"),
        ({"balance": "luck"}, "balance is 'luck', expected one of"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        compiled(MIXED, **settings)


def test_segments_of_several_models_are_refused() -> None:
    with pytest.raises(ArgumentError, match="2 models in 3 segments each, expected one model"):
        delegraph_edgetpu.compile([DIGITS, DIGITS], segments=3)
    with pytest.raises(ArgumentError, match="no model to compile"):
        delegraph_edgetpu.compile([])


def test_operator_codes_without_operators_are_left_out() -> None:
    codes = records_of(compiled(DIGITS.read_bytes()).model).operator_codes or ()
    assert [code.builtin_code for code in codes] == [BuiltinOperator.CUSTOM]
