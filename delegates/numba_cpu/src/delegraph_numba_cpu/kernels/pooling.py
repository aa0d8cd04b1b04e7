"""Pooling: each output pixel combines a window of input pixels, channel by channel."""

from __future__ import annotations

from delegraph_numba_cpu.codegen import registers as r
from delegraph_numba_cpu.codegen.intrinsics import jit, load_i16, real, store_i16, word
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.vector_ir import HAS_BYTE_MASKS
from delegraph_numba_cpu.instructions import pooling as instructions

(
    SOURCE, TARGET, HEIGHT, WIDTH, CHANNELS, OUT_HEIGHT, OUT_WIDTH, WINDOW_HEIGHT, WINDOW_WIDTH,
    STRIDE_HEIGHT, STRIDE_WIDTH, BEFORE_HEIGHT, BEFORE_WIDTH, ROWS, TILES, LOW, HIGH,
) = instructions.MAX_F32.slots(*instructions.MAX_F32.names)  # fmt: skip


def pool(instruction, itemsize, limit, combine):
    """Define the kernel of a pooling instruction.

    Args:
        instruction: name of the kernel, and of the operands that it reads.
        itemsize: bytes of an element.
        limit: function that reads a limit for clamping from an operand.
        combine: function ``(source, row_step, rows, pixel, columns, target, channels, low, high)``
            that stores the clamped result of one window. The window has *rows* rows, *row_step*
            bytes apart, of *columns* pixels of *pixel* bytes.
    """

    def run(record, tile, worker):
        height, width = word(record, HEIGHT), word(record, WIDTH)
        out_height, out_width = word(record, OUT_HEIGHT), word(record, OUT_WIDTH)
        rows, tiles = word(record, ROWS), word(record, TILES)
        stride, before = word(record, STRIDE_WIDTH), word(record, BEFORE_WIDTH)
        window, channels = word(record, WINDOW_WIDTH), word(record, CHANNELS)
        pixel = channels * itemsize
        low, high = limit(record, LOW), limit(record, HIGH)
        for row in range(rows * tile // tiles, rows * (tile + 1) // tiles):
            top = row % out_height * word(record, STRIDE_HEIGHT) - word(record, BEFORE_HEIGHT)
            bottom = min(top + word(record, WINDOW_HEIGHT), height)
            top = max(top, 0)
            image = word(record, SOURCE) + row // out_height * height * width * pixel
            target = word(record, TARGET) + row * out_width * pixel
            for column in range(out_width):
                left = column * stride - before
                right = min(left + window, width)
                left = max(left, 0)
                combine(
                    image + (top * width + left) * pixel,
                    width * pixel,
                    bottom - top,
                    pixel,
                    right - left,
                    target + column * pixel,
                    channels,
                    low,
                    high,
                )

    kernel(instruction)(run)


@jit
def largest_f32(source, row_step, rows, pixel, columns, target, channels, low, high):
    """Store each channel's largest element of a window of float32, clamped; NaN is ignored.

    For the arguments see *combine* of :func:`pool`.
    """
    least, most = r.floats(low), r.floats(high)
    whole = channels - channels % (2 * r.LANES)
    for c in range(0, whole, 2 * r.LANES):
        a = b = least
        for i in range(rows):
            address = source + i * row_step + 4 * c
            for _ in range(columns):
                a = r.larger_floats(r.load_floats(address, r.LANES, least), a)
                b = r.larger_floats(r.load_floats(address + 4 * r.LANES, r.LANES, least), b)
                address += pixel
        r.store_floats(target + 4 * c, r.smaller_floats(a, most), r.LANES)
        r.store_floats(target + 4 * (c + r.LANES), r.smaller_floats(b, most), r.LANES)
    for c in range(whole, channels, r.LANES):
        value = least
        for i in range(rows):
            address = source + i * row_step + 4 * c
            for _ in range(columns):
                value = r.larger_floats(r.load_floats(address, channels - c, least), value)
                address += pixel
        r.store_floats(target + 4 * c, r.smaller_floats(value, most), channels - c)


@jit
def mean_f32(source, row_step, rows, pixel, columns, target, channels, low, high):
    """Store each channel's clamped mean over a window of float32.

    For the arguments see *combine* of :func:`pool`.
    """
    least, most = r.floats(low), r.floats(high)
    zero, share = r.floats(0.0), r.floats(1.0 / (rows * columns))
    whole = channels - channels % (4 * r.LANES)
    for i in range(0, whole, 4 * r.LANES):
        a = b = c = d = zero
        for row in range(rows):
            address = source + row * row_step + 4 * i
            for _ in range(columns):
                a = r.add_floats(a, r.load_floats(address, r.LANES, zero))
                b = r.add_floats(b, r.load_floats(address + 4 * r.LANES, r.LANES, zero))
                c = r.add_floats(c, r.load_floats(address + 8 * r.LANES, r.LANES, zero))
                d = r.add_floats(d, r.load_floats(address + 12 * r.LANES, r.LANES, zero))
                address += pixel
        place = target + 4 * i
        store_mean(place, a, share, least, most, r.LANES)
        store_mean(place + 4 * r.LANES, b, share, least, most, r.LANES)
        store_mean(place + 8 * r.LANES, c, share, least, most, r.LANES)
        store_mean(place + 12 * r.LANES, d, share, least, most, r.LANES)
    for i in range(whole, channels, r.LANES):
        value = zero
        for row in range(rows):
            address = source + row * row_step + 4 * i
            for _ in range(columns):
                value = r.add_floats(value, r.load_floats(address, channels - i, zero))
                address += pixel
        store_mean(target + 4 * i, value, share, least, most, channels - i)


@jit
def store_mean(target, total, share, least, most, count):
    """Store ``total * share``, clamped to *least* and *most*: the means of *count* channels.

    *target* is the address of the first mean; *total*, *share* and the limits are vectors.
    """
    value = r.larger_floats(least, r.multiply_floats(total, share))  # NaN stays NaN, here and below
    r.store_floats(target, r.smaller_floats(most, value), count)


def largest_bytes(fill, load, larger, smaller, store, widen, load_some, store_some):
    """Return a function that stores each channel's largest byte of a window, clamped.

    Arguments are functions of ``registers``, for int8 or for uint8.
    """

    @jit
    def largest_of_last(source, row_step, rows, pixel, columns, target, channels, low, high):
        """Store the largest bytes of the last channels, which are too few for a vector of bytes.

        For the arguments see *combine* of :func:`pool`; *source* and *target* are addresses of the
        first of these *channels* channels.
        """
        if HAS_BYTE_MASKS:
            least = value = fill(low)
            for i in range(rows):
                address = source + i * row_step
                for _ in range(columns):
                    value = larger(value, load_some(address, channels, least))
                    address += pixel
            store_some(target, smaller(value, fill(high)), channels)
            return
        floor, ceiling = r.ints(low), r.ints(high)
        for c in range(0, channels, r.LANES):
            wide = floor
            for i in range(rows):
                address = source + i * row_step + c
                for _ in range(columns):
                    wide = r.larger_ints(wide, widen(address, channels - c, floor))
                    address += pixel
            r.store_low_bytes(target + c, r.smaller_ints(wide, ceiling), channels - c)

    @jit
    def largest(source, row_step, rows, pixel, columns, target, channels, low, high):
        least, most = fill(low), fill(high)
        whole = channels - channels % r.BYTE_LANES
        for c in range(0, whole, r.BYTE_LANES):
            value = least
            for i in range(rows):
                address = source + i * row_step + c
                for _ in range(columns):
                    value = larger(value, load(address))
                    address += pixel
            store(target + c, smaller(value, most))
        if whole < channels:
            largest_of_last(
                source + whole, row_step, rows, pixel, columns, target + whole, channels - whole,
                low, high,
            )  # fmt: skip

    return largest


@jit
def store_rounded(target, total, half, share, least, most, count):
    """Store the clamped means of *count* channels as bytes, given the vector *total* of their sums.

    *target* is the address of the first byte. For a window of n elements, *half* is ``n + 0.5`` and
    *share* is ``0.5 / n``. Means are clamped to *least* and *most*. All but *target* and *count*
    are vectors.
    """
    double = r.to_floats(r.add_ints(total, total))
    double = r.add_floats(double, r.with_sign(half, double))
    value = r.to_ints(r.multiply_floats(double, share))
    r.store_low_bytes(target, r.smaller_ints(r.larger_ints(value, least), most), count)


def mean_bytes(widen):
    """Return a function that stores each channel's mean over a window of bytes, clamped.

    *widen* is the function of ``registers`` that loads bytes, signed or unsigned, as int32.

    Halves are rounded away from zero. A mean is ``trunc((2 sum + sign(sum) count) / (2 count))``.
    Half a unit is added to the numerator: the result is the same, but the quotient is never near an
    integer. So multiplying by a reciprocal in float32 gives exact results, for up to LARGEST_COUNT
    elements.
    """

    @jit
    def mean(source, row_step, rows, pixel, columns, target, channels, low, high):
        least, most, zero = r.ints(low), r.ints(high), r.ints(0)
        half, share = r.floats(rows * columns + 0.5), r.floats(0.5 / (rows * columns))
        whole = channels - channels % (4 * r.LANES)
        for i in range(0, whole, 4 * r.LANES):
            a = b = c = d = zero
            for row in range(rows):
                address = source + row * row_step + i
                for _ in range(columns):
                    a = r.add_ints(a, widen(address, r.LANES, zero))
                    b = r.add_ints(b, widen(address + r.LANES, r.LANES, zero))
                    c = r.add_ints(c, widen(address + 2 * r.LANES, r.LANES, zero))
                    d = r.add_ints(d, widen(address + 3 * r.LANES, r.LANES, zero))
                    address += pixel
            place = target + i
            store_rounded(place, a, half, share, least, most, r.LANES)
            store_rounded(place + r.LANES, b, half, share, least, most, r.LANES)
            store_rounded(place + 2 * r.LANES, c, half, share, least, most, r.LANES)
            store_rounded(place + 3 * r.LANES, d, half, share, least, most, r.LANES)
        for i in range(whole, channels, r.LANES):
            total = zero
            for row in range(rows):
                address = source + row * row_step + i
                for _ in range(columns):
                    total = r.add_ints(total, widen(address, channels - i, zero))
                    address += pixel
            store_rounded(target + i, total, half, share, least, most, channels - i)

    return mean


@jit
def largest_s16(source, row_step, rows, pixel, columns, target, channels, low, high):
    """Store each channel's largest int16 of a window, clamped.

    For the arguments see *combine* of :func:`pool`.
    """
    for c in range(0, 2 * channels, 2):
        value = low
        for i in range(rows):
            for j in range(columns):
                value = max(value, int(load_i16(source + i * row_step + j * pixel + c)))
        store_i16(target + c, min(value, high))


@jit
def mean_s16(source, row_step, rows, pixel, columns, target, channels, low, high):
    """Store each channel's clamped mean over a window of int16.

    Halves are rounded away from zero. For the arguments see *combine* of :func:`pool`.
    """
    count = rows * columns
    for c in range(0, 2 * channels, 2):
        total = 0
        for i in range(rows):
            for j in range(columns):
                total += int(load_i16(source + i * row_step + j * pixel + c))
        mean = (abs(total) + count // 2) // count
        store_i16(target + c, max(min(mean if total > 0 else -mean, high), low))


pool(instructions.MAX_S16, 2, word, largest_s16)
pool(instructions.MEAN_S16, 2, word, mean_s16)
pool(instructions.MAX_F32, 4, real, largest_f32)
pool(instructions.MEAN_F32, 4, real, mean_f32)
pool(instructions.MEAN_S8, 1, word, mean_bytes(r.widen_signed))
pool(instructions.MEAN_U8, 1, word, mean_bytes(r.widen_unsigned))
pool(
    instructions.MAX_S8, 1, word,
    largest_bytes(
        r.signed, r.load_signed, r.larger_signed, r.smaller_signed, r.store_signed, r.widen_signed,
        r.load_some_signed, r.store_some_signed,
    ),
)  # fmt: skip
pool(
    instructions.MAX_U8, 1, word,
    largest_bytes(
        r.unsigned, r.load_unsigned, r.larger_unsigned, r.smaller_unsigned, r.store_unsigned,
        r.widen_unsigned, r.load_some_unsigned, r.store_some_unsigned,
    ),
)  # fmt: skip
