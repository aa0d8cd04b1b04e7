"""What a node of a delegate in Python costs in the official interpreter; and whole models.

Run ``python tests/benchmarks/litert.py [MODEL DELEGATE]``. A chain of 50 ADD nodes of [1, 64]
floats runs natively, and with a partition of its own for every node, whose kernel does nothing, or
one ``np.add``. All arms are interleaved; the best time of each counts, the median is shown too.
With a model and a delegate, their time is measured in both hosts as well.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from delegraph import DelegateContext, DelegateFlags, Interpreter, Node, OpResolverType
from delegraph.native import LiteRtInterpreter
from delegraph.schema.options import AddOptions
from delegraph.testing import graph_model, tensor
from support.by_name import ByName, ByNameKernel

NODES = 50
ROUNDS = 3000
SHAPE = (1, 64)


class Empty(ByNameKernel):
    """Does nothing."""

    def eval(self, context: DelegateContext, node: Node) -> None:
        pass


class Adds(ByNameKernel):
    """Adds, with its tensors at hand."""

    def prepare(self, context: DelegateContext, node: Node) -> None:
        ((inner, _),) = self.nodes
        self.x, self.y = (context.tensors[i] for i in inner.inputs)
        self.target = context.tensors[inner.outputs[0]]
        context.resize_tensor(self.target, self.x.shape)

    def eval(self, context: DelegateContext, node: Node) -> None:
        np.add(self.x.data, self.y.data, out=self.target.data)


class Each(ByName):
    """Takes every ADD, each as a partition of its own."""

    def __init__(self, kernel: type[ByNameKernel]) -> None:
        super().__init__("ADD", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
        self._kernel = kernel

    def create_delegate_kernel_interface(self) -> ByNameKernel:
        return self._kernel(self)


def chain() -> bytes:
    """Return a model that adds its second input NODES times."""
    names = ["x", *(f"t{i}" for i in range(1, NODES)), "y"]
    nodes = [("ADD", f"{a} c", b, AddOptions()) for a, b in pairwise(names)]
    tensors = {name: tensor(SHAPE) for name in [*names, "c"]}
    return graph_model(nodes, inputs="x c", outputs="y", tensors=tensors)


def mixed() -> bytes:
    """Return a model of 10 ADD, a LOGISTIC behind each, which takes the runtime some time."""
    names = [f"t{i}" for i in range(21)]
    ops = [
        (a, b, ("ADD", f"{a} c", b, AddOptions()) if i % 2 == 0 else ("LOGISTIC", a, b))
        for i, (a, b) in enumerate(pairwise(names))
    ]
    tensors = {name: tensor((1, 64, 64, 16)) for name in [*names, "c"]}
    return graph_model([op for *_, op in ops], inputs="t0 c", outputs="t20", tensors=tensors)


def interpreter(model: Any, *delegates: Any, **arguments: Any) -> LiteRtInterpreter:
    """Return an interpreter that is ready to invoke, without XNNPACK."""
    made = LiteRtInterpreter(
        **model,
        delegates=delegates,
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        **arguments,
    )
    made.allocate_tensors()
    return made


def times(arms: dict[str, Callable[[], None]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return best and median seconds of each arm, run in turn."""
    found: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(rounds):
        for name, arm in arms.items():
            start = time.perf_counter()
            arm()
            found[name].append(time.perf_counter() - start)
    return {name: (min(taken), statistics.median(taken)) for name, taken in found.items()}


def nodes() -> None:
    """Print what a node costs."""
    content = {"model_content": chain()}
    alone = {
        "experimental_disable_delegate_node_fusion": True  # one node in each partition
    }
    official = interpreter(content)
    made = {
        "native ADD": official,
        "empty kernel": interpreter(content, Each(Empty), **alone),
        "np.add": interpreter(content, Each(Adds), **alone),
        "native ADD again": interpreter(content),
    }
    for name, one in made.items():
        partitions = len(one.placement.partitions)
        assert partitions == (0 if name.startswith("native") else NODES), partitions
    found = times({name: one._interpreter.invoke for name, one in made.items()}, ROUNDS)
    base = found["native ADD"]
    print(f"{NODES} nodes of {list(SHAPE)} floats, microseconds a node above a native ADD")
    for name, (best, middle) in found.items():
        print(
            f"  {name:18} best {(best - base[0]) / NODES * 1e6:6.2f}   "
            f"median {(middle - base[1]) / NODES * 1e6:6.2f}"
        )
    print(f"  (a native ADD itself: {base[0] / NODES * 1e6:.2f})")


def busy_thread() -> None:
    """Print what another Python thread that computes does to an invoke."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(1000))

    content = {"model_content": mixed()}
    quiet = times({"quiet": interpreter(content, Each(Adds)).invoke}, 40)["quiet"]
    print(f"10 Python nodes between native ones: {quiet[1] * 1e3:.2f} ms, median of 40")
    thread = threading.Thread(target=spin)
    thread.start()
    try:
        for seconds in (None, 1e-3, 1e-4):
            made = interpreter(content, Each(Adds), switch_interval=seconds)
            found = times({"busy": made.invoke}, 40)["busy"]
            print(f"  beside a busy thread, switch_interval={seconds}: {found[1] * 1e3:.2f} ms")
    finally:
        stop.set()
        thread.join()


def model(path: str, delegate: str) -> None:
    """Print the time of a model with a delegate in both hosts."""
    file = {"model_path": path}
    own = Interpreter(path, delegates=[delegate], num_threads=1)
    own.allocate_tensors()
    other = interpreter(file, delegate)
    print(other.placement)
    for made in (own, other):
        for details in made.get_input_details():
            made.set_tensor(details["index"], np.zeros(details["shape"], details["dtype"]))
    found = times({"Delegraph": own.invoke, "LiteRT": other.invoke}, 300)
    for name, (best, middle) in found.items():
        print(f"  {name:10} best {best * 1e3:.3f} ms, median {middle * 1e3:.3f} ms")
    ratio = found["LiteRT"][0] / found["Delegraph"][0] - 1
    print(f"  LiteRT takes {ratio:+.1%}")


if __name__ == "__main__":
    nodes()
    busy_thread()
    if len(sys.argv) > 2:
        model(sys.argv[1], sys.argv[2])
