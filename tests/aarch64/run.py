"""Tests an AArch64 wheel of numba_cpu, and other distributions, under emulation.

On Linux for x86-64, with Debian's or Ubuntu's packages: see ``make_python.sh``. What is done is
kept in a folder and not done again, until a wheel changes: stop it and start it as you like.
Emulated time says nothing about speed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

CPUS = {"neon": "cortex-a72", "neon_dotprod": "cortex-a76", "neon_i8mm": "max"}
"""Level to a processor of QEMU whose best it is."""

SMOKE = ("digits_float", "digits_int8", "sines")
"""Models of docs/demo/models that a smoke test runs."""

DISTRIBUTIONS = (
    ".",
    "plugins_example",
    *(f"delegates/{n}" for n in ("numba_cpu", "flex", "edgetpu")),
)

PIP: list[str] = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


@dataclass(frozen=True)
class Step:
    """A command to run in the emulated Python.

    Attributes:
        name: of the step and its log.
        cpu: QEMU's processor.
        arguments: of Python.
    """

    name: str
    cpu: str
    arguments: tuple[str, ...]


def main() -> int:
    """Run the requested steps; return how many of them failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where everything is kept")
    parser.add_argument("--smoke", action="store_true", help="three models only, minutes")
    parser.add_argument("--models", type=Path, help="a folder of models to run at every level")
    parser.add_argument("--only", default="", help="steps whose names contain this")
    asked = parser.parse_args()
    folder: Path = asked.folder.resolve()
    digest = _prepared(folder)
    steps = _smoke_steps() if asked.smoke else _all_steps(asked.models)
    wanted = [step for step in steps if asked.only in step.name]
    failed = [step.name for step in wanted if not _passes(step, folder, digest)]
    print(f"{len(wanted) - len(failed)} of {len(wanted)} steps passed; failed: {failed or 'none'}")
    return len(failed)


def _prepared(folder: Path) -> str:
    """Install the emulated Python and the wheels; return a digest of both."""
    if not (folder / "python").exists():
        print("Making an AArch64 Python, which takes two minutes ...", flush=True)
        words = [HERE / "make_python.sh", folder, "--requirement", HERE / "requirements.txt"]
        subprocess.run([*map(str, words)], env=os.environ | {"PYTHON": sys.executable}, check=True)
    wheels = folder / "wheels"
    if not wheels.exists():
        print("Building wheels, which takes minutes; remove their folder to renew them:", wheels)
        projects = [str(ROOT / each) for each in DISTRIBUTIONS]
        environment = os.environ | {"DELEGRAPH_NUMBA_CPU_MACHINE": "aarch64"}
        command = [*PIP, "wheel", "--quiet", "--no-deps", "-w", f"{wheels}.unfinished", *projects]
        subprocess.run(command, env=environment, check=True)
        Path(f"{wheels}.unfinished").rename(wheels)
        for wheel in sorted(wheels.glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder / "site")
    digest = hashlib.sha256()
    for wheel in sorted(wheels.glob("*.whl")):
        digest.update(wheel.read_bytes())
    return digest.hexdigest()


def _smoke_steps() -> Iterator[Step]:
    models = [str(ROOT / "docs" / "demo" / "models" / f"{name}.tflite") for name in SMOKE]
    for level, cpu in CPUS.items():
        yield Step(f"smoke-{level}", cpu, (str(HERE / "compare.py"), level, *models))


def _all_steps(models: Path | None) -> Iterator[Step]:
    yield from _smoke_steps()
    for level, cpu in CPUS.items():
        for path in sorted(models.rglob("*.tflite")) if models else ():
            arguments = (str(HERE / "compare.py"), level, str(path))
            yield Step(f"model-{level}-{path.stem}", cpu, arguments)
    for level, cpu in CPUS.items():
        kit = ("--pyargs", "delegraph.testing", "--delegate", f"numba_cpu:cpu={level}")
        yield Step(f"conformance-{level}-sample", cpu, _pytest(*kit, "--delegate-quick"))
    for level, cpu in CPUS.items():
        kit = ("--pyargs", "delegraph.testing", "--delegate", f"numba_cpu:cpu={level}")
        yield Step(f"conformance-{level}-whole", cpu, _pytest(*kit))
    for name in ("edgetpu", "flex", "numba_cpu"):
        yield Step(f"suite-{name}", CPUS["neon_dotprod"], _pytest(f"delegates/{name}/tests"))
    for path in sorted((ROOT / "tests").iterdir()):
        if any(path.glob("test_*.py")):
            yield Step(
                f"suite-core-{path.name}", CPUS["neon_dotprod"], _pytest(f"tests/{path.name}")
            )


def _pytest(*arguments: str) -> tuple[str, ...]:
    # Limits of time are those of a processor that is not emulated. The official interpreter for ARM
    # ends its process on some models that it should refuse: that costs a test, not all after it.
    options = ("--quiet", "--timeout", "0", "-p", "no:cacheprovider", "--numprocesses", "1")
    return ("-m", "pytest", "-p", "known", *options, *arguments)


def _passes(step: Step, folder: Path, digest: str) -> bool:
    """Run a step, unless it has passed with these wheels before; return whether it passes."""
    done, log = folder / "done" / step.name, folder / "logs" / f"{step.name}.txt"
    if done.exists() and done.read_text() == digest:
        return True
    for path in (done, log):
        path.parent.mkdir(exist_ok=True)
    print(f"{step.name} ...", end=" ", flush=True)
    start = time.monotonic()
    environment = {
        "QEMU_CPU": step.cpu,
        "DELEGRAPH_CACHE": str(folder / "cache"),
        "PYTHONPATH": str(HERE),
    }
    with log.open("w") as file:
        ran = subprocess.run(
            [folder / "python", *step.arguments],
            cwd=ROOT,
            env=os.environ | environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    passed = ran.returncode == 0
    print(
        f"{'passed' if passed else f'FAILED, see {log}'} ({time.monotonic() - start:.0f} s)",
        flush=True,
    )
    if passed:
        done.write_text(digest)
    return passed


if __name__ == "__main__":
    sys.exit(main() > 0)
