"""Element types with their numbers in the C interface, which differ from the file's numbers.

Source:
    TfLiteType; ConvertTensorType, tflite/core/api/flatbuffer_conversions.cc.
"""

from __future__ import annotations

from delegraph.schema.enums import TensorType

C_TYPES = {
    TensorType.FLOAT32: 1,
    TensorType.INT32: 2,
    TensorType.UINT8: 3,
    TensorType.INT64: 4,
    TensorType.STRING: 5,
    TensorType.BOOL: 6,
    TensorType.INT16: 7,
    TensorType.COMPLEX64: 8,
    TensorType.INT8: 9,
    TensorType.FLOAT16: 10,
    TensorType.FLOAT64: 11,
    TensorType.COMPLEX128: 12,
    TensorType.UINT64: 13,
    TensorType.RESOURCE: 14,
    TensorType.VARIANT: 15,
    TensorType.UINT32: 16,
    TensorType.UINT16: 17,
    TensorType.INT4: 18,
    TensorType.BFLOAT16: 19,
    TensorType.INT2: 20,
    TensorType.UINT4: 21,
}
"""Mapping from the schema's type to ``TfLiteType``; types without a C number are missing."""

FROM_C = {number: type for type, number in C_TYPES.items()}
"""Mapping from ``TfLiteType`` to the schema's type."""
