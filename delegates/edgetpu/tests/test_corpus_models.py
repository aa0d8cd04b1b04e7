"""Real models: they compile, and what is compiled computes the same, bit for bit.

``benchmarks/compile_models.py`` does it for any number of models; here are some small ones.
"""

from __future__ import annotations

import numpy as np
import pytest

import delegraph_edgetpu
from delegraph import Interpreter
from delegraph.testing.outputs import outputs_of
from delegraph.tools import random_values
from support.corpus import corpus_file, needs_corpus

pytestmark = needs_corpus


@pytest.mark.repetition(2)
@pytest.mark.parametrize(
    ("name", "mapped", "unmapped"),
    [
        ("test_data__mobilenet_v1_0.25_128_quant", 31, 0),
        ("test_data__deeplabv3_mnv2_dm05_pascal_quant", 64, 8),
        ("test_data__keras_lstm_mnist_ptq", 6, 0),
        ("support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29", 63, 1),
        ("gles__hand_landmark_3d_256_integer_quant", 152, 12),
        ("tflm__micro_speech_quantized", 4, 0),
        ("tflm__person_detect", 31, 0),
    ],
)
def test_compiled_model_computes_the_same(name: str, mapped: int, unmapped: int) -> None:
    source = Interpreter(model_path=str(corpus_file(name)))
    (compilation,) = delegraph_edgetpu.compile(corpus_file(name))
    assert (len(compilation.mapped), len(compilation.unmapped)) == (mapped, unmapped)
    rng = np.random.default_rng(0)
    inputs = [random_values(detail, rng) for detail in source.get_input_details()]
    expected = outputs_of(source, inputs)
    found = outputs_of(Interpreter(model_content=compilation.model), inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
