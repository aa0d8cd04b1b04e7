"""Copies led by coverage: those that reach new lines of Python are damaged further.

``run.py --guided`` starts this program with ``atheris`` (libFuzzer for Python) as often as it
takes: libFuzzer ends with the first crash, whose file it leaves behind. Damage is that of
``record_damage``; libFuzzer's own damage of bytes is mixed in. Compiled code is not instrumented.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import atheris

with atheris.instrument_imports(include=["delegraph", "delegraph_numba_cpu", "delegraph_flex"]):
    from delegraph.errors import DelegraphError
    from delegraph.schema.reader import read_model
    from delegraph.testing.sweep.findings import Findings
    from delegraph.testing.sweep.judging import Fault
    from delegraph.testing.sweep.workers import Found, Judge, Limits
    from fuzz.copies import Copy
    from fuzz.findings import Finding, load, save
    from fuzz.joining import joined
    from fuzz.record_damage import damaged
    from fuzz.starting_models import StartingModel
    from fuzz.targets import Target, targets

LARGEST = 30_000
"""Bytes of a copy; libFuzzer keeps small ones."""


def guided(target: Target, limits: Limits, seconds: float, seed: int) -> Iterator[Found]:
    """Run libFuzzer until the time is up, and yield its findings."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as scratch:
        corpus, crashes, found = (Path(scratch, name) for name in ("corpus", "crashes", "found"))
        for place in (corpus, crashes, found):
            place.mkdir()
        for i, model in enumerate(target.models()):
            if len(model.content) < LARGEST:
                (corpus / str(i)).write_bytes(model.content)
        while (left := int(end - time.monotonic())) > 0:
            options = [f"-max_total_time={left}", f"-seed={seed}", f"-max_len={LARGEST}",
                       f"-timeout={limits.seconds}", f"-artifact_prefix={crashes}/",
                       "-rss_limit_mb=0", "-verbosity=0", "-print_final_stats=1"]  # fmt: skip
            words = [sys.executable, __file__, target.name, str(found), *options, str(corpus)]
            subprocess.run(words, check=False)
            yield from _saved(found)
            yield from _crashed(target, limits, crashes)
            seed += 1


def _saved(folder: Path) -> Iterator[Found]:
    """Yield the saved copies that did not end libFuzzer."""
    for path in sorted(folder.glob("*.tflite")):
        _, copy, described = load(path)
        path.unlink()
        fault = Fault(described["kind"], described["detail"], described["where"])
        yield Found(copy.seed, copy, fault)


def _crashed(target: Target, limits: Limits, crashes: Path) -> Iterator[Found]:
    """Yield the copies that ended libFuzzer, after a new try without it."""
    for path in sorted(crashes.iterdir()):
        copy = _copy(path.read_bytes())
        path.unlink()
        with Judge(target.judge, limits) as judge:
            fault = judge(copy).fault
        if fault is not None:
            yield Found(copy.seed, copy, fault)


def _copy(content: bytes) -> Copy:
    """Return the copy with the file *content*, whose inputs depend on it."""
    return Copy(content, zlib.crc32(content), (), "guided")


def _mutated(data: bytes, max_size: int, seed: int, models: list[StartingModel]) -> bytes:
    """Return a damaged file for libFuzzer."""
    chance = Random(seed)
    try:
        records = read_model(np.frombuffer(data, np.uint8))
    except DelegraphError:
        return bytes(atheris.Mutate(data, max_size))
    if chance.random() < 0.1:
        return bytes(atheris.Mutate(data, max_size))
    model = chance.choice(models)
    if chance.random() < 0.2:
        records = joined(records, model.records, chance)
    return model.file_of(damaged(records, chance), chance)[:max_size]


def main(name: str, folder: str, *options: str) -> None:
    """Let libFuzzer try copies on a target; it ends the process."""
    target, findings = targets()[name], Findings()
    models = target.models(every=5)
    target.warm_up()

    def try_it(data: bytes) -> None:
        copy = _copy(data)
        fault = target.judge(copy).fault
        new = None if fault is None else findings.add(copy.seed, Finding(copy, fault, target=name))
        if new is not None:
            print(f"{new.fault.kind} in {new.fault.where}: {save(new, Path(folder))}", flush=True)

    def mutator(data: bytes, max_size: int, seed: int) -> bytes:
        return _mutated(data, max_size, seed, models)

    atheris.Setup([sys.argv[0], *options], try_it, custom_mutator=mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    arguments: Any = sys.argv[1:]
    main(*arguments)
