"""Operations on plain integers: arithmetic, comparisons, choices and conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from delegraph_numba_cpu.codegen.elementwise_operations import HALF, QUARTER, clamped, operation
from delegraph_numba_cpu.codegen.intrinsics import F64, I8, I32, I64
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.instructions.elementwise import OPERATIONS, Operation

operation(Operation.ADD_INT32, "ii")(clamped(lambda a, b: a + b))
operation(Operation.SUB_INT32, "ii")(clamped(lambda a, b: a - b))
operation(Operation.MUL_INT32, "ii")(clamped(lambda a, b: a * b))
operation(Operation.MAXIMUM_INT32)(lambda a, b: a.at_least(b))
operation(Operation.MINIMUM_INT32)(lambda a, b: a.at_most(b))


@operation(Operation.FLOOR_DIV_INT32, lanes=QUARTER)
def _floor_division(a: Lanes, b: Lanes) -> Lanes:
    """Return int32 quotients rounded down; the float64 division used has an error below 1 / b."""
    ratio = a.to_float(F64) / b.to_float(F64)
    whole = ratio.to_integer(I64)
    return (whole.to_float(F64) > ratio).choose(whole - 1, whole).narrow(I32)


def _as_bool(compare: Callable[[Lanes, Lanes], Lanes]) -> Callable[..., Lanes]:
    """Return an operation that applies *compare* and stores its results as bytes, 0 or 1."""
    return lambda a, b: compare(a, b).widen(I8, signed=False)


for _name, _letter in (("FLOAT32", "f"), ("INT32", "i"), ("INT64", "l")):
    for _comparison, _compare in (
        ("EQUAL", lambda a, b: a.equals(b)),
        ("NOT_EQUAL", lambda a, b: a.differs(b)),
        ("LESS", lambda a, b: a < b),
        ("LESS_EQUAL", lambda a, b: b >= a),
    ):
        _code = OPERATIONS[f"{_comparison}_{_name}"]
        operation(_code, lanes=HALF)(_as_bool(_compare))

for _code, _letter in (
    (Operation.SELECT_8_BIT, "b"),
    (Operation.SELECT_32_BIT, "i"),
    (Operation.SELECT_64_BIT, "l"),
):
    operation(_code, lanes=HALF)(lambda condition, a, b: condition.equals(0).choose(b, a))


def _saturate(element: Any) -> Callable[..., Lanes]:
    """Return an operation that truncates float32 to integers of the LLVM type *element*.

    The operation has three parameters. Values below *low* become *low*; NaN and values above *high*
    become *largest*.
    """

    def function(x: Lanes, low: Lanes, high: Lanes, largest: Lanes) -> Lanes:
        whole = (high >= x).choose(x.at_least(low), low).to_integer()
        result = (high >= x).choose(whole, largest)
        return result if element == I32 else result.narrow(element)

    return function


operation(Operation.FLOAT32_TO_INT32, "ffi")(_saturate(I32))
operation(Operation.FLOAT32_TO_8_BIT, "ffi", HALF)(_saturate(I8))
operation(Operation.FLOAT32_TO_BOOL, lanes=HALF)(lambda x: x.differs(0.0).widen(I8, signed=False))
operation(Operation.INT32_TO_FLOAT32)(lambda x: x.to_float())
operation(Operation.INT32_TO_INT64, lanes=HALF)(lambda x: x.widen(I64, signed=True))
operation(Operation.INT32_TO_8_BIT, lanes=HALF)(lambda x: x.narrow(I8))
operation(Operation.INT64_TO_FLOAT32, lanes=QUARTER)(lambda x: x.to_float())
operation(Operation.INT64_TO_INT32, lanes=HALF)(lambda x: x.narrow(I32))
operation(Operation.INT8_TO_INT32, lanes=HALF)(lambda x: x.widen(I32, signed=True))
operation(Operation.UINT8_TO_INT32, lanes=HALF)(lambda x: x.widen(I32, signed=False))
