"""Identity of an evaluation: all data that determines its results, so that they can be reused."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from delegraph.bundles.opening import split_address
from delegraph.errors import ModelError
from delegraph.graph.model import Model
from delegraph.tools.evaluation.task import Sample, content_digest
from delegraph.tools.setup import Setup, file_and_options
from delegraph.tools.whole_file import read_whole

_LONGEST = 90
"""Largest number of characters of a value in the text of a difference."""

_DIGEST = re.compile("[0-9a-f]{32}")


def identity(
    setups: Sequence[Setup], task: Mapping[str, Any], samples: Sequence[Sample]
) -> dict[str, Any]:
    """Return the identity: a mapping from the name of each part to its JSON data.

    The content of samples is not included: a journal has a sample's digest in the entry with its
    results.

    Raises:
        ArgumentError: a file of a set-up cannot be read.
    """
    parts: dict[str, Any] = {
        f"set-up {number}": setup_identity(setup) for number, setup in enumerate(setups, 1)
    }
    keys = "\0".join(sample.key for sample in samples)
    return {
        **parts,
        "task": dict(task),
        "samples": {"count": len(samples), "keys": content_digest(keys.encode())},
        "versions": versions(),
    }


def setup_identity(setup: Setup, model: Model | None = None) -> dict[str, Any]:
    """Return *setup* as JSON data, in which files are given by digests instead of paths.

    Its *model* is loaded if None is given.

    Raises:
        ArgumentError: a file cannot be read.
    """
    values = setup.to_json()
    values["model"] = _model_digest(setup, model)
    written = [file_and_options(text) for text in setup.delegate_files]
    values["delegate_files"] = [[_file_digest(path), options] for path, options in written]
    compiled = [str(name).partition(":")[0] for name in setup.delegates or ()]
    values["compiled"] = [_file_digest(path) for path in compiled if os.path.isfile(path)]
    if isinstance(setup.rules, str | os.PathLike):
        values["rules"] = _file_digest(os.fspath(setup.rules))
    return values


def _model_digest(setup: Setup, model: Model | None) -> str:
    """Digest of a set-up's model, which is loaded if None is given, and of its external constants.

    Raises:
        ArgumentError: the file cannot be read.
    """
    try:
        model = setup.loaded_model() if model is None else model
    except ModelError:  # the error is reported when the set-up runs
        return _file_digest(split_address(setup.model)[0])
    outside = "".join(content_digest(file.tobytes()) for file in model.external_buffers.files)
    return content_digest(model.content.tobytes()) + outside


def _file_digest(path: str) -> str:
    return content_digest(read_whole(path))


def versions() -> dict[str, str]:
    """Return the versions of runtimes and installed delegates."""
    from importlib_metadata import PackageNotFoundError, version

    from delegraph.plugins.choice import PluginChoice
    from delegraph.plugins.discovery import declared_plugins

    plugins = declared_plugins(PluginChoice.of())
    found = {plugin.distribution: plugin.version for plugin in plugins}
    for name in ("delegraph", "numpy", "pillow", "ai-edge-litert", "tflite-runtime", "tensorflow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def differing_parts(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of each part in which the identities *kept* and *wanted* differ.

    The differing fields of a part follow in parentheses, with both values unless they are long.

    >>> list(differing_parts({"a": {"b": 1, "c": "x"}}, {"a": {"b": 2, "c": "x"}, "d": True}))
    ['a (b: 1, now 2)', 'd (not set, now True)']
    """
    for name in _unequal(kept, wanted):
        text = _difference(kept.get(name), wanted.get(name))
        yield f"{name} ({text})" if text else name


def _unequal(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return [name for name in sorted({*a, *b}) if a.get(name) != b.get(name)]


def _difference(before: object, now: object) -> str:
    """Text of two values, or of their fields; empty if one is long, or has a digest in it."""
    if isinstance(before, dict) and isinstance(now, dict):
        fields = [(e, _difference(before.get(e), now.get(e))) for e in _unequal(before, now)]
        return "; ".join(f"{field}: {text}" if text else field for field, text in fields)
    texts = ["not set" if value is None else repr(value) for value in (before, now)]
    is_short = all(len(text) <= _LONGEST and not _DIGEST.search(text) for text in texts)
    return ", now ".join(texts) if is_short else ""
