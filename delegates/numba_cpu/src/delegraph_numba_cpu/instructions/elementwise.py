"""Instructions of ``kernels/elementwise.py``: chains of operations on single elements.

A *chain* is a sequence of *steps* that runs on one to four thousand elements at a time, so that
results of a step are still in the L1 cache when the next step reads them. Steps read and write
*slots*: first those of the sources, then that of the target, then temporaries. A source that is
repeated to the target's shape is first copied to its slot; any other source is read in place.
"""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

SOURCES = 8
"""Largest number of sources of a chain."""

CHAIN = Instruction(
    "chain",
    "elementwise",
    "steps step_count records source_count elements length scratch scratch_bytes register_bytes "
    "slot_count target target_itemsize tiles " + " ".join(f"source{i}" for i in range(SOURCES)),
)
"""Runs ``step_count`` steps on ``elements`` elements, ``length`` of them at a time.

``steps`` and ``records`` are addresses of constants; see :class:`Step` and :class:`Record`. Each
worker has ``scratch_bytes`` of scratch memory: ``SLOTS`` words, then ``slot_count`` registers.
"""

SLOTS = 32
"""Number of words for the addresses of slots; more than any chain has slots."""

LARGEST_RANK = 8
"""Largest number of dimensions of a repeated source."""

PARAMETERS = 8
"""Number of parameters of a step: float32 or integers; tables are byte offsets from the first step.
"""


class Step:
    """Positions of the words that describe a step of a chain: its operation, slots and parameters.

    The classes of numbers in this module are no enumerations, since creating those takes longer
    than checking a program.
    """

    OPERATION = 0
    A = 1
    B = 2
    C = 3
    TARGET = 4
    PARAMETER = 5


STEP_WORDS = Step.PARAMETER + PARAMETERS


class Record:
    """Positions of the words in the record of a source: its layout, shape and strides."""

    LAYOUT = 0
    ITEMSIZE = 1
    RANK = 2
    SHAPE = 3
    STRIDES = 3 + LARGEST_RANK


RECORD_WORDS = Record.STRIDES + LARGEST_RANK


class Layout:
    """Layout of a source in memory, in relation to the target."""

    DIRECT = 0
    """One element for each element of the target, in order."""
    PERIODIC = 1
    """The same values for every block of ``length`` elements of the target."""
    STRIDED = 2
    """Any other layout, with ``RANK`` dimensions, ``SHAPE``, and ``STRIDES`` in bytes."""


class Operation:
    """Number of each operation of a step; ``codegen/elementwise_operations.py`` implements it."""

    ADD = 0
    SUB = 1
    MUL = 2
    DIV = 3
    MAXIMUM = 4
    MINIMUM = 5
    SQUARED_DIFFERENCE = 6
    PRELU = 7
    CLAMP = 8
    LEAKY_RELU = 9
    HARD_SWISH = 10
    LOGISTIC = 11
    TANH = 12
    GELU = 13
    GELU_BY_TANH = 14
    ELU = 15
    EXP = 16
    LOG = 17
    SQRT = 18
    RSQRT = 19
    SQUARE = 20
    ABS = 21
    NEG = 22
    FLOOR = 23
    CEIL = 24
    ROUND = 25
    SIGN = 26
    SINE = 27
    LOOKUP = 28
    LOOKUP_INT16 = 29
    LOOKUP_INT16_IN_8_BIT = 30
    LOOKUP_PAIR = 31
    LOOKUP_PAIR_BY_POSITION = 32
    SUM_OF_INT8 = 33
    SUM_OF_UINT8 = 34
    NEAREST_SUM_OF_INT8 = 35
    NEAREST_SUM_OF_UINT8 = 36
    PRODUCT_OF_INT8 = 37
    PRODUCT_OF_UINT8 = 38
    LARGER_INT8 = 39
    LARGER_UINT8 = 40
    SMALLER_INT8 = 41
    SMALLER_UINT8 = 42
    QUANTIZE_INT8 = 43
    QUANTIZE_UINT8 = 44
    QUANTIZE_INT16 = 45
    QUANTIZE_BY_DIVISION_INT8 = 46
    QUANTIZE_BY_DIVISION_UINT8 = 47
    QUANTIZE_BY_DIVISION_INT16 = 48
    DEQUANTIZE_INT8 = 49
    DEQUANTIZE_UINT8 = 50
    DEQUANTIZE_INT16 = 51
    DEQUANTIZE_FLOAT16 = 52
    RESCALE_INT16 = 53
    PRODUCT_OF_INT16 = 54
    STORE_INT16 = 55
    ADD_INT32 = 56
    SUB_INT32 = 57
    MUL_INT32 = 58
    MAXIMUM_INT32 = 59
    MINIMUM_INT32 = 60
    FLOOR_DIV_INT32 = 61
    EQUAL_FLOAT32 = 62
    EQUAL_INT32 = 63
    EQUAL_INT64 = 64
    NOT_EQUAL_FLOAT32 = 65
    NOT_EQUAL_INT32 = 66
    NOT_EQUAL_INT64 = 67
    LESS_FLOAT32 = 68
    LESS_INT32 = 69
    LESS_INT64 = 70
    LESS_EQUAL_FLOAT32 = 71
    LESS_EQUAL_INT32 = 72
    LESS_EQUAL_INT64 = 73
    SELECT_8_BIT = 74
    SELECT_32_BIT = 75
    SELECT_64_BIT = 76
    FLOAT32_TO_INT32 = 77
    FLOAT32_TO_8_BIT = 78
    FLOAT32_TO_BOOL = 79
    INT32_TO_FLOAT32 = 80
    INT32_TO_INT64 = 81
    INT32_TO_8_BIT = 82
    INT64_TO_FLOAT32 = 83
    INT64_TO_INT32 = 84
    INT8_TO_INT32 = 85
    UINT8_TO_INT32 = 86
    SCALED_INT8 = 87
    SCALED_UINT8 = 88


