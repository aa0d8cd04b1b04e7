"""Values for a model's inputs, from random numbers, texts, arrays, pictures and sounds."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.graph.metadata import NOTHING_SAID, TensorMetadata
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.tools.array_files import read_npy, read_npz
from delegraph.tools.model_call import Details, declared_shape, input_name
from delegraph.tools.pictures import (
    AS_DESCRIBED,
    PICTURE_SUFFIXES,
    PictureOptions,
    is_picture,
    picture_as_input,
)
from delegraph.tools.quantizing import quantized
from delegraph.tools.sounds import sound_as_input
from delegraph.tools.tokenizing import takes_text, text_as_input

_NUMBER = r"\s*(?:[-+.\d][^,/\\]*|(?i:nan|inf(?:inity)?)\s*)"
_NUMBERS = re.compile(f"{_NUMBER}(?:,{_NUMBER})*")


def input_values(
    text: str,
    details: Details,
    rng: np.random.Generator,
    *,
    described: TensorMetadata = NOTHING_SAID,
    sample_rate: int | None = None,
    picture: PictureOptions = AS_DESCRIBED,
    note: Callable[[str], object] = str,
) -> NDArray[Any]:
    """Return the values that *text* describes, in the input's dtype.

    Args:
        text: ``random``, ``zeros``, a ``.npy`` file, a ``.npz`` file of one array, a picture, a
            ``.wav`` file, or numbers: a single one for all elements, or one for each (``1,2,3``).
            For a quantized input, whole numbers are stored integers; if one has a point
            (``1.0,2``), all are real numbers. Inputs of strings, and of integers with a tokenizer
            in the metadata, also take a ``.txt`` file with one text per line, or the text itself.
            After ``text:`` it is always taken literally.
        details: details of the input, as ``get_input_details`` returns them.
        rng: generator of random values.
        described: metadata of the input.
        sample_rate: sample rate of a sound in hertz, if the metadata lacks it or is wrong.
        picture: options for converting a picture to the input.
        note: function that is called with a description of each conversion of a picture, a sound or
            a text.

    Returns:
        An array of the input's shape, or of a shape that its unknown dimensions allow.

    Raises:
        ArgumentError: the file does not exist, or the input cannot take the values.
    """
    if text == "random":
        return random_values(details, rng)
    if text == "zeros":
        return np.zeros_like(random_values(details, rng))
    if _takes_text(details) and text.startswith("text:"):
        return _one_text(text.removeprefix("text:"), details)
    suffix = Path(text).suffix.lower()
    if suffix in (".npy", ".npz"):
        return fitted(_array_of(text, suffix, details), details, text)
    if _takes_text(details):
        return _lines(text, details) if suffix == ".txt" else _one_text(text, details)
    if takes_text(details, described) and not _holds_numbers(text):
        return text_as_input(text.removeprefix("text:"), details, described, note)
    if is_picture(text):
        return picture_as_input(text, details, described, note, picture)
    if suffix == ".wav":
        return sound_as_input(text, details, described, sample_rate, note)
    if _NUMBERS.fullmatch(text):
        return _numbers(text, details)
    raise ArgumentError(_what_numbers(text, details))


def _what_numbers(text: str, details: Details) -> str:
    """Text that says which values an input of numbers takes, for an error about *text*."""
    count = math.prod(details["shape"].tolist())
    several = f"one number for all {count:,}, all of them with commas" if count != 1 else "a number"
    is_ids = np.dtype(details["dtype"]) in (np.int32, np.int64)
    if os.path.isdir(text):
        return (
            f"{input_name(details)} takes one input, not the folder {text!r}; predict runs folders"
        )
    given = f"the file {text!r}" if os.path.isfile(text) else repr(text)
    taken = f"{input_name(details)} takes numbers, not {given}"
    if is_ids:  # such as those of words
        return (
            f"{taken}: a text needs a tokenizer in the model's metadata; without one give "
            f"'random', 'zeros', {several}, or a file, .npy or .npz"
        )
    return (
        f"{taken}: give 'random', 'zeros', {several}, nan, inf, or a file: .npy, .npz, .wav or a "
        f"picture ({', '.join(sorted(PICTURE_SUFFIXES))})"
    )


def _holds_numbers(text: str) -> bool:
    try:
        return all(math.isfinite(float(word)) for word in text.split(","))
    except ValueError:
        return False


def require_room(details: Details, limit: MemoryLimit) -> None:
    """Check that the declared size of the input *details* fits the memory limit.

    Raises:
        OperatorError: the input exceeds *limit*.
    """
    count = math.prod(details["shape"].tolist())
    limit.require(count * np.dtype(details["dtype"]).itemsize, input_name(details))


def random_values(details: Details, rng: np.random.Generator) -> NDArray[Any]:
    """Return random values for the input *details*; unknown dimensions are 1.

    Floats are uniform in [-1, 1), and 8- and 16-bit integers are uniform in their whole range.
    Wider integers are 0 or 1, since they are often positions or ids. Strings are empty.

    Args:
        details: details of the tensor.
        rng: source of random numbers.
    """
    shape = details["shape"].tolist()
    dtype: np.dtype[Any] = np.dtype(details["dtype"])
    if dtype.kind in "SOU":
        return np.full(shape, b"", object)
    values: NDArray[Any]
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        limits = np.iinfo(dtype)
        values = rng.integers(limits.min, limits.max, shape, np.int64, endpoint=True)
    elif dtype.kind in "biu":
        values = rng.integers(0, 2, shape)
    elif dtype.kind == "c":
        values = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
    else:
        values = rng.uniform(-1, 1, shape)
    return np.asarray(values).astype(dtype)


def _array_of(path: str, suffix: str, details: Details) -> NDArray[Any]:
    """Return the array of the ``.npy`` file *path*, or the only array of an ``.npz`` file."""
    try:
        arrays = {"": read_npy(path)} if suffix == ".npy" else read_npz(path)
    except ArgumentError as error:
        raise ArgumentError(f"{input_name(details)}: {error}") from error
    if len(arrays) != 1:
        raise ArgumentError(
            f"{input_name(details)}: {path!r} holds {len(arrays)} arrays; give it without the name "
            "of one input to use all of them by their names"
        )
    return next(iter(arrays.values()))


def _takes_text(details: Details) -> bool:
    return np.dtype(details["dtype"]).kind in "SOU"


def _lines(path: str, details: Details) -> NDArray[Any]:
    """Return the lines of the file *path* as strings."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        reason = error.strerror or error
        raise ArgumentError(f"{input_name(details)}: {path!r} cannot be read: {reason}") from error
    return fitted(np.array(lines, object), details, path)


