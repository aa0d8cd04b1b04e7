"""Networks in every runtime beside XNNPACK: the table and the picture of ``docs/speed.md``.

    python tests/benchmarks/networks.py [--networks FOLDER] [--threads 1,2] [--levels auto,avx2]
    python tests/benchmarks/networks.py --networks FOLDER --page    write the page as well

Each runtime has a process of its own for a network and a number of threads, and the processes take
turns. Measured are the core, numba_cpu at each level, TFLite's builtin kernels, the delegate
openvino and ONNX Runtime, the last two in environments of their own where they are installed. The
level avx2 is measured beside XNNPACK that is limited to AVX2 (``xnnpack_avx2.py``). What each
operator of numba_cpu reaches of the processor's roof is measured with one thread.

With ``--json`` results are kept in a file, and what is in it is not measured again. So work may be
divided: ``--budget 40`` begins nothing after 40 seconds, and the same command goes on from there.
With ``--again --runtimes NAMES`` the results of other runtimes stay.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from network_runs import (
    BASE,
    LIMITED,
    REFERENCE,
    Job,
    Result,
    RuntimeFailedError,
    converted,
    kind_of,
    measured,
)
from ratio_rows import Row, mean_row, write_rows

from delegraph.delegation.num_threads import usable_processors
from delegraph.errors import DelegraphError
from delegraph.json_records import to_json
from delegraph.tools import Ratio
from delegraph.tools.benchmarking.machine import machine

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "generate_speed.py"
KEPT = ROOT / "docs" / "speed.json"
MODELS = ROOT / "docs" / "demo" / "models"

LEAST_SHARE = 0.005
"""Roofs are kept of operators that take at least this share of a network's time."""


def python_of(package: str, named: Mapping[str, str]) -> str | None:
    """Return the Python that has *package*: the named one, ``.venv-PACKAGE``'s, or this one."""
    own = ROOT / f".venv-{package}" / "bin" / "python"
    if package in named:
        return named[package]
    return str(own) if own.is_file() else sys.executable if find_spec(package) else None


def runtimes(
    levels: Sequence[str], pythons: Mapping[str, str | None]
) -> dict[str, tuple[str, str]]:
    """Return the installed runtimes: the Python, and the name in ``network_process.py``.

    Args:
        levels: words of ``--levels``.
        pythons: mapping from a package to the Python that has it; None without.
    """
    here = sys.executable
    found = {BASE: (here, BASE), REFERENCE: (here, REFERENCE)}
    for level in levels:
        name = "numba_cpu" if level == "auto" else f"numba_cpu {level}"
        found[name] = here, f"numba_cpu:cpu={level}"
    if "avx2" in levels:
        found[LIMITED] = here, LIMITED
    found["core"] = here, "core"
    for name, package, word in (
        ("OpenVINO", "openvino", "openvino"),
        ("ONNX Runtime", "onnxruntime", "ONNX Runtime"),
    ):
        python = pythons[package]
        if python is not None:
            found[name] = python, word
    return found


def roofs(model: Path) -> dict[str, Any]:
    """Return the time of a model's operators, and their share of the roof."""
    from delegraph_numba_cpu.roof.report import roof_report

    operators = [
        {
            "operators": each.operators,
            "delegate": each.delegate,
            "shape": "x".join(map(str, each.shape)),
            "milliseconds": float(f"{1e3 * each.seconds:.3g}"),
            "share": round(each.share, 4),
            "of_roof": round(each.of_roof, 4),
            "bound": each.bound,
        }
        for each in roof_report(str(model)).operators
        if each.share >= LEAST_SHARE and each.of_roof is not None
    ]
    return {"network": model.stem, "kind": kind_of(model), "operators": operators}


def add_roofs(kept: dict[str, Any], job: Job) -> None:
    """Measure the roofs of a network, and replace the stored ones."""
    try:
        found = roofs(job.model)
    except DelegraphError as error:  # numba_cpu takes no node, for example
        print(f"{job.model.stem}: no roofs: {str(error).splitlines()[0]}", flush=True)
        return
    others = [each for each in kept.get("roofs", ()) if each["network"] != job.model.stem]
    kept["roofs"] = sorted([*others, found], key=lambda each: str(each["network"]))


