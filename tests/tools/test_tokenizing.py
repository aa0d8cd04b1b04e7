from __future__ import annotations

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.graph.metadata import ModelMetadata, TensorMetadata, Tokenizer
from delegraph.tools.tokenizing import text_as_input, text_for_all_inputs
from support.tensor_details import details

WORDS = ("<PAD> 0", "<START> 1", "<UNKNOWN> 2", "the 3", "film 4", "isn't 5", "great 6")
REGEX = Tokenizer("regex", r"[^\w\']+", WORDS)
PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing", "good", "!", "\u4e2d")
BERT = Tokenizer("bert", "", PIECES)


def numbers(text: str, tokenizer: Tokenizer, *shape: int, name: str = "ids") -> list[int]:
    values = text_as_input(
        text, details(np.int32, *shape), TensorMetadata(name=name, tokenizer=tokenizer)
    )
    assert values.dtype == np.int32
    return [int(value) for value in values.reshape(-1)]


def test_words_are_looked_up_between_matches_of_the_pattern() -> None:
    assert numbers("the film,  isn't THE!", REGEX, 1, 8) == [1, 3, 4, 5, 2, 0, 0, 0]
    assert numbers("the film isn't great", REGEX, 1, 3) == [1, 3, 4]  # cut
    assert numbers("great", REGEX, 4) == [1, 6, 0, 0]
    assert numbers("great", REGEX, 1, -1) == [1, 6]


def test_bert_splits_words_into_pieces() -> None:
    assert numbers("Playing good!", BERT, 1, 8) == [2, 4, 5, 6, 7, 3, 0, 0]
    assert numbers("plays \u4e2dgood", BERT, 1, 6) == [2, 1, 8, 6, 3, 0]
    assert numbers("good " * 9, BERT, 1, 4) == [2, 6, 6, 3]
    assert numbers("good" + "x" * 100, BERT, 1, -1) == [2, 1, 3]


def test_mask_and_segments_go_with_the_ids() -> None:
    assert numbers("good!", BERT, 1, 6, name="mask") == [1, 1, 1, 1, 0, 0]
    assert numbers("good!", BERT, 1, 6, name="segment_ids") == [0] * 6
    entries = [details(np.int32, 1, 6, name=f"in{i}", index=i) for i in range(3)]
    said = ModelMetadata(inputs=tuple(TensorMetadata(i, tokenizer=BERT) for i in range(3)))
    words = text_for_all_inputs(["a text", "in1=zeros"], entries, {}, said)
    assert words == ["0=a text", "1=a text", "2=a text", "in1=zeros"]
    assert text_for_all_inputs(["a text"], entries[:1], {}, said) == ["a text"]
    assert text_for_all_inputs(["a text"], entries, {}, ModelMetadata()) == ["a text"]


def test_notes_say_what_was_done() -> None:
    notes: list[str] = []
    said = TensorMetadata(name="x", tokenizer=REGEX)
    text_as_input("the bad bad film", details(np.int32, 1, 3), said, notes.append)
    assert notes == ["4 words by the metadata's regex tokenizer, 2 of them unknown, 1 cut off"]


@pytest.mark.parametrize(
    ("tokenizer", "shape", "text", "message"),
    [
        (Tokenizer("regex", "(a+)+$", WORDS), (1, 4), "a", r"splits texts at '\(a\+\)\+\$', which"),
        (Tokenizer("regex", "[z-a]", WORDS), (1, 4), "a", "bad character range z-a"),
        (Tokenizer("regex", " ", ("<PAD> 9999999999",)), (1, 4), "a", "do not fit its type"),
        (Tokenizer("sentencepiece"), (1, 4), "a", "names a sentencepiece tokenizer that cannot"),
        (Tokenizer("bert", "", ("a",)), (1, 4), "a", r"lacks \[CLS\], \[SEP\], \[UNK\]"),
        (REGEX, (2, 4), "a", r"takes no text, which needs \[1, n\]"),
        (REGEX, (1, 4), "a" * (1 << 20) + "b", "a text of 1048577 characters, of 1048576 at most"),
    ],
)
def test_what_cannot_be_tokenized_is_refused(
    tokenizer: Tokenizer, shape: tuple[int, ...], text: str, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        numbers(text, tokenizer, *shape)


def test_an_input_of_bert_with_another_name_is_refused() -> None:
    with pytest.raises(ArgumentError, match="calls it 'words', expected 'ids', 'mask' or"):
        numbers("good", BERT, 1, 4, name="words")
