"""Cases know which types and features a claim needs to cover them."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph import ActivationFunctionType as Activation
from delegraph import TensorType
from delegraph.delegation.capabilities import FEATURES
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.schema.options import AddOptions, Conv2DOptions, ReshapeOptions
from delegraph.testing import TensorDef, Trial, constant, fed, operator_case, tensor, trial_of
from delegraph.testing.operator_case import Given
from delegraph.testing.operator_cases import cases


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 8


def add(a: Given, b: Given, activation: Activation = Activation.NONE) -> Trial:
    return trial(
        operator_case("ADD", [a, b], ["FLOAT32"], AddOptions(fused_activation_function=activation))
    )


def reshape(shape: Given) -> Trial:
    x = fed(floats(2, 3))
    return trial(operator_case("RESHAPE", [x, shape], ["FLOAT32"], ReshapeOptions()))


def conv(weights: Given, x: str = "FLOAT32", y: str = "FLOAT32") -> Trial:
    quantized = {} if x == "FLOAT32" else {"scale": 0.5}
    image = fed(floats(1, 3, 3, 2).astype(NUMPY_DTYPES[TensorType[x]]), **quantized)
    channels = weights.shape[0] if isinstance(weights, TensorDef) else 1
    bias = constant(np.zeros(channels, np.float32 if x == "FLOAT32" else np.int32))
    options = Conv2DOptions(stride_w=1, stride_h=1)
    return trial(
        operator_case(
            "CONV_2D", [image, weights, bias], [tensor((), y, **quantized)], options, version=3
        )
    )


def trial(case) -> Trial:
    found = trial_of(case)
    assert found is not None
    return found


X, ROW, ONE = fed(floats(2, 3)), fed(floats(3)), fed(np.float32(1))
KERNEL = np.ones((1, 1, 1, 2), np.float32)
PER_CHANNEL = constant(np.ones((2, 1, 1, 2), np.int8), scale=[0.5, 0.25], zero_point=[0, 0])


@pytest.mark.parametrize(
    ("found", "features"),
    [
        (add(X, fed(floats(2, 3))), set()),
        (add(X, ROW), {"broadcast"}),
        (add(X, ONE), {"broadcast", "scalar"}),
        (add(X, fed(floats(2, 3)), Activation.RELU), {"activation"}),
        (add(fed(floats(1, 0)), fed(floats(1, 0))), {"empty"}),
        (add(fed(floats(1, 1, 1, 1, 2)), fed(floats(1, 1, 1, 1, 2))), {"many-dims"}),
        (add(X, constant(np.full((2, 3), np.nan, np.float32))), {"extreme-values"}),
        (add(X, fed(np.full((2, 3), 1e30, np.float32))), {"extreme-values"}),
        (add(X, fed(np.full((2, 3), 1e-40, np.float32))), {"extreme-values"}),
        (reshape(constant(np.int32([3, 2]))), set()),
        (reshape(fed(np.int32([3, 2]))), {"computed-weights", "dynamic-shapes"}),
        (conv(constant(KERNEL)), set()),
        (conv(fed(KERNEL)), {"computed-weights"}),
        (conv(PER_CHANNEL, "INT8", "INT8"), {"per-channel"}),
        (trial(next(cases("WHILE"))), {"subgraph"}),
    ],
    ids=lambda value: str(value.case) if isinstance(value, Trial) else "",
)
def test_features_are_read_off_the_model(found: Trial, features: set[str]) -> None:
    assert found.features >= features if "subgraph" in features else found.features == features
    assert found.features <= FEATURES.keys()


def test_types_are_those_of_inputs_and_outputs() -> None:
    assert reshape(constant(np.int32([3, 2]))).types == {"FLOAT32", "INT32"}
    assert conv(PER_CHANNEL, "INT8", "INT8").types == {"INT8", "INT32"}


def test_trial_declares_the_shapes_of_its_outputs() -> None:
    case = add(X, ROW).case
    graph = (case.records.subgraphs or ())[0]
    assert [record.shape for record in graph.tensors or ()] == [(2, 3), (3,), (2, 3)]
