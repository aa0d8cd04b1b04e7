"""Compiles models: one custom operator replaces the operators that the Edge TPU can run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from delegraph.errors import ArgumentError, MalformedModelError
from delegraph.graph import load_model, self_contained
from delegraph_edgetpu.chip import NEWEST_RUNTIME
from delegraph_edgetpu.compilation import Compilation
from delegraph_edgetpu.compiled_segment import CompiledSegment
from delegraph_edgetpu.devices import CACHE_BYTES
from delegraph_edgetpu.errors import CannotCompile
from delegraph_edgetpu.partition import token_of
from delegraph_edgetpu.settings import Balance, Settings
from delegraph_edgetpu.source_model import SourceModel, compiled_parts

ModelSource = str | os.PathLike[str] | bytes
"""Path of a ``.tflite`` file, or its bytes."""


def compile(
    models: ModelSource | Iterable[ModelSource],
    *,
    segments: int = 1,
    balance: Balance = "multiply-adds",
    intermediate_tensors: Sequence[str] = (),
    min_runtime_version: int = NEWEST_RUNTIME,
    search: bool = False,
    search_step: int = 1,
) -> list[Compilation]:
    """Return the compiled models, or the segments of a single model, in order.

    Several models are compiled together: they share a caching token and the 8 MB of memory for
    parameters. The first model gets its part first.

    Args:
        models: one or several models, as paths or bytes.
        segments: number of devices in a pipeline; each runs a segment.
        balance: quantity of which all segments get equal shares.
        intermediate_tensors: names of tensors at which the mapped part ends.
        min_runtime_version: oldest runtime version that must run the models, 10 to 14.
        search: whether to try shorter mapped parts if a mapped part cannot run.
        search_step: number of operators by which each try shortens the mapped part.

    Raises:
        CannotCompile: (ValueError) a model has no operators for the Edge TPU, is not quantised, or
            has shapes that may change; the message names the obstacle and its position.
        MalformedModelError: (ValueError) a model is damaged.
        ArgumentError: (ValueError) settings do not fit, or a file does not exist.
    """
    settings = Settings(
        segments, balance, tuple(intermediate_tensors), min_runtime_version, search, search_step
    )
    given = [models] if isinstance(models, str | os.PathLike | bytes) else list(models)
    if not given:
        raise ArgumentError("no model to compile")
    if len(given) > 1 and segments > 1:
        raise ArgumentError(
            f"{len(given)} models in {segments} segments each, expected one model: each segment "
            "has a device, and the device's whole cache"
        )
    drafts = [draft for model in given for draft in _drafts(model, settings)]
    together = settings.segments == 1
    tokens = [
        token_of(each.partition for each in (drafts if together else [draft])) for draft in drafts
    ]
    free = CACHE_BYTES
    compiled: list[Compilation] = []
    for draft, token in zip(drafts, tokens, strict=True):
        compiled.append(draft.finished(token, free, min_runtime_version))
        free = compiled[-1].memory.remaining_bytes if together else CACHE_BYTES
    return compiled


def _drafts(model: ModelSource, settings: Settings) -> list[CompiledSegment]:
    """Return the compiled parts of one model, which have no shares of the parameter cache yet."""
    name = "model" if isinstance(model, bytes) else os.fspath(model)
    content = model if isinstance(model, bytes) else self_contained(load_model(name)).tobytes()
    try:
        source = SourceModel.of(name, content)
        return compiled_parts(source, settings)
    except MalformedModelError as error:
        raise MalformedModelError(f"{name}: {error}") from error
    except CannotCompile as error:
        raise CannotCompile(f"{name}: {error}") from error
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error}") from error
