"""Runs of a network in several runtimes, each in a process of its own, in turns."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from delegraph import Interpreter
from delegraph.graph import load_model, macs_of
from delegraph.json_records import JsonRecord
from delegraph.tools import Ratio, random_values, ratio_of
from delegraph.tools.benchmarking.interleaving import Block

CONVERTED = Path(__file__).parents[2] / "build" / "onnx"

BASE, REFERENCE = "XNNPACK", "TFLite builtin"
LIMITED = "XNNPACK avx2"
BASES = {"numba_cpu avx2": LIMITED}
"""Runtimes that are compared with another one than :data:`BASE`."""

BLOCKS, FEW_BLOCKS = 6, 2
"""Least number of blocks of turns, one a second; runtimes that are slow take part in few."""

SLOW = 0.1
"""Seconds from which on a run is slow."""

OPSET, CONVERSION_SECONDS = "17", 120


@dataclass(frozen=True, slots=True)
class Result(JsonRecord):
    """Result of one runtime for a network.

    Attributes:
        runtime: name of the runtime.
        error: why it did not run; empty if it did.
        version: version of the runtime.
        milliseconds: least time of a run.
        median: median of all runs, in milliseconds.
        ratio: its time by XNNPACK's, or by that of its entry in :data:`BASES`; None for XNNPACK
            itself, or where that failed.
        first_answer: seconds from the start of the process to the first answer.
        memory: bytes that the process had at most until then.
        difference: largest difference to the outputs of TFLite's builtin kernels: in units for
            integers, as a share of the largest value for floats. None if they have other
            shapes, or if the builtin kernels cannot run the network.
        taken: share of the nodes that the delegate takes; None for runtimes without a delegate.
    """

    runtime: str
    error: str = ""
    version: str = ""
    milliseconds: float | None = None
    median: float | None = None
    ratio: Ratio | None = None
    first_answer: float | None = None
    memory: int | None = None
    difference: float | None = None
    taken: float | None = None


class RuntimeFailedError(RuntimeError):
    """Error: a runtime cannot run a network."""


class Process:
    """A process that runs a network in one runtime.

    Attributes:
        version, memory, taken, first_answer: as in :class:`Result`.
        is_slow: whether a run takes so long that there are few.
        outputs: results of the first run.
    """

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self._errors = (folder / "errors").open("w+")
        variables = {**os.environ, "DELEGRAPH_DEFAULT_DELEGATES": ""}
        script = str(Path(__file__).with_name("network_process.py"))
        start = time.perf_counter()
        self._process = subprocess.Popen(
            [words[0], script, *words[1:], str(folder / "outputs.npz")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=variables,
        )
        about = self._answer()
        self.first_answer = time.perf_counter() - start
        self.version, self.memory, self.taken = (about[k] for k in ("version", "memory", "taken"))
        self.is_slow = self.turn(0.0)[0] > SLOW  # the outputs are written before it
        with np.load(folder / "outputs.npz") as file:
            self.outputs = [file[name] for name in file.files]

    def turn(self, seconds: float) -> list[float]:
        """Return the seconds of single runs, of as many as fit into *seconds*."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the missing answer says more
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        found: list[float] = self._answer()
        return found

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        self._process.wait()
        self._errors.seek(0)
        said = [text for text in self._errors.read().splitlines() if text.strip()]
        self.close()
        raise RuntimeFailedError(said[-1][:200] if said else "ended without a word")


@dataclass(frozen=True, slots=True)
class Job:
    """A network with a number of threads.

    Attributes:
        model: the file.
        threads: the number of threads.
        runtimes: mapping from the name of each runtime to its words: Python and runtime.
        seconds: duration of all turns.
        converter: Python that has tf2onnx; None without.
    """

    model: Path
    threads: int
    runtimes: Mapping[str, tuple[str, str]]
    seconds: float
    converter: str | None = None


def measured(job: Job, folder: Path) -> list[Result]:
    """Return the result of each runtime for the network of *job*; *folder* is empty."""
    inputs = folder / "inputs.npz"
    np.savez(inputs, *random_inputs(job.model))
    processes: dict[str, Process] = {}
    failed = []
    try:
        for name, (python, runtime) in job.runtimes.items():
            try:
                model = (
                    job.model if runtime != "ONNX Runtime" else converted(job.model, job.converter)
                )
                words = (python, runtime, str(model), str(job.threads), str(inputs))
                own = folder / name
                own.mkdir()
                if job.threads == 1:  # brings files into memory, and numba_cpu keeps its programs
                    Process(words, own).close()
                processes[name] = Process(words, own)
            except RuntimeFailedError as error:
                failed.append(Result(name, str(error)))
        expected = expected_outputs(processes, job, inputs, folder)
        return [*_results(processes, _turns(processes, job.seconds), expected), *failed]
    finally:
        for process in processes.values():
            process.close()


