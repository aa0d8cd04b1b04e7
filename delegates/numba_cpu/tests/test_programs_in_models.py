"""Programs in model files: used where they fit, and elsewhere the nodes run as before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegated import DIGITS
from delegraph import Interpreter
from delegraph.delegation import ModelEntries
from delegraph.errors import PluginOptionError
from delegraph.graph import parse_model
from delegraph.graph.model_entries import with_entries
from delegraph.testing import run_command
from delegraph.tools import compile_model
from delegraph_numba_cpu.ahead_of_time import ProgramCompiler
from delegraph_numba_cpu.codegen.cpu_levels import LEVELS
from delegraph_numba_cpu.delegate import NumbaCpuDelegate
from delegraph_numba_cpu.kept import claims, code_digest, keys, program_file
from delegraph_numba_cpu.library import cpu
from delegraph_numba_cpu.library.cpu import physical_cores
from delegraph_numba_cpu.options import NumbaCpuOptions
from kept_program_damage import damaged
from test_kept_programs import CONTENT, answers, needs_library, run_source

pytestmark = [needs_library, pytest.mark.usefixtures("keeping")]

USED = "its program is in the file"


@pytest.fixture(scope="module")
def compiled() -> bytes:
    """The model with programs of two levels, for one and for two threads."""
    levels = ["generic", _level()]
    return compile_model(DIGITS, ["numba_cpu"], cpu=levels, threads=[1, 2]).content


def _level() -> str:
    return cpu.level_named("auto").name


class Opened:
    """A model that an interpreter has allocated, with its delegate."""

    def __init__(self, model: bytes | Path, folder: Path, **options: Any) -> None:
        self.delegate = NumbaCpuDelegate(NumbaCpuOptions(num_threads=2, **options))
        given: dict[str, Any] = (
            {"model_path": model} if isinstance(model, Path) else {"model_content": model}
        )
        self.interpreter = Interpreter(
            **given, experimental_delegates=[self.delegate], cache_dir=folder
        )
        self.interpreter.allocate_tensors()
        self.answers = answers(self.interpreter)


@pytest.fixture
def expected(tmp_path: Path) -> list[Any]:
    """The core's answers."""
    interpreter = Interpreter(model_content=CONTENT, delegates=[])
    interpreter.allocate_tensors()
    return answers(interpreter)


def replaced(content: bytes, change: Callable[[bytes], bytes], start: bytes) -> bytes:
    """Return a model file in which the entries that begin in a way are others, equally long."""
    entries, data = parse_model(content).entries, bytearray(content)
    assert entries is not None
    for place, length in entries.places.values():
        old = bytes(data[place : place + length])
        if old.startswith(start):
            data[place : place + length] = change(old)
            assert len(data) == len(content)
    return bytes(data)


