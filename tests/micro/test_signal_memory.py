"""What signal operators keep; totals are those that TFLM records on x86-64."""

import pytest
from flatbuffers import flexbuffers

from delegraph.graph.loader import parse_model
from delegraph.micro import TARGET_64, MicroInterpreter, RecordingMicroAllocator, estimate_arena
from delegraph.micro.recording_allocator import Kept
from delegraph.testing import one_op_model, tensor

SUBTRACTION = {
    "smoothing": 1, "one_minus_smoothing": 1, "alternate_smoothing": 1,
    "alternate_one_minus_smoothing": 1, "min_signal_remaining": 1, "smoothing_bits": 0,
    "spectral_subtraction_bits": 14, "clamping": False, "num_channels": 4,
}  # fmt: skip
RECORDED = [
    ("SignalRfft", "INT16 1 4", ["INT16 1 6"], {"T": 7, "fft_length": 4}, 400),
    ("SignalRfft", "INT32 2 3 4", ["INT32 2 3 6"], {"T": 2, "fft_length": 4}, 416),
    ("SignalIrfft", "INT16 1 6", ["INT16 1 4"], {"T": 7, "fft_length": 4}, 392),
    ("SignalIrfft", "FLOAT32 6", ["FLOAT32 4"], {"T": 0, "fft_length": 4}, 424),
    ("SignalEnergy", "INT16 32", ["UINT32 16"], {"start_index": 0, "end_index": 16}, 40),
    ("SignalFftAutoScale", "INT16 1", ["INT16 1", "INT32"], {}, 32),
    ("SignalFilterBankSpectralSubtraction", "UINT32 4", ["UINT32 4"] * 2, SUBTRACTION, 112),
    ("SignalFramer", "INT16 8", ["INT16 1 26", "BOOL"],
     {"frame_size": 26, "frame_step": 8, "prefill": True}, 288),
    ("SignalStacker", "INT16 9", ["INT16 18", "BOOL"],
     {"num_channels": 9, "stacker_left_context": 1, "stacker_right_context": 0, "stacker_step": 1},
     208),
    ("SignalOverlapAdd", "FLOAT32 2 2 1 4", ["FLOAT32 2 2 3"], {"T": 0, "frame_step": 3}, 168),
    ("SignalDelay", "INT16 2 2 9", ["INT16 2 2 9"], {"delay_length": 0}, 456),
]  # fmt: skip


def _tensor(text):
    type, *shape = text.split()
    return tensor(tuple(map(int, shape)), type)


def model_of(op, x, outputs, options):
    raw = bytes(flexbuffers.Dumps(options))
    return one_op_model(op, [_tensor(x)], [_tensor(y) for y in outputs], custom_options=raw)


@pytest.mark.parametrize(("op", "x", "outputs", "options", "used"), RECORDED)
def test_persistent_buffers_are_as_large_as_tflm_records(op, x, outputs, options, used):
    allocator = RecordingMicroAllocator.create(bytearray(1 << 16), target=TARGET_64)
    MicroInterpreter(model_of(op, x, outputs, options), allocator).allocate_tensors()
    assert allocator.recorded[Kept.BUFFERS].used_bytes == used


@pytest.mark.parametrize("options", [{"delay_length": -9}, {"delay_length": "x"}, {}])
def test_nothing_is_counted_of_options_that_make_no_sense(options):
    model = parse_model(model_of("SignalDelay", "INT16 4", ["INT16 4"], options))
    assert estimate_arena(model).unknown_operators == ()
