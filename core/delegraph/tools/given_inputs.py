"""Assigns the user's values to inputs: ``[NAME=]VALUE`` texts, or a ``.npz`` file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, did_you_mean
from delegraph.tools.array_files import read_npz
from delegraph.tools.model_call import Details, input_name, input_positions
from delegraph.tools.model_inputs import fitted

Names = Mapping[str, int]
"""Mapping from a name by which an input may be given to the input's position."""


@dataclass(frozen=True, slots=True)
class GivenInput:
    """An input with the values given for it.

    Attributes:
        details: details of the input, as ``get_input_details`` returns them.
        source: text that the user gave.
        values: the array of values.
        notes: descriptions of conversions of a picture or a sound.
    """

    details: Details
    source: str
    values: NDArray[Any]
    notes: tuple[str, ...] = ()


def given_inputs(
    words: Sequence[str],
    details: Sequence[Details],
    signature_names: Names,
    values_of: Callable[[str, Details, Callable[[str], object]], NDArray[Any]],
) -> list[GivenInput]:
    """Return values for all inputs in the order of *details*; inputs not given get random values.

    Args:
        words: the user's texts, each ``VALUE`` or ``NAME=VALUE``. NAME is an input's position, its
            tensor's name, or the name that a signature gives it. A ``.npz`` file without NAME holds
            an array for each input without another value.
        details: details of all inputs.
        signature_names: mapping from an input's name in a signature to the input's position.
        values_of: function that makes an array from a VALUE, and notes conversions of a picture or
            a sound.

    Raises:
        ArgumentError: no input has a given name, an input is given twice or missing in a ``.npz``
            file, or an input cannot take a value.
    """
    names = input_positions(details, signature_names)
    archives = [word for word in words if _is_archive(word, names)]
    if len(archives) > 1:
        raise ArgumentError(f"{archives[0]!r} and {archives[1]!r} both hold all inputs; give one")
    texts = _texts([word for word in words if word not in archives], details, names)
    arrays = _archived(archives[0], details, names, texts) if archives else {}
    found = []
    for position, entry in enumerate(details):
        if position in arrays:
            found.append(GivenInput(entry, archives[0], arrays[position]))
            continue
        text, notes = texts.get(position, "random"), list[str]()
        values = values_of(text, entry, notes.append)
        found.append(GivenInput(entry, text, values, tuple(notes)))
    return found


def _texts(words: Sequence[str], details: Sequence[Details], names: Names) -> dict[int, str]:
    """Return the text given for each input in *words*, ``NAME=VALUE``, by the input's position."""
    texts: dict[int, str] = {}
    for word in words:
        name, value = _split(word, names)
        if name is None:
            if len(details) != 1 or _is_misnamed(word, details[0]):
                raise _unnamed(word, details, names)
            name = "0"
        if names[name] in texts:
            raise ArgumentError(f"input {name!r} is given twice")
        texts[names[name]] = value
    return texts


def _unnamed(word: str, details: Sequence[Details], names: Names) -> ArgumentError:
    """Return the error for a text *word* that has to name its input, but does not."""
    known = ", ".join(repr(entry["name"]) for entry in details)
    if "=" not in word:
        if not details:
            return ArgumentError(f"--input {word!r}: the model has no inputs; leave it out")
        return ArgumentError(
            f"--input {word!r} does not say for which of the inputs {known}; for example "
            f"--input {details[0]['name']}={word}"
        )
    close = did_you_mean(word.partition("=")[0], sorted(names))
    return ArgumentError(f"--input {word!r}{close} names none of the inputs: {known}")


def _split(word: str, names: Names) -> tuple[str | None, str]:
    """Split *word*, ``NAME=VALUE``, at the longest known name, since names may contain ``=``."""
    found = [name for name in names if word.startswith(f"{name}=")]
    if not found:
        return None, word
    name = max(found, key=len)
    return name, word[len(name) + 1 :]


def _is_misnamed(word: str, details: Details) -> bool:
    """Whether *word* seems to begin with a wrong name, and is neither a file nor a text."""
    is_text = np.dtype(details["dtype"]).kind in "SOU"
    return "=" in word and not is_text and not Path(word).exists()


def _is_archive(word: str, names: Names) -> bool:
    return _split(word, names)[0] is None and Path(word).suffix.lower() == ".npz"


def _archived(
    path: str, details: Sequence[Details], names: Names, given: Mapping[int, str]
) -> dict[int, NDArray[Any]]:
    """Return the arrays of the ``.npz`` file *path*, by input position, for inputs not in *given*.

    Raises:
        ArgumentError: an array belongs to no input or to an input in *given*, or one is missing.
    """
    found: dict[int, NDArray[Any]] = {}
    for name, values in read_npz(path).items():
        if name not in names:
            known = [entry["name"] for entry in details]
            raise ArgumentError(
                f"{path!r} holds {name!r}{did_you_mean(name, sorted(names))}, which is none of the "
                f"inputs: {', '.join(map(repr, known))}"
            )
        position = names[name]
        if position in found or position in given:
            raise ArgumentError(f"input {name!r} is given twice: {path!r} holds it too")
        found[position] = fitted(values, details[position], f"{path}: {name}")
    for position, entry in enumerate(details):
        if position not in found and position not in given:
            raise ArgumentError(
                f"{path!r} holds no array for {input_name(entry)}; add one, or give it too, as in "
                f"--input {entry['name']}=random"
            )
    return found
