"""Every options table, and the two unions through which operators refer to them.

Source:
    ``BuiltinOptions`` and ``BuiltinOptions2`` of tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from delegraph.schema.array_options import *  # noqa: F403 - this module is their joint interface
from delegraph.schema.enums import BuiltinOptions, BuiltinOptions2
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
