"""What a node of a delegate in Python costs in the official interpreter and ``CompiledModel``.

Run ``python tests/benchmarks/litert.py``. A chain of 50 ADD nodes of [1, 64] floats runs natively,
and with a partition of its own for every node, whose kernel does nothing, or one ``np.add``. All
take turns; the best time of each counts, the median is shown too. For a whole model in both
interpreters there is ``delegraph benchmark MODEL -d DELEGATE --against "--runtime litert"``; with
``--model MODEL`` this program compares ``numba_cpu`` and XNNPACK in ``CompiledModel``.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from ai_edge_litert import compiled_model as official

from delegraph import DelegateContext, DelegateFlags, Node, OpResolverType
from delegraph.native import LiteRtInterpreter, compiled_model
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import graph_model, tensor
from delegraph.tools import all_times, interleave
from support.by_name import ByName, ByNameKernel

NODES = 50
SECONDS = 3.0
SHAPE = (1, 64)


class Empty(ByNameKernel):
    """Kernel that does nothing."""

    def eval(self, context: DelegateContext, node: Node) -> None:
        pass


class Adds(ByNameKernel):
    """Kernel that adds, with views of its tensors."""

    def prepare(self, context: DelegateContext, node: Node) -> None:
        ((inner, _),) = self.nodes
        self.x, self.y = (context.tensors[i] for i in inner.inputs)
        self.target = context.tensors[inner.outputs[0]]
        context.resize_tensor(self.target, self.x.shape)

    def eval(self, context: DelegateContext, node: Node) -> None:
        np.add(self.x.data, self.y.data, out=self.target.data)


def each(kernel: type[ByNameKernel]) -> ByName:
    """Return a delegate that takes every ADD, each as a partition of its own."""
    return ByName("ADD", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS, kernel=kernel)


def chain() -> bytes:
    """Return a model that adds its second input NODES times."""
    names = ["x", *(f"t{i}" for i in range(1, NODES)), "y"]
    nodes = [("ADD", f"{a} c", b, AddOptions()) for a, b in pairwise(names)]
    tensors = {name: tensor(SHAPE) for name in [*names, "c"]}
    return graph_model(nodes, inputs="x c", outputs="y", tensors=tensors)


def mixed() -> bytes:
    """Return a model of 10 ADD, each followed by a LOGISTIC that takes some time."""
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


def times(arms: dict[str, Callable[[], None]], seconds: float) -> dict[str, tuple[float, float]]:
    """Return the least and median seconds of each function in *arms*, run in turn."""
    found = {name: all_times(blocks) for name, blocks in interleave(arms, seconds).items()}
    return {name: (float(taken.min()), float(np.median(taken))) for name, taken in found.items()}


def nodes() -> None:
    """Print the overhead of a node."""
    content = {"model_content": chain()}
    alone = {
        "experimental_disable_delegate_node_fusion": True  # one node in each partition
    }
    official = interpreter(content)
    made = {
        "native ADD": official,
        "empty kernel": interpreter(content, each(Empty), **alone),
        "np.add": interpreter(content, each(Adds), **alone),
        "native ADD again": interpreter(content),
    }
    for name, one in made.items():
        partitions = len(one.placement.partitions)
        assert partitions == (0 if name.startswith("native") else NODES), partitions
    found = times({name: one._interpreter.invoke for name, one in made.items()}, SECONDS)
    base = found["native ADD"]
    print(f"{NODES} nodes of {list(SHAPE)} floats, microseconds a node above a native ADD")
    for name, (best, middle) in found.items():
        print(
            f"  {name:18} best {(best - base[0]) / NODES * 1e6:6.2f}   "
            f"median {(middle - base[1]) / NODES * 1e6:6.2f}"
        )
    print(f"  (a native ADD itself: {base[0] / NODES * 1e6:.2f})")


def alternating() -> bytes:
    """Return a model of NODES nodes, ADD and MUL in turn."""
    names = ["x", *(f"t{i}" for i in range(1, NODES)), "y"]
    kinds = (("ADD", AddOptions()), ("MUL", MulOptions()))
    ops = [
        (kinds[i % 2][0], f"{a} c", b, kinds[i % 2][1]) for i, (a, b) in enumerate(pairwise(names))
    ]
    tensors = {name: tensor(SHAPE) for name in [*names, "c"]}
    return graph_model(ops, inputs="x c", outputs="y", tensors=tensors)


def runner(model: Any) -> Callable[[], None]:
    """Return a function that runs a compiled model on its own buffers."""
    buffers = model.create_input_buffers(0), model.create_output_buffers(0)
    for buffer in buffers[0]:
        shape = buffer.get_tensor_details()["shape"]
        kind = np.dtype(buffer.get_tensor_details()["dtype"])
        buffer.write(np.zeros(shape, kind))
    return lambda: model.run_by_index(0, *buffers)


def both_apis() -> None:
    """Print the overhead of an empty node in both official APIs, and of an empty run."""
    content = alternating()
    cpu = official.CpuOptions(num_threads=1, kernel_mode=official.CpuKernelMode.BUILTIN)
    options = official.Options(cpu_options=cpu)
    plain = official.CompiledModel.from_buffer(content, options=options)
    found = times(
        {
            "Interpreter": interpreter({"model_content": content})._interpreter.invoke,
            "Interpreter, empty": interpreter(
                {"model_content": content}, each(Empty)
            )._interpreter.invoke,
            "CompiledModel": runner(plain),
            "CompiledModel, made here": runner(compiled_model(content, [], options=options)),
            "CompiledModel, empty": runner(compiled_model(content, [each(Empty)], options=options)),
        },
        SECONDS,
    )
    half = NODES // 2
    for api, base in (
        ("Interpreter", "Interpreter"),
        ("CompiledModel", "CompiledModel, made here"),
    ):
        extra = found[f"{api}, empty"][0] - found[base][0]
        print(f"an empty node above a native ADD, {api}: {extra / half * 1e6:.2f} µs")
    added = found["CompiledModel, made here"][0] - found["CompiledModel"][0]
    print(f"a run of CompiledModel made here above an official one: {added * 1e6:.2f} µs")


def whole_model(path: str) -> None:
    """Print the time of ``numba_cpu`` in ``CompiledModel``, as a share of XNNPACK's."""
    numba = compiled_model(path, ["numba_cpu"])
    print(numba.placement)
    made = LiteRtInterpreter(path, delegates=["numba_cpu"], num_threads=1)
    made.allocate_tensors()
    found = times(
        {
            "XNNPACK": runner(official.CompiledModel.from_file(path)),
            "numba_cpu": runner(numba),
            "numba_cpu in Interpreter": made._interpreter.invoke,
            "XNNPACK again": runner(official.CompiledModel.from_file(path)),
        },
        4 * SECONDS,
    )
    base = found["XNNPACK"][0]
    for name, (best, _) in found.items():
        print(f"  {name:25} {best / base:.3f} of XNNPACK in CompiledModel ({best * 1e3:.2f} ms)")


def busy_thread() -> None:
    """Print how another busy Python thread affects an invoke."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(1000))

    content = {"model_content": mixed()}
    quiet = times({"quiet": interpreter(content, each(Adds)).invoke}, 0.5)["quiet"]
    print(f"10 Python nodes between native ones: {quiet[1] * 1e3:.2f} ms, median")
    thread = threading.Thread(target=spin)
    thread.start()
    try:
        for seconds in (None, 1e-3, 1e-4):
            made = interpreter(content, each(Adds), switch_interval=seconds)
            found = times({"busy": made.invoke}, 0.5)["busy"]
            print(f"  beside a busy thread, switch_interval={seconds}: {found[1] * 1e3:.2f} ms")
    finally:
        stop.set()
        thread.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="compare numba_cpu and XNNPACK in CompiledModel")
    if (path := parser.parse_args().model) is not None:
        whole_model(path)
    else:
        nodes()
        both_apis()
        busy_thread()
