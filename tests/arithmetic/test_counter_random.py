"""Philox and Threefry, against their authors' known answers."""

import numpy as np

from delegraph.arithmetic.counter_random import philox4x32, threefry2x32

ONES = (1 << 64) - 1


def counter(value):
    return np.array([value], np.uint64)


def words(text):
    return [int(word, 16) for word in text.split()]


def test_philox_gives_the_known_answers():
    # kat_vectors of Random123: "philox4x32 10"
    zeros = philox4x32(0, counter(0), 0)
    assert zeros[0].tolist() == words("6627e8d5 e169c58d bc57ac4c 9b00dbd8")
    ones = philox4x32(ONES, counter(ONES), ONES)
    assert ones[0].tolist() == words("408f276d 41c83b0e a20bc7c6 6d5451fd")
    pi = philox4x32(0x299F31D0A4093822, counter(0x85A308D3243F6A88), 0x0370734413198A2E)
    assert pi[0].tolist() == words("d16cfe09 94fdcceb 5001e420 24126ea1")


def test_threefry_gives_the_known_answers():
    # kat_vectors of Random123: "threefry2x32 20"
    assert threefry2x32(0, counter(0))[0].tolist() == words("6b200159 99ba4efe")
    assert threefry2x32(ONES, counter(ONES))[0].tolist() == words("1cb996fc bb002be7")
    pi = threefry2x32(0x0370734413198A2E, counter(0x85A308D3243F6A88))
    assert pi[0].tolist() == words("c4923a9c 483df7a0")


def test_each_counter_has_words_of_its_own():
    many = philox4x32(5, np.arange(4, dtype=np.uint64), 6)
    single = [philox4x32(5, counter(i), 6)[0] for i in range(4)]
    np.testing.assert_array_equal(many, single)
