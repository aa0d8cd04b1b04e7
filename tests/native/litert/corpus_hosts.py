"""Run model files in the official ``CompiledModel`` and ``Interpreter`` with the same delegates.

``python corpus_hosts.py FOLDER [--delegates all,second,example,numba_cpu] [--part 1/4]`` takes
every model of FOLDER, each in a process of its own, and counts how the two answers compare for each
choice of delegates. What differs is listed. The result is 0 if no model that both run differs, and
if ``CompiledModel`` with a delegate runs every model that it runs without one.

- ``all``: a delegate that claims every node and fails, so that Delegraph's kernels compute
- ``second``: the same for every second node; XNNPACK has the others
- ``example``: ``add_sub`` and ``sin``
- any other name: an installed delegate
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import FailurePolicy, SimpleDelegateInterface, SimpleDelegateKernelInterface
from delegraph.graph import load_model
from delegraph.graph.dtypes import NUMPY_DTYPES, OBJECT_TYPES
from delegraph.native import LiteRtInterpreter, compiled_model

SECONDS = 240
"""Longest time for one model."""

Outputs = list[NDArray[Any]]


class Failing(SimpleDelegateInterface):
    """Claims every node, or every second one, and fails to compute them."""

    def __init__(self, step: int) -> None:
        self._step = step

    def name(self) -> str:
        return "failing"

    def is_node_supported_by_delegate(self, registration: Any, node: Any, context: Any) -> bool:
        return node.index % self._step == 0

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return _FailingKernel()


class _FailingKernel(SimpleDelegateKernelInterface):
    def init(self, context: Any, params: Any) -> None:
        pass

    def prepare(self, context: Any, node: Any) -> None:
        raise OSError("fails on purpose")

    def eval(self, context: Any, node: Any) -> None:
        raise OSError("fails on purpose")


def delegates_of(choice: str) -> list[Any]:
    known: dict[str, Any] = {"all": [Failing(1)], "second": [Failing(2)]}
    return known.get(choice) or (["add_sub", "sin"] if choice == "example" else [choice])


class Feed:
    """Inputs of a model's first signature, by index of the tensor."""

    def __init__(self, path: Path) -> None:
        model, rng = load_model(path), np.random.default_rng(0)
        signature = model.signatures[0].subgraph_index if model.signatures else 0
        if signature != 0:
            raise ValueError("the first signature is not the first subgraph")
        self.subgraph = model.subgraphs[0]
        self.inputs = {}
        for index in dict.fromkeys(i for i in self.subgraph.inputs if i >= 0):
            tensor = self.subgraph.tensors[index]
            if tensor.type in OBJECT_TYPES:
                raise ValueError("strings and resources are not fed")
            dtype = NUMPY_DTYPES[tensor.type]
            values = rng.integers(0, 2, tensor.shape) if dtype.kind in "iub" else None
            drawn = rng.standard_normal(tensor.shape) if values is None else values
            self.inputs[index] = np.asarray(drawn).astype(dtype)


def in_compiled_model(path: Path, feed: Feed, choice: str | None) -> Outputs:
    """Run a model in ``CompiledModel``; no *choice* means the official class alone."""
    if choice is None:
        from ai_edge_litert.compiled_model import CompiledModel

        model = CompiledModel.from_file(str(path))
    else:
        model = compiled_model(path, delegates_of(choice), failures=FailurePolicy("fallback"))
    key = model.get_signature_by_index(0)["key"]
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    order = [i for i in feed.subgraph.inputs if i >= 0]
    for buffer, index in zip(inputs, order, strict=True):
        if feed.inputs[index].nbytes:
            buffer.write(feed.inputs[index].reshape(-1).view(np.uint8))
    for i, buffer in enumerate(outputs):  # detections that are not found are not written
        size = model.get_output_buffer_requirements(i)["buffer_size"]
        if size:
            buffer.write(np.zeros(size, np.uint8))
    model.run_by_index(0, inputs, outputs)
    details = {d["index"]: d for d in model.get_output_tensor_details(key).values()}
    found = []
    for buffer, index in zip(outputs, feed.subgraph.outputs, strict=True):
        dtype = NUMPY_DTYPES[feed.subgraph.tensors[index].type]
        shape = details[index]["shape"] if index in details else ()
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        found.append(buffer.read(size, np.uint8).view(dtype).reshape(shape))
    model.close()
    return found


