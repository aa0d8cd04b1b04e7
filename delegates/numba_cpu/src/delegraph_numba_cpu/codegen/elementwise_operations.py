"""Operations of the steps of a chain, and the instruction that runs a step.

An operation is a Python function that takes vectors of operands and returns the vector of results.
It is called once, while Numba compiles, to write the body of a loop. :func:`run_step` has the loops
of all operations, selected by one switch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen import math_functions as f
from delegraph_numba_cpu.codegen import x86_bytes
from delegraph_numba_cpu.codegen.intrinsics import F32, F64, I8, I16, I32, I64, call, pointer
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.codegen.registry import level
from delegraph_numba_cpu.codegen.vector_ir import Loop, integer, load, splat, store
from delegraph_numba_cpu.instructions.elementwise import ELEMENT_BYTES, SIGNATURES, Operation, Step

GRANULE = level().vector_bytes
"""Number of bytes of a vector; a step's number of elements is a multiple of it."""

WIDE, HALF, QUARTER = GRANULE, GRANULE // 2, GRANULE // 4
"""Numbers of elements in a vector; operations with more temporaries use smaller vectors."""

CURVE = WIDE if GRANULE == 64 else HALF
"""Number of elements in a vector for long computations: four vectors at once if there are 32
registers.

Several vectors at once hide the latency of instructions.
"""

TYPES = {"f": F32, "b": I8, "h": I16, "i": I32, "l": I64}


@dataclass(frozen=True)
class Entry:
    """An operation of steps: its Python function, and the types that it takes and returns.

    Attributes:
        function: function that takes vectors of the operands and of the parameters.
        operands: types of the operands, letters of :data:`TYPES`.
        result: type of the result.
        parameters: a letter for each parameter: ``f`` is float32 and ``i`` int32 (vectors of
            copies), ``t`` the address of a table, and ``l`` an int64. A last ``@`` stands for the
            number of the element, for operations with one lane.
        lanes: elements in a vector.
    """

    function: Callable[..., Any]
    operands: str
    result: str
    parameters: str
    lanes: int


TABLE: dict[int, Entry] = {}


def operation(code: int, parameters: str = "", lanes: int = WIDE) -> Callable[[Any], Any]:
    """Return a decorator that makes a Python function an operation of chains.

    Args:
        code: number of the operation.
        parameters: a letter for the type of each parameter; see :class:`Entry`.
        lanes: number of elements that the function gets at a time.
    """
    operands, _, result = SIGNATURES[code].partition(">")

    def add(function: Any) -> Any:
        TABLE[code] = Entry(function, operands, result, parameters, lanes)
        return function

    return add


@intrinsic
def run_step(context: Any, step: Any, first_step: Any, slots: Any, start: Any, count: Any) -> Any:
    """Run a step on the first *count* elements of its slots; *count* is a multiple of GRANULE.

    Args:
        context: the typing context of Numba.
        step: address of the step.
        first_step: address of the first step; offsets of tables are relative to it.
        slots: address of the slots.
        start: position of the first element in the target.
        count: number of elements.
    """

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        step = arguments[0]
        after = builder.append_basic_block("done")
        cases = builder.switch(_word(builder, step, Step.OPERATION), after)
        for code, entry in TABLE.items():
            case = builder.append_basic_block(f"operation{code}")
            cases.add_case(integer(code), case)
            builder.position_at_end(case)
            _write_loop(builder, entry, *arguments)
            builder.branch(after)
        builder.position_at_end(after)
        return target.get_dummy_value()

    return types.void(*[types.int64] * 5), generate


def _write_loop(
    builder: Any, entry: Entry, step: Any, first_step: Any, slots: Any, start: Any, count: Any
) -> None:
    """Append the loop that applies the operation *entry* to *count* elements from *start* on."""
    words = (Step.A, Step.B, Step.C)[: len(entry.operands)]
    sources = [_slot(builder, step, slots, word) for word in words]
    result = _slot(builder, step, slots, Step.TARGET)
    parameters = [
        _parameter(builder, step, first_step, i, letter, entry.lanes)
        for i, letter in enumerate(entry.parameters)
    ]
    loop = Loop(builder, count, entry.lanes)
    vectors = [
        Lanes(builder, load(builder, _element(builder, source, loop, letter), _type(entry, letter)))
        for source, letter in zip(sources, entry.operands, strict=True)
    ]
    if entry.parameters.endswith("@"):
        parameters[-1] = builder.add(start, loop.index)
    value = entry.function(*vectors, *parameters).value
    store(builder, value, _element(builder, result, loop, entry.result))
    loop.close()


def _type(entry: Entry, letter: str) -> Any:
    return ir.VectorType(TYPES[letter], entry.lanes)


def _word(builder: Any, step: Any, word: int) -> Any:
    return load(builder, builder.add(step, integer(8 * word)), I64)


