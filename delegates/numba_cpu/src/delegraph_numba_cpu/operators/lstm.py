"""UNIDIRECTIONAL_SEQUENCE_LSTM."""

from __future__ import annotations

from delegraph_numba_cpu.operators import lstm_f32, lstm_int8
from delegraph_numba_cpu.operators.registry import Operator, register_variants

LAYER = "UNIDIRECTIONAL_SEQUENCE_LSTM"

FEATURES = ("activation", "empty")

_FLOAT = Operator(lstm_f32.check, lstm_f32.lower, ("FLOAT32",), FEATURES)
_HYBRID = Operator(lstm_f32.check, lstm_f32.lower, lstm_f32.HYBRID_TYPES, FEATURES)

register_variants(
    "FLOAT32",
    {LAYER: Operator(lstm_f32.check, lstm_f32.lower, variants=(_FLOAT, _HYBRID))},
)
register_variants(
    "INT8", {LAYER: Operator(lstm_int8.check, lstm_int8.lower, lstm_int8.TYPES, FEATURES)}
)