def in_interpreter(path: Path, feed: Feed, choice: str) -> Outputs:
    """Run a model in the official interpreter."""
    made = LiteRtInterpreter(
        path, delegates=delegates_of(choice), num_threads=1, failures=FailurePolicy("fallback")
    )
    made.allocate_tensors()
    for index, values in feed.inputs.items():
        made.set_tensor(index, values)
    made.invoke()
    return [np.array(made.get_tensor(i)) for i in feed.subgraph.outputs]


def verdict(a: Outputs, b: Outputs) -> str:
    pairs = list(zip(a, b, strict=True))
    if all(x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in pairs):
        return "same"
    for x, y in pairs:
        if x.shape != y.shape:
            return f"different: shapes {x.shape} and {y.shape}"
        if x.dtype.kind in "iub" and not np.array_equal(x, y):
            return f"different: {int((x != y).sum())} of {x.size} integers"
        if not np.allclose(x, y, rtol=1e-4, atol=1e-5, equal_nan=True):
            return f"different: by {np.abs(np.subtract(x, y, dtype=np.float64)).max():.3g}"
    return "close"


def attempt(run: Any, *arguments: Any) -> Outputs | str:
    try:
        found: Outputs = run(*arguments)
        return found
    except Exception as error:  # noqa: BLE001 - it is shown
        return f"{type(error).__name__}: {error}".replace("\n", " ")[:200]


def one(path: Path, choices: list[str]) -> dict[str, str]:
    """Return the verdict for each choice of delegates."""
    try:
        feed = Feed(path)
    except Exception as error:  # noqa: BLE001 - such a model is counted
        return dict.fromkeys(choices, f"not fed: {error}"[:120])
    found = dict.fromkeys(choices, "crash: the official class alone")
    print(json.dumps(found), flush=True)
    alone = attempt(in_compiled_model, path, feed, None)
    found = dict.fromkeys(choices, "crash: with a delegate before")
    for choice in choices:
        found[choice] = "crash: with the delegate"
        print(json.dumps(found), flush=True)
        right = attempt(in_interpreter, path, feed, choice)
        here = attempt(in_compiled_model, path, feed, choice)
        if isinstance(here, str):
            both = isinstance(right, str)
            reason = "both refuse" if both else "CompiledModel alone refuses"
            if not isinstance(alone, str):
                reason = "both refuse" if both else "refused"
            found[choice] = f"{reason}: {here}"
        elif isinstance(right, str):
            found[choice] = f"only CompiledModel runs: {right}"
        else:
            found[choice] = verdict(here, right)
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--delegates", default="all,second,example,numba_cpu")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--one", action="store_true")
    arguments = parser.parse_args()
    choices = arguments.delegates.split(",")
    if arguments.one:
        print(json.dumps(one(arguments.folder, choices)))
        return 0
    part, parts = map(int, arguments.part.split("/"))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    failed = False
    for path in sorted(arguments.folder.glob("*.tflite"))[part - 1 :: parts]:
        command = [sys.executable, __file__, str(path), "--one", "--delegates", arguments.delegates]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            found = json.loads(done.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            found = dict.fromkeys(choices, f"timeout: {SECONDS} s")
        for choice, text in found.items():
            word = text if "alone" in text else text.partition(":")[0]
            counts[choice][word.partition(" refuses:")[0]] += 1
            failed |= word in ("different", "refused", "crash", "timeout")
            if word not in ("same", "not fed"):
                print(path.stem, choice, text, flush=True)
    for choice in choices:
        print(choice, dict(sorted(counts[choice].items())))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
