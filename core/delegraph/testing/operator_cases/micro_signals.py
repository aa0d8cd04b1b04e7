"""Cases of TFLM's signal operators, which LiteRT lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from delegraph.schema.enums import TensorType
from delegraph.testing.one_op import TensorDef, constant, tensor
from delegraph.testing.operator_case import Arrays, Given, OperatorCase, fed, operator_case
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.random_operands import RandomOperands

LENGTHS = (4, 6, 8, 10, 12, 16, 18, 20, 24, 30, 32, 36, 50, 64, 100, 128, 256, 512)
"""Lengths of Fourier transforms, which use each radix alone and with others."""


def _case(
    op: str,
    inputs: Sequence[Given],
    outputs: Sequence[TensorDef],
    later: Sequence[Arrays] = (),
    **options: int | bool,
) -> OperatorCase:
    raw = bytes(flexbuffers.Dumps(options))
    return operator_case(op, inputs, outputs, custom_options=raw, later=later)


def _samples(random: RandomOperands, type: str, shape: Sequence[int]) -> NDArray[Any]:
    """Return random samples of sound: quiet, loud, or with extreme values."""
    dtype, loudness = np.dtype(type.lower()), random.pick([0.001, 0.1, 1.0])
    if dtype.kind == "f":
        return random.rng.normal(0, loudness, shape).astype(dtype)
    limits = np.iinfo(dtype)
    low, high = int(limits.min * loudness), int(limits.max * loudness)
    values = random.rng.integers(low, high, shape, dtype, endpoint=True)
    ends = random.rng.random(shape) < random.pick([0, 0, 0.1])
    return np.where(ends, random.rng.choice([limits.min, limits.max], shape), values).astype(dtype)


def _numbers(random: RandomOperands, bits: int, shape: Sequence[int]) -> NDArray[Any]:
    """Return random numbers of 0 to *bits* bits, equally many of each number of bits."""
    lengths = random.rng.integers(0, bits, shape, endpoint=True)
    values = [int(random.rng.integers(0, 1 << 32)) << 32 | int(random.rng.integers(0, 1 << 32))
              for _ in range(int(np.prod(shape)))]  # fmt: skip
    masks = [(1 << int(n)) - 1 for n in lengths.reshape(-1)]
    kept = [value & mask for value, mask in zip(values, masks, strict=True)]
    return np.array(kept, np.uint64).astype(f"uint{32 if bits <= 32 else 64}").reshape(shape)


@cases_of("SignalRfft")
def forward_transforms(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: every length and type, with and without trailing zeros."""
    types = ("INT16", "INT32", "FLOAT32")
    fixed = [(length, type) for length in LENGTHS for type in types]
    for length, type in fixed[: 4 * random.count]:
        outer = random.pick([(), (), (1,), (2, 3)])
        samples = random.pick([length, random.number(1, length)])
        x = fed(_samples(random, type, (*outer, samples)))
        y = tensor((*outer, length + 2), type)
        yield _case(op, [x], [y], T=int(TensorType[type]), fft_length=length)