def _one_text(text: str, details: Details) -> NDArray[Any]:
    """Return *text* as the value of the input *details*, which has one string."""
    shape = declared_shape(details)
    if any(dim not in (1, -1) for dim in shape):
        count = math.prod(dim for dim in shape if dim != -1)
        raise ArgumentError(
            f"{input_name(details)} takes {count:,} texts, and one is given: give a .txt file with "
            "one text a line, or a .npy file"
        )
    one = np.empty([1] * len(shape), object)
    one[...] = text.encode()
    return one


def fitted(values: NDArray[Any], details: Details, source: str) -> NDArray[Any]:
    """Return *values* in dtype and rank of the input *details*; leading dimensions of 1 are added.

    Raises:
        ArgumentError: the dtype or shape differs; the message begins with *source*.
    """
    values = as_dtype_of(details, values, source)
    declared = declared_shape(details)
    missing = len(declared) - values.ndim
    shape = (1,) * missing + values.shape
    fits = len(shape) == len(declared) and all(
        want in (-1, have) for want, have in zip(declared, shape, strict=True)
    )
    if not fits:
        raise ArgumentError(
            f"{input_name(details)}: {source!r} has shape {list(values.shape)}, expected {declared}"
        )
    return values.reshape(shape)


def as_dtype_of(details: Details, values: NDArray[Any], source: str) -> NDArray[Any]:
    """Convert *values* to the dtype of the input *details*, if this dtype can hold them.

    Floats for a quantized input are real numbers, and become the nearest stored integers.

    Raises:
        ArgumentError: the dtype is of another kind or cannot hold *values*, or *values* are
            pictures of int8 for uint8 or the reverse; the message names *source*.
    """
    dtype = np.dtype(details["dtype"])
    if dtype.kind == "S":
        return _as_strings(values, details, source)
    if values.dtype.kind == "V" and values.dtype.itemsize == dtype.itemsize:
        return values.view(dtype)  # NumPy's files do not know bfloat16 and its like
    if values.dtype == dtype:
        return values
    if {values.dtype.name, dtype.name} == {"int8", "uint8"} and len(declared_shape(details)) == 4:
        raise ArgumentError(
            f"{input_name(details)}: {source!r} holds {values.dtype.name}, and pixels of "
            f"{values.dtype.name} are other numbers in {dtype.name}: give real numbers as float32, "
            f"or array.astype(np.{dtype.name}) of integers as the model stores them"
        )
    if values.dtype.kind == "f" and dtype.kind in "iu" and details["quantization"][0]:
        return _quantized(values, details, source)
    if dtype.kind in "iu" and _are_integers(values):
        return _integers_of(dtype, values, details, source)
    if values.dtype.kind != dtype.kind or dtype.kind != "f":
        names = {"O": "values that are no numbers", "S": "texts", "U": "texts"}
        found = names.get(values.dtype.kind, values.dtype.name)
        if values.dtype == object and any(each is None for each in values.flat):
            found = "a missing value"
        raise ArgumentError(
            f"{input_name(details)}: {source!r} holds {found}, expected {dtype.name}"
        )
    return _floats_of(dtype, values, details, source)


