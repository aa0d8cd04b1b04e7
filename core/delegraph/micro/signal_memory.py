"""Arena memory of TFLM's signal operators, computed from the sizes of their structs.

Source:
    TFLMSignal*Params and TfLiteAudioFrontend*Params of tflite-micro/signal/micro/kernels,
    CircularBuffer of signal/src/circular_buffer.h, and the states of KISS FFT.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from delegraph.errors import OperatorError
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.graph.model import OperatorSpec, TensorSpec
from delegraph.memory.best_fit import align
from delegraph.micro.targets import ARENA_ALIGNMENT, MicroTarget
from delegraph.operators.flexbuffer_options import flexbuffer_options

_Options = dict[str, int]
_Tensors = Sequence[TensorSpec | None]  # an operator's inputs, then its outputs

_PARAMETERS = {
    "SignalDelay": (20, 32),
    "SignalEnergy": (8, 8),
    "SignalFftAutoScale": (0, 0),
    "SignalFilterBank": (32, 64),
    "SignalFilterBankLog": (8, 8),
    "SignalFilterBankSpectralSubtraction": (44, 56),
    "SignalFilterBankSquareRoot": (0, 0),
    "SignalFramer": (28, 40),
    "SignalIrfft": (24, 32),
    "SignalOverlapAdd": (24, 32),
    "SignalPCAN": (4, 4),
    "SignalRfft": (32, 48),
    "SignalStacker": (36, 56),
    "SignalWindow": (8, 8),
}
"""Mapping from an operator to the bytes of its data with 32-bit and with 64-bit pointers."""


def signal_memory(
    operator: OperatorSpec, tensors: _Tensors, target: MicroTarget
) -> tuple[list[int], list[int]] | None:
    """Return the byte sizes of persistent and scratch buffers of *operator* on *target*.

    *tensors* are its inputs and outputs. The result is None for operators that are not signal
    operators.

    The data of all streams of an operator counts as one buffer. Both lists are empty if the kernel
    would reject the options.
    """
    parameters = _PARAMETERS.get(operator.name)
    if parameters is None:
        return None
    data = parameters[target.bits == 64]
    raw = operator.custom_options
    try:
        options = _sizes(flexbuffer_options(b"" if raw is None else raw.tobytes()))
        kept = _KEPT.get(operator.name, _nothing)(options, tensors, target.bits // 8)
        scratch = _rfft_scratch(options, tensors) if operator.name == "SignalRfft" else []
    except (OperatorError, KeyError, ValueError, ZeroDivisionError):
        kept, scratch = [], []
    return [*([data] if data else []), *kept], scratch


def _sizes(options: dict[str, Any]) -> _Options:
    """Return the options whose values are non-negative integers."""
    return {k: v for k, v in options.items() if isinstance(v, int) and v >= 0}


def _nothing(options: _Options, tensors: _Tensors, pointer: int) -> list[int]:
    return []


def _fft_state(options: _Options, tensors: _Tensors, pointer: int) -> list[int]:
    """Return a list of one number, the bytes of a real FFT's state.

    The state consists of a header, working memory and roots. *options* has the length, *tensors*
    the element size, and *pointer* is the size of a pointer in bytes.
    """
    n = options["fft_length"] // 2
    header = 3 * pointer + 8 + 4 * 64
    return [header + 2 * _item_bytes(tensors) * (n + 3 * n // 2)]


def _irfft_state(options: _Options, tensors: _Tensors, pointer: int) -> list[int]:
    (state,) = _fft_state(options, tensors, pointer)
    is_float = tensors[0] is not None and NUMPY_DTYPES[tensors[0].type].kind == "f"
    return [state + 2 * pointer * is_float]


def _rfft_scratch(options: _Options, tensors: _Tensors) -> list[int]:
    return [options["fft_length"] * _item_bytes(tensors)]


def _work_area(options: _Options, tensors: _Tensors, pointer: int) -> list[int]:
    return [8 * (options["num_channels"] + 1)]


def _noise(options: _Options, tensors: _Tensors, pointer: int) -> list[int]:
    return [4 * options["num_channels"]]


def _ring(samples: int, pointer: int) -> int:
    """Return the size in bytes of a circular buffer of *samples* 16-bit samples, each stored twice.

    *pointer* is the size of a pointer in bytes.
    """
    return 4 * pointer + 8 + 4 * samples


def _delay_lines(options: _Options, tensors: _Tensors, pointer: int) -> list[int]:
    *outer, samples = _shape(tensors)
    ring = _ring(samples + options["delay_length"], pointer)
    return _streams(math.prod(outer), 2, ring, pointer)


def _framer_streams(options: _Options, tensors: _Tensors, pointer: int) -> list[int]:
    *outer, _ = _shape(tensors)
    size, step = options["frame_size"], options["frame_step"]
    return _streams(math.prod(outer), 2, _ring(-(-size // step) * step, pointer), pointer)


def _overlaps(options: _Options, tensors: _Tensors, pointer: int) -> list[int]:
    *outer, _, samples = _shape(tensors)
    return _streams(math.prod(outer), 1, samples * _item_bytes(tensors), pointer)


def _streams(count: int, tables: int, each: int, pointer: int) -> list[int]:
    """Return the sizes in bytes of a signal operator's tables and of its buffers.

    Args:
        count: number of streams; there is a buffer for each, and a pointer to it in each table.
        tables: number of tables.
        each: size of a buffer in bytes.
        pointer: size of a pointer in bytes.
    """
    return [*[count * pointer] * tables, count * align(each, ARENA_ALIGNMENT)]


def _stack(options: _Options, tensors: _Tensors, pointer: int) -> list[int]:
    frames = options["stacker_left_context"] + options["stacker_right_context"] + 1
    return [_ring(options["num_channels"] * frames, pointer)]


_KEPT: dict[str, Callable[[_Options, _Tensors, int], list[int]]] = {
    "SignalDelay": _delay_lines,
    "SignalFilterBank": _work_area,
    "SignalFilterBankSpectralSubtraction": _noise,
    "SignalFramer": _framer_streams,
    "SignalIrfft": _irfft_state,
    "SignalOverlapAdd": _overlaps,
    "SignalRfft": _fft_state,
    "SignalStacker": _stack,
}


def _shape(tensors: _Tensors) -> tuple[int, ...]:
    return () if tensors[0] is None else tensors[0].shape


def _item_bytes(tensors: _Tensors) -> int:
    return 0 if tensors[0] is None else NUMPY_DTYPES[tensors[0].type].itemsize
