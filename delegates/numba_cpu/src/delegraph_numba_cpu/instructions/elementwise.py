"""Instructions of ``kernels/elementwise.py``: chains of operations on single elements.

A *chain* is a sequence of *steps* that runs on one to four thousand elements at a time, so that
results of one step stay in the L1 cache for the next. Steps read and write *slots*: first those of
the sources, then that of the target, then temporaries. A source that is repeated to the target's
shape is first copied to its slot; any other source is read in place.
"""

from __future__ import annotations

from enum import IntEnum, auto

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


class Step(IntEnum):
    """Positions of the words in the description of a step of a chain: its operation, its slots."""

    OPERATION = 0
    A = auto()
    B = auto()
    C = auto()
    TARGET = auto()
    PARAMETER = auto()


STEP_WORDS = Step.PARAMETER + PARAMETERS


class Record(IntEnum):
    """Positions of the words in the record of a source: its layout, shape and strides."""

    LAYOUT = 0
    ITEMSIZE = 1
    RANK = 2
    SHAPE = 3
    STRIDES = 3 + LARGEST_RANK


RECORD_WORDS = Record.STRIDES + LARGEST_RANK


class Layout(IntEnum):
    """Layout of a source in memory, compared with the target."""

    DIRECT = 0
    """Element by element."""
    PERIODIC = auto()
    """The same for every block of ``length`` elements."""
    STRIDED = auto()
    """Anything else, with ``RANK`` dimensions, ``SHAPE`` and ``STRIDES`` in bytes."""


class Operation(IntEnum):
    """Operation of a step; ``codegen/elementwise_operations.py`` implements it."""

    ADD = 0
    SUB = auto()
    MUL = auto()
    DIV = auto()
    MAXIMUM = auto()
    MINIMUM = auto()
    SQUARED_DIFFERENCE = auto()
    PRELU = auto()
    CLAMP = auto()
    LEAKY_RELU = auto()
    HARD_SWISH = auto()
    LOGISTIC = auto()
    TANH = auto()
    GELU = auto()
    GELU_BY_TANH = auto()
    ELU = auto()
    EXP = auto()
    LOG = auto()
    SQRT = auto()
    RSQRT = auto()
    SQUARE = auto()
    ABS = auto()
    NEG = auto()
    FLOOR = auto()
    CEIL = auto()
    ROUND = auto()
    SIGN = auto()
    SINE = auto()
    LOOKUP = auto()
    LOOKUP_INT16 = auto()
    LOOKUP_INT16_IN_8_BIT = auto()
    LOOKUP_PAIR = auto()
    LOOKUP_PAIR_BY_POSITION = auto()
    SUM_OF_INT8 = auto()
    SUM_OF_UINT8 = auto()
    NEAREST_SUM_OF_INT8 = auto()
    NEAREST_SUM_OF_UINT8 = auto()
    PRODUCT_OF_INT8 = auto()
    PRODUCT_OF_UINT8 = auto()
    LARGER_INT8 = auto()
    LARGER_UINT8 = auto()
    SMALLER_INT8 = auto()
    SMALLER_UINT8 = auto()
    QUANTIZE_INT8 = auto()
    QUANTIZE_UINT8 = auto()
    QUANTIZE_INT16 = auto()
    QUANTIZE_BY_DIVISION_INT8 = auto()
    QUANTIZE_BY_DIVISION_UINT8 = auto()
    QUANTIZE_BY_DIVISION_INT16 = auto()
    DEQUANTIZE_INT8 = auto()
    DEQUANTIZE_UINT8 = auto()
    DEQUANTIZE_INT16 = auto()
    DEQUANTIZE_FLOAT16 = auto()
    RESCALE_INT16 = auto()
    PRODUCT_OF_INT16 = auto()
    STORE_INT16 = auto()
    ADD_INT32 = auto()
    SUB_INT32 = auto()
    MUL_INT32 = auto()
    MAXIMUM_INT32 = auto()
    MINIMUM_INT32 = auto()
    FLOOR_DIV_INT32 = auto()
    EQUAL_FLOAT32 = auto()
    EQUAL_INT32 = auto()
    EQUAL_INT64 = auto()
    NOT_EQUAL_FLOAT32 = auto()
    NOT_EQUAL_INT32 = auto()
    NOT_EQUAL_INT64 = auto()
    LESS_FLOAT32 = auto()
    LESS_INT32 = auto()
    LESS_INT64 = auto()
    LESS_EQUAL_FLOAT32 = auto()
    LESS_EQUAL_INT32 = auto()
    LESS_EQUAL_INT64 = auto()
    SELECT_8_BIT = auto()
    SELECT_32_BIT = auto()
    SELECT_64_BIT = auto()
    FLOAT32_TO_INT32 = auto()
    FLOAT32_TO_8_BIT = auto()
    FLOAT32_TO_BOOL = auto()
    INT32_TO_FLOAT32 = auto()
    INT32_TO_INT64 = auto()
    INT32_TO_8_BIT = auto()
    INT64_TO_FLOAT32 = auto()
    INT64_TO_INT32 = auto()
    INT8_TO_INT32 = auto()
    UINT8_TO_INT32 = auto()


ELEMENT_BYTES = {"b": 1, "h": 2, "i": 4, "f": 4, "l": 8}
"""Number of bytes of an element by type letter: integers of 8, 16, 32 and 64 bits, and float32."""

_NAMES_BY_SIGNATURE = {
    "ff>f": "ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE PRELU",
    "f>f": "CLAMP LEAKY_RELU HARD_SWISH LOGISTIC TANH GELU GELU_BY_TANH ELU EXP LOG SQRT RSQRT "
    "SQUARE ABS NEG FLOOR CEIL ROUND SIGN SINE",
    "b>b": "LOOKUP",
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
    Operation[name]: signature
    for signature, names in _NAMES_BY_SIGNATURE.items()
    for name in names.split()
}
"""The types of an operation's operands and of its result: ``"ff>f"``."""
