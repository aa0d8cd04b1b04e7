"""Every options table, and the two unions through which operators refer to them.

A table's module is imported when the table is first needed. A model uses few tables, and creating
all of them takes longer than running a small model.

Source:
    ``BuiltinOptions`` and ``BuiltinOptions2`` of tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from delegraph.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from delegraph.schema.array_options import *  # noqa: F403 - this module is their joint interface
    from delegraph.schema.control_options import *  # noqa: F403 - this module is their joint interface
    from delegraph.schema.layer_options import *  # noqa: F403 - this module is their joint interface
    from delegraph.schema.lookup_options import *  # noqa: F403 - this module is their joint interface
    from delegraph.schema.plain_options import *  # noqa: F403 - this module is their joint interface
    from delegraph.schema.recurrent_options import *  # noqa: F403 - this module is their joint interface
    from delegraph.schema.stablehlo_options import *  # noqa: F403 - this module is their joint interface
    from delegraph.schema.table import Table

_FIRST = {
    "layer_options": (
        "Conv2DOptions:1 DepthwiseConv2DOptions:2 Pool2DOptions:5 FullyConnectedOptions:8 "
        "SoftmaxOptions:9 L2NormOptions:12 LocalResponseNormalizationOptions:13 "
        "ResizeBilinearOptions:15 TransposeConvOptions:49 FakeQuantOptions:58 "
        "ResizeNearestNeighborOptions:74 LeakyReluOptions:75 BatchMatMulOptions:101 "
        "Conv3DOptions:106 GeluOptions:116"
    ),
    "recurrent_options": (
        "SVDFOptions:6 RNNOptions:7 LSTMOptions:14 SequenceRNNOptions:31 "
        "BidirectionalSequenceLSTMOptions:69 BidirectionalSequenceRNNOptions:70 "
        "UnidirectionalSequenceLSTMOptions:71"
    ),
    "lookup_options": (
        "ConcatEmbeddingsOptions:3 LSHProjectionOptions:4 SkipGramOptions:18 "
        "EmbeddingLookupSparseOptions:20 HashtableOptions:107"
    ),
    "array_options": (
        "ConcatenationOptions:10 AddOptions:11 ReshapeOptions:17 SpaceToDepthOptions:19 "
        "MulOptions:21 GatherOptions:23 ReducerOptions:27 SubOptions:28 DivOptions:29 "
        "SqueezeOptions:30 StridedSliceOptions:32 SplitOptions:35 CastOptions:37 "
        "ArgMaxOptions:40 SparseToDenseOptions:50 ShapeOptions:55 ArgMinOptions:57 "
        "PackOptions:59 OneHotOptions:61 UnpackOptions:64 MirrorPadOptions:77 "
        "SplitVOptions:79 UniqueOptions:80 ReverseSequenceOptions:87 DepthToSpaceOptions:94 "
        "CumsumOptions:102 BucketizeOptions:115"
    ),
    "control_options": (
        "CallOptions:16 IfOptions:92 WhileOptions:93 CallOnceOptions:103 VarHandleOptions:111 "
        "RandomOptions:114"
    ),
    "plain_options": (
        "PadOptions:22 BatchToSpaceNDOptions:24 SpaceToBatchNDOptions:25 TransposeOptions:26 "
        "ExpOptions:33 TopKV2Options:34 LogSoftmaxOptions:36 DequantizeOptions:38 "
        "MaximumMinimumOptions:39 LessOptions:41 NegOptions:42 PadV2Options:43 "
        "GreaterOptions:44 GreaterEqualOptions:45 LessEqualOptions:46 SelectOptions:47 "
        "SliceOptions:48 TileOptions:51 ExpandDimsOptions:52 EqualOptions:53 "
        "NotEqualOptions:54 PowOptions:56 LogicalOrOptions:60 LogicalAndOptions:62 "
        "LogicalNotOptions:63 FloorDivOptions:65 SquareOptions:66 ZerosLikeOptions:67 "
        "FillOptions:68 FloorModOptions:72 RangeOptions:73 SquaredDifferenceOptions:76 "
        "AbsOptions:78 ReverseV2Options:81 AddNOptions:82 GatherNdOptions:83 CosOptions:84 "
        "WhereOptions:85 RankOptions:86 MatrixDiagOptions:88 QuantizeOptions:89 "
        "MatrixSetDiagOptions:90 HardSwishOptions:91 NonMaxSuppressionV4Options:95 "
        "NonMaxSuppressionV5Options:96 ScatterNdOptions:97 SelectV2Options:98 "
        "DensifyOptions:99 SegmentSumOptions:100 BroadcastToOptions:104 Rfft2dOptions:105 "
        "HashtableFindOptions:108 HashtableImportOptions:109 HashtableSizeOptions:110 "
        "ReadVariableOptions:112 AssignVariableOptions:113 DynamicUpdateSliceOptions:117 "
        "UnsortedSegmentProdOptions:118 UnsortedSegmentMaxOptions:119 "
        "UnsortedSegmentMinOptions:120 UnsortedSegmentSumOptions:121 ATan2Options:122 "
        "SignOptions:123 BitcastOptions:124 BitwiseXorOptions:125 RightShiftOptions:126"
    ),
}
"""Names and type tags of the first union's tables, by the module that has the tables."""