def add_results(kept: dict[str, Any], job: Job, results: list[dict[str, Any]]) -> None:
    """Add results of a network, in the place of earlier ones of the same runtimes."""
    key = job.model.stem, job.threads
    others = [e for e in kept["networks"] if (e["network"], e["threads"]) != key]
    before = [e for e in kept["networks"] if (e["network"], e["threads"]) == key]
    measured_now = {result["runtime"] for result in results}
    stored = [r for e in before for r in e["results"] if r["runtime"] not in measured_now]
    entry = {"network": key[0], "threads": key[1], "kind": kind_of(job.model)}
    entry["date"] = time.strftime("%Y-%m-%d", time.gmtime())
    kept["networks"] = [*others, {**entry, "results": [*results, *stored]}]


def level_used(word: str) -> str:
    """Return the level of numba_cpu that a word of ``--levels`` selects on this machine."""
    from delegraph_numba_cpu.library.cpu import level_named

    return level_named(word).name


def rows(entries: Sequence[dict[str, Any]], levels: Mapping[str, str]) -> Iterator[Row]:
    """Yield the mean ratio and the slowest ratio of numba_cpu, for each level and thread count."""
    for threads in sorted({entry["threads"] for entry in entries}):
        for runtime, level in levels.items():
            ratios = {
                entry["network"]: Ratio(**result["ratio"])
                for entry in entries
                for result in entry["results"]
                if (entry["threads"], result["runtime"]) == (threads, runtime) and result["ratio"]
            }
            what = f"networks, {level}, {threads} thread{'s' * (threads != 1)}"
            if ratios:
                yield mean_row(f"{what}, mean of {len(ratios)}", list(ratios.values()))
            for name in sorted(ratios, key=lambda name: -ratios[name].value)[:5]:
                slow = ratios[name]
                yield Row(f"{what}: {name}", slow.value, slow.low, slow.high)


def read_kept(path: Path | None, levels: Mapping[str, str]) -> dict[str, Any]:
    """Return the stored results; empty if there are none.

    Raises:
        SystemExit: they are of another processor.
    """
    told = machine().to_json()
    where = {key: told[key] for key in ("processor", "python")}
    if path is None or not path.is_file():
        return {"machine": where, "levels": dict(levels), "networks": []}
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    is_other = any(kept["levels"].get(name, level) != level for name, level in levels.items())
    if is_other or kept["machine"]["processor"]["name"] != where["processor"]["name"]:
        raise SystemExit(f"{path} has results of another processor: name another file")
    kept["levels"].update(levels)
    return kept


def write_kept(path: Path | None, kept: dict[str, Any]) -> None:
    """Write the results to the file in order, if there is a file."""
    if path is not None:
        order = sorted(kept["networks"], key=lambda entry: (entry["network"], entry["threads"]))
        text = json.dumps({**kept, "networks": order}, indent=1)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--networks", type=Path, metavar="FOLDER", action="append", help="folder of TFLite files")
    add("--least", type=int, default=0, metavar="BYTES", help="leave out smaller files")
    add("--only", default="", metavar="NAMES", help="networks to measure, comma-separated")
    add("--threads", default="1,2,all", help="one or several numbers; all is all cores")
    add("--levels", default="auto", help="levels of numba_cpu: auto,avx2")
    add("--runtimes", default="", metavar="NAMES", help="runtimes to measure, comma-separated")
    add("--python", action="append", default=[], metavar="PACKAGE=PYTHON", help="environment")
    add("--seconds", type=float, default=6, help="for each network and number of threads")
    add("--budget", type=float, help="begin nothing after so many seconds")
    add("--json", type=Path, metavar="FILE", help="keep results in this file")
    add("--rows", type=Path, metavar="FILE", help="write means of numba_cpu")
    add("--again", action="store_true", help="measure what the file has already")
    add("--convert", action="store_true", help="convert networks for ONNX Runtime; measure nothing")
    add("--page", action="store_true", help=f"keep results in {KEPT.name}, write the page of it")
    return parser.parse_args()


