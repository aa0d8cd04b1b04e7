"""Damaged files end in a ``ModelError`` or are read; the long run is `make fuzz`."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from delegraph.errors import ModelError
from delegraph.graph import parse_model
from delegraph.schema.options import Conv2DOptions, ReshapeOptions
from delegraph.testing import constant, one_op_model, tensor
from fuzz.file_damage import DAMAGES, structure
from support.corpus import corpus_file, needs_corpus

COPIES = 60
SECONDS = 2.0
"""For one copy; none has been seen to take a tenth of it."""


def convolution() -> bytes:
    x = tensor((1, 8, 8, 3), "INT8", scale=0.5, zero_point=-3, shape_signature=(-1, 8, 8, 3))
    weight = constant(np.ones((4, 3, 3, 3), np.int8), scale=[0.5, 0.25, 1, 2], axis=0)
    bias = constant(np.zeros(4, np.int32), scale=[0.25, 0.125, 0.5, 1])
    y = tensor((1, 8, 8, 4), "INT8", scale=0.25, zero_point=7)
    return one_op_model("CONV_2D", [x, weight, bias], [y], Conv2DOptions(stride_w=1, stride_h=1))


def reshape() -> bytes:
    shape = constant(np.array([2, 8], np.int32))
    options = ReshapeOptions(new_shape=(2, 8))
    return one_op_model("RESHAPE", [tensor((4, 4)), shape], [tensor((2, 8))], options)


def strings() -> bytes:
    words = constant(np.array([b"one", b"two", b""], object))
    return one_op_model(
        "my_op", [words, None], [tensor((3,), "STRING")], custom_options=b"\x01\x02"
    )


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("make", [convolution, reshape, strings])
def test_damaged_small_models_end_in_model_errors(
    make: Callable[[], bytes], damage: Callable[..., np.ndarray]
) -> None:
    check(make(), damage)


@needs_corpus
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize(
    "name", ["LiteRT__2_subgraphs", "LiteRT__gather_string", "LiteRT__blockwise_quantized"]
)
def test_damaged_real_models_end_in_model_errors(
    name: str, damage: Callable[..., np.ndarray]
) -> None:
    check(corpus_file(name).read_bytes(), damage)


def check(content: bytes, damage: Callable[..., np.ndarray]) -> None:
    positions = structure(content)
    messages = []
    slowest = 0.0
    for seed in range(COPIES):
        copy = np.frombuffer(content, np.uint8).copy()
        copy = damage(copy, positions, np.random.default_rng(seed))
        start = time.process_time()
        try:
            parse_model(copy.tobytes())
        except ModelError as error:
            messages.append(str(error))
        slowest = max(slowest, time.process_time() - start)
    assert messages, "no copy was damaged enough to be refused"
    assert all(messages)
    assert slowest < SECONDS
