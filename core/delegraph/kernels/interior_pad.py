"""Padding before, behind and between a tensor's elements."""

from __future__ import annotations

from collections.abc import Sequence

from delegraph.errors import OperatorError
from delegraph.kernels.output_shape import Shape, check_type, element_count
from delegraph.kernels.registration import Eval
from delegraph.kernels.tensor import Tensor


def check_filler(x: Tensor, filler: Tensor, y: Tensor) -> None:
    """Check that padding value and output have the input's type, and that the value is one.

    Raises:
        OperatorError: they do not.
    """
    check_type(y, x)
    check_type(filler, x, "padding value")
    if element_count(filler.shape) != 1:
        raise OperatorError(f"padding value has shape {list(filler.shape)}, expected one element")


def placed(
    x: Tensor,
    filler: Tensor,
    y: Tensor,
    low: Sequence[int],
    high: Sequence[int],
    between: Sequence[int],
) -> tuple[Shape, Eval]:
    """Return the output's shape and the function that puts the elements of *x* into place.

    Args:
        x: input.
        filler: the value of all other elements.
        y: output.
        low: elements added before, for each dimension; negative ones are taken away.
        high: the same behind.
        between: elements added between two of *x*, at least 0.
    """
    shape, source, target = [], [], []
    for size, before, after, gap in zip(x.shape, low, high, between, strict=True):
        step = gap + 1
        length = max(0, before + max(0, (size - 1) * step + 1) * (size > 0) + after)
        first = max(0, -(before // step))  # of the elements, the first that is not cropped away
        last = min(size, (length - 1 - before) // step + 1)
        shape.append(length)
        source.append(slice(first, max(first, last)))
        start = before + first * step
        target.append(slice(start, start + max(0, last - first) * step, step))
    places, elements = tuple(target), tuple(source)

    def place() -> None:
        y.data.fill(filler.data.reshape(-1)[0])
        if y.data.size:
            y.data[(*places, ...)] = x.data[(*elements, ...)]

    return shape, place
