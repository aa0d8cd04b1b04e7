"""Every ratio to the official interpreter in one table, with intervals and what is wanted.

    python tests/benchmarks/beside_litert.py [--networks FOLDER] [--levels auto,avx2] [--json FILE]
    python tests/benchmarks/beside_litert.py --only networks --seconds 5

Each part is a benchmark of its own, run as a process: whole processes, the framework's costs,
networks with one thread and with two at each level of processor, and a decoder. Below 1
Delegraph is better.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ratio_rows import Row, read_rows
from rich.console import Console
from rich.table import Table

from delegraph.tools.benchmarking.machine import Machine, machine

ROOT = Path(__file__).parents[2]
DEMO_MODELS = ROOT / "docs" / "demo" / "models"
CORPUS = ROOT.parent / "shared" / "corpus"

LEAST_BYTES = 20_000
"""Networks are models from this size on."""

WANTED = {
    "process, *, core": 1.5,
    "process, *, numba_cpu": 1.8,
    "peak memory, *, core": 1.25,
    "peak memory, *, numba_cpu": 1.25,
    "set + invoke + get, one ADD": 2.5,
    "set + invoke + get, one ADD, numba_cpu": 1.2,
    "load 10000 operators / Interpreter()": 3.0,
    "create + allocate 10000 ADD": 5.0,
    "set + invoke + get, 10000 ADD": 6.0,
    "networks, amx_int8, 1 thread, mean*": 0.55,
    "networks, avx512_*, 1 thread, mean*": 0.65,
    "networks, avx512_*, 2 threads, mean*": 0.75,
    "networks, avx2, 1 thread, mean*": 1.25,
    "decoder, *": 1.0,
    "Gemma's shape, *, time": 1.0,
    "Gemma's shape, *, memory, *": 1.1,
}
"""Patterns of rows to the ratio that is to be reached at most; the first that fits counts."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Options of the measurement.

    Attributes:
        networks: folders of models that are run with each level and number of threads.
        processes: models that are run as whole processes.
        levels: of numba_cpu, as its option ``cpu`` names them.
        seconds: for each model or row.
    """

    networks: Sequence[Path]
    processes: Sequence[Path]
    levels: Sequence[str]
    seconds: float


def processes(choice: Choice, result: Path) -> list[Row]:
    """Return the rows about whole processes."""
    words = [*map(str, choice.processes), "--delegate", "numba_cpu"]
    run("tests/benchmarks/startup.py", *words, "--json", str(result))
    return read_rows(result)


def framework(choice: Choice, result: Path) -> list[Row]:
    """Return the rows about the overhead of the framework."""
    words = ["--seconds", str(choice.seconds), "--json", str(result)]
    run("tests/benchmarks/framework.py", *words)
    return read_rows(result)


def networks(choice: Choice, result: Path) -> list[Row]:
    """Return the mean ratio of all networks, and the slowest one, per level and thread count."""
    names = ("XNNPACK", *("numba_cpu" + f" {w}" * (w != "auto") for w in choice.levels))
    words = [word for folder in choice.networks for word in ("--networks", str(folder))]
    run(
        "tests/benchmarks/networks.py",
        *words,
        *("--levels", ",".join(choice.levels), "--threads", "1,2", "--least", str(LEAST_BYTES)),
        *("--runtimes", ",".join(names)),
        *("--seconds", str(choice.seconds), "--rows", str(result)),
    )
    return read_rows(result)


def decoder(choice: Choice, result: Path) -> list[Row]:
    """Return the rows about a step of a language model, by type of weights."""
    words, found = ["--seconds", str(choice.seconds), "--json", str(result)], []
    for name in ("decoder", "gemma"):
        run(f"tests/benchmarks/{name}.py", *words)
        found += read_rows(result)
    return found


PARTS = {"processes": processes, "framework": framework, "networks": networks, "decoder": decoder}


class PartFailedError(RuntimeError):
    """Error: a benchmark failed; the rows of the other benchmarks are still printed."""


def run(script: str, *words: str) -> None:
    """Run a benchmark, its output on the terminal.

    Raises:
        PartFailedError: it failed.
    """
    print(f"\n== {script}", flush=True)
    if subprocess.run([sys.executable, str(ROOT / script), *words], check=False).returncode:
        raise PartFailedError(f"{script} failed, see above")


def best_level() -> str:
    """Return the level of numba_cpu that ``auto`` selects."""
    words = [sys.executable, "-m", "delegraph", "numba", "info", "--json"]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return str(json.loads(told)["used"])


def wanted(what: str) -> float | None:
    """Return the largest wanted ratio of a row; None if there is no goal."""
    return next((most for pattern, most in WANTED.items() if fnmatchcase(what, pattern)), None)


def print_rows(out: Console, rows: Sequence[Row]) -> None:
    """Print the table."""
    table = Table("ratio to LiteRT", "[95 %]", "wanted", "", box=None, header_style="bold")
    for row in rows:
        most = wanted(row.what)
        verdict = "" if most is None else "reached" if row.value <= most else "missed"
        table.add_row(row.what, str(row), "" if most is None else f"{most:g}", verdict)
    out.print(table)


def print_machine(out: Console, where: Machine) -> None:
    """Print the properties of the machine."""
    chip = where.processor
    load = "unknown" if where.load is None else f"{where.load[0]:.1f}"
    out.print(f"{chip.name or chip.machine}, {chip.usable_cores} cores, load {load} before")
    out.print(f"level {best_level()}; {where.system}; Python {where.python}; {where.date}")
    out.print(", ".join(f"{name} {version}" for name, version in where.versions.items()))


def usual_processes() -> list[Path]:
    """Return MobileNetV2 in int8 and float32 if the corpus is installed, else a small model."""
    names = "models/test_data__mobilenet_v2_1.0_224_quant", "bench/mobilenet_v2_float_dequantised"
    found = [path for name in names if (path := CORPUS / f"{name}.tflite").is_file()]
    return found or [DEMO_MODELS / "digits_int8.tflite"]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=Path, metavar="FOLDER", help="of TFLite files")
    parser.add_argument("--levels", default="auto", help="of numba_cpu: auto,avx2,generic")
    parser.add_argument("--seconds", type=float, default=3, help="for each model or row")
    parser.add_argument("--only", choices=PARTS, action="append", help="measure this part")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table")
    args = parser.parse_args()
    folder = args.networks or (CORPUS if CORPUS.is_dir() else DEMO_MODELS)
    levels = args.levels.split(",")
    choice = Choice([folder], usual_processes(), levels, args.seconds)
    where = machine()
    rows: list[Row] = []
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        for part in args.only or PARTS:
            try:
                rows += PARTS[part](choice, Path(name) / f"{part}.json")
            except PartFailedError as error:
                failures.append(str(error))
    out = Console(width=None if Console().is_terminal else 120, highlight=False, markup=False)
    out.print()
    print_machine(out, where)
    print_rows(out, rows)
    if args.json is not None:
        table = [{**asdict(row), "wanted": wanted(row.what)} for row in rows]
        args.json.write_text(json.dumps({"machine": where.to_json(), "rows": table}, indent=2))
    if failures:
        raise SystemExit("\n".join(failures))


if __name__ == "__main__":
    main()
