"""Padding before, after and between a tensor's elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delegraph.arithmetic.output_shape import check_type
from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.registration import Eval
from delegraph.operators.tensor import Shape, Tensor, element_count

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_filler(x: Tensor, filler: Tensor, y: Tensor) -> None:
    """Check that *y*, the output, and *filler*, the padding value, have the type of *x*.

    *filler* must have an element; if it has several, the first is used.

    Raises:
        OperatorError: a type differs.
    """
    check_type(y, x)
    check_type(filler, x, "padding value")
    if element_count(filler.shape) == 0:
        raise OperatorError(f"padding value has shape {list(filler.shape)}, expected one element")


@dataclass(frozen=True, slots=True)
class InteriorPadding:
    """Positions of elements in an array that is padded before, after and between them.

    Negative padding crops the array.

    Attributes:
        shape: shape of the padded array.
        source: index of the elements that are kept.
        target: index of the kept elements in the padded array.

    >>> InteriorPadding.of((3,), (-1,), (2,), (1,))  # of "a b c", ". b . c . ." is left
    InteriorPadding(shape=(6,), source=(slice(1, 3, None),), target=(slice(1, 5, 2),))
    """

    shape: tuple[int, ...]
    source: tuple[slice, ...]
    target: tuple[slice, ...]

    @classmethod
    def of(
        cls, shape: Sequence[int], low: Sequence[int], high: Sequence[int], between: Sequence[int]
    ) -> InteriorPadding:
        """Return the placement for an array of *shape*.

        Args:
            shape: shape of the array before padding.
            low: number of elements added before each dimension; negative numbers remove elements.
            high: number of elements added after each dimension.
            between: number of elements added between neighbouring elements, at least 0.
        """
        padded, source, target = [], [], []
        for size, before, after, gap in zip(shape, low, high, between, strict=True):
            step = gap + 1
            length = max(0, before + max(0, (size - 1) * step + 1) * (size > 0) + after)
            first = max(0, -(before // step))  # first element that is not cropped
            last = min(size, (length - 1 - before) // step + 1)
            padded.append(length)
            source.append(slice(first, max(first, last)))
            start = before + first * step
            target.append(slice(start, start + max(0, last - first) * step, step))
        return cls(tuple(padded), tuple(source), tuple(target))

    def __call__(self, x: NDArray[Any], filler: Any, y: NDArray[Any]) -> None:
        """Fill *y* with the elements of *x* at their positions, and with *filler* elsewhere."""
        y.fill(filler)
        if y.size:
            y[self.target] = x[self.source]


def placed(
    x: Tensor,
    filler: Tensor,
    y: Tensor,
    low: Sequence[int],
    high: Sequence[int],
    between: Sequence[int],
) -> tuple[Shape, Eval]:
    """Return the shape of a padded array, and the evaluation that computes it.

    Args:
        x: input.
        filler: tensor with the value of all other elements.
        y: output.
        low: number of elements added before each dimension; negative numbers remove elements.
        high: number of elements added after each dimension.
        between: number of elements added between neighbouring elements.
    """
    placement = InteriorPadding.of(x.shape, low, high, between)

    def place() -> None:
        placement(x.data, filler.data.reshape(-1)[0], y.data)

    return placement.shape, place
