"""SentencePiece models: convert text to numbers of pieces, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.extras import install_command
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.numpy_executor.handles import of_kind, shared
from delegraph_flex.numpy_executor.registry import functions, operator

Array = NDArray[Any]


class SentencePieceModel:
    """A loaded SentencePiece model; the object is also used as its handle."""

    def __init__(self, serialised: bytes) -> None:
        try:
            import sentencepiece
        except ImportError as error:
            raise Unsupported(
                f"SentencePiece is not installed: {install_command('sentencepiece')}",
                "executor",
            ) from error
        try:
            self.processor = sentencepiece.SentencePieceProcessor(model_proto=serialised)
        except (RuntimeError, TypeError) as error:
            raise Unsupported(f"attribute 'model' is no SentencePiece model: {error}") from error


def _model(handle: Any) -> Any:
    return of_kind(handle, SentencePieceModel, "SentencePiece model").processor


@operator("SentencepieceOp")
def handle(node: FlexNode) -> Step:
    """Function that returns the handle of the SentencePiece model in the attribute ``model``."""
    serialised = node.bytes("model", b"")
    model = shared(node, "sentencepiece", lambda name: SentencePieceModel(serialised))
    return lambda: model


@operator("SentencepieceTokenizeOp")
def tokenize(node: FlexNode) -> Step:
    """Function that splits strings into pieces, as numbers or text, and returns the row splits."""
    if node.bool("return_nbest", False):
        raise Unsupported("return_nbest is true, expected false")
    type = node.type("out_type", DataType.INT32)
    splits = node.type("Tsplits", DataType.INT64).dtype

    def run(
        handle: Any, x: Array, nbest: Array, alpha: Array, bos: Array, eos: Array, reverse: Array
    ) -> list[Array]:
        if not -1 < int(nbest) < 2:
            raise ValueError(f"nbest_size is {int(nbest)}: sampling is not supported, only 0 and 1")
        flags = {"add_bos": bool(bos), "add_eos": bool(eos), "reverse": bool(reverse)}
        kind = str if type is DataType.STRING else int
        texts = [value.decode("utf-8", "replace") for value in np.asarray(x, object).reshape(-1)]
        rows = [_model(handle).encode(text, out_type=kind, **flags) for text in texts]
        pieces = [piece.encode() if kind is str else piece for row in rows for piece in row]
        values = np.empty(len(pieces), type.dtype)
        values[:] = pieces
        return [values, np.cumsum([0, *map(len, rows)]).astype(splits)]

    return run


@operator("SentencepieceDetokenizeOp")
def detokenize(node: FlexNode) -> Step:
    """Return a function that joins pieces to strings."""
    if node.type("T", DataType.INT32) is not DataType.INT32:
        raise Unsupported(f"pieces are {node.type('T').name}, expected INT32", "dtype")

    def run(
        handle: Any, values: Array, splits: Array, bos: Array, eos: Array, reverse: Array
    ) -> Array:
        rows = np.split(values, splits[1:-1])
        result = np.empty(len(rows), object)
        for i, row in enumerate(rows):
            pieces = row.tolist()[::-1] if reverse else row.tolist()
            result[i] = _model(handle).decode(pieces).encode()
        return result

    return run


functions(
    {
        "SentencepieceVocabSizeOp": lambda handle: np.array(
            _model(handle).get_piece_size(), np.int32
        ),
    }
)
