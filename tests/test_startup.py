"""What importing Delegraph may load: starting fast, and running no plugin's code."""

from __future__ import annotations

import os
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
    "delegraph.runtime.execution.invoke_async",
    "delegraph.runtime.execution.overlap",
    "delegraph.runtime.execution.time_limit",
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

NEEDED = ("bisect", "gc", "lazy_loader", "mmap")
"""Modules that a model without delegates imports beyond NumPy and Delegraph."""

MOST = {"sines": 73, "digits_float": 77, "digits_int8": 89}
"""Number of Delegraph's own modules that a first answer may import: lower it where it can be."""

MOST_BY_DEFAULT = {"sines": 68, "digits_float": 74, "digits_int8": 76}
"""Number of modules beyond NumPy's that a start without reading the model may import."""

MOST_WITH_SESSION = 147
"""The same number for a start that reads the model, and runs it by a kept program."""

UNUSED_BY_DEFAULT = {
    "_hashlib",
    "dataclasses",
    "delegraph.delegation.cache_entries",
    "delegraph.delegation.capabilities",
    "delegraph.delegation.placement",
    "delegraph.delegation.shared_objects",
    "delegraph.graph.model_entries",
    "delegraph.plugins.discovery",
    "delegraph.plugins.options",
    "delegraph.plugins.plugin_set",
    "delegraph.runtime.delegates.result_checks",
    "delegraph.schema.control_options",
    "delegraph.schema.lookup_options",
    "delegraph.schema.operator_enums",
    "delegraph.schema.recurrent_options",
    "delegraph_edgetpu",
    "delegraph_example",
    "delegraph_flex",
    "filelock",
    "heapq",
    "importlib_metadata",
    "json",
    "logging",
    "ml_dtypes",
    "numpy.typing",
    "pathlib",
    "platformdirs",
    "pluggy",
    "shutil",
    "tempfile",
    "threading",
    "threadpoolctl",
    "urllib",
}
"""Modules that a start with a kept program does without; their imports take longer."""

UNUSED_BY_KEPT_STARTS = {
    "bisect",
    "delegraph.delegation.delegate",
    "delegraph.kernels",
    "delegraph.operators.op_table",
    "delegraph.plugins",
    "delegraph.runtime.delegates",
    "delegraph.runtime.session",
    "delegraph.schema.model_enums",
    "delegraph.schema.reader",
}
"""Modules that read models or decide about delegates, without which a kept start runs a model."""

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
        "i.allocate_tensors(); i.invoke(); i.close()"
    )
    modules = modules_after(statement)
    assert "delegraph.kernels.conv" in modules
    assert not modules & {*UNUSED, *HEAVY}
    assert not plugin_modules(modules)


def test_an_interpreter_is_imported_with_few_modules() -> None:
    found = modules_after("from delegraph import Interpreter") - modules_after("import numpy")
    assert len(found) <= 24, sorted(found)


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


@pytest.mark.parametrize("name", MOST_BY_DEFAULT)
def test_a_kept_start_imports_few_modules(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = modules_of_the_second_process(name, "num_threads=1", tmp_path, monkeypatch)
    assert not found & UNUSED_BY_KEPT_STARTS
    assert len(found) <= MOST_BY_DEFAULT[name], sorted(found)


def test_a_session_with_a_kept_program_imports_few_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = "num_threads=1, on_loaded=lambda: None"  # with it the model is read
    found = modules_of_the_second_process("digits_int8", arguments, tmp_path, monkeypatch)
    assert {n for n in found if n.startswith("delegraph.kernels.")} == {"delegraph.kernels.ops"}
    assert len(found) <= MOST_WITH_SESSION, sorted(found)


def modules_of_the_second_process(
    name: str, arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> set[str]:
    """Return the modules beyond NumPy's of a process that runs a model a second time."""
    pytest.importorskip("delegraph_numba_cpu")
    for variable in ("DELEGRAPH_DEFAULT_DELEGATES", "DELEGRAPH_NUMBA_KEEP"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    statement = (
        "from delegraph import Interpreter; "
        f"i = Interpreter({str(MODEL.with_stem(name))!r}, {arguments}); "
        "i.allocate_tensors(); i.invoke(); "
        "assert i.get_output_details(); "
    )
    if "numba_cpu" not in modules_after(f"{statement} print(*i.placement.delegates)"):
        pytest.skip("numba_cpu has no kernels here")
    # NumPy imports importlib itself from 2.3 on, which Python 3.10 does not have.
    found = modules_after(statement) - modules_after("import numpy, importlib.machinery")
    assert not found & {*UNUSED_BY_DEFAULT, *HEAVY}
    assert not {n for n in found if n.startswith(("delegraph_numba_cpu.lowering", "llvmlite"))}
    return found


def test_the_first_interpreter_is_made_with_few_scans_for_garbage(tmp_path: Path) -> None:
    """Modules last, so scanning them again and again finds nothing."""
    code = (
        "import gc, numpy; scans = []; gc.callbacks.append(lambda *about: scans.append(about)); "
        "from delegraph import Interpreter; "
        f"i = Interpreter({str(MODEL)!r}, num_threads=1); print(len(scans) // 2); "
        "gc.callbacks.clear()"  # or they would keep the interpreter until the collector itself ends
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("DELEGRAPH_DEFAULT_DELEGATES", None)
    command = [sys.executable, "-c", code]
    scans = [
        int(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
        for _ in range(2)  # the second finds what the first has kept
    ]
    assert scans[1] <= 8


def test_a_newcomer_would_be_seen() -> None:
    assert "colorsys" in modules_after("import numpy, colorsys") - modules_after("import numpy")
