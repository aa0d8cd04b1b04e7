"""Checks at a kernel's first run that its results are in its outputs; if not, warns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError, in_words
from delegraph.log import Logger
from delegraph.operators.tensor import Tensor

logger = Logger(__name__)

_HOW = (
    "write with out[...] = ..., or np.negative(x, out=out), where out is the output tensor's "
    "data, read at each run and not while preparing"
)
_READ_EARLY = (
    "; data that is read while preparing is None: keep the tensor, and read its data at each run"
)

_MARK = (np.arange(64) ** 2 * 37 + np.arange(64) * 151 + 211).astype(np.uint8)
"""Bytes that fill outputs before a run, to find outputs that the run does not write.

They are all different: many outputs have equal elements, but hardly any has these bytes.

``[64], uint8``.
"""

_LEAST = 4
"""Smallest number of bytes of a marked output; a shorter result may equal the mark by chance."""


def run_first(
    compute: Callable[[], object],
    inputs: Iterable[Tensor | None],
    outputs: Sequence[Tensor],
    what: str,
) -> None:
    """Call *compute*, the first run of a kernel, and check that it writes its outputs.

    A warning is logged if the kernel wrote nothing to an output, or replaced the output's array.

    Args:
        compute: the kernel's code; it returns None, unless its author made a mistake.
        inputs: tensors that the kernel reads.
        outputs: tensors that the kernel should write.
        what: subject of the sentence of an error or a warning.

    Raises:
        OperatorError: *compute* returned arrays instead of writing them to the outputs.
        Exception: any error of *compute*.
    """
    marks, before = Marks(outputs, inputs), [tensor.data for tensor in outputs]
    try:
        returned = compute()
    except (AttributeError, TypeError) as error:
        if "NoneType" not in str(error):
            raise
        raise OperatorError(in_words(error) + _READ_EARLY) from error
    _refuse_returned(returned, outputs, what)
    for tensor, data in zip(outputs, before, strict=True):
        if tensor.data is not data and not tensor.is_dynamic:
            logger.warning("%s put another array in the place of %r: %s", what, tensor, _HOW)
    for tensor in marks.unwritten():
        logger.warning("%s did not write its output %r: %s", what, tensor, _HOW)


class _Marked(NamedTuple):
    """An output whose bytes were replaced by a pattern.

    Attributes:
        number: position of the output.
        tensor: tensor of the output.
        data: array of the tensor.
        before: bytes of the array before the replacement.
        given: bytes of the pattern.
    """

    number: int
    tensor: Tensor
    data: NDArray[Any]
    before: NDArray[np.uint8]
    given: NDArray[np.uint8]


class Marks:
    """Byte pattern put into outputs before a kernel runs; it stays where the kernel writes nothing.

    Outputs that share memory with an input are left alone, and so are strings.

    Args:
        outputs: tensors that the kernel writes.
        inputs: tensors that the kernel reads.
        is_whole: whether the whole of each output is filled; otherwise only its start is.
    """

    def __init__(
        self,
        outputs: Iterable[Tensor],
        inputs: Iterable[Tensor | None],
        *,
        is_whole: bool = False,
    ) -> None:
        arrays = [None if tensor is None else tensor.data for tensor in inputs]
        read = [array for array in arrays if isinstance(array, np.ndarray)]
        self._marked: list[_Marked] = []
        for number, tensor in enumerate(outputs):
            data = tensor.data
            if _can_be_marked(tensor) and not any(np.may_share_memory(data, x) for x in read):
                content = _content(data) if is_whole else _content(data)[: _MARK.size]
                before = content.copy()
                self._marked.append(_Marked(number, tensor, data, before, _marked(content)))

    def invert(self) -> None:
        """Put the inverted byte pattern into the outputs, for one more run."""
        for _, _, data, _, given in self._marked:
            np.invert(given, out=given)
            _content(data)[: given.size] = given

    def left(self) -> dict[int, NDArray[np.bool_]]:
        """Return a mapping from an output's number to a mask of values that still have the mark.

        Outputs without such values are missing, and so are outputs whose result is in other memory.
        """
        found = {}
        for number, tensor, data, _, given in self._marked:
            if tensor.data is data and not tensor.data_is_stale:
                same = _content(data)[: given.size] == given
                still = same.reshape(-1, min(data.itemsize, given.size)).all(axis=1)
                if still.any():
                    found[number] = still
        return found

    def unwritten(self) -> list[Tensor]:
        """Return the outputs in which the whole pattern is unchanged; restore their old bytes."""
        left, found = self.left(), []
        for number, tensor, data, before, _ in self._marked:
            if number in left and left[number].all():
                _content(data)[: before.size] = before
                found.append(tensor)
        return found


def _marked(content: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Fill the bytes *content* with the mark, unless they already have it; return a copy.

    The mark depends on the first byte of *content*. A kernel that relies on earlier contents of
    memory then gives other results in other memory, which checks can find.
    """
    mark = np.resize(_MARK, content.size)
    if not np.array_equal(content ^ content[0], mark ^ mark[0]):
        content[:] = mark ^ content[0]
    return content.copy()


def _content(data: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of a contiguous array."""
    return data.reshape(-1).view(np.uint8)


def _can_be_marked(tensor: Tensor) -> bool:
    data = tensor.data
    return (
        isinstance(data, np.ndarray)
        and not data.dtype.hasobject
        and data.nbytes >= _LEAST
        and data.flags.c_contiguous
        and data.flags.writeable
        and not tensor.is_constant_or_persistent
    )


def partly_written(tensor: Tensor, missing: int) -> OperatorError:
    """Return the error of a kernel that left *missing* values of its output *tensor* as they were.

    In packed types, a value is a byte.
    """
    size = tensor.data.size
    what = (
        "did not write" if missing == size else f"wrote only {size - missing} of {size} values of"
    )
    return OperatorError(f"eval {what} its output {tensor!r}: {_HOW}")


def _refuse_returned(returned: object, outputs: Iterable[Tensor], what: str) -> None:
    """Raise an error if a kernel returned values instead of writing them to its outputs.

    A call such as ``np.negative(x, out=y)`` returns the output itself, which is allowed.

    Args:
        returned: value that the kernel returned.
        outputs: tensors that the kernel should have written.
        what: subject of the error's sentence.

    Raises:
        OperatorError: *returned* is an array, or a sequence of arrays, that shares no memory with
            an output.
    """
    several = returned if isinstance(returned, list | tuple) else (returned,)
    arrays = [value for value in several if isinstance(value, np.ndarray | np.generic)]
    written = [tensor.data for tensor in outputs if tensor.data is not None]
    if len(arrays) < len(several) or not any(array.size for array in arrays):
        return
    if not any(np.may_share_memory(array, data) for array in arrays for data in written):
        kinds = ", ".join(f"{array.dtype} {list(array.shape)}" for array in arrays)
        raise OperatorError(f"{what} returned {kinds} and did not write it into the output: {_HOW}")
