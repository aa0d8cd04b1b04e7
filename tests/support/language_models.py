"""The language model that a script of the demo makes, and steps of it with fed-back caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.scripts import script

PREFILL, STEPS = 8, 20


MAKER = script("demo/make_language_model.py")


def language_model(**sizes: Any) -> bytes:
    """Return a tiny model; see ``Sizes`` of the script for the arguments."""
    content: bytes = MAKER.language_model(MAKER.Sizes(**sizes))
    return content


def tokens() -> Iterator[tuple[str, dict[str, NDArray[np.int32]]]]:
    """Yield the signature and the inputs of a prefill and of 20 decode steps, without caches."""
    given = np.arange(PREFILL, dtype=np.int32)
    yield f"prefill_{PREFILL}", {"tokens": 5 * given[None], "input_pos": given}
    for step in range(STEPS):
        token = np.array([[(37 * step + 7) % 128]], np.int32)
        yield "decode", {"tokens": token, "input_pos": np.array([PREFILL + step], np.int32)}


def fed_back(interpreter: Any) -> tuple[list[NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return the logits of each step and the last caches; outputs are fed back as inputs."""
    runners = {key: interpreter.get_signature_runner(key) for key in ("prefill_8", "decode")}
    details = runners["decode"].get_input_details()
    caches = {n: np.zeros(d["shape"], d["dtype"]) for n, d in details.items() if "kv_cache" in n}
    logits = []
    for key, inputs in tokens():
        outputs = runners[key](**inputs, **caches)
        caches = {name: outputs[name] for name in caches}
        logits += [outputs["logits"]] if "logits" in outputs else []
    return logits, caches