def jobs(
    arguments: argparse.Namespace, levels: Sequence[str], pythons: Mapping[str, str | None]
) -> Iterator[Job]:
    """Yield the jobs to measure."""
    folders = arguments.networks or [MODELS]
    found_files = [path for folder in folders for path in sorted(folder.rglob("*.tflite"))]
    files = {p.stem: p for p in found_files if p.stat().st_size >= arguments.least}
    chosen = [name for name in arguments.only.split(",") if name] or sorted(files)
    unknown = sorted(set(chosen) - set(files))
    if unknown:
        raise SystemExit(f"no network {unknown[0]!r}; there are: {', '.join(sorted(files))}")
    cores = usable_processors()
    numbers = {cores if word == "all" else int(word) for word in arguments.threads.split(",")}
    found = runtimes(levels, pythons)
    wanted = [name for name in arguments.runtimes.split(",") if name] or list(found)
    if absent := sorted(set(wanted) - set(found)):
        raise SystemExit(f"no runtime {absent[0]!r}; there are: {', '.join(found)}")
    for name in chosen:
        for threads in sorted(number for number in numbers if number <= cores):
            kept = {runtime: found[runtime] for runtime in found if runtime in wanted}
            yield Job(files[name], threads, kept, arguments.seconds, pythons["tf2onnx"])


def main() -> None:
    """Measure missing results, print them, and write the page if requested."""
    arguments = _arguments()
    named = dict(word.split("=", 1) for word in arguments.python)
    pythons = {p: python_of(p, named) for p in ("openvino", "onnxruntime", "tf2onnx")}
    words = arguments.levels.split(",")
    names = ["numba_cpu" if word == "auto" else f"numba_cpu {word}" for word in words]
    levels = dict(zip(names, map(level_used, words), strict=True))
    path = KEPT if arguments.page else arguments.json
    kept, begin, left = read_kept(path, levels), time.monotonic(), 0
    known = {(entry["network"], entry["threads"]) for entry in kept["networks"]}
    with_roofs = {each["network"] for each in kept.get("roofs", ())}
    for job in jobs(arguments, words, pythons):
        if arguments.convert:
            try:
                print(converted(job.model, job.converter), flush=True)
            except RuntimeFailedError as error:
                print(f"{job.model.stem}: {error}", flush=True)
            continue
        key = job.model.stem, job.threads
        is_known = key in known and not arguments.again
        needs_roofs = job.threads == 1 and "numba_cpu" in job.runtimes
        needs_roofs = needs_roofs and (arguments.again or job.model.stem not in with_roofs)
        if is_known and not needs_roofs:
            continue
        if arguments.budget is not None and time.monotonic() - begin > arguments.budget:
            left += 1
            continue
        if needs_roofs:
            add_roofs(kept, job)
            write_kept(path, kept)
        if is_known:
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                results = measured(job, Path(folder))
        except (DelegraphError, ValueError, RuntimeError) as error:  # no inputs can be made
            print(f"{job.model.stem}: {str(error).splitlines()[0]}", flush=True)
            continue
        print_results(key, results)
        add_results(kept, job, to_json(results))
        write_kept(path, kept)
    if left:
        print(f"{left} of the networks and numbers of threads are left: run the same again")
    write_rows(arguments.rows, rows(kept["networks"], levels))
    if arguments.page:
        subprocess.run([sys.executable, str(PAGE)], check=True)


def print_results(key: tuple[str, int], results: Sequence[Result]) -> None:
    """Print the results of all runtimes for one network."""
    print(f"{key[0]}, {key[1]} thread{'s' * (key[1] != 1)}")
    for result in results:
        if result.error:
            print(f"  {result.runtime:16} {result.error}")
            continue
        assert result.first_answer is not None
        print(
            f"  {result.runtime:16} {result.milliseconds:9.3f} ms  {result.ratio or ''!s:24} "
            f"first answer {result.first_answer:5.2f} s  {(result.memory or 0) >> 20:5} MiB  "
            f"differs by {'?' if result.difference is None else format(result.difference, '.2g')}",
            flush=True,
        )


if __name__ == "__main__":
    main()
