"""Numba's vector types: vectors that kernels load, compute with and store like numbers.

Vectors of 4-byte numbers have :data:`LANES` lanes, those of bytes :data:`BYTE_LANES`. A load or
store takes the number of elements from its address to the end of the data. Lanes beyond that number
hold *rest* after a load, and are not stored. Most processors have no masks for bytes, so that
partial loads and stores of byte vectors are slow. The ends of rows of bytes are therefore handled
in vectors of int32.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from delegraph_numba_cpu.codegen import vector_ir
from delegraph_numba_cpu.codegen.intrinsics import F32, I1, I8, I16, I32, I64, call, jit
from delegraph_numba_cpu.codegen.lanes import Lanes

LANES = vector_ir.LANES
BYTE_LANES = 4 * LANES


class Vector(types.Type):
    """Numba's type of a vector with a fixed number of lanes."""

    def __init__(self, name, element, lanes, number):
        super().__init__(f"vector({name} x {lanes})")
        self.ir = ir.VectorType(element, lanes)
        self.number = number


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """Numba's data model of a :class:`Vector`: one LLVM vector, in registers and in memory."""

    def __init__(self, manager, type):
        super().__init__(manager, type, type.ir)


FLOATS = Vector("float32", F32, LANES, types.float32)
INTS = Vector("int32", I32, LANES, types.int64)
SIGNED = Vector("int8", I8, BYTE_LANES, types.int64)
UNSIGNED = Vector("uint8", I8, BYTE_LANES, types.int64)


@intrinsic
def add_product(context, x, y, summand):
    """Return ``x * y + summand`` of float vectors, rounded once if the processor can."""

    def generate(lowering, builder, signature, arguments):
        return vector_ir.multiply_add(builder, *arguments)

    return FLOATS(FLOATS, FLOATS, FLOATS), generate


def filler(vector):
    """Return an intrinsic ``fill(number)`` that makes a vector of copies of a number.

    The vector has the type *vector*.
    """

    @intrinsic
    def fill(context, number):
        def generate(lowering, builder, signature, arguments):
            value = arguments[0]
            if vector.number is types.int64:
                value = builder.trunc(value, vector.ir.element)
            return vector_ir.splat(builder, value, vector.ir.count)

        return vector(vector.number), generate

    return fill


floats, ints, signed, unsigned = map(filler, (FLOATS, INTS, SIGNED, UNSIGNED))


@intrinsic
def lanes_down(context):
    """Return the vector 0, -1, -2, ... of int32, which is a lane's number with a minus sign."""

    def generate(lowering, builder, signature, arguments):
        return ir.Constant(INTS.ir, [-lane for lane in range(LANES)])

    return INTS(), generate


def unary(vector, function, result=None):
    """Return an intrinsic that applies *function* to one vector of the type *vector*.

    *function* takes and returns :class:`Lanes`. Its result has the type *result*; None for that of
    the argument.
    """

    @intrinsic
    def compute(context, x):
        def generate(lowering, builder, signature, arguments):
            return function(Lanes(builder, arguments[0])).value

        return (result or vector)(vector), generate

    return compute


def binary(vector, function):
    """Return an intrinsic that applies *function* to two vectors of the type *vector*.

    *function* takes and returns :class:`Lanes`.
    """

    @intrinsic
    def compute(context, x, y):
        def generate(lowering, builder, signature, arguments):
            return function(*(Lanes(builder, value) for value in arguments)).value

        return vector(vector, vector), generate

    return compute


def _unsigned_extreme(operator):
    def choose(x, y):
        bits = x.builder.icmp_unsigned(operator, x.value, y.value)
        return Lanes(x.builder, bits).choose(x, y)

    return choose


def plus(x, y):
    """Return the sum of two :class:`Lanes`."""
    return x + y


def times(x, y):
    """Return the product of two :class:`Lanes`."""
    return x * y


def larger(x, y):
    """Return the larger elements of two :class:`Lanes`; *y* where one is NaN."""
    return (x > y).choose(x, y)


def smaller(x, y):
    """Return the smaller elements of two :class:`Lanes`; *y* where one is NaN."""
    return (x < y).choose(x, y)


