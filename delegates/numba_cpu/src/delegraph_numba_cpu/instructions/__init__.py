"""Instructions: for each kernel, the record of 64-bit words that it reads and a program writes.

Programs are written without Numba, kernels with it. Both name the words of a record by the same
:class:`Instruction`. A word is an address, an integer, or a float32 in the word's low half.

A *family* of kernels is compiled and cached together. ``instructions/conv_f32.py`` declares the
instructions of ``kernels/conv_f32.py``, and so on. A module of ``kernels`` without a module of the
same name here is shared by families. ``memory`` defines the memory that words point to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.int64]


class Instruction:
    """A kernel, and the names of the words of the record that it reads.

    >>> scale = Instruction("scale", "example", "x y count factor:f")
    >>> scale.slots("y", "factor")
    (1, 3)
    >>> scale.pack(x=4096, y=8192, count=3, factor=0.5)
    array([      4096,       8192,          3, 1056964608])

    Attributes:
        kernel: name of the kernel, unique in its family.
        family: module of ``kernels`` that holds it.
        names: the words, in order; those declared with ``:f`` are float32.
    """

    def __init__(self, kernel: str, family: str, words: str) -> None:
        self.kernel = kernel
        self.family = family
        parts = [word.partition(":") for word in words.split()]
        self.names = tuple(name for name, _, _ in parts)
        self._is_float = {name: kind == "f" for name, _, kind in parts}
        self._position = {name: i for i, name in enumerate(self.names)}

    def slots(self, *names: str) -> tuple[int, ...]:
        """Return the position of each named word in the record, counted from 0."""
        return tuple(self._position[name] for name in names)

    def pack(self, **values: Any) -> Words:
        """Return the operands of one kernel call, or of a record, as int64 words in their order.

        Raises:
            TypeError: a word is missing, or the instruction has no word of that name.
        """
        if values.keys() != self._position.keys():
            wrong = sorted(values.keys() ^ self._position.keys())
            raise TypeError(f"instruction {self.kernel!r}: missing or unknown words: {wrong}")
        record = np.empty(len(self.names), np.int64)
        for name, value in values.items():
            record[self._position[name]] = float_word(value) if self._is_float[name] else value
        return record


def float_word(value: float) -> int:
    """Return a float32 as the 64-bit word of an operand: its bits are the word's low half."""
    return int(np.float32(value).view(np.uint32))
