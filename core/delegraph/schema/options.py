"""Imports every options table and defines the two unions through which operators refer to them.

Source:
    ``BuiltinOptions`` and ``BuiltinOptions2`` of tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from typing import Any

from delegraph.schema.array_options import *  # noqa: F403 - this module is their joint interface
from delegraph.schema.enums import BuiltinOperator, BuiltinOptions, BuiltinOptions2
from delegraph.schema.layer_options import *  # noqa: F403 - this module is their joint interface
from delegraph.schema.plain_options import *  # noqa: F403 - this module is their joint interface
from delegraph.schema.stablehlo_options import *  # noqa: F403 - this module is their joint interface
from delegraph.schema.table import Table

BUILTIN_OPTIONS: dict[int, type[Table]] = {
    int(tag): globals()[tag.name] for tag in BuiltinOptions if tag
}
"""Tables of the first union by type tag; the schema names each tag after its table."""

BUILTIN_OPTIONS_2: dict[int, type[Table]] = {
    int(tag): globals()[tag.name] for tag in BuiltinOptions2 if tag
}
"""Tables of the second union by type tag."""

_SHARED_OR_NAMED_OTHERWISE = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "MEAN": "ReducerOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "MULTINOMIAL": "RandomOptions",
    "RANDOM_STANDARD_NORMAL": "RandomOptions",
    "RANDOM_UNIFORM": "RandomOptions",
    "REDUCE_ALL": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "SUM": "ReducerOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
}


def _options_of_operators() -> dict[BuiltinOperator, type[Table]]:
    """Pair operators with their options by name: ``CONV_2D`` has ``Conv2DOptions``."""
    tables = (*BUILTIN_OPTIONS.values(), *BUILTIN_OPTIONS_2.values())
    by_name = {table.__name__: table for table in tables}
    by_operator = {name.removesuffix("Options").upper(): name for name in by_name}
    pairs = {}
    for operator in BuiltinOperator:
        name = _SHARED_OR_NAMED_OTHERWISE.get(operator.name)
        name = name or by_operator.get(operator.name.replace("_", ""))
        if name is not None:
            pairs[operator] = by_name[name]
    return pairs


OPTIONS_OF_OPERATOR = _options_of_operators()
"""The options table of each builtin operator that has one."""


def options_field(options: Table | None) -> dict[str, Any]:
    """Return *options* by the name of the operator's field that holds tables of their type.

    The field is one of two unions: ``builtin_options`` or ``builtin_options_2``.
    """
    is_second = type(options) in BUILTIN_OPTIONS_2.values()
    return {"builtin_options_2" if is_second else "builtin_options": options}