def _slot(builder: Any, step: Any, slots: Any, word: int) -> Any:
    """Return the address of the data of a slot, whose number is in word *word* of the step."""
    place = builder.mul(_word(builder, step, word), integer(8))
    return load(builder, builder.add(slots, place), I64)


def _element(builder: Any, base: Any, loop: Loop, letter: str) -> Any:
    """Return the address of the vector that the loop computes now; *base* is the data's address.

    *letter* is the type of its elements.
    """
    return builder.add(base, builder.mul(loop.index, integer(ELEMENT_BYTES[letter])))


def _parameter(builder: Any, step: Any, first_step: Any, i: int, letter: str, lanes: int) -> Any:
    word = _word(builder, step, Step.PARAMETER + i)
    if letter in "l@":
        return word
    if letter == "t":
        return builder.add(first_step, word)
    number = builder.trunc(word, I32)
    if letter == "f":
        number = builder.bitcast(number, F32)
    return Lanes(builder, splat(builder, number, lanes))


def clamped(function: Callable[[Lanes, Lanes], Lanes]) -> Callable[..., Lanes]:
    """Return an operation that clamps the results of *function*, which has two operands."""
    return lambda a, b, low, high: function(a, b).at_least(low).at_most(high)


operation(Operation.ADD, "ff")(clamped(lambda a, b: a + b))
operation(Operation.SUB, "ff")(clamped(lambda a, b: a - b))
operation(Operation.MUL, "ff")(clamped(lambda a, b: a * b))
operation(Operation.DIV, "ff")(clamped(lambda a, b: a / b))
operation(Operation.MAXIMUM)(lambda a, b: (a > b).choose(a, b))
operation(Operation.MINIMUM)(lambda a, b: (a < b).choose(a, b))
operation(Operation.SQUARED_DIFFERENCE)(lambda a, b: (a - b) * (a - b))
operation(Operation.PRELU)(lambda x, alpha: (x >= 0.0).choose(x, x * alpha))

operation(Operation.CLAMP, "ff")(lambda x, low, high: x.at_least(low).at_most(high))
operation(Operation.LEAKY_RELU, "f")(lambda x, alpha: (x > 0.0).choose(x, x * alpha))
operation(Operation.HARD_SWISH)(lambda x: (x + 3.0).at_least(0.0).at_most(6.0) * x * (1 / 6))
operation(Operation.LOGISTIC, lanes=CURVE)(f.logistic)
operation(Operation.TANH, lanes=CURVE)(f.tanh)
operation(Operation.GELU, lanes=CURVE)(f.gelu)
operation(Operation.GELU_BY_TANH, lanes=CURVE)(f.gelu_by_tanh)
operation(Operation.ELU, lanes=CURVE)(lambda x: (x < 0.0).choose(f.expm1(x.at_most(0.0)), x))
operation(Operation.EXP, lanes=CURVE)(f.exp)
operation(Operation.LOG, lanes=CURVE)(f.log)
operation(Operation.SQRT)(f.square_root)
operation(Operation.RSQRT)(f.reciprocal_square_root)
operation(Operation.SQUARE)(lambda x: x * x)
operation(Operation.ABS)(lambda x: x.magnitude())
operation(Operation.NEG)(lambda x: -x)
operation(Operation.FLOOR)(f.floor)
operation(Operation.CEIL)(f.ceil)
operation(Operation.ROUND)(f.rounded)
operation(Operation.SIGN)(lambda x: (x > 0.0).choose(1.0, (x < 0.0).choose(-1.0, x * x)))


