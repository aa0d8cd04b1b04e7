"""Kernel of SKIP_GRAM: phrases made from some words of a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.checks import option, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

_WORD = re.compile(rb"[^ \t\n\v\f\r]+")
_HEAD = re.compile(rb"[ \t\n\v\f\r][^ \t\n\v\f\r]*")


@kernel("SKIP_GRAM")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SKIP_GRAM: phrases of words in the order of the text, some words skipped.

    At most ``max_skip_size`` words are skipped between neighbours; ``include_all_ngrams`` adds
    shorter phrases.

    Source:
        tflite/kernels/skip_gram.cc.
    """
    x, y = tensors_of(context, node, 1)
    for tensor in (x, y):
        require_type(tensor, {TensorType.STRING})
    size = int(option(node, "ngram_size", 0))
    skip = int(option(node, "max_skip_size", 0))
    shortest = 1 if option(node, "include_all_ngrams", False) else size
    context.set_dynamic(y)

    def run() -> None:
        if not x.data.size:
            raise OperatorError(f"tensor {x.name!r} holds no string, expected one")
        words = _words(x.data.reshape(-1)[0])
        grams = list(_grams(words, size, skip, shortest)) if len(words) >= size > 0 else []
        context.resize_tensor(y, (len(grams),))
        y.data = np.empty(len(grams), object)
        y.data[:] = grams

    return run


def _words(text: bytes) -> list[bytes]:
    """Split *text* into words.

    As in the official kernel, a leading space is a part of a text's only word. If there are several
    words, a leading space removes the first word.
    """
    head = _HEAD.match(text)
    if head is None:
        return _WORD.findall(text)
    return [text] if head.end() == len(text) else _WORD.findall(text[head.end() :])


def _grams(words: Sequence[bytes], size: int, skip: int, shortest: int) -> Iterator[bytes]:
    """Yield phrases of *shortest* to *size* words; at most *skip* are skipped between two.

    Phrases are in the official order: among phrases with equal first words, longest first.

    >>> [g.decode() for g in _grams([b"a", b"b", b"c"], 2, 1, 1)]
    ['a b', 'a c', 'a', 'b c', 'b', 'c']
    """

    def from_(chosen: list[int]) -> Iterator[bytes]:
        last = chosen[-1]
        if len(chosen) < size:
            for following in range(last + 1, min(last + skip + 2, len(words))):
                yield from from_([*chosen, following])
        if len(chosen) >= shortest:
            yield b" ".join(words[i] for i in chosen)

    for first in range(len(words)):
        yield from from_([first])
