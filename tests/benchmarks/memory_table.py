"""Arena bytes by planner: ``python tests/benchmarks/memory_table.py MODEL...``.

Prints a table in Markdown: each planner, what no plan can do without, and what LiteRT's own
interpreter takes, measured by the addresses of its tensors (builtin kernels, no XNNPACK).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter as LiteRt
from ai_edge_litert.interpreter import OpResolverType

from delegraph import Interpreter
from delegraph.tools.memory_report import MemoryReport, memory_report

PLANNERS = (
    "naive",
    "equality",
    "greedy_in_order",
    "greedy_by_breadth",
    "greedy_by_size",
    "greedy_best",
    "mincostflow",
    "tflm_greedy",
    "delegraph",
    "best",
)


def main(paths: list[str]) -> None:
    """Print the table."""
    print("| model | bound | LiteRT | " + " | ".join(PLANNERS) + " |")
    print("|---" * (len(PLANNERS) + 3) + "|")
    for path in paths:
        with Interpreter(path, delegates=[]) as interpreter:
            interpreter.allocate_tensors()
            report = memory_report(interpreter, PLANNERS)
        cells = [f"{result.bytes:,}" for result in report.results]
        name = Path(path).stem.rpartition("__")[2]
        print(
            f"| {name} | {report.bound:,} | {_litert_span(path, report):,} | {' | '.join(cells)} |"
        )


def _litert_span(path: str, report: MemoryReport) -> int:
    """Return the number of bytes from the first to the last of LiteRT's arena tensors."""
    litert = LiteRt(
        path, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    litert.allocate_tensors()
    places = []
    for tensor in report.tensors:
        try:
            array = litert.tensor(tensor.index)()
        except ValueError:  # a tensor without data
            continue
        start = array.__array_interface__["data"][0]
        places.append((start, start + array.nbytes))
    starts, ends = np.array(places).T
    return int(ends.max() - starts.min())


if __name__ == "__main__":
    main(sys.argv[1:])
