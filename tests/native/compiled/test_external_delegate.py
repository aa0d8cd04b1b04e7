"""Compiled delegates, unchanged, in Delegraph's interpreter and in stock LiteRT as the control.

The same libraries do the same things in both. They run in programs of their own, as a mistake may
crash: a scenario that does is reported, and those behind it still run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, load_delegate
from delegraph.errors import (
    DelegateLibraryError,
    DelegateLoadError,
    NotADelegateError,
    PluginOptionError,
    UnknownDelegateError,
)
from support.by_name import Y, run, sines
from support.corpus import CORPUS, needs_corpus

sys.path.insert(0, str(Path(__file__).parent))

import delegraph_scenarios  # noqa: F401 - it adds its scenarios
import external_scenarios  # noqa: F401 - it adds its scenarios
from compiled import COMPILER, SOURCES, compile_library, needs_compiler
from external_host import SCENARIOS

pytestmark = needs_compiler

LIBRARIES = ("adds", "buffers", "describes", "fails", "resizes", "slots", "strings")
COMMON = [name for name in SCENARIOS if not name.startswith("mine_")]
PROGRAMS = Path(__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the compiled libraries."""
    target = tmp_path_factory.mktemp("libraries")
    for name in LIBRARIES:
        compile_library(name, target)
    return target


def outcomes(host: str, folder: Path, *names: str) -> dict[str, Any]:
    """Return what came out of scenarios, all by default; for those that crashed, that they did."""
    mine = host == "delegraph"
    waiting = [n for n in names or SCENARIOS if mine or not n.startswith("mine_")]
    found: dict[str, Any] = {}
    while waiting:
        command = [sys.executable, str(PROGRAMS / "external_scenarios.py"), host, str(folder)]
        done = subprocess.run([*command, *waiting], capture_output=True, text=True, check=False)
        current = ""
        for line in done.stdout.splitlines():
            if line.startswith("["):
                current, result = json.loads(line)
                if result is not None:
                    found[current] = result
        if done.returncode != 0:
            found[current] = f"ended with {done.returncode}: {done.stderr[-1500:]}"
        waiting = waiting[waiting.index(current) + 1 :]
    return found


@pytest.fixture(scope="module")
def ours(folder: Path) -> dict[str, Any]:
    return outcomes("delegraph", folder)


@pytest.fixture(scope="module")
def official(folder: Path) -> dict[str, Any]:
    pytest.importorskip("ai_edge_litert", reason="the official interpreter is the control")
    return outcomes("litert", folder)


# -- the same in both hosts --------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in COMMON if n != "functions_of_the_context"])
def test_a_library_does_the_same_in_both_hosts(
    name: str, ours: dict[str, Any], official: dict[str, Any]
) -> None:
    assert ours[name] == official[name]
    assert not str(ours[name]).startswith("ended with")


def test_the_scenarios_differ_so_that_equality_says_something(ours: dict[str, Any]) -> None:
    assert ours["options_reach_it"] != ours["none"] == ours["claims_each_add"][0]
    assert ours["claims_each_add"][1] == 3
    assert ours["claims_all_adds_at_once"][1] == 2
    assert ours["inputs_that_a_delegate_changes"][0] != ours["none"]
    assert ours["inputs_that_a_delegate_changes"][1] == ["init inputs 0 outputs 2"]
    failing = [name for name in ours if name.startswith(("fails_", "unknown_"))]
    assert [ours[name] for name in failing if "invoke" not in name] == [True] * 6
    assert ours["fails_at_invoke_and_goes_on"][1:] == [True, True]
    assert ours["is_destroyed_with_its_users"][::3] == [[1, 3], [0, 0]]


def test_the_functions_of_the_context_do_what_they_do_in_litert(
    ours: dict[str, Any], official: dict[str, Any]
) -> None:
    (result, said, is_refused), control = (
        ours["functions_of_the_context"],
        official["functions_of_the_context"],
    )
    assert (result, is_refused) == (control[0], control[2]) == (ours["none"], True)
    assert len(said) == len(control[1]) > 20
    absent = [c.removesuffix(" null").split()[-1] for c in control[1] if c.endswith(" null")]
    assert set(absent) == {
        *("GetTensor", "AllocatePersistentBuffer", "ResizeTensorExplicit"),
        *("AllocateBufferForEval", "RequestScratchBufferInArena", "GetScratchBuffer"),
        "GetEvalTensor",
    }
    for mine, theirs in zip(said, control[1], strict=True):
        if not theirs.endswith(" null") and not mine.startswith(("threads", "GetExternalContext")):
            assert mine == theirs


