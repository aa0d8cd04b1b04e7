"""Claims and lowering of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM."""

from __future__ import annotations

from delegraph_numba_cpu.lowering.recurrent import lstm_f32, lstm_int8
from delegraph_numba_cpu.lowering.registry import Operator, register_variants

FEATURES = ("activation", "empty")

_FLOAT = Operator(lstm_f32.check, lstm_f32.lower, ("FLOAT32",), FEATURES)
_HYBRID = Operator(
    lstm_f32.check,
    lstm_f32.lower,
    ("FLOAT32",),
    FEATURES,
    roles=(("weights", ("INT8",)), ("peephole_weights", ("INT8",))),
)
_INTEGER = Operator(
    lstm_int8.check,
    lstm_int8.lower,
    ("INT8",),
    FEATURES,
    roles=(
        ("bias", ("INT32",)),
        ("cell_state", ("INT16",)),
        ("layer_norm_coefficients", ("INT16",)),
        ("peephole_weights", ("INT16",)),
    ),
)

for _name in ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"):
    _real = Operator(lstm_f32.check, lstm_f32.lower, variants=(_FLOAT, _HYBRID))
    register_variants("FLOAT32", {_name: _real})
    register_variants("INT8", {_name: _INTEGER})
