"""AvgPool3D and MaxPool3D, which the official Python package does not register."""

import itertools

import numpy as np
import pytest
from flatbuffers import flexbuffers

from delegraph.testing import delegraph_outputs, fed, tensor
from support.agreement import model_and_arrays


def options(size, strides, padding, data_format="NDHWC"):
    return bytes(
        flexbuffers.Dumps(
            {
                "ksize": [1, *size, 1],
                "strides": [1, *strides, 1],
                "padding": padding,
                "data_format": data_format,
            }
        )
    )


def pooled(op, x, *given, scale=None):
    inputs = [fed(x, scale=scale)]
    output = tensor((), inputs[0].definition.type.name, scale=scale)
    model = model_and_arrays(op, inputs, [output], custom_options=options(*given))
    return delegraph_outputs(*model)[0]


def boxes(x, size, strides, padding):
    """Return what each box of *x* holds: a list of ``[values, C]`` for each image and place."""
    before, counts = [], []
    for length, kernel, stride in zip(x.shape[1:4], size, strides, strict=True):
        if padding == "SAME":
            counts.append(-(-length // stride))
            before.append(max((counts[-1] - 1) * stride + kernel - length, 0) // 2)
        else:
            counts.append((length - kernel) // stride + 1)
            before.append(0)
    result = {}
    for n, *place in itertools.product(range(len(x)), *map(range, counts)):
        starts = [p * s - b for p, s, b in zip(place, strides, before, strict=True)]
        box = tuple(slice(max(a, 0), a + k) for a, k in zip(starts, size, strict=True))
        result[(n, *place)] = x[(n, *box)].reshape(-1, x.shape[4])
    return result, (len(x), *counts, x.shape[4])


CASES = [
    ((1, 4, 4, 4, 2), (2, 2, 2), (2, 2, 2), "VALID"),
    ((2, 3, 5, 4, 1), (2, 3, 2), (1, 2, 1), "SAME"),
    ((1, 5, 4, 3, 2), (3, 3, 3), (2, 1, 3), "SAME"),
    ((1, 5, 4, 3, 2), (3, 1, 2), (1, 2, 1), "VALID"),
]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int16])
@pytest.mark.parametrize("case", CASES)
def test_boxes_are_averaged_and_their_greatest_found(case, dtype):
    shape, *geometry = case
    rng = np.random.default_rng(0)
    x = rng.integers(-100, 100, shape).astype(dtype)
    values, output = boxes(x, *geometry)
    means, greatest = np.empty(output, dtype), np.empty(output, dtype)
    for place, box in values.items():
        mean = box.astype(np.float64).mean(0)
        halves_away = np.copysign(np.floor(np.abs(mean) + 0.5), mean)
        means[place] = mean if dtype is np.float32 else halves_away
        greatest[place] = box.max(0)
    scale = None if dtype is np.float32 else 0.5
    np.testing.assert_allclose(pooled("AvgPool3D", x, *geometry, scale=scale), means, rtol=1e-6)
    np.testing.assert_array_equal(pooled("MaxPool3D", x, *geometry, scale=scale), greatest)


def test_a_huge_box_takes_no_longer_than_its_inputs():
    x = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2, 1)
    huge = ((1 << 30, 1 << 30, 3), (1, 1, 1), "SAME")
    assert pooled("MaxPool3D", x, *huge).reshape(-1).tolist() == [7] * 8
    assert pooled("AvgPool3D", x, *huge).reshape(-1).tolist() == [3.5] * 8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (((1, 1, 1), (1, 1, 1), "FULL"), "padding is 'FULL'"),
        (((1, 1, 1), (1, 1, 1), "SAME", "NCDHW"), "data_format is 'NCDHW'"),
        (((1, 1), (1, 1, 1), "SAME"), r"ksize is \[1, 1, 1, 1\]"),
        (((1, 1, 1), (0, 1, 1), "SAME"), "stride is 0"),
    ],
)
def test_options_that_do_not_fit_are_refused(given, message):
    with pytest.raises(RuntimeError, match=message):
        pooled("MaxPool3D", np.zeros((1, 2, 2, 2, 1), np.float32), *given)
