"""Interface of executors, which run TensorFlow's operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.flex_node import FlexNode

Step = Callable[..., Any]
"""Function (step) that computes a node: it gets a value for each input, and returns the output.

Several outputs are returned as a list or tuple; a single value is neither. Callers use
``np.errstate(all="ignore")``, because infinities and NaN are valid results, as in TensorFlow.

Such functions are called steps.
"""


class Executor(ABC):
    """Runs TensorFlow's operators one by one, by NumPy or by TensorFlow itself.

    Attributes:
        name: name of the executor, as in the option ``executor``.
    """

    name: str

    @abstractmethod
    def bind(self, node: FlexNode) -> Step:
        """Return the function that computes *node*; attributes are read once, not at each call.

        Raises:
            Unsupported: the executor cannot run the node.
        """

    @abstractmethod
    def enter(self, array: NDArray[Any], type: TensorType) -> Any:
        """Return *array* in the executor's own form of values, without a copy where possible.

        *type* is the tensor's type in the file. Strings are ``bytes`` objects in an array of dtype
        object; a resource or variant is an array without dimensions whose only element is a result
        of :meth:`leave`.
        """

    @abstractmethod
    def leave(self, value: Any, type: TensorType) -> NDArray[Any]:
        """Return *value*, in the executor's own form, as an array of the tensor type *type*.

        This is the inverse of :meth:`enter`.
        """

    def describe(self) -> str:
        """Return the name of the executor for messages, with a version if useful."""
        return self.name
