"""Input, output and axes of a reducing node, with shapes derived from these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delegraph.lazy_dataclass import dataclass
from delegraph.operators.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Reduction:
    """A node that reduces the tensor *x* over *axes* into the tensor *y*.

    Attributes:
        x: the input.
        y: the output.
        axes: reduced axes, ascending.
        count: number of input elements for each output element.
        keep_dims: whether reduced axes are kept, with length 1.
    """

    x: Tensor
    y: Tensor
    axes: tuple[int, ...]
    count: int
    keep_dims: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the output: reduced axes are dropped, or have length 1 if ``keep_dims``."""
        if self.keep_dims:
            return tuple(1 if i in self.axes else n for i, n in enumerate(self.x.shape))
        return tuple(n for i, n in enumerate(self.x.shape) if i not in self.axes)

    def rows(self) -> NDArray[Any]:
        """Return the input's elements as ``[kept, reduced]``, both in row-major order."""
        kept = [i for i in range(len(self.x.shape)) if i not in self.axes]
        moved: NDArray[Any] = self.x.data.transpose(*kept, *self.axes)
        return moved.reshape(-1, self.count)
