"""Run the cases of both official APIs in many released runtimes: ``make litert-matrix``.

``python litert_matrix.py FOLDER`` makes an environment for each in FOLDER, unless it is there, and
prints a table as ``docs/litert.md`` has it. A runtime for which no Python of this machine has a
wheel is left out, and said so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
LIFETIMES = (
    "interpreter_first", "delegate_first", "view_outlives_both", "shared_by_three",
    "applied_twice", "in_a_circle", "alive_at_exit", "stale",
)  # fmt: skip
ORDERS = ("0", "1", "2", "3", "4", "5")
"""Orders of ``compiled_lifetimes.py``."""

NEEDS = (
    "click", "flatbuffers", "importlib-metadata", "lazy_loader", "ml_dtypes", "packaging",
    "platformdirs", "pluggy", "rich", "threadpoolctl", "tomli",
)  # fmt: skip


@dataclass(frozen=True)
class Runtime:
    """A release, the Pythons to try, and what else it needs."""

    distribution: str
    version: str
    pythons: tuple[str, ...]
    pins: tuple[str, ...] = ()

    @property
    def has_compiled_model(self) -> bool:
        """Whether it has a ``CompiledModel`` with an ``Environment``."""
        first = (2, 1, 6)
        is_litert = self.distribution == "ai-edge-litert"
        return is_litert and tuple(map(int, self.version.split("."))) >= first

    @property
    def folder(self) -> str:
        return f"{self.distribution}-{self.version}"


NEW, OLD = ("3.13", "3.12", "3.11", "3.10"), ("3.11", "3.10")
RUNTIMES = [
    Runtime("tflite-runtime", "2.14.0", OLD, ("numpy<2",)),
    Runtime("ai-edge-litert", "1.0.1", OLD, ("numpy<2",)),
    Runtime("ai-edge-litert", "1.1.2", OLD, ("numpy<2",)),
    Runtime("ai-edge-litert", "1.2.0", OLD),
    Runtime("ai-edge-litert", "1.4.0", OLD),
    Runtime("ai-edge-litert", "2.0.3", OLD),
    Runtime("ai-edge-litert", "2.1.0", ("3.12", *OLD)),
    Runtime("ai-edge-litert", "2.1.6", NEW),
    Runtime("ai-edge-litert", "2.2.0", ("3.10", "3.11")),
    Runtime("ai-edge-litert", "2.3.0", NEW),
    Runtime("tensorflow-cpu", "2.19.1", OLD),
]


def pythons(versions: tuple[str, ...]) -> Iterator[str]:
    """Yield interpreters of these versions that this machine has."""
    for version in versions:
        found = shutil.which(f"python{version}")
        if found is not None:
            yield found
        yield from map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))


def environment(runtime: Runtime, folder: Path) -> Path | None:
    """Return the Python of an environment with *runtime*; None when it cannot be made."""
    python = folder / runtime.folder / "bin" / "python"
    if python.exists():
        return python
    for found in pythons(runtime.pythons):
        shutil.rmtree(folder / runtime.folder, ignore_errors=True)
        wanted = [f"{runtime.distribution}=={runtime.version}", *runtime.pins, *NEEDS]
        install = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        create = [found, "-m", "venv", str(folder / runtime.folder)]
        if succeeds(create) and succeeds([*install, *wanted]):
            return python
    shutil.rmtree(folder / runtime.folder, ignore_errors=True)
    return None


def succeeds(command: list[str]) -> bool:
    """Whether a command ends well; a Python that only seems to be there does not."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def run(python: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-W", "ignore", *command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={"PYTHONPATH": str(ROOT / "core"), "TF_CPP_MIN_LOG_LEVEL": "3"},
    )


def row(runtime: Runtime, python: Path) -> tuple[str, bool]:
    """Return a line of the table, and whether all is well."""
    versions = "import sys, numpy; print('%d.%d' % sys.version_info[:2], numpy.__version__)"
    about = run(python, "-c", versions).stdout.split()
    found = outcome(python, "litert_cases.py", "lifetimes.py", LIFETIMES)
    compiled = "-", "-"
    if runtime.has_compiled_model:
        compiled = outcome(python, "compiled_model_cases.py", "compiled_lifetimes.py", ORDERS)
    cells = [runtime.distribution, runtime.version, *about, *found, *compiled]
    return f"| {' | '.join(cells)} |", not any("(" in cell for cell in cells)


def outcome(python: Path, cases: str, lifetimes: str, orders: tuple[str, ...]) -> tuple[str, str]:
    """Return how many cases passed, with the others' names, and the price of an empty kernel."""
    here = Path(__file__)
    done = run(python, str(here.with_name(cases)))
    results = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    cost = results.pop("microseconds", "?")
    failed = [name for name, result in results.items() if result != "ok"]
    if done.returncode != 0 and not failed:
        failed.append(f"status {done.returncode}")
    for name in orders:
        results[name] = ""
        if run(python, str(here.with_name(lifetimes)), name).returncode != 0:
            failed.append(name)
    passed = f"{len(results) - len(failed)} of {len(results)}"
    if failed:
        passed += f" ({', '.join(failed)})"
    return passed, cost


def main(folder: Path) -> int:
    """Print the table; return 1 when something failed."""
    folder.mkdir(parents=True, exist_ok=True)
    is_well = True
    print(
        "| runtime | version | Python | NumPy | Interpreter: cases passed | µs for an empty kernel "
        "| CompiledModel: cases passed | µs for an empty kernel |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for runtime in RUNTIMES:
        python = environment(runtime, folder)
        if python is None:
            print(f"| {runtime.distribution} | {runtime.version} | no wheel here | | | | | |")
            continue
        line, is_right = row(runtime, python)
        print(line, flush=True)
        is_well &= is_right
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
