"""What a small Flex node costs: ``python benchmarks/nodes.py [--seconds N] [--json]``.

A chain of operators on 2 x 2 floats is run in lengths 4 and 44; the difference, divided by 40, is
the cost of a node inside a partition, and the rest that of an invoke. It measures the executors
that this environment has, in turn, and TensorFlow's own interpreter where it still has Flex (up
to 2.18.1); to see both sides, run it in one environment with each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import numpy as np

from delegraph import BuiltinOperator, Interpreter, TensorType
from delegraph.schema import tables, write_model
from delegraph.tools import all_times, interleave
from delegraph_flex.custom_options import write_custom_options
from delegraph_flex.data_types import DataType
from delegraph_flex.executors import has_tensorflow
from delegraph_flex.node_def import NodeDef

SHORT, LONG = 4, 44


def chain(op: str, length: int) -> bytes:
    """Return a model that applies one operator *length* times."""
    options = write_custom_options(NodeDef(op, {"T": DataType.FLOAT32}, 1))
    tensor = tables.Tensor(shape=(2, 2), type=TensorType.FLOAT32, has_rank=True)
    subgraph = tables.SubGraph(
        tensors=tuple(tensor.replace(name=f"t{i}") for i in range(length + 1)),
        inputs=(0,),
        outputs=(length,),
        operators=tuple(
            tables.Operator(
                inputs=(i,), outputs=(i + 1,), custom_options=np.frombuffer(options, np.uint8)
            )
            for i in range(length)
        ),
    )
    code = tables.operator_code(BuiltinOperator.CUSTOM, custom_code=f"Flex{op}")
    return write_model(
        tables.Model(
            version=3, operator_codes=(code,), subgraphs=(subgraph,), buffers=(tables.Buffer(),)
        )
    )


def runs(op: str) -> dict[str, list[Callable[[], object]]]:
    """Return the invokes of a short and a long chain, by executor."""
    models = [chain(op, SHORT), chain(op, LONG)]
    executors = ["numpy", *(["tensorflow"] if has_tensorflow() else [])]
    found = {name: [_delegraph(model, name) for model in models] for name in executors}
    if has_tensorflow():
        try:
            found["TensorFlow's interpreter"] = [_official(model) for model in models]
        except (AttributeError, RuntimeError) as error:
            print(f"TensorFlow's interpreter is left out: {str(error)[:60]}...")
    return found


def _delegraph(model: bytes, executor: str) -> Callable[[], object]:
    interpreter = Interpreter(model_content=model, delegates=[f"flex:executor={executor}"])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.full((2, 2), 0.5, np.float32))
    return interpreter.invoke


def _official(model: bytes) -> Callable[[], object]:
    import tensorflow as tf

    interpreter = tf.lite.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.full((2, 2), 0.5, np.float32))
    return interpreter.invoke


def best(invokes: dict[str, list[Callable[[], object]]], seconds: float) -> dict[str, list[float]]:
    """Return the best time of each invoke in microseconds; all take turns."""
    runs = {f"{name} {i}": run for name, pair in invokes.items() for i, run in enumerate(pair)}
    times = interleave(runs, seconds)
    return {
        name: [1e6 * float(all_times(times[f"{name} {i}"]).min()) for i in range(len(pair))]
        for name, pair in invokes.items()
    }


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3, help="for each operator")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for op in ("Identity", "Erf", "Tanh"):
        for name, (short, long) in best(runs(op), arguments.seconds).items():
            node = (long - short) / (LONG - SHORT)
            rows.append({"op": op, "by": name, "node_us": node, "invoke_us": short - SHORT * node})
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(
            f"{row['op']:10} {row['by']:26} {row['node_us']:6.2f} us a node, "
            f"{row['invoke_us']:6.2f} us beside"
        )


if __name__ == "__main__":
    main()