def _are_integers(values: NDArray[Any]) -> bool:
    """Whether *values* have an integer dtype, or are an object array of Python integers.

    Integers beyond 64 bits are objects. Floats never count, not even whole numbers such as 2.0.
    """
    if values.dtype == object:
        return all(isinstance(each, int | np.integer) for each in values.flat)
    return values.dtype.kind in "iu"


def _integers_of(
    dtype: np.dtype[Any], values: NDArray[Any], details: Details, source: str
) -> NDArray[Any]:
    """Return integers as *dtype*, which must hold each of them."""
    limits = np.iinfo(dtype.type)
    if values.size:
        for each in (int(values.min()), int(values.max())):
            if not limits.min <= each <= limits.max:
                raise ArgumentError(
                    f"{input_name(details)}: {source!r} holds {each}, which is out of the range of "
                    f"{dtype.name}: {limits.min} to {limits.max}"
                )
    return values.astype(dtype)


def _floats_of(
    dtype: np.dtype[Any], values: NDArray[Any], details: Details, source: str
) -> NDArray[Any]:
    """Return floats as *dtype*, in which only infinities may become infinite."""
    with np.errstate(over="ignore"):
        typed = values.astype(dtype)
    lost = values[np.isinf(typed) & np.isfinite(values)]
    if lost.size:
        raise ArgumentError(
            f"{input_name(details)}: {source!r} holds {lost[0]:.6g}, which is out of the range of "
            f"{dtype.name}; inf means infinity"
        )
    return typed


def _as_strings(values: NDArray[Any], details: Details, source: str) -> NDArray[Any]:
    others = [] if values.dtype.kind in "SU" else [values.dtype.name]
    if values.dtype == object:
        others = [type(each).__name__ for each in values.flat if not isinstance(each, str | bytes)]
    if others:
        found = "a missing value" if others[0] == "NoneType" else others[0]
        raise ArgumentError(f"{input_name(details)}: {source!r} holds {found}, expected texts")
    return values.astype(object)


def _quantized(values: NDArray[Any], details: Details, source: str) -> NDArray[Any]:
    """Return real numbers as the integers that a quantized input stores.

    Numbers a little out of range are saturated. Others are probably pixels or stored integers.

    Raises:
        ArgumentError: a number is far out of range, or NaN; the message names *source*.
    """
    scale, zero_point = details["quantization"]
    dtype: np.dtype[Any] = np.dtype(details["dtype"])
    limits = np.iinfo(dtype.type)
    low, high = ((limit - zero_point) * scale for limit in (limits.min, limits.max))
    margin = high - low
    if not ((values >= low - margin) & (values <= high + margin)).all():
        raise ArgumentError(
            f"{input_name(details)}: {source!r} holds {values.dtype.name} from {values.min():.6g} "
            f"to {values.max():.6g}, expected {dtype.name}, or real numbers from {low:.6g} to "
            f"{high:.6g}, which are quantized"
        )
    return quantized(values, details)


def _numbers(text: str, details: Details) -> NDArray[Any]:
    shape, dtype = details["shape"].tolist(), np.dtype(details["dtype"])
    declared = declared_shape(details)
    try:
        values = np.array([float(part) for part in text.split(",")])
        if dtype.kind in "iub" and not np.isfinite(values).all():
            raise ArgumentError(f"{input_name(details)}: {text!r} does not fit {dtype.name}")
        if dtype.kind in "iu" and details["quantization"][0] and re.search("[.eE]", text):
            values = _quantized(values, details, text)
        typed = (
            _floats_of(dtype, values, details, text) if dtype.kind == "f" else values.astype(dtype)
        )
    except ArgumentError:
        raise
    except (ValueError, OverflowError) as error:
        raise ArgumentError(f"{input_name(details)}: {text!r} holds no numbers: {error}") from error
    if dtype.kind in "iub" and not np.array_equal(typed, values):
        raise ArgumentError(f"{input_name(details)}: {text!r} does not fit {dtype.name}")
    if len(typed) == 1:
        return np.full(shape, typed[0], dtype)
    is_open = declared.count(-1) == 1  # then the numbers decide that dimension
    size = math.prod(each for each in declared if each != -1) if is_open else math.prod(shape)
    if is_open and size and len(typed) % size == 0:
        return typed.reshape(declared)
    if is_open or len(typed) != size:
        expected = f"1 or {'a multiple of ' * is_open}{size}" if size != 1 else "1"
        raise ArgumentError(
            f"{input_name(details)}: {len(typed)} numbers are given, expected {expected}"
        )
    return typed.reshape(shape)
