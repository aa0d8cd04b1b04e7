"""Which types an operator takes, in words, from the inputs of the cases that agree."""

from __future__ import annotations

from collections.abc import Iterable

DATA = {
    "ASSIGN_VARIABLE": 1,
    "CONV_3D_TRANSPOSE": 2,
    "EMBEDDING_LOOKUP": 1,
    "EMBEDDING_LOOKUP_SPARSE": 4,
    "FILL": 1,
    "HASHTABLE_FIND": 1,
    "HASHTABLE_IMPORT": 1,
    "HASHTABLE_LOOKUP": 2,
    "IF": 1,
    "LSH_PROJECTION": 1,
    "ONE_HOT": 2,
    "SCATTER_ND": 1,
    "SELECT": 1,
    "SELECT_V2": 1,
    "SPARSE_TO_DENSE": 2,
    "SPLIT": 1,
    "STABLEHLO_CASE": 1,
    "TRANSPOSE_CONV": 2,
}
"""The input that holds the data, for operators in which it is not the first."""

WEIGHTED = {
    "BATCH_MATMUL",
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "BIDIRECTIONAL_SEQUENCE_RNN",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED",
    "LSTM",
    "RNN",
    "SVDF",
    "TRANSPOSE_CONV",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
}
"""Operators whose input 1 holds weights, which may have a type of their own."""


def accepted_types(op: str, inputs: Iterable[tuple[str, ...]]) -> list[str]:
    """Return ``["FLOAT32", "INT16 by INT8"]`` for the input types of some cases, sorted."""
    found = set()
    for types in inputs:
        place = DATA.get(op, 0)
        if place >= len(types):
            continue
        data, weight = types[place], types[1] if op in WEIGHTED else types[place]
        found.add(data if weight == data else f"{data} by {weight}")
    return sorted(found)
