"""Integer LSTM layers as converters write them for TFLM: no peephole, no projection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph.schema.enums import ActivationFunctionType
from delegraph.schema.options import UnidirectionalSequenceLSTMOptions
from delegraph.testing import constant, one_op_model, tensor
from micro.wheel.goldens import Step

COUNT = 24


def layers() -> Iterator[tuple[str, bytes, tuple[Step, ...]]]:
    """Layers of both types, each run twice, reset, and run again."""
    rng = np.random.default_rng(2)
    for i in range(COUNT):
        type = ("INT8", "INT16")[i % 2]
        batch, time, n_input, n = (int(k) for k in rng.integers(1, (4, 6, 7, 9)))
        time_major = bool(rng.random() < 0.5)
        shape = (time, batch, n_input) if time_major else (batch, time, n_input)
        clip = float(rng.choice([0.0, 0.0, 1.0, 3.3]))
        options = UnidirectionalSequenceLSTMOptions(
            fused_activation_function=ActivationFunctionType.TANH, cell_clip=clip,
            time_major=time_major,
        )  # fmt: skip
        model = _layer(rng, type, shape, batch, n, options)
        limits = np.iinfo(type.lower())
        steps = [
            (rng.integers(limits.min, limits.max, shape, type.lower(), endpoint=True),)
            for _ in range(2)
        ]
        yield f"lstm/{i}", model, (*steps, "reset", steps[0])


def _layer(rng: Any, type: str, shape: Any, batch: int, n: int, options: Any) -> bytes:
    wide = type == "INT16"
    x_scale = float(rng.uniform(0.5, 2)) * (2.0**-14 if wide else 2.0**-6)
    x_zero = 0 if wide else int(rng.integers(-128, 127))
    state = {"scale": 2.0**-15 if wide else 2.0**-7, "zero_point": 0}
    if not wide and rng.random() < 0.5:
        state = {"scale": 0.0091, "zero_point": int(rng.integers(-20, 20))}
    cell_scale = 2.0 ** -int(rng.integers(10, 17))

    def weights(columns: int) -> Any:
        values = rng.integers(-127, 127, (n, columns), np.int8, endpoint=True)
        return constant(values, scale=float(rng.uniform(0.002, 0.02)))

    def bias() -> Any:
        return constant(rng.integers(-9999, 9999, n, np.int64 if wide else np.int32), scale=1e-4)

    inputs = [
        tensor(shape, type, scale=x_scale, zero_point=x_zero),
        *(weights(shape[2]) for _ in range(4)),
        *(weights(n) for _ in range(4)),
        *[None] * 3,
        *(bias() for _ in range(4)),
        *[None] * 2,
        tensor((batch, n), type, is_variable=True, **state),
        tensor((batch, n), "INT16", is_variable=True, scale=cell_scale),
        *[None] * 4,
    ]
    y = tensor((*shape[:2], n), type, **state)
    spare = [tensor((0,), "INT16", scale=2.0**-12) for _ in range(4)]
    inner = [*spare, tensor((0,), type, **state)]
    return one_op_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], options, version=3, intermediates=inner
    )
