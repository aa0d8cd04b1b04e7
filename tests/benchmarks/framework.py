"""Costs of the framework itself, beside the official interpreter.

    python tests/benchmarks/framework.py [--seconds 3]

In each row both sides take turns in this process; medians and their ratio are printed, below 1.0
Delegraph is faster. The ratio counts: absolute times move with the machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from ai_edge_litert import schema_py_generated
from ai_edge_litert.interpreter import Interpreter as OfficialInterpreter
from ai_edge_litert.interpreter import OpResolverType
from ratio_rows import Row, row, write_rows

from delegraph import Interpreter
from delegraph.delegation import GraphInfo, NodeInfo, partition_graph_into_independent_node_subsets
from delegraph.graph import parse_model
from delegraph.schema.enums import BuiltinOperator, TensorType
from delegraph.schema.options import AddOptions
from delegraph.schema.reader import read_model
from delegraph.schema.tables import Buffer, Model, Operator, SubGraph, Tensor, operator_code
from delegraph.schema.writer import write_model
from delegraph.tools import all_times, interleave, ratio_of
from delegraph.tools.benchmarking.verdicts import LEAST_BLOCKS

BUILTIN = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES


def chain_model(length: int, *, alternating: bool = False) -> bytes:
    """Return a model of *length* nodes in a row on ``[1, 4]`` floats: ADD, or ADD and FLOOR_MOD."""
    codes = operator_code(BuiltinOperator.ADD), operator_code(BuiltinOperator.FLOOR_MOD)
    tensors = [
        Tensor(shape=(1, 4), type=TensorType.FLOAT32, name=f"t{i}") for i in range(length + 1)
    ]
    tensors.append(Tensor(shape=(1, 4), type=TensorType.FLOAT32, name="constant", buffer=1))
    operators = [
        Operator(opcode_index=1, inputs=(i, length + 1), outputs=(i + 1,))
        if alternating and i % 2
        else Operator(
            opcode_index=0, inputs=(i, length + 1), outputs=(i + 1,), builtin_options=AddOptions()
        )
        for i in range(length)
    ]
    constant = np.full(4, 1.5, np.float32).view(np.uint8)
    return write_model(
        Model(
            version=3,
            operator_codes=codes,
            subgraphs=(
                SubGraph(
                    tensors=tuple(tensors),
                    inputs=(0,),
                    outputs=(length,),
                    operators=tuple(operators),
                ),
            ),
            buffers=(Buffer(), Buffer(data=constant)),
        )
    )


def report(
    name: str,
    ours: Callable[[], object],
    official: Callable[[], object],
    *,
    seconds: float,
    blocks: int = LEAST_BLOCKS,
) -> Row:
    """Time both sides in turn; print and return one row, in microseconds.

    There is no interval of few blocks.
    """
    times = interleave({"ours": ours, "official": official}, seconds, blocks=blocks)
    a, b = (1e6 * np.median(all_times(times[side])) for side in ("ours", "official"))
    ratio = ratio_of(times["ours"], times["official"])
    found = row(name, ratio) if blocks >= LEAST_BLOCKS else Row(name, ratio.value)
    print(f"{name:46} {a:12.1f} {b:12.1f}   {found}", flush=True)
    return found


def ready(interpreter: object) -> Callable[[], None]:
    """Return a function that sets the input, invokes and gets the output; input is ``[1, 4]``."""
    interpreter.allocate_tensors()  # type: ignore[attr-defined]  # either of two classes
    source = interpreter.get_input_details()[0]["index"]  # type: ignore[attr-defined]
    target = interpreter.get_output_details()[0]["index"]  # type: ignore[attr-defined]
    value = np.ones((1, 4), np.float32)

    def run() -> None:
        interpreter.set_tensor(source, value)  # type: ignore[attr-defined]
        interpreter.invoke()  # type: ignore[attr-defined]
        interpreter.get_tensor(target)  # type: ignore[attr-defined]

    return run


def core(content: bytes) -> Interpreter:
    """Return an interpreter without delegates."""
    return Interpreter(model_content=content, delegates=[])


def official(content: bytes, resolver: OpResolverType = BUILTIN) -> OfficialInterpreter:
    """Return the official interpreter, one thread."""
    return OfficialInterpreter(
        model_content=content, experimental_op_resolver_type=resolver, num_threads=1
    )


def created_and_allocated(interpreter: object) -> None:
    """Return a function that creates and allocates a new interpreter."""
    interpreter.allocate_tensors()  # type: ignore[attr-defined]  # either of two classes


def partition_alternating(length: int) -> Callable[[], object]:
    """Return the partitioning of a chain of two kinds of node in turn."""
    graph = GraphInfo(
        nodes=[NodeInfo((i,), (i + 1,)) for i in range(length)],
        execution_plan=list(range(length)),
        num_total_nodes=length,
        inputs=[0],
        outputs=[length],
        variables=[],
    )
    chosen = list(range(0, length, 2))
    return lambda: partition_graph_into_independent_node_subsets(graph, chosen, greedily=True)


def measure(seconds: float) -> Iterator[Row]:
    """Print the rows of the table, and return each."""
    one = chain_model(1)
    for delegates, end in ([], ""), (["numba_cpu"], ", numba_cpu"):
        yield report(
            f"set + invoke + get, one ADD{end}",
            ready(Interpreter(model_content=one, delegates=delegates)),
            ready(official(one)),
            seconds=seconds,
        )
    for length in (1_000, 10_000):
        content = chain_model(length)
        yield report(
            f"schema records of {length} operators / ModelT",
            lambda content=content: read_model(np.frombuffer(content, np.uint8)),
            lambda content=content: schema_py_generated.ModelT.InitFromPackedBuf(content, 0),
            seconds=seconds,
            blocks=1,
        )
        yield report(
            f"load {length} operators / Interpreter()",
            lambda content=content: parse_model(content),
            lambda content=content: official(content),
            seconds=seconds,
        )
        yield report(
            f"create + allocate {length} ADD",
            lambda content=content: created_and_allocated(core(content)),
            lambda content=content: created_and_allocated(official(content)),
            seconds=seconds,
        )
        yield report(
            f"set + invoke + get, {length} ADD",
            ready(core(content)),
            ready(official(content)),
            seconds=seconds,
        )
    alternating = chain_model(20_000, alternating=True)
    yield report(
        "partition 20000 alternating / XNNPACK set-up",
        partition_alternating(20_000),
        lambda: created_and_allocated(official(alternating, OpResolverType.AUTO)),
        seconds=seconds,
        blocks=1,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3, help="for each row")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the ratios")
    args = parser.parse_args()
    print(f"{'median':46} {'Delegraph us':>12} {'official us':>12}   ratio [95 %]")
    write_rows(args.json, list(measure(args.seconds)))


if __name__ == "__main__":
    main()
