"""``make bench`` knows every benchmark."""

from __future__ import annotations

from benchmarks.run import ROOT, SHORT

# It measures nothing on this machine, and needs tools of LLVM.
PREDICTS = "delegates/numba_cpu/benchmarks/predict_arm.py"

# It runs in processes that networks.py starts.
PROCESS = "tests/benchmarks/network_process.py"


def test_every_benchmark_has_short_arguments() -> None:
    scripts = [*ROOT.glob("tests/benchmarks/*.py"), *ROOT.glob("delegates/*/benchmarks/*.py")]
    runnable = {
        script.relative_to(ROOT).as_posix()
        for script in scripts
        if script.name != "run.py" and "\nif __name__ == " in script.read_text(encoding="utf-8")
    }
    assert runnable - {PREDICTS, PROCESS} == set(SHORT)
