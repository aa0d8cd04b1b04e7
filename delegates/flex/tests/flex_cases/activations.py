"""Cases of activation functions and gradients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import COMPLEX, FLOATS, INTEGERS
from flex_cases import Case, one
from flex_cases.arithmetic import SPECIAL, TOLERANCE

_OF_X = ("Elu", "Selu", "Softplus", "Softsign")
_GRADIENTS = ("EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad")
_GRADIENTS_OF_Y = ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad")


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    for type in sorted(FLOATS):
        x, dy = (rng.normal(0, 3, (2, 9)).astype(type.dtype) for _ in range(2))
        special = np.array(SPECIAL, type.dtype)
        tolerance = TOLERANCE[type]
        for op in ("Relu", "Relu6"):
            yield one(op, x, T=type)
            yield one(op, special, T=type, name=f"{op}-special")
            yield one(f"{op}Grad", dy, x, T=type)
        for op in _OF_X:
            yield one(op, x, T=type, tolerance=tolerance)
            yield one(op, special, T=type, tolerance=tolerance, name=f"{op}-special")
        for alpha in (0.0, 0.3, -1.0, 2.0):
            yield one("LeakyRelu", x, T=type, alpha=alpha)
            yield one("LeakyReluGrad", dy, x, T=type, alpha=alpha)
        yield one("LeakyRelu", special, T=type, name="LeakyRelu-special")
        for op in _GRADIENTS:
            yield one(op, dy, x, T=type, tolerance=2 * tolerance)
        for op in _GRADIENTS_OF_Y:
            yield one(op, x, dy, T=type, tolerance=2 * tolerance)
    for type in sorted(COMPLEX):
        x, dy = (
            (rng.normal(0, 1, 5) + 1j * rng.normal(0, 1, 5)).astype(type.dtype) for _ in range(2)
        )
        for op in _GRADIENTS_OF_Y:
            yield one(op, x, dy, T=type, tolerance=2 * TOLERANCE[type])
    for type in sorted(INTEGERS):
        x = np.array([0, 3, 6, 9, np.iinfo(type.dtype).min, np.iinfo(type.dtype).max], type.dtype)
        dy = np.arange(1, 7).astype(type.dtype)
        for op in ("Relu", "Relu6"):
            yield one(op, x, T=type)
            yield one(f"{op}Grad", dy, x, T=type)
    yield one("Relu", np.zeros((0, 2), np.float32), T=DataType.FLOAT32, name="Relu-empty")
