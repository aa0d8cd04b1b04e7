"""What runs TensorFlow's operators: one interface, several executors behind it."""

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
    """Runs operators one by one on values of its own kind.

    Attributes:
        name: as the option ``executor`` has it.
        retaining: operators that keep an input beyond the call, so they must not be given memory
            that others will write to.
    """

    name: str
    retaining: Collection[str] = ()

    @abstractmethod
    def bind(self, node: FlexNode) -> Step:
        """Return the function that computes *node*; everything its attributes decide is decided.

        Raises:
            Unsupported: the executor cannot run it.
        """

    @abstractmethod
    def enter(self, array: NDArray[Any], type: TensorType) -> Any:
        """Return *array* as a value, without a copy where that is possible.

        Strings are ``bytes`` objects in an array of dtype object; a resource or variant is an array
        without dimensions whose one element is what :meth:`leave` gave.
        """

    @abstractmethod
    def leave(self, value: Any, type: TensorType) -> NDArray[Any]:
        """Return a value as the array that :meth:`enter` takes."""

    def describe(self) -> str:
        """Return the name for people, with a version where that says something."""
        return self.name
