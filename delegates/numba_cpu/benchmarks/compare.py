"""Compares runtimes: ``python benchmarks/compare.py [--threads 1,2] [MODEL...]``.

All runtimes are loaded into this process and take turns, so that whatever else the machine does
disturbs all of them alike. Times are given as ratios to LiteRT with XNNPACK, below 1 is faster,
with the interval of 95 % of bootstrap resamples, by the least, the 10th percentile and the median
of each turn; rates beside the most that the cores can do.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import ArrayLike
from peak import float32_peak, int8_peak
from rich.console import Console
from runtimes import BASE, Arrays, Prepare, Prepared, model_inputs, runtimes
from tables import print_table

from arithmetic import model_multiply_adds
from delegraph.tools import Block, Ratio, all_times, interleave, ratio_of
from delegraph_numba_cpu.library.cpu import level_named

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"

DEFAULT_MODELS = (
    "bench/mobilenet_v2_float_dequantised",
    "models/test_data__tf2_mobilenet_v2_1.0_224_ptq",
    "models/test_data__mobilenet_v2_1.0_224_quant",
    "models/test_data__movenet_single_pose_lightning_ptq",
    "models/test_data__deeplabv3_mnv2_dm05_pascal_quant",
    "models/gles__posenet_mobilenet_v1_100_257x257_multi_kpt_stripped_integer_quant",
    "models/gles__face_landmark_192_full_integer_quant",
    "models/gles__hand_landmark_3d_256_integer_quant",
    "models/tiny__kws_ref_model_float32",
    "models/tiny__model_ToyCar",
    "models/support__yamnet_wavin_quantized_mel_relu6",
)

PACKAGES = ("delegraph", "numba", "llvmlite", "numpy", "ai-edge-litert", "openvino", "onnxruntime")


STATISTICS: Mapping[str, Callable[[ArrayLike], float]] = {
    "minimum": lambda times: float(np.min(times)),
    "10th percentile": lambda times: float(np.percentile(times, 10)),
    "median": lambda times: float(np.median(times)),
}

BLOCKS = 8  # few, as each has all runtimes twice, and the slowest take seconds


@dataclass(frozen=True, slots=True)
class Result:
    """How one runtime did on one model.

    Attributes:
        runtime: its name.
        error: why it could not run the model; empty when it could.
        milliseconds: statistic to time.
        ratios: statistic to ratio to the base runtime; empty when that could not run.
        rate: 10^9 operations a second, a multiply-add being two; by the minimum.
        difference: largest absolute difference of an output to the core's, in the output's units.
        placement: what a delegate takes.
    """

    runtime: str
    error: str = ""
    milliseconds: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, Ratio] = field(default_factory=dict)
    rate: float = 0.0
    difference: float | None = None
    placement: str = ""


def compare(
    model: Path, threads: int, seconds: float, chosen: Mapping[str, Prepare]
) -> list[Result]:
    """Return how each runtime does on a model; only why not, where the core cannot run it."""
    try:
        inputs = model_inputs(model)
        expected = runtimes()["core"](model, threads, inputs)
        expected.run()
    except Exception as error:  # noqa: BLE001 - so is the core, which all are compared with
        return [_failed("core", error)]
    ready: dict[str, Prepared] = {}
    failed: list[Result] = []
    for name, prepare in chosen.items():
        try:
            ready[name] = prepare(model, threads, inputs)
            ready[name].run()
        except Exception as error:  # noqa: BLE001 - a runtime that fails is listed with its error
            ready.pop(name, None)
            failed.append(_failed(name, error))
    differences = {name: _difference(r.outputs(), expected.outputs()) for name, r in ready.items()}
    runs = {name: prepared.run for name, prepared in ready.items()}
    times = interleave(runs, seconds, blocks=BLOCKS)
    work = 2 * model_multiply_adds(model)
    results = [
        _result(name, times, work, differences[name], ready[name].placement) for name in ready
    ]
    return results + failed


def _failed(name: str, error: Exception) -> Result:
    return Result(name, error=f"{type(error).__name__}: {error}".split("\n")[0])


def _result(
    name: str,
    times: dict[str, list[Block]],
    work: int,
    difference: float | None,
    placement: str,
) -> Result:
    own = all_times(times[name])
    ratios = {}
    if BASE in times:
        ratios = {key: ratio_of(times[name], times[BASE], of) for key, of in STATISTICS.items()}
    return Result(
        name,
        milliseconds={key: 1e3 * of(own) for key, of in STATISTICS.items()},
        ratios=ratios,
        rate=work / float(own.min()) / 1e9,
        difference=difference,
        placement=placement,
    )


def _difference(found: Arrays, expected: Arrays) -> float | None:
    """Return the largest absolute difference; None when the outputs cannot be compared."""
    if [a.shape for a in found] != [a.shape for a in expected]:
        return None
    with contextlib.suppress(TypeError, ValueError):  # texts
        pairs = zip(found, expected, strict=True)
        gaps = [np.abs(a.astype(np.float64) - b.astype(np.float64)) for a, b in pairs]
        return max((float(gap.max()) for gap in gaps if gap.size), default=0.0)
    return None


def print_results(out: Console, model: Path, threads: int, results: Sequence[Result]) -> None:
    """Print a table for one model and number of threads."""
    out.print()
    out.print(f"{model.stem}, {threads} thread{'s' * (threads != 1)}", style="bold")
    rows = [
        (
            result.runtime,
            *(f"{result.milliseconds[name]:.3f}" for name in ("minimum", "median")),
            *(str(result.ratios.get(name, "")) for name in STATISTICS),
            f"{result.rate:.0f}",
            "" if result.difference is None else f"{result.difference:.4g}",
        )
        for result in results
        if not result.error
    ]
    columns = ("runtime", "min ms", "median ms", *STATISTICS, "Gop/s", "differs by")
    print_table(out, columns, rows, right=columns[1:])
    for result in results:
        if result.error:
            out.print(f"  {result.runtime}: {result.error}", style="dim")
        if result.placement:
            out.print(f"  {result.runtime}: {result.placement}", style="dim")


def print_means(out: Console, found: Sequence[dict[str, Any]]) -> None:
    """Print the geometric mean of the ratios of each runtime, over all models."""
    rows = []
    for threads in sorted({entry["threads"] for entry in found}):
        results = [
            result for entry in found if entry["threads"] == threads for result in entry["results"]
        ]
        for name in dict.fromkeys(result.runtime for result in results):
            ratios = [r.ratios["minimum"].value for r in results if r.runtime == name and r.ratios]
            if ratios:
                mean = float(np.exp(np.mean(np.log(ratios))))
                worst = f"{max(ratios):.2f}"
                rows.append((name, threads, len(ratios), f"{mean:.2f}", worst))
    out.print()
    out.print("Geometric mean of minimum ratios", style="bold")
    columns = ("runtime", "threads", "models", "mean", "worst")
    print_table(out, columns, rows, right=columns[1:])


def machine(cpu: str) -> dict[str, Any]:
    """Return what the figures depend on; *cpu* is the level of numba_cpu."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {
        "level": level_named(cpu).name,
        "processor": llvm.get_host_cpu_name(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "system": platform.platform(),
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "float32 GFLOP/s of one core": float32_peak(cpu),
        "int8 Gop/s of one core": int8_peak(cpu),
        "versions": versions,
    }