@cases_of("SignalIrfft")
def backward_transforms(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: every length and type."""
    types = ("INT16", "INT32", "FLOAT32")
    fixed = [(length, type) for length in LENGTHS for type in types]
    for length, type in fixed[: 4 * random.count]:
        outer = random.pick([(), (), (1,), (2, 3)])
        x = fed(_samples(random, type, (*outer, length + 2)))
        y = tensor((*outer, length), type)
        yield _case(op, [x], [y], T=int(TensorType[type]), fft_length=length)


@cases_of("SignalWindow")
def windows(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op* with one or several windows and any shift."""
    for _ in range(random.count):
        shape = (*random.shape(0, 2, empty=0), random.number(1, 40))
        weights = constant(_samples(random, "INT16", shape[-1:]))
        x = fed(_samples(random, "INT16", shape))
        shift = random.pick([0, 12, 14, random.number(0, 31)])
        yield _case(op, [x, weights], [tensor(shape, "INT16")], shift=shift)


@cases_of("SignalFftAutoScale")
def scaled(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: loud and quiet sound, silence, and the lowest integer."""
    for i in range(random.count):
        x = _samples(random, "INT16", (random.number(1, 9),)) >> random.number(0, 16)
        if i % 4 == 3:
            x[random.number(0, len(x) - 1)] = -(2**15)
        outputs = [tensor(x.shape, "INT16"), tensor((), "INT32")]
        yield operator_case(op, [fed(x)], outputs)


@cases_of("SignalEnergy")
def energies(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op* over whole spectra, because TFLM leaves other outputs unwritten."""
    for _ in range(random.count):
        n = random.number(1, 40)
        x = fed(_samples(random, "INT16", (2 * n,)))
        yield _case(op, [x], [tensor((n,), "UINT32")], start_index=0, end_index=n)


@cases_of("SignalFilterBank")
def filter_banks(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: channels that overlap or are empty, with any weights."""
    for _ in range(random.count):
        channels, n, count = random.number(1, 9), random.number(10, 60), random.number(10, 60)
        widths = random.rng.integers(0, 10, channels + 1, np.int16)
        starts = [(size - widths).astype(np.int16) for size in (n, count)]
        starts = [random.rng.integers(0, last, dtype=np.int16, endpoint=True) for last in starts]
        sides = [constant(_samples(random, "INT16", (count,))) for _ in range(2)]
        x = fed(_numbers(random, 32, (n,)))
        inputs: list[Given] = [x, *sides, *(constant(table) for table in (*starts, widths))]
        if random.chance(0.2):
            inputs[3] = fed(starts[0])
        yield _case(op, inputs, [tensor((channels,), "UINT64")], num_channels=channels)


@cases_of("SignalFilterBankSquareRoot")
def square_roots(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: numbers of any length, squares and their neighbours."""
    for _ in range(random.count):
        x = _numbers(random, 64, (random.number(1, 20),))
        squares = _numbers(random, 32, (4,)).astype(np.uint64) ** 2
        edges = np.array([0, 2**32 - 1, 2**32, 2**64 - 1], np.uint64)
        x = np.concatenate([x, squares, squares + np.uint64(1), squares - np.uint64(1), edges])
        shift = np.array(random.number(0, 15), np.int32)
        yield operator_case(op, [fed(x), fed(shift)], [tensor(x.shape, "UINT32")])


@cases_of("SignalFilterBankSpectralSubtraction")
def subtractions(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: several invokes, in which the average follows the signal."""
    for _ in range(random.count):
        channels, point = random.number(1, 9), random.pick([14, 14, 8, 0])
        low, other = (random.number(0, 1 << point) for _ in range(2))
        options = {
            "smoothing": low, "one_minus_smoothing": (1 << point) - low,
            "alternate_smoothing": other, "alternate_one_minus_smoothing": (1 << point) - other,
            "min_signal_remaining": random.number(0, 1 << point),
            "smoothing_bits": random.pick([0, 10, 4]), "spectral_subtraction_bits": point,
            "clamping": random.chance(0.5), "num_channels": channels,
        }  # fmt: skip
        bits = random.pick([16, 20, 32])
        x, *later = (_numbers(random, bits, (channels,)) for _ in range(4))
        outputs = [tensor((channels,), "UINT32") for _ in range(2)]
        yield _case(op, [fed(x)], outputs, [(more,) for more in later], **options)


@cases_of("SignalPCAN")
def gains(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op* with tables of a decreasing gain, and with random tables."""
    for _ in range(random.count):
        n = random.number(1, 40)
        table = _samples(random, "INT16", (125,))
        if random.chance(0.5):
            table = (2**14 / (1 + np.arange(125))).astype(np.int16)
        x, noise = (fed(_numbers(random, 32, (n,))) for _ in range(2))
        shift = random.pick([6, 12, random.number(0, 40)])
        inputs: list[Given] = [x, noise, constant(table)]
        yield _case(op, inputs, [tensor((n,), "UINT32")], snr_shift=shift)


@cases_of("SignalFilterBankLog")
def logarithms(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: numbers with any number of bits, shifts, and scales that overflow."""
    for _ in range(random.count):
        n = random.number(1, 40)
        x = fed(_numbers(random, 32, (n,)))
        scale, bits = random.pick([64, 1600, 1, 100000]), random.pick([0, 3, 3, 10])
        y = tensor((n,), "INT16")
        yield _case(op, [x], [y], output_scale=scale, input_correction_bits=bits)


def _stream(random: RandomOperands, type: str, shape: Sequence[int]) -> list[NDArray[Any]]:
    return [_samples(random, type, shape) for _ in range(6)]


@cases_of("SignalFramer")
def frames(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: frames longer than a step, with prefilled zeros, in several invokes."""
    for _ in range(random.count):
        step, count = random.number(1, 12), random.number(1, 3)
        size = step + random.number(0, 20)
        outer = random.pick([(), (), (1,), (2, 2)])
        x, *later = _stream(random, "INT16", (*outer, count * step))
        outputs = [tensor((*outer, count, size), "INT16"), tensor((), "BOOL")]
        options = {"frame_size": size, "frame_step": step, "prefill": True}
        yield _case(op, [fed(x)], outputs, [(more,) for more in later], **options)


@cases_of("SignalStacker")
def stacks(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: stacks with left context."""
    for _ in range(random.count):
        channels, left = random.number(1, 9), random.number(0, 4)
        x, *later = _stream(random, "INT16", (channels,))
        outputs = [tensor(((left + 1) * channels,), "INT16"), tensor((), "BOOL")]
        options = {
            "num_channels": channels, "stacker_left_context": left,
            "stacker_right_context": 0, "stacker_step": 1,
        }  # fmt: skip
        yield _case(op, [fed(x)], outputs, [(more,) for more in later], **options)


@cases_of("SignalOverlapAdd")
def overlaps(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: frames that overlap by any amount, or not at all."""
    for _ in range(random.count):
        type, count = random.pick(["INT16", "FLOAT32"]), random.number(1, 3)
        size = random.number(1, 20)
        step = random.number(1, size)
        outer = random.pick([(), (), (1,), (2, 2)])
        x, *later = _stream(random, type, (*outer, count, size))
        y = tensor((*outer, count * step), type)
        options = {"T": int(TensorType[type]), "frame_step": step}
        yield _case(op, [fed(x)], [y], [(more,) for more in later], **options)


@cases_of("SignalDelay")
def delays(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: delays shorter and longer than a frame."""
    for _ in range(random.count):
        shape = (*random.pick([(), (), (1,), (2, 2)]), random.number(1, 12))
        x, *later = _stream(random, "INT16", shape)
        delay = random.pick([0, 1, random.number(1, 40)])
        y = tensor(shape, "INT16")
        yield _case(op, [fed(x)], [y], [(more,) for more in later], delay_length=delay)
