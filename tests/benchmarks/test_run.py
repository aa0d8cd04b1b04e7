"""``make bench`` knows every benchmark."""

from __future__ import annotations

from benchmarks.run import ROOT, SHORT


def test_every_benchmark_has_short_arguments() -> None:
    scripts = [*ROOT.glob("tests/benchmarks/*.py"), *ROOT.glob("delegates/*/benchmarks/*.py")]
    runnable = {
        script.relative_to(ROOT).as_posix()
        for script in scripts
        if script.name != "run.py" and "\nif __name__ == " in script.read_text(encoding="utf-8")
    }
    assert runnable == set(SHORT)