def test_functions_that_are_null_in_litert_work_or_return_an_error(ours: dict[str, Any]) -> None:
    said = ours["functions_of_the_context"][1]
    assert "GetTensor 1, 999: 0" in said
    assert "AllocatePersistentBuffer 1" in said
    assert "ResizeTensorExplicit 0 dims 3 5 bytes 60" in said
    assert "AllocateBufferForEval 1" in said
    assert "RequestScratchBufferInArena 1" in said
    assert "GetScratchBuffer 0" in said
    assert "GetEvalTensor 0" in said
    assert "GetExternalContext 0 then 1" in said


# -- Delegraph's own -----------------------------------------------------------------------------


def test_it_can_be_applied_at_any_time_and_taken_off(ours: dict[str, Any]) -> None:
    plain, delegated, partitions, plain_again, *alive = ours["mine_applied_later_and_taken_off"]
    assert plain == plain_again == ours["none"]
    assert delegated != plain
    assert partitions == 3
    assert alive == [0, 0]


def test_it_is_named_by_its_path_with_options(ours: dict[str, Any]) -> None:
    assert ours["mine_by_text"] == [[[4], [-6.0, 0.0, 12.0, 18.0]]] * 2


def test_the_kernels_take_over_when_it_fails(ours: dict[str, Any]) -> None:
    first, second, incidents = ours["mine_falls_back"]
    assert first == [[4], [-2.0, 0.0, 4.0, 6.0]]
    assert second == [[4], [-1.0, 1.0, 5.0, 7.0]]
    assert incidents == [
        "Invoke returned ERROR: invoke failed: 3 of 1099511627776, 2.500, five six 7 -8 9.0 x%"
    ]


def test_wrong_results_are_found_by_shadowing(ours: dict[str, Any]) -> None:
    assert ours["mine_under_validation_and_shadow"] == [[[4], [-2.0, 0.0, 4.0, 6.0]], [True]]


def test_rules_measurements_and_profiles_hold_for_it(ours: dict[str, Any]) -> None:
    partitions, measured, events = ours["mine_under_rules_measured_and_profiled"]
    assert partitions == [[2], [3]]
    assert measured == ours["none"]
    assert events == ["ADD", "LOGISTIC", "Adds", "Adds"]


def test_a_claim_that_fails_leaves_the_graph_and_frees_its_kernel(ours: dict[str, Any]) -> None:
    said, result, kernels = ours["mine_failing_claim_leaves_the_graph"]
    assert "Prepare returned DELEGATE_ERROR: claim failed: 3 of 1099511627776" in said
    assert said.endswith("the graph is as it was before this delegate")
    assert (result, kernels) == ([[4], [-2.0, 0.0, 4.0, 6.0]], 0)


def test_a_static_tensor_cannot_be_resized_while_invoking(ours: dict[str, Any]) -> None:
    assert "cannot become [77] while invoking" in ours["mine_illegal_resize"]


def test_damaged_strings_are_an_error(ours: dict[str, Any]) -> None:
    assert "damaged offsets" in ours["mine_damaged_strings"]


def test_a_buffer_that_cannot_be_copied_is_an_error_and_is_freed(ours: dict[str, Any]) -> None:
    said, frees = ours["mine_buffers_fail_and_are_freed"]
    assert "CopyFromBufferHandle returned ERROR: buffer" in said
    assert "is lost" in said
    assert frees == 1


def test_the_garbage_collector_frees_kernels_before_their_delegate(ours: dict[str, Any]) -> None:
    assert ours["mine_in_circles"] == [0, 0]


