"""What signal operators refuse: options, types and shapes that TFLM would read past."""

import re

import numpy as np
import pytest
from flatbuffers import flexbuffers

from delegraph import Interpreter
from delegraph.errors import NodeError
from delegraph.micro import MicroInterpreter
from delegraph.testing import constant, one_op_model, tensor

FRAMER = {"frame_size": 8, "frame_step": 4, "prefill": True}
STACKER = {
    "num_channels": 4, "stacker_left_context": 1,
    "stacker_right_context": 1, "stacker_step": 1,
}  # fmt: skip
SUBTRACTION = {
    "smoothing": 1, "one_minus_smoothing": 1, "alternate_smoothing": 1,
    "alternate_one_minus_smoothing": 1, "min_signal_remaining": 1, "smoothing_bits": 0,
    "spectral_subtraction_bits": 14, "clamping": False, "num_channels": 4,
}  # fmt: skip
WHOLE = "expected a whole number from"


def short(*values):
    return constant(np.array(values, np.int16))


def node(op, shapes, outputs, options, weights=()):
    """Return a model of one operator; a shape is ``"INT16 4 8"``."""
    raw = options if isinstance(options, bytes) else bytes(flexbuffers.Dumps(options))
    given, results = ([_tensor(text) for text in side] for side in (shapes, outputs))
    return one_op_model(op, [*given, *weights], results, custom_options=raw)


def _tensor(text):
    type, *shape = text.split()
    return tensor(tuple(map(int, shape)), type)


def rfft(length, x="INT16 8", y="INT16 10", type=7, op="SignalRfft"):
    return node(op, [x], [y], {"T": type, "fft_length": length})


def bank(starts=(0, 0), widths=(2, 2), channels=1):
    tables = [short(1, 2), short(3, 4), short(*starts), short(0, 0), short(*widths)]
    options = {"num_channels": channels}
    return node("SignalFilterBank", ["UINT32 4"], [f"UINT64 {channels}"], options, tables)


