"""Shortcuts of ``invoke``, ``set_tensor`` and ``get_tensor``, prepared for an allocated subgraph.

A model of one small operator runs in a microsecond, of which each attribute and each Python call
takes a few percent. ``Interpreter`` therefore has what these methods need in one object with slots.
Python looks up an attribute of a session, which has many, in 20 ns, and a slot in 3 ns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from delegraph.runtime.tensor_access import STORED_AS_SEEN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from delegraph.operators.tensor import Tensor
    from delegraph.schema.enums import TensorType

COPIED_AT_ONCE = 500
"""Elements that NumPy copies without letting other threads run.

Source:
    ``NPY_BEGIN_THREADS_THRESHOLDED``, numpy/_core/include/numpy/ndarraytypes.h.
"""

Target = tuple["Tensor", "NDArray[Any]", "np.dtype[Any]", tuple[int, ...]]
"""A tensor, its array, and the dtype and shape of values that can be copied into the array."""


class Shortcuts:
    """What ``Interpreter`` needs to run a subgraph and to copy its inputs and outputs.

    The subgraph clears it whenever nodes or memory may change.

    Args:
        turn: the interpreter's lock, see ``Calls.turn``.

    Attributes:
        turn: the same.
        invoke: function that runs the subgraph while no other call can run; None if there is none,
            or if a profile is taken.
        small_targets: inputs that were set before, by index, and are copied without letting other
            threads run.
        large_targets: other inputs that were set before; the lock must be held to copy one.
        sources: outputs that were read before, by index, each with its type.
    """

    __slots__ = ("invoke", "large_targets", "small_targets", "sources", "turn")

    def __init__(self, turn: dict[str, tuple[str, int]]) -> None:
        self.turn = turn
        self.invoke: Callable[[], object] | None = None
        self.small_targets: dict[int, Target] = {}
        self.large_targets: dict[int, Target] = {}
        self.sources: dict[int, tuple[Tensor, TensorType]] = {}

    def clear(self) -> None:
        """Forget everything that was prepared."""
        self.invoke = None
        self.small_targets.clear()
        self.large_targets.clear()
        self.sources.clear()

    def add_target(self, tensor: Tensor) -> None:
        """Make the next copies into an input fast, if it has an array of numbers of its own."""
        data = tensor.data
        if data is None or tensor.type not in STORED_AS_SEEN or not data.flags.writeable:
            return
        is_small = math.prod(tensor.shape) <= COPIED_AT_ONCE
        targets = self.small_targets if is_small else self.large_targets
        targets[tensor.index] = tensor, data, tensor.dtype, tensor.shape

    def add_source(self, tensor: Tensor) -> None:
        """Make the next copies of an output fast, if it has numbers."""
        if tensor.type in STORED_AS_SEEN:
            self.sources[tensor.index] = tensor, tensor.type

    def copy_large(self, index: object, value: object) -> bool:
        """Copy *value* into the large input *index* if that is prepared; return whether it was.

        The caller holds the lock.
        """
        target = self.large_targets.get(index) if type(index) is int else None
        if target is None or type(value) is not ndarray:
            return False
        tensor, data, dtype, shape = target
        if value.dtype is not dtype or value.shape != shape:
            return False
        if tensor.data is not data or tensor.delegate is not None:
            return False
        data[...] = value
        return True
