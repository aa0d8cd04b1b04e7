"""Arrays that nodes keep from one invoke to the next, until the variables are reset."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.lazy_dataclass import dataclass
from delegraph.operators.registration import Node, OpContext
from delegraph.operators.tensor import element_count

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


@dataclass(frozen=True, slots=True)
class _Key:
    """Key of a node's array in an interpreter's resources."""

    node: Node
    name: str


class KeptArray:
    """An array of a node; zeros at first, and again when variables are reset.

    The array is one of the interpreter's resources. Each preparation of the node creates a new
    array.

    Args:
        context: context of the node.
        node: node that keeps the array.
        shape: shape of the array.
        dtype: dtype of the array.
        name: name of the array, unique in the node.

    Raises:
        OperatorError: the array is larger than the memory limit allows.
    """

    def __init__(
        self,
        context: OpContext,
        node: Node,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        name: str = "",
    ) -> None:
        self._resources, self._key = context.resources, _Key(node, name)
        self._shape, self._dtype = shape, np.dtype(dtype)
        size = element_count(shape) * self._dtype.itemsize
        context.memory_limit.require(size, "what the node keeps between invokes")
        self._resources.pop(self._key, None)

    @property
    def data(self) -> NDArray[Any]:
        """The array, which the node writes in place."""
        kept: NDArray[Any] | None = self._resources.get(self._key)
        if kept is None:
            kept = self._resources[self._key] = np.zeros(self._shape, self._dtype)
        return kept


def forget_kept_arrays(resources: MutableMapping[Any, Any]) -> None:
    """Remove all kept arrays, but nothing else, from an interpreter's *resources*."""
    for key in [key for key in resources if isinstance(key, _Key)]:
        del resources[key]