def test_a_fresh_process_with_an_empty_cache_decides_and_compiles_nothing(
    tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    file = tmp_path / "digits.tflite"
    environment = {**os.environ, "DELEGRAPH_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "delegraph", "compile", "-d", "numba_cpu", str(DIGITS)]
    subprocess.run(
        [*command, "-o", str(file), "--threads", "1,2"], env=environment, check=True, timeout=120
    )
    found = {}
    for path in (DIGITS, file):
        source = f"{run_source(path)}\nprint(*sys.modules)"
        environment["DELEGRAPH_CACHE"] = str(tmp_path / path.name)
        found[path] = fresh_python(source, env=environment).splitlines()
    assert found[file][0] == found[DIGITS][0]
    rooms = ("delegraph_numba_cpu.lowering", "delegraph_numba_cpu.kernels", "numba", "llvmlite")
    assert any(name.startswith(rooms) for name in found[DIGITS][1].split())
    assert not [n for n in found[file][1].split() if n.startswith((*rooms, "numba.", "zipfile"))]
    assert not list(tmp_path.glob(f"{file.name}/{keys.NAMESPACE}/**/*.blob"))


def test_each_level_and_number_of_threads_has_its_program(
    compiled: bytes, tmp_path: Path, lowered: list[object], expected: list[Any]
) -> None:
    for level in ("generic", "auto"):
        found = Opened(compiled, tmp_path, cpu=level)
        np.testing.assert_array_equal(found.answers, expected)
        assert found.delegate.note() == USED
    assert not lowered
    other = NumbaCpuDelegate(NumbaCpuOptions(num_threads=3))
    interpreter = Interpreter(
        model_content=compiled, experimental_delegates=[other], cache_dir=tmp_path
    )
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(answers(interpreter), expected)
    assert "no program in the file is for" in other.note()
    assert other.note().endswith("--threads 3 adds it")
    assert len(lowered) == 1


def test_programs_are_used_where_the_file_is_mapped(compiled: bytes, tmp_path: Path) -> None:
    file = tmp_path / "digits.tflite"
    file.write_bytes(compiled)
    found = Opened(file, tmp_path)
    assert found.delegate.note() == USED
    content = found.interpreter.session.model.content
    first = content.__array_interface__["data"][0]
    partition = next(found.interpreter.session.subgraphs[0].plan.steps())[0]
    rows = partition.user_data.program.rows
    constants = [m for row in rows for m in row.memories if m.is_constant and not m.records]
    places = [m.address for m in constants]
    assert places
    assert all(first <= place < first + len(content) for place in places)


def test_other_runtimes_run_the_file_as_before(compiled: bytes) -> None:
    from ai_edge_litert.interpreter import Interpreter as LiteRt

    assert compiled.startswith(CONTENT)
    for kind in (LiteRt, Interpreter):
        found = []
        for content in (CONTENT, compiled):
            interpreter = kind(model_content=content)
            interpreter.allocate_tensors()
            found.append(answers(interpreter))
        np.testing.assert_array_equal(*found)


def test_damaged_programs_are_not_used(
    compiled: bytes,
    tmp_path: Path,
    lowered: list[object],
    expected: list[Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    rng = np.random.default_rng(0)

    def flipped(program: bytes) -> bytes:
        data = bytearray(program)
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        return bytes(data)

    for number in range(12):
        file = replaced(compiled, flipped, program_file.MAGIC)
        found = Opened(file, tmp_path / str(number))
        np.testing.assert_array_equal(found.answers, expected)
        assert "the program in the file is not used: it" in found.delegate.note()
    assert len(lowered) == 12
    assert caplog.text.count("numba_cpu makes it again") == 12


@pytest.mark.repetition(1)
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_forged_programs_touch_only_their_memory(
    compiled: bytes, tmp_path: Path, first: int
) -> None:
    for number in range(first, first + 10):
        rng = np.random.default_rng(number)
        file = replaced(compiled, lambda p, rng=rng: damaged(p, rng), program_file.MAGIC)
        assert Opened(file, tmp_path).answers[0].shape == (1, 10)


def test_a_damaged_or_missing_constant_leaves_the_program_unused(
    compiled: bytes, tmp_path: Path, lowered: list[object], expected: list[Any]
) -> None:
    entries, data = parse_model(compiled).entries, bytearray(compiled)
    assert entries is not None
    whole = [(at, size) for at, size in entries.places.values() if size % program_file.PAGE == 0]
    constants = [p for p in whole if data[p[0] : p[0] + 7] != program_file.MAGIC[:7]]
    assert constants
    for at, size in constants:
        data[at + size // 2] ^= 1
    found = Opened(bytes(data), tmp_path)
    assert "a constant that it shares is damaged" in found.delegate.note()
    np.testing.assert_array_equal(found.answers, expected)
    assert len(lowered) == 1


def test_damaged_claims_are_made_again(
    compiled: bytes, tmp_path: Path, lowered: list[object], expected: list[Any]
) -> None:
    nodes = len(parse_model(CONTENT).subgraphs[0].operators)
    start = bytes([claims.CLAIMED]) * nodes
    file = replaced(compiled, lambda _: bytes(nodes), start)
    assert file != compiled
    found = Opened(file, tmp_path)
    assert found.delegate.note() == USED
    np.testing.assert_array_equal(found.answers, expected)
    assert not lowered


def test_forged_claims_of_nodes_that_cannot_be_lowered_are_an_error() -> None:
    source = Interpreter(model_content=CONTENT, numerics="reference")
    context = source.session.subgraphs[0].context
    plan = context.get_execution_plan()
    content = claims.written(dict.fromkeys(plan), plan)
    assert content is not None
    assert context.model_digest is not None
    key = f"claims {keys.claims_key(context, context.model_digest, [True]).hex()}"
    forged: dict[str, bytes] = {}
    entries = ModelEntries(parse_model(CONTENT), keys.NAMESPACE, forged)
    entries.keep(code_digest.version_everywhere(), key, content)
    interpreter = Interpreter(
        model_content=with_entries(CONTENT, forged),
        delegates=["numba_cpu"],
        numerics="reference",
    )
    with pytest.raises(RuntimeError, match=r"numerics.*: compile the model again"):
        interpreter.allocate_tensors()


def test_programs_of_another_version_are_not_used(
    compiled: bytes,
    tmp_path: Path,
    lowered: list[object],
    expected: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(code_digest, "version_everywhere", lambda: "other")
    found = Opened(compiled, tmp_path)
    assert "another version" in found.delegate.note()
    np.testing.assert_array_equal(found.answers, expected)
    assert len(lowered) == 1


def test_a_changed_weight_leaves_the_programs_unused(
    compiled: bytes, tmp_path: Path, lowered: list[object]
) -> None:
    model = parse_model(CONTENT)
    weights = next(
        t.data for t in model.subgraphs[0].tensors if t.data is not None and t.data.nbytes > 1000
    )
    place = weights.__array_interface__["data"][0] - model.content.__array_interface__["data"][0]
    changed = bytearray(compiled)
    changed[place] ^= 0x40
    interpreter = Interpreter(model_content=bytes(changed[: len(CONTENT)]), delegates=[])
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(Opened(bytes(changed), tmp_path).answers, answers(interpreter))
    assert len(lowered) == 1


def test_compiling_again_keeps_other_levels_and_makes_the_same_bytes(compiled: bytes) -> None:
    neon = compile_model(compiled, ["numba_cpu"], cpu=["neon"], threads=[1])
    assert neon.content.startswith(CONTENT)
    before, after = parse_model(compiled).entries, parse_model(neon.content).entries
    assert before is not None
    assert after is not None
    lists = [name for name in before.places if name.startswith("delegraph/")]
    assert set(before.places).difference(lists) < set(after.places)
    again = compile_model(neon.content, ["numba_cpu"], cpu=["generic", _level()], threads=[1, 2])
    assert again.content == neon.content


def test_the_cache_finds_programs_of_the_same_model_without_entries(
    compiled: bytes, tmp_path: Path, lowered: list[object]
) -> None:
    Opened(CONTENT, tmp_path)
    assert len(lowered) == 1
    start = parse_model(CONTENT)
    other = replaced(compiled, lambda p: b"\0" * len(p), program_file.MAGIC)
    assert len(start.content) == len(CONTENT)
    Opened(other, tmp_path)
    assert len(lowered) == 1


@pytest.mark.repetition(2)
@pytest.mark.parametrize("level", sorted(LEVELS))
def test_programs_of_every_level_pass_all_checks(level: str, tmp_path: Path) -> None:
    file = compile_model(DIGITS, [f"numba_cpu:cpu={level}"], threads=[2]).content
    delegate = ProgramCompiler(
        NumbaCpuOptions(num_threads=2, cpu=level)
    )  # whose kernels do not run
    interpreter = Interpreter(
        model_content=file, experimental_delegates=[delegate], cache_dir=tmp_path
    )
    interpreter.allocate_tensors()
    assert delegate.note() == USED
    assert not list(tmp_path.glob(f"{keys.NAMESPACE}/**/*.blob"))


def test_an_unknown_level_lists_those_there_are() -> None:
    with pytest.raises(PluginOptionError, match="avx512_vbmi"):
        compile_model(DIGITS, ["numba_cpu"], cpu=["avx1024"])


def test_sources_and_an_installation_of_them_have_the_same_version(tmp_path: Path) -> None:
    package = tmp_path / "delegraph_numba_cpu"
    package.mkdir()
    (package / "one.py").write_bytes(b"1\n")
    (package / "py.typed").write_bytes(b"")
    before = list(code_digest.hashed_files(package))
    described = tmp_path / "delegraph_numba_cpu-1.0.dist-info"
    described.mkdir()
    lines = [f"{line},2" for line in before]
    lines += ["delegraph_numba_cpu/__pycache__/one.pyc,,", "delegraph_numba_cpu/py.typed,sha256=,0"]
    (described / "RECORD").write_text("\n".join(lines))
    assert list(code_digest.recorded_files(package)) == before


def test_json_tells_which_programs_are_used_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELEGRAPH_DEFAULT_DELEGATES", "numba_cpu")
    level, threads = _level(), physical_cores()
    out = tmp_path / "out.tflite"
    words = ("--cpu", f"generic,{level}", "--threads", str(threads), "--no-check", "--json")
    kept = run_command("compile", DIGITS, "-d", "numba_cpu", "-o", out, *words).json["kept"]
    used = f"numba_cpu:cpu={level}"
    assert [(k["delegate"], k["is_used_here"]) for k in kept] == [
        ("numba_cpu:cpu=generic", False),
        (used, True),
    ]
    assert kept[0]["why"].startswith(f"without options, numba_cpu uses those for {used}, {threads}")
    assert kept[1]["why"].endswith(USED)
