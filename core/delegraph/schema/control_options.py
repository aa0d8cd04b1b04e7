"""Options of control flow, variables and random numbers.

Source:
    tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from delegraph.schema.table import Table, int32, int64, string, uint32


class CallOptions(Table):
    """Options of ``CALL``."""

    subgraph: int = uint32(0, default=0)


class IfOptions(Table):
    """Options of ``IF``."""

    then_subgraph_index: int = int32(0, default=0)
    else_subgraph_index: int = int32(1, default=0)


class WhileOptions(Table):
    """Options of ``WHILE``."""

    cond_subgraph_index: int = int32(0, default=0)
    body_subgraph_index: int = int32(1, default=0)


class CallOnceOptions(Table):
    """Options of ``CALL_ONCE``."""

    init_subgraph_index: int = int32(0, default=0)


class VarHandleOptions(Table):
    """Options of ``VAR_HANDLE``."""

    container: str | None = string(0, default=None)
    shared_name: str | None = string(1, default=None)


class RandomOptions(Table):
    """Options of ``RANDOM_STANDARD_NORMAL``, ``RANDOM_UNIFORM``, ``MULTINOMIAL``."""

    seed: int = int64(0, default=0)
    seed2: int = int64(1, default=0)
