"""Finds outputs of Flex operators whose shapes are known only during invoke."""

from __future__ import annotations

from collections.abc import Iterable

from delegraph import Tensor
from delegraph_flex.data_types import HANDLES

VALUE_DEPENDENT = frozenset(
    {
        "CTCGreedyDecoder",
        "CombinedNonMaxSuppression",
        "DecodeBmp",
        "DecodeGif",
        "DecodeImage",
        "DecodeJpeg",
        "DecodePng",
        "DecodeRaw",
        "DecodeWav",
        "DynamicPartition",
        "IteratorGetNext",
        "IteratorGetNextSync",
        "ListDiff",
        "LookupTableExportV2",
        "NonMaxSuppression",
        "NonMaxSuppressionV2",
        "NonMaxSuppressionV3",
        "NonMaxSuppressionV4",
        "NonMaxSuppressionV5",
        "NonMaxSuppressionWithOverlaps",
        "OptionalGetValue",
        "RaggedGather",
        "RaggedRange",
        "RaggedTensorToSparse",
        "RaggedTensorToTensor",
        "ReduceDataset",
        "SentencepieceTokenizeOp",
        "SparseAdd",
        "SparseFillEmptyRows",
        "SparseSlice",
        "StringSplit",
        "StringSplitV2",
        "TensorListConcat",
        "TensorListConcatV2",
        "TensorListStack",
        "UnicodeDecode",
        "UnicodeDecodeWithOffsets",
        "UnicodeEncode",
        "Unique",
        "UniqueV2",
        "UniqueWithCounts",
        "UniqueWithCountsV2",
        "Where",
        "WhitespaceTokenizeWithOffsets",
    }
)
"""Operators whose output shapes depend on the values of their inputs.

The converter declares these shapes with -1; older models have 1 instead.
"""


def is_open(tensor: Tensor) -> bool:
    """Whether the model file leaves a tensor's shape unknown."""
    declared = tensor.shape_signature
    return -1 in declared or not (declared or tensor.has_rank)


def is_as_declared(inputs: Iterable[Tensor]) -> bool:
    """Whether all *inputs* have the shapes that the file declares; a declared -1 allows any size.

    If so, the outputs have their declared shapes, too. If the user has resized inputs, TensorFlow's
    operators decide the shapes of the outputs.
    """
    return all(
        tensor.type in HANDLES
        or (
            len(tensor.shape) == len(tensor.shape_signature)
            and all(
                declared in (-1, found)
                for declared, found in zip(tensor.shape_signature, tensor.shape, strict=True)
            )
        )
        for tensor in inputs
    )
