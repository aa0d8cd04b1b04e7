"""Views of an interpreter's memory that users hold; counts the views still alive.

Memory may move when tensors are allocated, so the calls that do so refuse while a view is alive.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import ArgumentError, StateError
from delegraph.operators.tensor import Tensor
from delegraph.runtime.tensor_access import read_tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Exporter:
    """Base object of a view, which lives as long as the view or any slice of it."""

    def __init__(self, data: NDArray[Any]) -> None:
        self._data = data
        self.__array_interface__ = data.__array_interface__


class MemoryViews:
    """Hands out views of memory and counts the views that are still alive.

    >>> views = MemoryViews()
    >>> half = views.export(np.zeros(4))[:2]
    >>> bool(views)
    True
    >>> del half
    >>> bool(views)
    False
    """

    def __init__(self) -> None:
        self.alive: set[weakref.ref[_Exporter]] = set()  # asked at each call: no WeakSet

    def of(self, tensor: Tensor) -> Any:
        """Return a view of a tensor's data; a copy of strings, and a NumPy scalar of a number.

        A tensor without dimensions gives its number as the official class does, so no view of it is
        alive, and nothing can be written through it.

        Raises:
            ArgumentError: it has no data.
        """
        if tensor.data is None:
            raise ArgumentError("Tensor data is null. Run allocate_tensors() first")
        if tensor.data.dtype.hasobject or tensor.data.ndim == 0:
            return read_tensor(tensor)
        return self.export(tensor.data)

    def export(self, data: NDArray[Any]) -> NDArray[Any]:
        """Return a view of *data* that counts as alive until it and all its slices are deleted."""
        exporter = _Exporter(data)
        self.alive.add(weakref.ref(exporter, self.alive.discard))
        return np.asarray(exporter)

    def require_none(self) -> None:
        """Reject the call if a view is alive.

        Raises:
            StateError: one is.
        """
        if self.alive:
            raise StateError(
                "There is at least 1 reference to internal data in the interpreter in the form of "
                "a numpy array or slice. Be sure to only hold the function returned from tensor() "
                "if you are using raw data access."
            )

    def __bool__(self) -> bool:
        return bool(self.alive)
