"""Interface of an executor: an object that runs TensorFlow's operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any

from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.flex_node import FlexNode

Step = Callable[..., Any]
"""Computes a node: takes a value for each input, returns one value, or a list or tuple of values.

No value is itself a list or tuple. Who calls steps does so under ``np.errstate(all="ignore")``:
infinities and NaNs are results here, as in TensorFlow, and no warnings.
"""


class Executor(ABC):
    """Runs operators one by one, on values in the executor's own representation.

    Attributes:
        name: name of the executor, as in the option ``executor``.
        retaining: operators that keep an input beyond the call, so they must not be given memory
            that others will write to.
    """

    name: str
    retaining: Collection[str] = ()

    @abstractmethod
    def bind(self, node: FlexNode) -> Step:
        """Return the function that computes *node*; its attributes are read here, not at each call.

        Raises:
            Unsupported: the executor cannot run it.
        """

    @abstractmethod
    def enter(self, array: NDArray[Any], type: TensorType) -> Any:
        """Return *array* as a value of the executor, without a copy where possible.

        Strings are ``bytes`` objects in an array of dtype object; a resource or variant is an array
        without dimensions whose one element is what :meth:`leave` gave.
        """

    @abstractmethod
    def leave(self, value: Any, type: TensorType) -> NDArray[Any]:
        """Return a value of the executor as an array in the form that :meth:`enter` takes."""

    def describe(self) -> str:
        """Name of the executor for messages, with a version where useful."""
        return self.name
