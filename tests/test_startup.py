"""What importing Delegraph may load: starting fast, and running no plugin's code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[1] / "docs" / "demo" / "models" / "digits_int8.tflite"

UNUSED = {
    "delegraph.delegation.capabilities",
    "delegraph.delegation.partitioner",
    "delegraph.kernels.conv3d",
    "delegraph.memory.best_planner",
    "delegraph.plugins.plugin_set",
    "delegraph.runtime.delegates.delegate_stack",
    "delegraph.runtime.execution.overlap",
    "flatbuffers",
    "html",
    "importlib_metadata",
    "json",
    "ml_dtypes",
    "numpy.ma",
    "packaging",
    "platformdirs",
    "pluggy",
}
"""What a model without delegates has no use for; together it takes longer than running one."""

NEEDED = ("bisect", "dataclasses", "gc", "lazy_loader", "mmap", "threading", "threadpoolctl")
"""What a model without delegates imports beyond NumPy and Delegraph; who adds to it says why."""

MOST = {"sines": 75, "digits_float": 78, "digits_int8": 90}
"""Modules of Delegraph itself that a first answer may import; fewer are better: lower it then."""

HEAVY = {"click", "hypothesis", "jax", "llvmlite", "numba", "pytest", "rich", "tensorflow"}


def modules_after(statement: str) -> set[str]:
    """Return the names of the modules that a fresh interpreter holds after *statement*."""
    code = f"import sys\n{statement}\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def plugin_modules(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("delegraph_")}


@pytest.mark.parametrize(
    "statement",
    [
        "import delegraph",
        "from delegraph import Interpreter, SimpleDelegateInterface, hookimpl",
        "import delegraph.runtime, delegraph.plugins, delegraph.delegation",
    ],
)
def test_import_loads_nothing_heavy_and_no_plugin(statement: str) -> None:
    modules = modules_after(statement)
    assert "delegraph" in modules
    assert not modules & HEAVY
    assert not plugin_modules(modules)


def test_a_heavy_import_would_be_seen() -> None:
    modules = modules_after("import click, delegraph")
    assert modules & HEAVY == {"click"}


def test_the_configuration_is_found_without_anything_heavy() -> None:
    statement = "from delegraph.delegation.configuration import configuration; configuration()"
    assert not modules_after(statement) & {*HEAVY, "numpy", "tomllib", "tomli"}


def test_a_model_without_delegates_imports_what_it_needs_only() -> None:
    statement = (
        f"from delegraph import Interpreter; i = Interpreter({str(MODEL)!r}); "
        "i.allocate_tensors(); i.invoke()"
    )
    modules = modules_after(statement)
    assert "delegraph.kernels.conv" in modules
    assert not modules & {*UNUSED, *HEAVY}
    assert not plugin_modules(modules)


@pytest.mark.parametrize("name", MOST)
def test_a_first_answer_imports_few_modules(name: str) -> None:
    before = modules_after(f"import numpy, {', '.join(NEEDED)}")
    after = modules_after(
        f"from delegraph import Interpreter; "
        f"i = Interpreter({str(MODEL.with_stem(name))!r}, delegates=[]); "
        "i.allocate_tensors(); i.invoke(); "
        "i.get_tensor(i.get_output_details()[0]['index'])"
    )
    own = {name for name in after if name.partition(".")[0] == "delegraph"}
    assert sorted(after - own - before - {"__future__"}) == []
    assert len(own) <= MOST[name], sorted(own)


def test_a_newcomer_would_be_seen() -> None:
    assert "colorsys" in modules_after("import numpy, colorsys") - modules_after("import numpy")
