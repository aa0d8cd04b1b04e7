"""What importing Delegraph may load: starting fast, and running no plugin's code."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