add_floats, multiply_floats = binary(FLOATS, plus), binary(FLOATS, times)
divide_floats = binary(FLOATS, lambda x, y: x / y)
larger_floats, smaller_floats = binary(FLOATS, larger), binary(FLOATS, smaller)
add_ints, multiply_ints = binary(INTS, plus), binary(INTS, times)
larger_ints, smaller_ints = binary(INTS, larger), binary(INTS, smaller)
larger_signed, smaller_signed = binary(SIGNED, larger), binary(SIGNED, smaller)
larger_unsigned = binary(UNSIGNED, _unsigned_extreme(">"))
smaller_unsigned = binary(UNSIGNED, _unsigned_extreme("<"))
mask_ints = binary(INTS, lambda x, y: x & y)
flip_ints = binary(INTS, lambda x, y: x ^ y)
to_floats = unary(INTS, lambda x: x.to_float(), FLOATS)
to_ints = unary(FLOATS, lambda x: x.to_integer(), INTS)
rounded_shift_20 = unary(INTS, lambda x: (x + ((1 << 19) + (x >> 31))) >> 20)
"""Intrinsic that returns ``x / 2**20``, rounded with halves away from zero."""
with_sign = binary(FLOATS, lambda x, y: x.magnitude().with_sign_of(y))


def whole_loader(vector, memory=None, signed=True):
    """Return an intrinsic ``load(address)`` that loads all lanes of a vector of type *vector*.

    For *memory* and *signed* see :func:`loader`.
    """
    narrow = ir.VectorType(memory or vector.ir.element, vector.ir.count)

    @intrinsic
    def load(context, address):
        def generate(lowering, builder, signature, arguments):
            value = vector_ir.load(builder, arguments[0], narrow)
            return _widened(builder, value, vector, signed)

        return vector(types.int64), generate

    return load


def _widened(builder, value, vector, signed):
    if value.type == vector.ir:
        return value
    return Lanes(builder, value).widen(vector.ir.element, signed=signed).value


def loader(vector, memory=None, signed=True):
    """Return a function ``load(address, count, rest)`` that loads the first lanes of a vector.

    It loads *count* lanes; other lanes get the values that the vector *rest* has there.

    Args:
        vector: type of the result.
        memory: LLVM type of an element in memory, which may be narrower; None for the vector's
            type.
        signed: whether narrower elements have signs.
    """
    narrow = ir.VectorType(memory or vector.ir.element, vector.ir.count)
    lanes = narrow.count

    load_all = whole_loader(vector, memory, signed)

    @intrinsic
    def load_some(context, address, count, rest):
        def generate(lowering, builder, signature, arguments):
            address, count, rest = arguments
            mask = vector_ir.first_lanes(builder, count, lanes)
            value = vector_ir.load_first(builder, address, count, narrow)
            return builder.select(mask, _widened(builder, value, vector, signed), rest)

        return vector(types.int64, types.int64, vector), generate

    @jit
    def load(address, count, rest):
        if count >= lanes:
            return load_all(address)
        return load_some(address, count, rest)

    return load


def whole_storer(vector, memory=None):
    """Return an intrinsic ``store(address, value)`` that stores all lanes of a vector.

    The vector has the type *vector*.
    For *memory* see :func:`storer`.
    """
    narrow = ir.VectorType(memory or vector.ir.element, vector.ir.count)

    @intrinsic
    def store(context, address, value):
        def generate(lowering, builder, signature, arguments):
            vector_ir.store(builder, _narrowed(builder, arguments[1], narrow), arguments[0])
            return lowering.get_dummy_value()

        return types.void(types.int64, vector), generate

    return store


def _narrowed(builder, value, narrow):
    return value if value.type == narrow else builder.trunc(value, narrow)


