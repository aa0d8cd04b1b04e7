"""SKIP_GRAM, against the official interpreter."""

import itertools

import pytest

from delegraph.schema.options import SkipGramOptions
from delegraph.testing.operator_case import fed, texts
from support.agreement import assert_agrees, assert_both_refuse

TEXTS = [b"the quick brown fox jumps", b"a", b"", b"a  b\tc\n", b" a b c", b" a", b"  a b", b" "]


def grams(text, size, skip, shorter):
    options = SkipGramOptions(ngram_size=size, max_skip_size=skip, include_all_ngrams=shorter)
    return assert_agrees("SKIP_GRAM", [fed(texts(text), "STRING")], ["STRING"], options)[0]


@pytest.mark.parametrize("text", TEXTS)
def test_grams_come_in_the_official_order(text):
    for size, skip, shorter in itertools.product(range(4), range(3), [False, True]):
        grams(text, size, skip, shorter)


def test_words_may_be_left_out_between_two():
    assert grams(b"a b c", 2, 1, False).tolist() == [b"a b", b"a c", b"b c"]


def test_numbers_are_refused():
    options = SkipGramOptions(ngram_size=1)
    x = fed(texts(b"a"), "STRING")
    assert_both_refuse("SKIP_GRAM", [x], ["INT32"], options, match="type INT32, expected")
