"""The cases that are run in the wheel `tflite-micro`, by the name of their file of goldens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from delegraph.schema.options import Conv2DOptions
from delegraph.testing import MICRO_OPERATORS, constant, one_op_model, tensor
from delegraph.testing.operator_cases import cases
from micro.wheel.goldens import Step
from micro.wheel.lstm_cases import layers

Case = tuple[str, bytes, tuple[Step, ...]]


def all_cases() -> Mapping[str, list[Case]]:
    """Return the cases of each file that are the same bit for bit."""
    return {
        "lstm": list(layers()),
        "signal": [*_operators(), *_streams()],
        "tflm_only": list(_tflm_only()),
    }


def _tflm_only() -> Iterator[Case]:
    """What runs in TFLM and not in LiteRT."""
    rng = np.random.default_rng(3)
    options = Conv2DOptions(stride_w=1, stride_h=1)
    for kind in ("INT8", "INT16"):
        limits = np.iinfo(kind.lower())
        x = rng.integers(limits.min, limits.max, (1, 5, 5, 2), kind.lower(), endpoint=True)
        weights = constant(rng.integers(-127, 127, (3, 3, 3, 2), np.int8), scale=0.013)
        y = tensor((1, 5, 5, 3), kind, scale=0.21)
        model = one_op_model("CONV_2D", [tensor(x.shape, kind, scale=0.05), weights], [y], options)
        yield f"conv_without_bias/{kind}", model, ((x,),)
    eight = [tensor((4,), "INT8", scale=0.5, zero_point=3) for _ in range(2)]
    model = one_op_model("ZEROS_LIKE", eight[:1], eight[1:])
    yield "zeros_like/INT8", model, ((np.arange(4, dtype=np.int8),),)


def _operators() -> Iterator[Case]:
    """The operators' own cases; after a reset all begins anew."""
    for op in MICRO_OPERATORS:
        for i, case in enumerate(cases(op, seed=1, count=14 if "fft" in op else 6)):
            yield f"{op}/{i}", case.model(), (*case.steps, "reset", case.steps[0])


def _streams() -> Iterator[Case]:
    """Framers and stackers that are not always ready."""
    rng = np.random.default_rng(1)
    for i, (size, step, samples) in enumerate([(5, 2, 4), (7, 3, 3), (3, 5, 5), (8, 8, 16)]):
        outputs = [tensor((2, samples // step, size), "INT16"), tensor((), "BOOL")]
        options = {"frame_size": size, "frame_step": step, "prefill": False}
        yield _stream(f"framer/{i}", "SignalFramer", (2, samples), outputs, options, rng)
    for i, (left, right, step) in enumerate([(1, 2, 1), (0, 3, 2), (2, 0, 3), (3, 3, 7)]):
        outputs = [tensor(((left + right + 1) * 4,), "INT16"), tensor((), "BOOL")]
        options = {
            "num_channels": 4, "stacker_left_context": left,
            "stacker_right_context": right, "stacker_step": step,
        }  # fmt: skip
        yield _stream(f"stacker/{i}", "SignalStacker", (4,), outputs, options, rng)


def _stream(name: str, op: str, shape: Any, outputs: Any, options: Any, rng: Any) -> Case:
    raw = bytes(flexbuffers.Dumps(options))
    model = one_op_model(op, [tensor(shape, "INT16")], outputs, custom_options=raw)
    steps = [(rng.integers(-99, 99, shape, np.int16),) for _ in range(12)]
    return name, model, (*steps, "reset", *steps[:5])
