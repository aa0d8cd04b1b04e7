"""What TensorFlow makes of the cases, recorded so that tests can do without it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flex_cases import Case
from packed_arrays import encode, load, pack, save, unpack

FOLDER = Path(__file__).parent / "recorded"
COMMAND = "make flex-record"
"""Records what is missing or out of date; it installs TensorFlow."""


class NotRecorded(LookupError):
    """A case has no recorded results, or has changed since; the message says what to do."""


def recorded(name: str, case: Case) -> list[NDArray[Any]]:
    """Return TensorFlow's outputs of a case, of every run.

    Args:
        name: as :func:`flex_cases.all_cases` gives it.
        case: the case.

    Raises:
        NotRecorded: they must be recorded first.
    """
    module, _, key = name.partition(".")
    index, data = _file(module)
    entry = index.get(key)
    if entry is None or entry["digest"] != digest(case):
        found = "was changed since its results were" if entry else "has no results"
        raise NotRecorded(f"case {name} {found} recorded: run {COMMAND}")
    return unpack(entry["outputs"], data)


def write(module: str, results: Iterable[tuple[str, Case, Sequence[NDArray[Any]]]]) -> int:
    """Write the results of a module's cases; return the number of bytes of the file.

    Args:
        module: the name of the module.
        results: of each case its name in the module, the case and its outputs.
    """
    data = bytearray()
    index = {
        key: {"digest": digest(case), "outputs": pack(outputs, data)}
        for key, case, outputs in results
    }
    _file.cache_clear()
    return save(FOLDER / f"{module}.npz", index, data)


def digest(case: Case) -> str:
    """Return a short digest of everything that decides a case's results."""
    letters = hashlib.sha256()
    for array in case.inputs:
        dtype, content = encode(array)
        letters.update(f"{dtype}{array.shape}".encode() + content)
    for call in case.calls:
        attrs = sorted((name, _text(value)) for name, value in call.attrs.items())
        letters.update(repr((call.op, attrs, call.inputs, call.output_types)).encode())
    letters.update(repr((case.outputs, case.runs)).encode())
    return letters.hexdigest()[:12]


def _text(value: Any) -> str:
    """Return an attribute as text; an array's ``repr`` would omit elements."""
    return repr(value.tolist() if isinstance(value, np.ndarray) else value)


@cache
def _file(module: str) -> tuple[dict[str, Any], bytes]:
    path = FOLDER / f"{module}.npz"
    return load(path) if path.exists() else ({}, b"")
