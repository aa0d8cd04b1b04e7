"""Names of the words that are addresses; all other words are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.memory import Address


class Overrun(Exception):
    """Error: a kernel call would access bytes outside its memory; the message names both."""


ADDRESSES = frozenset((
    "across", "bias", "cell_state", "cell_tanh", "down", "exponentials", "factor", "features",
    "first_matrix", "first_windows", "gate_records", "gates", "header", "headers", "input_bias",
    "input_weights", "keys", "limits", "loops", "mask", "matrices", "matrix", "norm",
    "norm_bias", "offsets", "outer", "output_state", "peephole", "positions", "products",
    "projection", "projection_bias", "projection_headers", "ranges", "reciprocals", "records",
    "recurrent_bias", "recurrent_weights", "report", "residual", "scales", "scratch",
    "sigmoid", "slopes", "source", "starts", "state", "steps", "sums", "table", "tanh", "taps",
    "target", "times", "values", "weight", "weights", "windows", "x", "y",
))  # fmt: skip
"""Names of words that are addresses, without the prefix or the number of ``expand_x`` or
``source0``.
"""

NUMBERS = {
    "arg_min_max": {"outer"},
    "conv_f32": {"across", "down"},
    "conv_hybrid": {"steps"},
    "conv_int16": {"taps"},
    "conv_int8": {"steps"},
    "depthwise_conv_f32": {"times", "values"},
    "depthwise_conv_int8": {"times"},
    "inverted_residual_int8": {"sums"},
    "lstm_f32": {"steps"},
    "lstm_int8": {"steps"},
    "reductions": {"bias", "mask", "outer"},
}
"""Words that are numbers in a family, although they are addresses in other families."""


@cache
def addresses_of(instruction: Instruction) -> frozenset[str]:
    """Return the names of those words of a kernel that hold addresses, not numbers.

    Args:
        instruction: the kernel, with the names of its words.
    """
    numbers = NUMBERS.get(instruction.family, set())
    return frozenset(n for n in instruction.names if n not in numbers and _plain(n) in ADDRESSES)


def _plain(name: str) -> str:
    return name.removeprefix("expand_").removeprefix("project_").rstrip("01234567")


def check_words(instruction: Instruction, words: Mapping[str, Any]) -> None:
    """Check that words for addresses hold addresses or 0, and that all other words hold numbers.

    Args:
        instruction: the kernel of the call, with the names of its words.
        words: value of each word, by name.

    Raises:
        Overrun: an address stands for a number, or a number other than 0 for an address.
    """
    expected = addresses_of(instruction)
    for name, word in words.items():
        if isinstance(word, Address):
            if name not in expected:
                raise Overrun(
                    f"{instruction.kernel!r}: the word {name!r} is an address, not a number"
                )
        elif word and name in expected:
            raise Overrun(f"{instruction.kernel!r}: the word {name!r} is {word!r}, not an address")
