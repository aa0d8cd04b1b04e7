"""The enumerations of the TFLite schema, with the schema's names.

A file may have newer values; readers keep these as plain integers. All enumerations except
``TensorType``, which every model needs, are in other modules, named in :data:`ON_DEMAND`. They are
created when first needed, since creating an enumeration takes as long as importing a module.

Source:
    tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delegraph.schema.model_enums import ActivationFunctionType as ActivationFunctionType
    from delegraph.schema.model_enums import BuiltinOperator as BuiltinOperator
    from delegraph.schema.model_enums import CustomOptionsFormat as CustomOptionsFormat
    from delegraph.schema.model_enums import DimensionType as DimensionType
    from delegraph.schema.model_enums import (
        FullyConnectedOptionsWeightsFormat as FullyConnectedOptionsWeightsFormat,
    )
    from delegraph.schema.model_enums import MirrorPadMode as MirrorPadMode
    from delegraph.schema.model_enums import Padding as Padding
    from delegraph.schema.operator_enums import CombinerType as CombinerType
    from delegraph.schema.operator_enums import LSHProjectionType as LSHProjectionType
    from delegraph.schema.operator_enums import LSTMKernelType as LSTMKernelType
    from delegraph.schema.rare_enums import BuiltinOptions as BuiltinOptions
    from delegraph.schema.rare_enums import BuiltinOptions2 as BuiltinOptions2
    from delegraph.schema.rare_enums import QuantizationDetails as QuantizationDetails
    from delegraph.schema.rare_enums import ReduceWindowFunction as ReduceWindowFunction
    from delegraph.schema.rare_enums import RngAlgorithm as RngAlgorithm
    from delegraph.schema.rare_enums import SparseIndexVector as SparseIndexVector
    from delegraph.schema.rare_enums import (
        StablehloComparisonDirection as StablehloComparisonDirection,
    )
    from delegraph.schema.rare_enums import StablehloComparisonType as StablehloComparisonType
    from delegraph.schema.rare_enums import StablehloPrecisionConfig as StablehloPrecisionConfig

ON_DEMAND = {
    **dict.fromkeys(
        (
            "ActivationFunctionType",
            "BuiltinOperator",
            "CustomOptionsFormat",
            "DimensionType",
            "FullyConnectedOptionsWeightsFormat",
            "MirrorPadMode",
            "Padding",
        ),
        "model_enums",
    ),
    **dict.fromkeys(("CombinerType", "LSHProjectionType", "LSTMKernelType"), "operator_enums"),
    **dict.fromkeys(
        (
            "BuiltinOptions",
            "BuiltinOptions2",
            "QuantizationDetails",
            "ReduceWindowFunction",
            "RngAlgorithm",
            "SparseIndexVector",
            "StablehloComparisonDirection",
            "StablehloComparisonType",
            "StablehloPrecisionConfig",
        ),
        "rare_enums",
    ),
}
"""Enumerations that are imported when they are first used, and the module of each."""


class TensorType(IntEnum):
    """Element type of a tensor: ``TensorType`` of the schema."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    STRING = 5
    BOOL = 6
    INT16 = 7
    COMPLEX64 = 8
    INT8 = 9
    FLOAT64 = 10
    COMPLEX128 = 11
    UINT64 = 12
    RESOURCE = 13
    VARIANT = 14
    UINT32 = 15
    UINT16 = 16
    INT4 = 17
    BFLOAT16 = 18
    INT2 = 19
    UINT4 = 20
    FLOAT8_E4M3FN = 21
    FLOAT8_E5M2 = 22


if not TYPE_CHECKING:  # otherwise every name would exist

    def __getattr__(name: str) -> Any:
        """Return an enumeration of :data:`ON_DEMAND`."""
        if name not in ON_DEMAND:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__package__}.{ON_DEMAND[name]}"), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *ON_DEMAND})