def test_many_interpreters_leave_no_memory_behind(folder: Path) -> None:
    found = outcomes("delegraph", folder, "mine_many_times")
    growth, growth_with_a_leak_of_100 = found["mine_many_times"]
    assert growth < 24  # bytes an interpreter; the smallest piece of C memory has 32
    assert growth_with_a_leak_of_100 > 90


# -- what it sees ------------------------------------------------------------------------------


def descriptions(host: str, folder: Path, models: list[Path]) -> dict[str, str | None]:
    """Return what a delegate sees of models, by path, and of one operator each, by name."""
    library = str(folder / "libdescribes.so")
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "external_descriptions.py"), host, library],
        input="\n".join(map(str, models)),
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith('["'))


def of_the_model(description: str) -> list[str]:
    """Return a description without the tensors that the host's own kernels have added."""
    lines = description.splitlines()
    plan = lines[0].rpartition(" ")[0].rpartition(" ")[0]
    return [plan, *(line for line in lines[1:] if " - type 0 " not in line)]


def nodes_of(description: str) -> list[str]:
    """Return the lines of a description that are about nodes."""
    return [line for line in of_the_model(description) if line.startswith("node ")]


def test_options_are_the_structs_that_litert_makes(folder: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="the official interpreter is the control")
    mine, theirs = (descriptions(host, folder, []) for host in ("delegraph", "litert"))
    assert len(mine) > 290
    assert None not in mine.values()
    compared = {name: text for name, text in theirs.items() if text is not None}
    assert len(compared) >= 290  # it refuses a few operators with such options
    for name, text in compared.items():  # types of tensors are decided at another time there
        assert nodes_of(mine[name] or "") == nodes_of(text) != [], name


@needs_corpus
def test_real_models_look_the_same_as_in_litert(folder: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="the official interpreter is the control")
    models = sorted((CORPUS / "models").glob("*.tflite"))
    mine, theirs = (descriptions(host, folder, models) for host in ("delegraph", "litert"))
    both = [str(path) for path in models if mine[str(path)] and theirs[str(path)]]
    assert len(both) > 200
    different = {
        Path(path).stem
        for path in both
        if of_the_model(mine[path] or "") != of_the_model(theirs[path] or "")
    }
    assert different == {
        "LiteRT__add_shared_tensors",  # there LiteRT drops an operator silently
        "LiteRT__add_quantized",  # declares another type than ADD decides, which LiteRT
        "LiteRT__add_quantized_int8",  # lets it do after this delegate has looked
    }


# -- loading -----------------------------------------------------------------------------------


def test_a_path_without_a_file_says_so(tmp_path: Path) -> None:
    missing = str(tmp_path / "libnone.so")
    with pytest.raises(DelegateLibraryError, match=f"Failed to load delegate from {missing}") as e:
        load_delegate(missing)
    assert str(e.value).endswith("cannot open shared object file: No such file or directory")
    assert isinstance(e.value, OSError)


def test_a_name_without_a_folder_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DelegateLoadError, match=r"is looked for in the system's library folders$"):
        load_delegate("libnone.so.1")
    (tmp_path / "libnone.so.1").touch()
    with pytest.raises(DelegateLoadError, match=r"although there is \./libnone\.so\.1"):
        load_delegate("libnone.so.1")


@pytest.mark.skipif(sys.platform == "win32", reason="isolation needs POSIX")
def test_a_library_may_be_opened_by_a_process_of_its_own(folder: Path) -> None:
    delegate = load_delegate(folder / "libadds.so", isolate="process")
    with Interpreter(model_content=sines(), delegates=[delegate]) as interpreter:
        np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
        assert [node.delegate for node in interpreter.placement.nodes].count("libadds") == 2
        assert interpreter.incidents == ()
    with pytest.raises(DelegateLoadError, match="cannot open shared object file"):
        load_delegate(folder / "libnone.so", isolate="process")