def write_picture(path: Path, found: Sequence[dict[str, Any]]) -> None:
    """Write bars of the minimum ratios, one group a model, one panel a number of threads."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    threads = sorted({entry["threads"] for entry in found})
    models = len({entry["model"] for entry in found})
    size = (12, (1.2 + 0.6 * models) * len(threads))
    figure, axes = pyplot.subplots(
        len(threads), 1, figsize=size, squeeze=False, layout="constrained"
    )
    for axis, count in zip(axes[:, 0], threads, strict=True):
        _draw_bars(axis, [entry for entry in found if entry["threads"] == count])
        axis.set_title(f"{count} thread{'s' * (count != 1)}: time / {BASE}, below 1 is faster")
    figure.savefig(path, dpi=150)


def _draw_bars(axis: Any, entries: Sequence[dict[str, Any]]) -> None:
    """Draw a bar for each runtime and model, the first model on top, with its interval."""
    names = dict.fromkeys(r.runtime for e in entries for r in e["results"] if r.runtime != BASE)
    for i, name in enumerate(names):
        bars = [
            (position, result.ratios["minimum"])
            for position, entry in enumerate(entries)
            for result in entry["results"]
            if result.runtime == name and result.ratios
        ]
        places = [position + (i - (len(names) - 1) / 2) * 0.8 / len(names) for position, _ in bars]
        values = [ratio.value for _, ratio in bars]
        spread = [
            [max(0.0, ratio.value - ratio.low) for _, ratio in bars],
            [max(0.0, ratio.high - ratio.value) for _, ratio in bars],
        ]
        axis.barh(places, values, 0.8 / len(names), xerr=spread, label=name)
    axis.axvline(1.0, color="black", linewidth=1)
    axis.set_yticks(range(len(entries)), [entry["model"] for entry in entries])
    axis.invert_yaxis()
    axis.legend()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--threads", default="1", help="one or several numbers: 1,2")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each model and number")
    parser.add_argument("--only", default="", help="runtimes to run, comma-separated")
    parser.add_argument("--cpu", default="auto", help="level of numba_cpu; see its option cpu")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw them; needs matplotlib")
    return parser.parse_args()


def _default_models() -> list[Path]:
    found = [CORPUS / f"{name}.tflite" for name in DEFAULT_MODELS]
    return [path for path in found if path.is_file()]


def main() -> None:
    """Compare all runtimes on all models."""
    arguments = _arguments()
    models = arguments.models or _default_models()
    if not models:
        raise SystemExit(f"name models: the corpus is not in {CORPUS}")
    known = runtimes(arguments.cpu)
    names = [name for name in arguments.only.split(",") if name] or list(known)
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise SystemExit(f"no runtime {unknown[0]!r}; there are: {', '.join(known)}")
    chosen = {name: known[name] for name in known if name in names}
    out = Console(width=None if Console().is_terminal else 160, highlight=False, markup=False)
    about = machine(arguments.cpu)
    for key, value in about.items():
        out.print(f"{key}: {value:.0f}" if isinstance(value, float) else f"{key}: {value}")
    found: list[dict[str, Any]] = []
    for model in models:
        for threads in map(int, arguments.threads.split(",")):
            results = compare(model, threads, arguments.seconds, chosen)
            print_results(out, model, threads, results)
            found.append({"model": model.stem, "threads": threads, "results": results})
    print_means(out, found)
    if arguments.json is not None:
        plain = [{**e, "results": [asdict(result) for result in e["results"]]} for e in found]
        arguments.json.write_text(json.dumps({"machine": about, "models": plain}, indent=2))
    if arguments.picture is not None:
        write_picture(arguments.picture, found)


if __name__ == "__main__":
    main()
