"""Whole models: Delegraph beside the official interpreter, one thread each.

    python tests/benchmarks/models.py [MODEL.tflite ...] [--seconds 6] [--delegate NAME]

Without models, every corpus model of at least five million multiply-adds. For each, the table has
the median of Delegraph in milliseconds, and its time by those of the official kernels: reference,
builtin, and XNNPACK. Below 1 Delegraph is faster. ``delegraph benchmark --against`` says more.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from delegraph.errors import DelegraphError
from delegraph.graph import load_model, macs_of
from delegraph.graph.model import Model
from delegraph.tools import Setup, compare
from delegraph.tools.benchmarking.verdicts import LEAST_BLOCKS

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
LEAST_PRODUCTS = 5_000_000

OFFICIAL = ("reference", "builtin", "XNNPACK")


def products(model: Model) -> int:
    """Return the multiply-adds of the model's convolutions and matrix products."""
    return sum(macs_of(op, graph.tensors) for graph in model.subgraphs for op in graph.operators)


def large_models() -> list[Path]:
    """Return the corpus models that are large enough to measure, by name."""
    found = []
    for path in sorted((CORPUS / "models").glob("*.tflite")):
        try:
            if products(load_model(path)) >= LEAST_PRODUCTS:
                found.append(path)
        except Exception as error:  # noqa: BLE001 - the corpus has damaged files on purpose
            print(f"{path.stem}: {error}")
    return found


def official(path: Path) -> list[Setup]:
    """Return the official interpreter with each set of kernels."""
    model = str(path)
    return [
        Setup(model, "litert", (), threads=1, numerics="reference"),
        Setup(model, "litert", (), threads=1, use_default_delegates=False),
        Setup(model, "litert", (), threads=1),
    ]


def row(path: Path, delegates: tuple[str, ...], seconds: float) -> str:
    """Return the table line of a model."""
    ours = Setup(str(path), delegates=delegates, threads=1)
    found = compare(ours, official(path), blocks=LEAST_BLOCKS, seconds=seconds)
    cells = ["failed" if t.verdict is None else str(t.verdict.ratio) for t in found.others]
    return f"{1e3 * (found.one.median or 0):10.2f}" + "".join(f"{cell:>23}" for cell in cells)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=6, help="for each model")
    parser.add_argument("--delegate", action="append", default=[])
    args = parser.parse_args()
    print(f"{'model':52}{'ms':>10}" + "".join(f"{name:>23}" for name in OFFICIAL))
    for path in args.models or large_models():
        try:
            print(f"{path.stem[:50]:52}{row(path, tuple(args.delegate), args.seconds)}", flush=True)
        except DelegraphError as error:
            print(f"{path.stem[:50]:52}{str(error).splitlines()[0][:60]}")


if __name__ == "__main__":
    main()