OPERATIONS: dict[str, int] = {
    name: number for name, number in vars(Operation).items() if name.isupper()
}
"""Mapping from the name of each operation in :class:`Operation` to its number."""

ELEMENT_BYTES = {"b": 1, "h": 2, "i": 4, "f": 4, "l": 8}
"""Number of bytes of an element by type letter: integers of 8, 16, 32 and 64 bits, and float32."""

_NAMES_BY_SIGNATURE = {
    "ff>f": "ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE PRELU",
    "f>f": "CLAMP LEAKY_RELU HARD_SWISH LOGISTIC TANH GELU GELU_BY_TANH ELU EXP LOG SQRT RSQRT "
    "SQUARE ABS NEG FLOOR CEIL ROUND SIGN SINE",
    "b>b": "LOOKUP SCALED_INT8 SCALED_UINT8",
    "h>h": "LOOKUP_INT16",
    "h>b": "LOOKUP_INT16_IN_8_BIT",
    "bb>b": "LOOKUP_PAIR LOOKUP_PAIR_BY_POSITION SUM_OF_INT8 SUM_OF_UINT8 NEAREST_SUM_OF_INT8 "
    "NEAREST_SUM_OF_UINT8 PRODUCT_OF_INT8 PRODUCT_OF_UINT8 LARGER_INT8 LARGER_UINT8 "
    "SMALLER_INT8 SMALLER_UINT8",
    "f>b": "QUANTIZE_INT8 QUANTIZE_UINT8 QUANTIZE_BY_DIVISION_INT8 QUANTIZE_BY_DIVISION_UINT8 "
    "FLOAT32_TO_8_BIT FLOAT32_TO_BOOL",
    "f>h": "QUANTIZE_INT16 QUANTIZE_BY_DIVISION_INT16",
    "b>f": "DEQUANTIZE_INT8 DEQUANTIZE_UINT8",
    "h>f": "DEQUANTIZE_INT16 DEQUANTIZE_FLOAT16",
    "h>i": "RESCALE_INT16",
    "hh>i": "PRODUCT_OF_INT16",
    "i>h": "STORE_INT16",
    "ii>i": "ADD_INT32 SUB_INT32 MUL_INT32 MAXIMUM_INT32 MINIMUM_INT32 FLOOR_DIV_INT32",
    "ff>b": "EQUAL_FLOAT32 NOT_EQUAL_FLOAT32 LESS_FLOAT32 LESS_EQUAL_FLOAT32",
    "ii>b": "EQUAL_INT32 NOT_EQUAL_INT32 LESS_INT32 LESS_EQUAL_INT32",
    "ll>b": "EQUAL_INT64 NOT_EQUAL_INT64 LESS_INT64 LESS_EQUAL_INT64",
    "bbb>b": "SELECT_8_BIT",
    "bii>i": "SELECT_32_BIT",
    "bll>l": "SELECT_64_BIT",
    "f>i": "FLOAT32_TO_INT32",
    "i>f": "INT32_TO_FLOAT32",
    "i>l": "INT32_TO_INT64",
    "i>b": "INT32_TO_8_BIT",
    "l>f": "INT64_TO_FLOAT32",
    "l>i": "INT64_TO_INT32",
    "b>i": "INT8_TO_INT32 UINT8_TO_INT32",
}

SIGNATURES = {
    OPERATIONS[name]: signature
    for signature, names in _NAMES_BY_SIGNATURE.items()
    for name in names.split()
}
"""Mapping from an operation's number to the types of its operands and its result: ``"ff>f"``."""