def test_a_file_that_is_no_library_has_the_words_of_the_loader(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_text("not ELF, but long enough to have a header of its own " * 4)
    with pytest.raises(
        DelegateLoadError, match=r"Failed to load .*\n.*lib\.so: invalid ELF header"
    ):
        load_delegate(str(tmp_path / "lib.so"))


def compiled(source: str, folder: Path) -> str:
    assert COMPILER is not None
    path = folder / "libthis.so"
    (folder / "this.c").write_text(source)
    command = [COMPILER, "-shared", "-fPIC", f"-I{SOURCES}", "-o", str(path), "this.c"]
    subprocess.run(command, check=True, cwd=folder)
    return str(path)


def test_a_library_without_the_functions_is_no_delegate(tmp_path: Path) -> None:
    path = compiled("int tflite_plugin_create_delegate(void) { return 0; }", tmp_path)
    with pytest.raises(NotADelegateError, match="has no function tflite_plugin_destroy_delegate"):
        load_delegate(path)


def test_a_library_that_needs_tflite_itself_says_so(tmp_path: Path) -> None:
    source = "int TfLiteOpaqueContextGetNumTensors(void *); int (*f)(void *) = "
    path = compiled(source + "TfLiteOpaqueContextGetNumTensors;", tmp_path)
    with pytest.raises(DelegateLoadError, match="it needs functions of TFLite's own library"):
        load_delegate(path)


OPAQUE = """
#include "tflite.h"
Delegate *tflite_plugin_create_delegate(char **k, char **v, size_t n, Report report) {
  Delegate *delegate = calloc(1, sizeof *delegate);
  if (n) delegate->opaque_delegate_builder = delegate;
  return delegate;
}
void tflite_plugin_destroy_delegate(Delegate *delegate) { free(delegate); }
"""


def test_a_delegate_of_another_kind_is_refused_before_it_is_used(tmp_path: Path) -> None:
    path = compiled(OPAQUE, tmp_path)
    with pytest.raises(DelegateLoadError, match="made by the opaque API"):
        load_delegate(path, {"opaque": True})
    with pytest.raises(DelegateLoadError, match="has no Prepare function"):
        load_delegate(path)


def test_other_platforms_are_refused(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(DelegateLoadError, match="need 64-bit little-endian CPython on Linux or"):
        load_delegate(str(folder / "libadds.so"))


def test_what_it_reports_while_it_is_made_is_in_the_error(folder: Path) -> None:
    with pytest.raises(
        DelegateLoadError, match=r"made no delegate: no such accelerator \(options: at=create\)"
    ):
        load_delegate(str(folder / "libfails.so"), {"at": "create"})
    with pytest.raises(DelegateLoadError, match="made no delegate: it reported no reason"):
        load_delegate(str(folder / "libfails.so"), {"at": "silently"})


def test_the_error_is_the_type_that_litert_raises(folder: Path) -> None:
    with pytest.raises(ValueError, match="no such accelerator"):
        load_delegate(str(folder / "libfails.so"), {"at": "create"})


def test_options_are_given_once(folder: Path) -> None:
    with pytest.raises(PluginOptionError, match="given twice"):
        load_delegate(f"{folder / 'libadds.so'}:factor=2", {"factor": 3})


def test_a_name_with_a_path_among_its_options_is_no_library() -> None:
    with pytest.raises(UnknownDelegateError, match="nobody"):
        load_delegate("nobody:cache=/tmp/x.so")


def test_names_and_flags_are_the_library_s(folder: Path) -> None:
    delegate = load_delegate(os.fspath(folder / "libadds.so"), {"flags": 1 + 4 + 1024})
    assert delegate.name() == "libadds"
    assert delegate.flags == 1


def test_an_interpreter_that_is_never_closed_frees_everything_at_exit(folder: Path) -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "import external_scenarios as scenarios\n"
        "host = scenarios.Host('delegraph', sys.argv[1])\n"
        "interpreter = host.interpreter(scenarios.ISLANDS, host.load('adds'))\n"
        "scenarios.run(interpreter, scenarios.X)\n"
    )
    command = [sys.executable, "-X", "faulthandler", "-c", code, str(folder), str(PROGRAMS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_loader_is_there_without_the_top_level_names() -> None:
    assert Interpreter.__module__ == "delegraph.runtime.interpreter"
    module = "delegraph.runtime.delegates.requested_delegates"
    code = f"from {module} import load_delegate; load_delegate('./x.so')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "DelegateLibraryError: Failed to load delegate from ./x.so" in done.stderr
