"""Interface of evaluation tasks: a task runs a model on samples that have permanent keys."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from delegraph.tools.model_call import Details

Row = Mapping[str, Any]
"""A task's record of a model's outputs for one sample: JSON data, because a journal keeps it."""

Outputs = Sequence[tuple[Details, NDArray[Any]]]
"""Details and values of every output of a model, in the model's order."""


class Sample(Protocol):
    """One item of a data set; the content stays in the data set."""

    @property
    def key(self) -> str:
        """Unique and permanent name of the sample in its data set."""

    def digest(self) -> str:
        """Return a digest of the sample's content and ground truth.

        Raises:
            ArgumentError: the content cannot be read.
        """


AnySample = TypeVar("AnySample", bound=Sample, contravariant=True)


class Task(Protocol[AnySample]):
    """Runs a model on samples and judges the answers.

    Results depend only on :meth:`identity`, the model and the sample. If these are equal, results
    of an interrupted evaluation are reused.
    """

    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the rows, as JSON: name and options."""

    def require_model(self, inputs: Sequence[Details], outputs: Sequence[Details]) -> None:
        """Check that a model with these inputs and outputs suits the task.

        It is called once for each set-up.

        Raises:
            ArgumentError: the model does not fit; the message says what was expected.
        """

    def inputs(self, sample: AnySample, details: Sequence[Details]) -> list[NDArray[Any]]:
        """Return the values of all inputs, in the order of *details*.

        Raises:
            ArgumentError: the sample cannot be used; the evaluation lists it with the reason and
                continues.
        """

    def judge(self, sample: AnySample, outputs: Outputs) -> Row:
        """Return the record of *outputs*, a model's answer for one sample."""


def content_digest(content: bytes) -> str:
    """Return the digest of bytes, as 32 hexadecimal digits.

    >>> content_digest(b"")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return hashlib.blake2b(content, digest_size=16).hexdigest()