REFUSED = {
    "no options": (node("SignalDelay", ["INT16 4"], ["INT16 4"], b""), "'delay_length' is missing"),
    "no FlexBuffer": (node("SignalDelay", ["INT16 4"], ["INT16 4"], b"\1"), "no FlexBuffer"),
    "negative": (
        node("SignalDelay", ["INT16 4"], ["INT16 4"], {"delay_length": -1}),
        f"'delay_length' is -1, {WHOLE} 0",
    ),
    "no number": (
        node("SignalDelay", ["INT16 4"], ["INT16 4"], {"delay_length": "8"}),
        f"'delay_length' is '8', {WHOLE} 0",
    ),
    "delay's type": (
        node("SignalDelay", ["INT32 4"], ["INT16 4"], {"delay_length": 1}),
        "has type INT32, expected one of INT16",
    ),
    "scalar": (
        node("SignalDelay", ["INT16"], ["INT16"], {"delay_length": 1}), "scalar, expected frames"
    ),
    "odd length": (rfft(7), "'fft_length' is 7, expected twice a product of 2, 3 and 5"),
    "a prime": (rfft(14), "'fft_length' is 14, expected twice a product"),
    "a length too short": (rfft(2), "'fft_length' is 2, expected twice a product"),
    "no length": (rfft(0), "'fft_length' is 0, expected twice a product"),
    "long frames": (rfft(4, y="INT16 6"), "frames longer than the option fft_length, 4"),
    "other type": (rfft(8, type=0), "has type INT16, expected one of FLOAT32"),
    "unknown type": (rfft(8, type=9), r"option 'T' is 9, expected one of 7 \(INT16\), 2 \(INT32\)"),
    "short spectrum": (rfft(8, op="SignalIrfft", y="INT16 8"), "8 numbers a frame, expected 10"),
    "shift": (
        node("SignalWindow", ["INT16 4"], ["INT16 4"], {"shift": 32}, [short(1, 2)]),
        f"'shift' is 32, {WHOLE} 0 to 31",
    ),
    "windows": (
        node("SignalWindow", ["INT16 3"], ["INT16 3"], {"shift": 1}, [short(1, 2)]),
        "no whole number of windows of 2 samples",
    ),
    "spectrum": (
        node("SignalEnergy", ["INT16 3"], ["UINT32 1"], {"start_index": 0, "end_index": 1}),
        "no spectrum",
    ),
    "end": (
        node("SignalEnergy", ["INT16 4"], ["UINT32 2"], {"start_index": 0, "end_index": 3}),
        f"'end_index' is 3, {WHOLE} 0 to 2",
    ),
    "past the spectrum": (bank(starts=(0, 3)), "numbers 0 to 4 of the spectrum, there are 4"),
    "past the weights": (bank(widths=(2, 3)), "numbers 0 to 2 of the weights, there are 2"),
    "before the spectrum": (bank(starts=(-1, 0)), "numbers -1 to 1 of the spectrum, there are 4"),
    "runs": (bank(channels=2), "has 2 runs, expected 3"),
    "rank": (
        node("SignalFilterBankLog", ["UINT32 2 2"], ["INT16 4"],
             {"output_scale": 1, "input_correction_bits": 3}),
        r"has shape \[2, 2\], expected 1 dimensions",
    ),
    "bits": (
        node("SignalFilterBankLog", ["UINT32 4"], ["INT16 4"],
             {"output_scale": 1, "input_correction_bits": 40}),
        f"'input_correction_bits' is 40, {WHOLE} 0 to 31",
    ),
    "root's shift": (
        node("SignalFilterBankSquareRoot", ["UINT64 4", "INT32 1"], ["UINT32 4"], b""),
        r"has shape \[1\], expected \[\]",
    ),
    "channels": (
        node("SignalFilterBankSpectralSubtraction", ["UINT32 3"], ["UINT32 3", "UINT32 3"],
             SUBTRACTION),
        r"has shape \[3\], expected \[4\]",
    ),
    "short table": (
        node("SignalPCAN", ["UINT32 4", "UINT32 4"], ["UINT32 4"], {"snr_shift": 6},
             [short(*range(124))]),
        "too short, expected at least 125 numbers",
    ),
    "noise": (
        node("SignalPCAN", ["UINT32 4", "UINT32 3"], ["UINT32 4"], {"snr_shift": 6},
             [short(*range(125))]),
        r"has shape \[3\], expected \[4\]",
    ),
    "steps": (
        node("SignalFramer", ["INT16 6"], ["INT16 1 8", "BOOL"], FRAMER),
        "no whole number of steps of 4 samples",
    ),
    "frame": (
        node("SignalFramer", ["INT16 4"], ["INT16 1 2", "BOOL"], {**FRAMER, "frame_size": 2}),
        "'frame_size' is 2, less than 'frame_step', 4",
    ),
    "stacks": (
        node("SignalStacker", ["INT16 4"], ["INT16 12", "BOOL"], {**STACKER, "stacker_step": 4}),
        f"'stacker_step' is 4, {WHOLE} 1 to 3",
    ),
    "stacked channels": (
        node("SignalStacker", ["INT16 5"], ["INT16 12", "BOOL"], STACKER),
        r"has shape \[5\], expected \[4\]",
    ),
    "overlap": (
        node("SignalOverlapAdd", ["INT16 1 4"], ["INT16 5"], {"T": 7, "frame_step": 5}),
        f"'frame_step' is 5, {WHOLE} 1 to 4",
    ),
    "overlap's type": (
        node("SignalOverlapAdd", ["INT32 1 4"], ["INT32 4"], {"T": 2, "frame_step": 4}),
        "option 'T' is 2",
    ),
    "no frames": (
        node("SignalOverlapAdd", ["INT16 4"], ["INT16 4"], {"T": 7, "frame_step": 4}),
        "has 1 dimensions, expected frames of samples",
    ),
    "inputs": (
        node("SignalFftAutoScale", ["INT16 4", "INT16 4"], ["INT16 4", "INT32"], b""),
        "2 inputs and 2 outputs, expected 1 and 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_node_that_makes_no_sense_is_refused(name):
    model, words = REFUSED[name]
    with pytest.raises(NodeError, match=words):
        Interpreter(model_content=model, delegates=[]).allocate_tensors()
    with pytest.raises(NodeError, match=words):
        MicroInterpreter(model, bytearray(1 << 16)).allocate_tensors()


def test_a_shift_that_makes_no_sense_is_refused_while_invoking():
    shapes = ["UINT64 4", "INT32"]
    interpreter = MicroInterpreter(
        node("SignalFilterBankSquareRoot", shapes, ["UINT32 4"], b""), bytearray(4096)
    )
    interpreter.allocate_tensors()
    interpreter.input(1).data[...] = 32
    with pytest.raises(NodeError, match="is 32, expected a number of bits from 0 to 31"):
        interpreter.invoke()


def test_runs_that_are_fed_are_checked_while_invoking():
    tables = [short(1, 2), short(3, 4)]
    fed = ["UINT32 4", *["INT16 2"] * 3]
    model = one_op_model(
        "SignalFilterBank",
        [_tensor(fed[0]), *tables, *map(_tensor, fed[1:])],
        [_tensor("UINT64 1")],
        custom_options=bytes(flexbuffers.Dumps({"num_channels": 1})),
    )
    interpreter = MicroInterpreter(model, bytearray(4096))
    interpreter.allocate_tensors()
    interpreter.input(0).data[...] = 1
    interpreter.input(3).data[...] = 1
    interpreter.invoke()
    assert interpreter.output(0).data.tolist() == [1 + 3]
    interpreter.input(1).data[...] = 4
    with pytest.raises(NodeError, match=re.escape("numbers 4 to 4 of the spectrum")):
        interpreter.invoke()
