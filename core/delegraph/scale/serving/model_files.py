"""The model files that a server offers, with names and versions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from delegraph.errors import ArgumentError, printable

_NAME = re.compile(r"\w[\w.-]{0,127}")
"""Pattern of a model's name, without characters that are special in a path or a URL."""

_VERSION = re.compile(r"[1-9][0-9]{0,17}")
"""Pattern of a version folder's name; other folders are not versions."""

_FILE = "model.tflite"
"""Name of the file in a version folder."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The file of one version of a model.

    Attributes:
        name: name of the model.
        version: number of the version; empty if the file has none.
        path: path of the file.
        error: reason why the file cannot be served; empty if it can.
    """

    name: str
    version: str
    path: str
    error: str = ""

    def stamp(self) -> tuple[int, ...]:
        """Return the file's identity, size and time of change; empty if it cannot be read."""
        try:
            status = os.stat(self.path.partition("#")[0])
        except OSError:
            return ()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


Found = Mapping[str, Sequence[ModelFile]]
"""Mapping from a model's name to its versions, at least one, the newest last."""


def name_of(path: str) -> str:
    """Return the name under which the file *path* is served by default.

    >>> name_of("models/my net.tflite#decoder")
    'my_net_decoder'
    """
    file, _, section = path.partition("#")
    stem = Path(file).name.removesuffix(".tflite") + (f"_{section}" if section else "")
    return re.sub(r"[^\w.-]+", "_", stem).lstrip(".-")[:128] or "model"


def given_models(paths: Sequence[str]) -> Found:
    """Return the models in the files *paths*, by name.

    Raises:
        ArgumentError: two files have the same name.
    """
    found: dict[str, Sequence[ModelFile]] = {}
    for path in paths:
        name = name_of(path)
        if name in found:
            raise ArgumentError(
                f"{found[name][0].path!r} and {path!r} would both be served as {name!r}: rename one"
            )
        found[name] = (ModelFile(name, "", path),)
    return found


def models_in(folder: str) -> Found:
    """Return the models in a folder: ``name.tflite`` and ``name/1/model.tflite``.

    Hidden entries, and folders without numbered subfolders, are ignored. An entry that looks like a
    model but cannot be served is returned with its error.

    Raises:
        ArgumentError: the folder cannot be read.
    """
    found: dict[str, Sequence[ModelFile]] = {}
    for entry in _entries(Path(folder)):
        versions = tuple(_versions(entry))
        if not versions:
            continue
        name = versions[0].name
        if name in found:
            reason = f"{name}.tflite and the folder {name} have the same name: rename one"
            versions = (ModelFile(name, "", versions[0].path, reason),)
        found[name] = versions
    return found


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise ArgumentError(f"folder {str(folder)!r} cannot be read: {error.strerror}") from error


def _versions(entry: Path) -> Iterator[ModelFile]:
    """Yield the versions of the model in an entry of the folder, the newest last."""
    if entry.is_dir():
        try:
            numbers = sorted(int(v.name) for v in entry.iterdir() if _VERSION.fullmatch(v.name))
        except OSError as error:
            yield _model_file(entry.name, "", entry, f"cannot be read: {error.strerror}")
            return
        for number in numbers:
            yield _model_file(entry.name, str(number), entry / str(number) / _FILE)
    elif entry.suffix == ".tflite":
        yield _model_file(entry.stem, "", entry)


def _model_file(name: str, version: str, path: Path, error: str = "") -> ModelFile:
    shown = printable(name)
    if not _NAME.fullmatch(name):
        error = (
            f"the name {shown!r} cannot be served: expected up to 128 letters, digits, '_', '.' "
            "and '-', and no '.' or '-' first"
        )
    elif not error and not path.is_file():  # a pipe would keep its reader waiting
        error = f"{printable(str(path))!r} is not a file"
    return ModelFile(shown, version, str(path), error)


@dataclass(frozen=True, slots=True)
class OfferedModels:
    """Several models that a server offers.

    Attributes:
        source: a folder, or model files.
        all_versions: whether all versions are served, or only the newest.
        may_change: whether clients may load and unload models.
    """

    source: str | tuple[str, ...]
    all_versions: bool = False
    may_change: bool = False

    def find(self) -> Found:
        """Return the models that exist at present.

        Raises:
            ArgumentError: the folder cannot be read, or two files have the same name.
        """
        if isinstance(self.source, str):
            return models_in(self.source)
        return given_models(self.source)
