"""Cases of transforms, audio features, detection, and random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from delegraph.schema.enums import RngAlgorithm
from delegraph.schema.options import RandomOptions, Rfft2dOptions, StablehloRngBitGeneratorOptions
from delegraph.testing.one_op import constant, tensor
from delegraph.testing.operator_case import OperatorCase, fed, operator_case
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.operator_cases.shaping import given_or_fed
from delegraph.testing.random_operands import RandomOperands


@cases_of("RFFT2D")
def rfft2d(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: lengths above and below the input's, mostly powers of two."""
    for _ in range(random.count):
        shape = random.shape(2, 4, largest=9, empty=0)
        height = random.pick([1, 2, 4, 8, 16, 3])
        width = random.pick([2, 4, 8, 16, 8, 16])  # one column is transformed wrongly there
        lengths = [height, width]
        x = random.fed("FLOAT32", shape)
        yield operator_case(op, [x, given_or_fed(random, lengths)], ["COMPLEX64"], Rfft2dOptions())


@cases_of("AudioSpectrogram")
def spectrograms(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: windows and strides of any length, with one or more channels."""
    for _ in range(random.count):
        options = {
            "window_size": random.pick([1, 2, 8, 16, 30, 100]),
            "stride": random.number(1, 20),
            "magnitude_squared": random.chance(0.5),
        }
        x = random.fed("FLOAT32", (random.number(1, 200), random.number(1, 3)), spread=1)
        yield operator_case(op, [x], ["FLOAT32"], custom_options=bytes(flexbuffers.Dumps(options)))


@cases_of("Mfcc")
def coefficients(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: random rates, limits and numbers of bands."""
    for _ in range(random.count):
        options = {
            "upper_frequency_limit": random.pick([4000, 1000, 8000]),
            "lower_frequency_limit": random.pick([20, 0, 300]),
            "filterbank_channel_count": random.pick([40, 20, 7]),
            "dct_coefficient_count": random.pick([13, 1, 7, 20]),
        }
        shape = (random.number(1, 2), random.number(1, 4), random.pick([129, 257, 513]))
        x = fed(random.rng.uniform(0, 9, shape).astype(np.float32))
        rate = given_or_fed(random, [random.pick([8000, 16000, 44100])])
        yield operator_case(
            op, [x, rate], ["FLOAT32"], custom_options=bytes(flexbuffers.Dumps(options))
        )


@cases_of("TFLite_Detection_PostProcess")
def detections(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: boxes with many ties, enough to fill the outputs."""
    for _ in range(random.count):
        boxes, classes = random.number(1, 40), random.number(1, 5)
        regular = random.chance(0.5)
        shown = random.number(1, min(boxes, 6))
        options = {
            "max_detections": shown,
            "max_classes_per_detection": 1,
            "detections_per_class": random.number(1, 50),
            "use_regular_nms": regular,
            "nms_score_threshold": 0.0 if not regular else 0.3,
            "nms_iou_threshold": 1.0 if not regular else random.pick([0.2, 0.6, 1.0]),
            "num_classes": classes,
            "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
        }  # fmt: skip
        encodings = random.fed("FLOAT32", (1, boxes, 4), spread=5)
        levels = random.rng.integers(1, 7, (1, boxes, classes + random.number(0, 1)))
        anchors = np.abs(random.rng.standard_normal((boxes, 4))) * 0.3 + 0.2
        inputs: list[Any] = [
            encodings,
            fed((levels / 6).astype(np.float32)),
            constant(anchors.astype(np.float32)),
        ]
        yield operator_case(op, inputs, ["FLOAT32"] * 4, custom_options=_flexbuffer(options))


def _flexbuffer(options: dict[str, Any]) -> bytes:
    """Return the bytes of a FlexBuffer map with the values of *options* by name."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in options.items():
            builder.Key(name)
            {bool: builder.Bool, int: builder.Int, float: builder.Float}[type(value)](value)
    return bytes(builder.Finish())


@cases_of("aeq.hadamard_rotation")
def rotations(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op* that rotate a part of the last axis."""
    for _ in range(random.count):
        size = random.pick([1, 2, 4, 8, 16])
        shape = (*random.shape(1, 3, empty=0), size * random.pick([1, 1, 2, 3]))
        options = {"hadamard_size": size, "random_binary_vector": [1, 2]}
        x, y = random.fed("FLOAT32", shape), tensor(shape)  # the kernel does not size its output
        yield operator_case(op, [x], [y], custom_options=bytes(flexbuffers.Dumps(options)))


@cases_of("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL")
def random_numbers(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: any shape, with and without seeds."""
    for _ in range(random.count):
        options = RandomOptions(seed=random.number(0, 3), seed2=random.number(0, 3))
        shape = given_or_fed(random, random.shape(0, 4), random.pick(["INT32", "INT32", "INT64"]))
        output = random.pick(["FLOAT32"] * 5 + ["INT32"])
        yield operator_case(op, [shape], [output], options, is_random=True)


@cases_of("MULTINOMIAL")
def multinomial(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op* that draw samples from rows of log-probabilities."""
    for _ in range(random.count):
        logits = random.fed("FLOAT32", random.pick([(2, 3), (1, 5), random.shape(1, 3)]))
        options = RandomOptions(seed=random.number(0, 3), seed2=random.number(0, 3))
        samples = given_or_fed(random, random.number(1, 6))
        output = random.pick(["INT64", "INT32"])
        yield operator_case(op, [logits, samples], [output], options, is_random=True)


@cases_of("STABLEHLO_RNG_BIT_GENERATOR")
def random_bits(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: each algorithm, whose bits are equal on all platforms."""
    for _ in range(random.count):
        algorithm = random.pick(tuple(RngAlgorithm))
        length = random.pick([2, 2, 3]) if algorithm != RngAlgorithm.THREEFRY else 2
        state = random.rng.integers(0, 2**63, length, np.uint64)
        type, shape = random.pick(["INT32", "INT64", "UINT32", "UINT64"]), random.shape(1, 3)
        outputs = [tensor((length,), "UINT64"), tensor(shape, type)]
        options = StablehloRngBitGeneratorOptions(algorithm=algorithm)
        yield operator_case(op, [fed(state)], outputs, options)