_SECOND = {
    "stablehlo_options": (
        "StablehloConcatenateOptions:1 StablehloBroadcastInDimOptions:2 "
        "StablehloSliceOptions:3 StablehloConvolutionOptions:4 StablehloCustomCallOptions:5 "
        "StablehloReduceOptions:6 StablehloScatterOptions:7 StablehloCompareOptions:8 "
        "StablehloDynamicSliceOptions:9 StablehloPadOptions:10 StablehloIotaOptions:11 "
        "StablehloDotGeneralOptions:12 StablehloReduceWindowOptions:13 "
        "StablehloSortOptions:14 StablehloWhileOptions:15 StablehloGatherOptions:16 "
        "StablehloTransposeOptions:17 StablehloRngBitGeneratorOptions:19 "
        "ReduceWindowOptions:20 StableHLOCompositeOptions:21 StablehloCaseOptions:23"
    ),
    "plain_options": "DilateOptions:18 StablehloShiftLeftOptions:22",
}
"""Names and type tags of the second union's tables, by the module that has the tables."""

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


class OptionsByTag(Mapping[int, "type[Table]"]):
    """Options tables of one union, by type tag; each is imported when first needed.

    Args:
        tables: name and tag of each table, by the module that defines it.

    Attributes:
        modules: the module of each table, by the table's name.
    """

    def __init__(self, tables: Mapping[str, str]) -> None:
        self.modules: dict[str, str] = {}
        self._names: dict[int, str] = {}
        for module, entries in tables.items():
            for entry in entries.split():
                name, _, tag = entry.partition(":")
                self.modules[name] = module
                self._names[int(tag)] = name
        self._made: dict[int, type[Table]] = {}

    def __getitem__(self, tag: int) -> type[Table]:
        found = self._made.get(tag)
        if found is None:
            name = self._names[tag]
            found = self._made[tag] = _table(self.modules[name], name)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._names))

    def __len__(self) -> int:
        return len(self._names)


def _table(module: str, name: str) -> type[Table]:
    found: type[Table] = getattr(import_module(f"{__package__}.{module}"), name)
    return found


BUILTIN_OPTIONS = OptionsByTag(_FIRST)
"""Tables of the first union by type tag; the schema names each tag after its table."""

BUILTIN_OPTIONS_2 = OptionsByTag(_SECOND)
"""Tables of the second union by type tag."""

_MODULES = {**BUILTIN_OPTIONS.modules, **BUILTIN_OPTIONS_2.modules}
_BY_OPERATOR = {name.removesuffix("Options").upper(): name for name in _MODULES}


class OptionsByOperator(Mapping[BuiltinOperator, "type[Table]"]):
    """Options table of each builtin operator that has one: ``CONV_2D`` has ``Conv2DOptions``."""

    def __getitem__(self, operator: BuiltinOperator) -> type[Table]:
        name = _name_for(operator)
        if name is None:
            raise KeyError(operator)
        return _table(_MODULES[name], name)

    def __contains__(self, operator: object) -> bool:
        return isinstance(operator, int) and _name_for(operator) is not None

    def __iter__(self) -> Iterator[BuiltinOperator]:
        return (operator for operator in BuiltinOperator if operator in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _name_for(operator: int) -> str | None:
    """Name of the options table of the builtin operator with number *operator*.

    The result is None for operators without options, and for unknown numbers.
    """
    known = BuiltinOperator._value2member_map_.get(operator)
    if known is None:
        return None
    name = _SHARED_OR_NAMED_OTHERWISE.get(known.name)
    return name or _BY_OPERATOR.get(known.name.replace("_", ""))


OPTIONS_OF_OPERATOR = OptionsByOperator()
"""The options table of each builtin operator that has one."""


def options_field(options: Table | None) -> dict[str, Any]:
    """Return *options* in a dictionary under the name of the operator's field for them.

    The field is ``builtin_options`` or ``builtin_options_2``, depending on the type of *options*.
    """
    is_second = type(options).__name__ in BUILTIN_OPTIONS_2.modules
    return {"builtin_options_2" if is_second else "builtin_options": options}


if not TYPE_CHECKING:  # otherwise every name would exist

    def __getattr__(name: str) -> Any:
        """Return an options table by its name."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _table(_MODULES[name], name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_MODULES})