def entry_of(table: Any, index: Lanes, element: Any) -> Lanes:
    """Return one entry of a table in memory.

    Args:
        table: address of the table.
        index: number of the entry, unsigned; a vector with a single lane.
        element: LLVM type of an entry.
    """
    builder = index.builder
    place = builder.zext(builder.extract_element(index.value, ir.Constant(I32, 0)), I64)
    address = builder.add(table, builder.mul(place, integer(element.width // 8)))
    value = builder.load(pointer(builder, address, element))
    return Lanes(builder, splat(builder, value, 1))


def permuted(x: Lanes, table: Any) -> Lanes:
    """Return the bytes at the 64 unsigned indices *x* in the table of 256 bytes at address *table*.

    An instruction permutes 128 bytes, so there are two.
    """
    builder, kind = x.builder, x.type
    parts = [load(builder, builder.add(table, integer(64 * i)), kind) for i in range(4)]
    low, high = (
        call(builder, "llvm.x86.avx512.vpermi2var.qi.512", kind, [parts[i], x.value, parts[i + 1]])
        for i in (0, 2)
    )
    return (x < 0).choose(Lanes(builder, high), Lanes(builder, low))


if "avx512vbmi" in level().needs:
    operation(Operation.LOOKUP, "t")(permuted)
elif x86_bytes.IS_THERE:
    operation(Operation.LOOKUP, "t")(x86_bytes.looked_up)
else:
    operation(Operation.LOOKUP, "t", lanes=1)(lambda x, table: entry_of(table, x, I8))
operation(Operation.LOOKUP_INT16, "t", lanes=1)(lambda x, table: entry_of(table, x, I16))
operation(Operation.LOOKUP_INT16_IN_8_BIT, "t", lanes=1)(lambda x, table: entry_of(table, x, I8))


def _index_of_pair(a: Lanes, b: Lanes) -> Lanes:
    return (a.widen(I16, signed=False) << 8) | b.widen(I16, signed=False)


operation(Operation.LOOKUP_PAIR, "t", lanes=1)(
    lambda a, b, table: entry_of(table, _index_of_pair(a, b), I8)
)


@operation(Operation.LOOKUP_PAIR_BY_POSITION, "ttll@", lanes=1)
def lookup_pair_by_position(
    a: Lanes, b: Lanes, vector: Any, rest: Any, length: Any, vector_end: Any, position: Any
) -> Lanes:
    """Return the entry of a table for a pair of bytes; the element's position decides which table.

    Of each *length* elements, the first *vector_end* use the table at the address *vector*, the
    others that at *rest*. The index is ``256 * a + b``, of unsigned bytes.
    """
    builder = a.builder
    place = builder.urem(*(builder.trunc(number, I32) for number in (position, length)))
    is_vector = builder.icmp_unsigned("<", place, builder.trunc(vector_end, I32))
    return entry_of(builder.select(is_vector, vector, rest), _index_of_pair(a, b), I8)


def _quantize(element: Any) -> Callable[..., Lanes]:
    """Return an operation that quantises float32 to integers of the LLVM type *element*.

    It multiplies by a factor, clamps, rounds halves to even, and adds a zero point. So the limits
    are relative to the zero point. NaN becomes the least value.
    """

    def function(x: Lanes, factor: Lanes, low: Lanes, high: Lanes, zero_point: Lanes) -> Lanes:
        nearest = (x * factor).number_at_least(low).at_most(high).nearest_integer()
        return (nearest + zero_point).narrow(element)

    return function


def _quantize_by_division(element: Any) -> Callable[..., Lanes]:
    """Return an operation that quantises float32 to the LLVM type *element*, by a division.

    It divides by the scale in float64, rounds halves away from zero, adds the zero point, and
    clamps.
    """

    def function(x: Lanes, scale: Lanes, low: Lanes, high: Lanes, zero_point: Lanes) -> Lanes:
        ratio = (x.to_float(F64) / scale.to_float(F64)).number_at_least(-1e9).at_most(1e9)
        whole = ratio.to_integer()
        rest = ratio - whole.to_float(F64)
        up, down = (
            (rest >= 0.5).choose(whole.filled(1), 0),
            (rest > -0.5).choose(whole.filled(0), 1),
        )
        return (whole + up - down + zero_point).at_least(low).at_most(high).narrow(element)

    return function


if not x86_bytes.IS_THERE:
    for code in (Operation.QUANTIZE_INT8, Operation.QUANTIZE_UINT8):
        operation(code, "fffi", HALF)(_quantize(I8))
operation(Operation.QUANTIZE_INT16, "fffi", HALF)(_quantize(I16))
for code, letter in (
    (Operation.QUANTIZE_BY_DIVISION_INT8, "b"),
    (Operation.QUANTIZE_BY_DIVISION_UINT8, "b"),
    (Operation.QUANTIZE_BY_DIVISION_INT16, "h"),
):
    operation(code, "fiii", 1)(_quantize_by_division(TYPES[letter]))


def _dequantize(signed: bool) -> Callable[..., Lanes]:
    """Return the operation ``q * scale + offset`` on quantized values, signed if *signed*."""

    def function(q: Lanes, scale: Lanes, offset: Lanes) -> Lanes:
        return q.widen(I32, signed=signed).to_float() * scale + offset

    return function


operation(Operation.DEQUANTIZE_INT8, "ff", HALF)(_dequantize(True))
operation(Operation.DEQUANTIZE_UINT8, "ff", HALF)(_dequantize(False))
operation(Operation.DEQUANTIZE_INT16, "ff", HALF)(_dequantize(True))


@operation(Operation.DEQUANTIZE_FLOAT16, lanes=HALF)
def widen_float16(q: Lanes) -> Lanes:
    """Return float16 *q*, given as int16, as float32.

    Not all processors have an instruction for this conversion.
    """
    bits = q.widen(I32, signed=True)
    magnitude = ((bits & 0x7FFF) << 13).as_float() * 2.0**112
    is_finite = ((bits & 0x7C00) - 0x7C00) < 0
    special = (magnitude.bits() | 0x7F800000).as_float()
    return is_finite.choose(magnitude, special).with_sign_of(bits.as_float())
