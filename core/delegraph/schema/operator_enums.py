"""Enumerations of single operators; ``schema.enums`` imports them on demand.

Source:
    tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from enum import IntEnum


class LSHProjectionType(IntEnum):
    """Sparse or dense LSH_PROJECTION: ``LSHProjectionType`` of the schema."""

    UNKNOWN = 0
    SPARSE = 1
    DENSE = 2


class LSTMKernelType(IntEnum):
    """Full or basic LSTM kernel: ``LSTMKernelType`` of the schema."""

    FULL = 0
    BASIC = 1


class CombinerType(IntEnum):
    """Way in which EMBEDDING_LOOKUP_SPARSE combines rows: ``CombinerType`` of the schema."""

    SUM = 0
    MEAN = 1
    SQRTN = 2