def storer(vector, memory=None):
    """Return a function ``store(address, value, count)`` that stores a vector's first lanes.

    It stores *count* lanes; the memory after them is unchanged.

    Args:
        vector: type of the value.
        memory: LLVM type of an element in memory; if it is narrower, only low bits are stored.
    """
    narrow = ir.VectorType(memory or vector.ir.element, vector.ir.count)
    lanes = narrow.count

    store_all = whole_storer(vector, memory)

    @intrinsic
    def store_some(context, address, value, count):
        def generate(lowering, builder, signature, arguments):
            address, value, count = arguments
            vector_ir.store_first(builder, _narrowed(builder, value, narrow), address, count)
            return lowering.get_dummy_value()

        return types.void(types.int64, vector, types.int64), generate

    @jit
    def store(address, value, count):
        if count >= lanes:
            store_all(address, value)
        else:
            store_some(address, value, count)

    return store


load_floats, store_floats = loader(FLOATS), storer(FLOATS)
load_ints, store_ints = loader(INTS), storer(INTS)
load_signed, load_unsigned = whole_loader(SIGNED), whole_loader(UNSIGNED)
store_signed, store_unsigned = whole_storer(SIGNED), whole_storer(UNSIGNED)
load_some_signed, load_some_unsigned = loader(SIGNED), loader(UNSIGNED)
store_some_signed, store_some_unsigned = storer(SIGNED), storer(UNSIGNED)
widen_signed, widen_unsigned = loader(INTS, I8, True), loader(INTS, I8, False)
store_low_bytes, store_low_halves = storer(INTS, I8), storer(INTS, I16)


def folder(vector, function):
    """Return an intrinsic ``fold(x)`` that combines all lanes of a vector into one number.

    *function* combines two :class:`Lanes`, as :func:`plus` does. It is applied to both halves of
    the vector, then to both halves of the result, until one lane remains.
    """

    @intrinsic
    def fold(context, x):
        def generate(lowering, builder, signature, arguments):
            value, count = arguments[0], vector.ir.count
            while count > 1:
                count //= 2
                halves = []
                for start in (0, count):
                    lanes = list(range(start, start + count))
                    mask = ir.Constant(ir.VectorType(I32, count), lanes)
                    halves.append(Lanes(builder, builder.shuffle_vector(value, value, mask)))
                value = function(*halves).value
            value = builder.extract_element(value, ir.Constant(I32, 0))
            return value if vector.number is types.float32 else builder.sext(value, I64)

        return vector.number(vector), generate

    return fold


def cutter(vector):
    """Return an intrinsic ``cut(x, count, rest)`` that joins lanes of two vectors.

    Its result has the first *count* lanes of *x*; the other lanes are those of *rest*. All three
    vectors have the type *vector*.
    """

    @intrinsic
    def cut(context, x, count, rest):
        def generate(lowering, builder, signature, arguments):
            x, count, rest = arguments
            mask = vector_ir.first_lanes(builder, count, vector.ir.count)
            return builder.select(mask, x, rest)

        return vector(vector, types.int64, vector), generate

    return cut


cut_floats, cut_ints = cutter(FLOATS), cutter(INTS)


def first_of(vector):
    """Return an intrinsic ``first(x)`` that returns the first element of a vector as a number.

    The vector has the type *vector*.
    """

    @intrinsic
    def first(context, x):
        def generate(lowering, builder, signature, arguments):
            value = builder.extract_element(arguments[0], ir.Constant(I32, 0))
            return value if vector.number is types.float32 else builder.sext(value, I64)

        return vector.number(vector), generate

    return first


first_float, first_int = first_of(FLOATS), first_of(INTS)


@intrinsic
def nan_bits(context, x, y):
    """Return a number that is not 0 if one of two float vectors has a NaN."""

    def generate(lowering, builder, signature, arguments):
        bits = builder.fcmp_unordered("uno", *arguments)
        return builder.zext(builder.bitcast(bits, ir.IntType(LANES)), I64)

    return types.int64(FLOATS, FLOATS), generate


@intrinsic
def first_equal(context, x, y):
    """Return the number of the first lane in which two vectors are equal, or 64 if none is."""

    def generate(lowering, builder, signature, arguments):
        x, y = arguments
        compare = builder.fcmp_ordered if x.type.element == F32 else builder.icmp_signed
        bits = builder.bitcast(compare("==", x, y), ir.IntType(x.type.count))
        return call(builder, "llvm.cttz.i64", I64, [builder.zext(bits, I64), ir.Constant(I1, 0)])

    return types.int64(x, y), generate
