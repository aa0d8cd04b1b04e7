"""Converts texts to numbers for a model, by the tokenizer and vocabulary of its metadata.

Source:
    tensorflow_lite_support/cc: ``RegexPreprocessor`` and ``BertPreprocessor``, task/processor;
    ``RegexTokenizer`` and ``BertTokenizer``, text/tokenizers. ``WordpieceTokenizer``,
    tensorflow_text/core/kernels/wordpiece_tokenizer.cc.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.graph.metadata import ModelMetadata, TensorMetadata, Tokenizer
from delegraph.tools.model_call import Details, declared_shape, input_name, input_positions

MAX_CHARACTERS = 1 << 20
"""Largest number of characters of a text."""

_ATOM = r"(?:\[(?:\\.|[^\]\\])+\]|\\.|[^\\()\[\]{}*+?|^$])\+?"
_PLAIN_PATTERN = re.compile(rf"\(?{_ATOM}(?:\|{_ATOM})*\)?")
"""Pattern of the regular expressions whose search takes linear time.

They consist of characters or classes, each maybe repeated, with ``|`` between them.
"""

_IDS, _MASK, _SEGMENTS = "ids", "mask", "segment_ids"
_LONGEST_WORD = 100  # in bytes; longer ones are unknown
_HAN = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def takes_text(details: Details, described: TensorMetadata) -> bool:
    """Whether the metadata *described* has a tokenizer for this input of integers."""
    return described.tokenizer is not None and np.dtype(details["dtype"]).kind in "iu"


def text_for_all_inputs(
    words: Sequence[str], details: Sequence[Details], names: Mapping[str, int], said: ModelMetadata
) -> list[str]:
    """Return the user's words, with a text for BERT repeated for each of its inputs.

    BERT needs ids, mask and segments of one text. So ``TEXT`` becomes ``0=TEXT``, ``1=TEXT`` and
    ``2=TEXT``, with the positions of these inputs. Words with a NAME are unchanged.

    Args:
        words: the user's texts, each ``VALUE`` or ``NAME=VALUE``.
        details: details of all inputs.
        names: mapping from an input's name in a signature to its position.
        said: the model's metadata.
    """
    described = [said.tensor(int(entry["index"])) for entry in details]
    of_bert = [
        position
        for position, (entry, tensor) in enumerate(zip(details, described, strict=True))
        if takes_text(entry, tensor) and tensor.tokenizer and tensor.tokenizer.kind == "bert"
    ]
    known = input_positions(details, names)
    found: list[str] = []
    for word in words:
        is_named = any(word.startswith(f"{name}=") for name in known)
        if len(of_bert) < 2 or is_named or word.endswith(".npz"):
            found.append(word)
        else:
            found += [f"{position}={word}" for position in of_bert]
    return found


def text_as_input(
    text: str, details: Details, described: TensorMetadata, note: Callable[[str], object] = str
) -> NDArray[Any]:
    """Return the numbers of a text, padded to the input's length, ``[1, n]`` or ``[n]``.

    Args:
        text: the text.
        details: details of the input; an unknown length becomes the length of the text.
        described: the input's metadata, with a tokenizer. For ``bert``, the input's name in the
            metadata decides whether it gets word ids, a mask or segment ids.
        note: function that is called with a description of how the text was changed.

    Raises:
        ArgumentError: the text is too long, the tokenizer cannot be used here, or the input has
            another shape.
    """
    shape = declared_shape(details)
    if len(shape) not in (1, 2) or any(dim not in (1, -1) for dim in shape[:-1]):
        raise ArgumentError(f"{input_name(details)} takes no text, which needs [1, n]")
    if len(text) > MAX_CHARACTERS:
        raise ArgumentError(
            f"{input_name(details)}: a text of {len(text)} characters, of {MAX_CHARACTERS} at most"
        )
    tokenizer = described.tokenizer
    assert tokenizer is not None
    if not tokenizer.vocabulary:
        raise ArgumentError(
            f"{input_name(details)}: the metadata names a {tokenizer.kind} tokenizer that cannot "
            "be used here; give the numbers as .npy"
        )
    make = _of_bert if tokenizer.kind == "bert" else _of_regex
    length = shape[-1] if shape[-1] >= 0 else None
    ids, words, unknown = make(text, tokenizer, length)
    note(
        f"{words} words by the metadata's {tokenizer.kind} tokenizer, {unknown} of them unknown"
        + (f", {words - len(ids)} cut off" if words > len(ids) else "")
    )
    kind = described.name.lower()
    if tokenizer.kind == "bert" and kind != _IDS:
        ids = [int(kind == _MASK)] * len(ids)
        if kind not in (_MASK, _SEGMENTS):
            raise ArgumentError(
                f"{input_name(details)}: the metadata calls it {described.name!r}, expected "
                f"{_IDS!r}, {_MASK!r} or {_SEGMENTS!r}"
            )
    pad = 0 if tokenizer.kind == "bert" else _indexed(tokenizer).get("<PAD>", 0)
    padded = ids + [pad] * ((length or len(ids)) - len(ids))
    values = np.array(padded, np.int64)
    dtype = np.dtype(details["dtype"])
    if not np.array_equal(values, values.astype(dtype)):
        raise ArgumentError(f"{input_name(details)}: ids of the vocabulary do not fit its type")
    return values.astype(dtype).reshape([1] * (len(shape) - 1) + [len(padded)])


def _of_regex(text: str, tokenizer: Tokenizer, length: int | None) -> tuple[list[int], int, int]:
    """Return the first *length* ids of a text, and its numbers of words and of unknown words.

    *length* is the input's number of elements; None for any number.
    """
    if not _PLAIN_PATTERN.fullmatch(tokenizer.pattern):
        raise ArgumentError(
            f"the metadata's tokenizer splits texts at {tokenizer.pattern!r}, which may take too "
            "long; give the numbers as .npy"
        )
    try:
        split = re.compile(f"(?:{tokenizer.pattern})", re.ASCII).split(text)
    except re.error as error:
        reason = f"the metadata's tokenizer has the pattern {tokenizer.pattern!r}: {error}"
        raise ArgumentError(f"{reason}; give the numbers as .npy") from error
    indexed = _indexed(tokenizer)
    words = [word for word in split if word]
    start = [indexed["<START>"]] if "<START>" in indexed else []
    unknown = indexed.get("<UNKNOWN>", 0)
    ids = [*start, *(indexed.get(word, unknown) for word in words)][:length]
    return ids, len(words), sum(word not in indexed for word in words)


def _indexed(tokenizer: Tokenizer) -> dict[str, int]:
    """Return a mapping from words to ids; each line of *tokenizer*'s vocabulary is ``word id``."""
    pairs = (line.rsplit(" ", 1) for line in tokenizer.vocabulary)
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _of_bert(text: str, tokenizer: Tokenizer, length: int | None) -> tuple[list[int], int, int]:
    """Return ids from ``[CLS]`` to ``[SEP]``, and the numbers of words and of unknown words.

    *length* is the input's number of elements; None for any number.
    """
    indexed = {word: index for index, word in enumerate(tokenizer.vocabulary)}
    missing = [word for word in ("[CLS]", "[SEP]", "[UNK]") if word not in indexed]
    if missing:
        raise ArgumentError(f"the metadata's vocabulary lacks {', '.join(missing)}")
    lower = text.translate({ord(c): c.lower() for c in string.ascii_uppercase})
    words = _words(lower)
    pieces = [piece for word in words for piece in _pieces(word, indexed)]
    kept = pieces if length is None else pieces[: max(0, length - 2)]
    ids = [indexed["[CLS]"], *(indexed[piece] for piece in kept), indexed["[SEP]"]][:length]
    return ids, len(words), pieces.count("[UNK]")


def _words(text: str) -> list[str]:
    """Return the words of a text; each punctuation mark and Chinese character is a word.

    >>> _words("don't stop!")
    ['don', "'", 't', 'stop', '!']
    """
    spaced = "".join(f" {each} " if _stands_alone(each) else each for each in text)
    return re.findall(r"[^ \t\n\f\r]+", spaced)


def _stands_alone(character: str) -> bool:
    code = ord(character)
    return (
        character in string.punctuation
        or unicodedata.category(character).startswith("P")
        or any(first <= code <= last for first, last in _HAN)
    )


def _pieces(word: str, indexed: Mapping[str, int]) -> list[str]:
    """Split a word into the longest pieces in *indexed*, from the left.

    A word that cannot be split, or is too long, becomes ``[UNK]``.

    >>> _pieces("playing", {"play": 0, "##ing": 1}), _pieces("x", {})
    (['play', '##ing'], ['[UNK]'])
    """
    if len(word.encode(errors="replace")) > _LONGEST_WORD:
        return ["[UNK]"]
    pieces: list[str] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in indexed), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces
