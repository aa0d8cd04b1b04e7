"""Groups of element types, named as in the StableHLO specification."""

from __future__ import annotations

from delegraph.operators.checks import tensor_types
from delegraph.schema.enums import TensorType

BOOLEAN = frozenset({TensorType.BOOL})
SIGNED = frozenset({TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64})
UNSIGNED = frozenset({TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64})
INTEGER = SIGNED | UNSIGNED
FLOAT = tensor_types("FLOAT16 BFLOAT16 FLOAT32 FLOAT64 FLOAT8_E4M3FN FLOAT8_E5M2")
COMPLEX = frozenset({TensorType.COMPLEX64, TensorType.COMPLEX128})
NUMBER = INTEGER | FLOAT | COMPLEX
ANY = NUMBER | BOOLEAN

LITERT = (INTEGER | BOOLEAN | FLOAT) - {
    TensorType.BFLOAT16,
    TensorType.FLOAT8_E4M3FN,
    TensorType.FLOAT8_E5M2,
}
"""Types that the official kernels of element-wise StableHLO operators support."""
