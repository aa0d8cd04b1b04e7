"""Bundles with random damage: each ends in a model or an error, and soon."""

from __future__ import annotations

import struct
import time
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from delegraph.bundles.writing import write_bundle
from delegraph.errors import ModelError
from delegraph.graph.loader import load_model
from delegraph.graph.model_files import bundle_at, bundles_of
from delegraph.testing import one_op_model, tensor
from support.bundles import GENERIC, HF_TOKENIZER, MODEL, facts, file_of, litertlm, zipped

RELU = one_op_model("RELU", [tensor((2,))], [tensor((2,))])
INNER = zipped({"m": RELU, "n.zip": zipped({"k": RELU}, zipfile.ZIP_DEFLATED)})
TOKENIZER = struct.pack("<Q", 4) + zlib.compress(b"text")
LM = litertlm(
    [(MODEL, RELU, "a"), (GENERIC, INNER, ""), (HF_TOKENIZER, TOKENIZER, "")],
    system=facts(author="me"),
)
STARTS = {
    "stored": zipped({"a": RELU, "b.zip": INNER}),
    "deflated": zipped({"a": RELU, "b.zip": INNER}, zipfile.ZIP_DEFLATED),
    "litertlm": LM,
    "after a model": RELU + zipped({"labels.txt": b"one"}),
}
SECTIONS = ("", "#a", "#0", "#1", "#2", "#b.zip#m", "#1#n.zip#k")
REPEATS = 8


def damaged(start: bytes, random: np.random.Generator) -> bytes:
    """Return a copy in which some bytes, or a 32-bit number, are others; most near the ends."""
    content = bytearray(start)
    for _ in range(int(random.integers(1, 8))):
        near = int(random.integers(min(600, len(content) - 4)))
        at = int(random.choice([near, len(content) - 4 - near, random.integers(len(content) - 4)]))
        if random.integers(4):
            content[at] = int(random.choice([0, 1, 0x7F, 0xFF, random.integers(256)]))
        else:
            struct.pack_into("<I", content, at, int(random.choice([0, 2**32 - 1, len(content)])))
    return bytes(content[: -int(random.integers(1, 60))] if not random.integers(9) else content)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("seed", range(6))
def test_damage_ends_in_a_model_or_an_error(tmp_path: Path, start: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    began = time.process_time()
    for _ in range(REPEATS):
        path = file_of(tmp_path, damaged(STARTS[start], random))
        for section in SECTIONS:
            with suppress(ModelError):
                load_model(f"{path}{section}")
            with suppress(ModelError):
                bundle_at(f"{path}{section}")
            with suppress(ModelError), open(tmp_path / "out", "w+b") as stream:
                if chain := bundles_of(f"{path}{section}"):
                    write_bundle(stream, chain, np.frombuffer(RELU, np.uint8))
    assert time.process_time() - began < 60