def expected_outputs(
    processes: Mapping[str, Process], job: Job, inputs: Path, folder: Path
) -> list[Any] | None:
    """Return the outputs of TFLite's builtin kernels; None if they cannot run the network.

    Args:
        processes: running processes by the name of their runtime.
        job: the network.
        inputs: file with its inputs.
        folder: folder for the outputs of a further process.
    """
    if REFERENCE in processes:
        return processes[REFERENCE].outputs
    own = folder / REFERENCE
    own.mkdir(exist_ok=True)
    words = sys.executable, REFERENCE, str(job.model), str(job.threads), str(inputs)
    try:
        process = Process(words, own)
    except RuntimeFailedError:
        return None
    process.close()
    return process.outputs


def _turns(processes: Mapping[str, Process], seconds: float) -> dict[str, list[Block]]:
    """Return the times of processes that take turns, in alternating order."""
    found: dict[str, list[Block]] = {name: [] for name in processes}
    blocks = max(BLOCKS, round(seconds))
    rng, share = np.random.default_rng(0), seconds / blocks / 2 / max(1, len(processes))
    for number in range(blocks):
        taking = [n for n, p in processes.items() if number < FEW_BLOCKS or not p.is_slow]
        order = [str(name) for name in rng.permutation(taking)]
        forth = {name: processes[name].turn(share) for name in order}
        back = {name: processes[name].turn(share) for name in reversed(order)}
        for name in order:
            found[name].append([(forth[name], back[name])])
    return found


def _results(
    processes: Mapping[str, Process],
    blocks: Mapping[str, list[Block]],
    expected: Sequence[Any] | None,
) -> Iterator[Result]:
    for name, process in processes.items():
        times = [s for block in blocks[name] for turns in block for turn in turns for s in turn]
        base = blocks.get(BASES.get(name, BASE), []) if name != BASE else []
        count = min(len(blocks[name]), len(base))
        yield Result(
            name,
            "",
            process.version,
            1e3 * min(times),
            1e3 * float(np.median(times)),
            ratio_of(blocks[name][:count], base[:count]) if count else None,
            process.first_answer,
            process.memory,
            None if expected is None else difference(process.outputs, expected),
            process.taken,
        )


def difference(found: Sequence[Any], expected: Sequence[Any]) -> float | None:
    """Return the largest difference, see :class:`Result`; None if outputs do not correspond."""
    if [a.shape for a in found] != [a.shape for a in expected]:
        return None
    worst = 0.0
    for a, b in zip(found, expected, strict=True):
        gap = np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0.0)
        largest = np.abs(b.astype(np.float64)).max(initial=0.0)
        worst = max(worst, float(gap / largest) if b.dtype.kind == "f" and largest else float(gap))
    return worst


def random_inputs(model: Path) -> list[Any]:
    """Return random inputs for a network, the same in every call."""
    rng = np.random.default_rng(0)
    with Interpreter(str(model), delegates=[]) as interpreter:
        return [random_values(details, rng) for details in interpreter.get_input_details()]


def converted(model: Path, python: str | None) -> Path:
    """Return the network in ONNX format; it is converted once.

    Args:
        model: the file.
        python: Python that has tf2onnx; None without.

    Raises:
        RuntimeFailedError: tf2onnx is missing, or cannot convert it.
    """
    target, failure = (CONVERTED / f"{model.stem}.{suffix}" for suffix in ("onnx", "error"))
    if not (target.is_file() or failure.is_file()):
        if python is None:
            raise RuntimeFailedError("tf2onnx is not installed")
        target.parent.mkdir(parents=True, exist_ok=True)
        words = ["-m", "tf2onnx.convert", "--opset", OPSET, "--tflite", str(model), "--output"]
        try:
            subprocess.run(
                [python, *words, str(target)],
                capture_output=True,
                text=True,
                check=True,
                timeout=CONVERSION_SECONDS,
            )
        except subprocess.TimeoutExpired:
            failure.write_text(f"takes over {CONVERSION_SECONDS} s")
        except subprocess.CalledProcessError as error:
            said = [line for line in error.stderr.splitlines() if line.strip()]
            failure.write_text(said[-1][:150] if said else "failed")
    if failure.is_file():
        raise RuntimeFailedError(f"tf2onnx: {failure.read_text()}")
    return target


def kind_of(model: Path) -> str:
    """Return the type in which most products of a network are computed: ``FLOAT32``, ``INT8``."""
    totals: dict[str, int] = {}
    for graph in load_model(str(model)).subgraphs:
        for operator in graph.operators:
            if count := macs_of(operator, graph.tensors):
                kind = graph.tensors[operator.outputs[0]].type.name
                totals[kind] = totals.get(kind, 0) + count
    return max(sorted(totals), key=totals.__getitem__) if totals else "no products"
