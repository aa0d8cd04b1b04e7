"""When programs are kept and used: never a wrong answer, and no decision twice."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegated import DIGITS, Watched, run
from delegraph import Interpreter
from delegraph.delegation import Rejection
from delegraph.testing import constant, graph_model, tensor
from delegraph_numba_cpu.kept import claims, keys, program_file, start, store
from delegraph_numba_cpu.options import NumbaCpuOptions
from delegraph_numba_cpu.program.program import GUARD_VARIABLE
from test_kept_programs import CONTENT, answers, made, needs_library, run_source, unkept

pytestmark = [needs_library, pytest.mark.usefixtures("keeping")]

RUN = run_source(DIGITS)


def files(folder: Path) -> list[Path]:
    """Return the kept programs in a folder, without claims."""
    found = sorted(folder.glob(f"{keys.NAMESPACE}/*/*/*.blob"))
    return [path for path in found if path.read_bytes().startswith(program_file.MAGIC)]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "DELEGRAPH_CACHE": str(folder)}


def test_a_second_process_imports_nothing_that_decides_or_compiles(
    tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    source = f"{RUN}\nprint(*sys.modules)"
    first, before = fresh_python(source, env=environment(tmp_path)).splitlines()
    second, after = fresh_python(source, env=environment(tmp_path)).splitlines()
    assert first == second
    rooms = ("delegraph_numba_cpu.lowering", "delegraph_numba_cpu.kernels", "numba", "llvmlite")
    assert any(name.startswith(rooms) for name in before.split())
    own = [name for name in after.split() if name.startswith("delegraph_numba_cpu")]
    assert not [name for name in after.split() if name.startswith((*rooms, "numba."))]
    assert len(own) <= 48, own
    assert len(after.split()) < len(before.split())


def test_a_damaged_file_is_made_again(
    tmp_path: Path, lowered: list[object], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "delegraph_numba_cpu")
    expected = answers(made(CONTENT, tmp_path)[0])
    (path,) = files(tmp_path)
    sound = path.read_bytes()
    rng = np.random.default_rng(0)
    places = [*range(0, 400, 16), *rng.integers(0, len(sound), 20).tolist()]
    copies = [bytearray(sound) for _ in places]
    for copy, place in zip(copies, places, strict=True):
        copy[place] ^= 1 << int(rng.integers(8))
    copies += [bytearray(sound[:size]) for size in (0, 8, 100, 4096, len(sound) - 1)]
    copies.append(bytearray(sound + b"\0"))
    for copy in copies:
        path.write_bytes(copy)
        lowered.clear()
        np.testing.assert_array_equal(answers(made(CONTENT, tmp_path)[0]), expected)
        assert len(lowered) == 1
        assert path.read_bytes() == sound
    assert caplog.text.count("is made again") == len(copies)


def test_a_file_of_another_version_or_program_is_made_again(
    tmp_path: Path, lowered: list[object]
) -> None:
    expected = answers(made(CONTENT, tmp_path)[0])
    (path,) = files(tmp_path)
    for field in ("version", "workers", "key"):
        content = np.frombuffer(path.read_bytes(), np.uint8).copy()
        content[: program_file.HEADER.itemsize].view(program_file.HEADER)[field].view("u1")[0] ^= 1
        digest = program_file.digest_of(content[: -int(_header(content)["constants"])])
        start, end = program_file.digest_place()
        content[start:end] = np.frombuffer(digest, np.uint8)
        path.write_bytes(content.tobytes())
        lowered.clear()
        np.testing.assert_array_equal(answers(made(CONTENT, tmp_path)[0]), expected)
        assert len(lowered) == 1, field


def _header(content: Any) -> Any:
    return content[: program_file.HEADER.itemsize].view(program_file.HEADER)[0]


def test_a_cache_that_cannot_be_written_costs_only_the_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "cache"
    folder.write_bytes(b"no folder")
    expected = answers(made(CONTENT, tmp_path / "other")[0])
    for _ in range(2):
        np.testing.assert_array_equal(answers(made(CONTENT, folder)[0]), expected)
    assert caplog.text.count("cannot be used") == 1


def test_two_processes_at_once_are_both_right(
    tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    both = [
        subprocess.Popen(
            [sys.executable, "-c", RUN], stdout=subprocess.PIPE, env=environment(tmp_path)
        )
        for _ in range(2)
    ]
    found = {process.communicate(timeout=120)[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    found.add(fresh_python(RUN, env=environment(tmp_path)).encode())
    assert len(found) == 1
    assert len(files(tmp_path)) == 1


def test_a_process_that_is_killed_while_it_writes_leaves_nothing_that_is_used(
    tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    kill = "import os, signal; os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
    killed = subprocess.run(
        [sys.executable, "-c", kill + RUN], env=environment(tmp_path), check=False, timeout=120
    )
    assert killed.returncode == -9
    assert list(tmp_path.rglob("*.unfinished"))
    first = fresh_python(RUN, env=environment(tmp_path))
    assert fresh_python(RUN, env=environment(tmp_path)) == first
    assert len(files(tmp_path)) == 1


ADD = graph_model(
    [("ADD", "x c", "y"), ("MUL", "y c", "z")],
    inputs="x",
    outputs="z",
    tensors={
        "x": tensor((1, 4)),
        "c": constant(np.arange(4, dtype=np.float32)),
        "y": tensor((1, 4)),
        "z": tensor((1, 4)),
    },
)


def resized(interpreter: Interpreter, rows: int) -> None:
    """Check the model's answer for so many rows."""
    x = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
    c = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run(interpreter, x), (x + c) * c)


def test_a_resize_back_and_forth_decides_nothing_again(
    tmp_path: Path, lowered: list[object]
) -> None:
    interpreter, _ = made(ADD, tmp_path)
    for rows in (1, 2, 1, 3, 2, 1):
        resized(interpreter, rows)
    assert len(lowered) == 3
    again, _ = made(ADD, tmp_path)
    for rows in (3, 2, 1):
        resized(again, rows)
    assert len(lowered) == 3


def test_a_program_for_other_shapes_keeps_no_memory_of_the_host(tmp_path: Path) -> None:
    interpreter, _ = made(ADD, tmp_path)
    resized(interpreter, 1)
    array = weakref.ref(interpreter.subgraph().tensors[0].data)
    resized(interpreter, 2)
    assert array() is None


def test_a_model_that_is_written_in_place_is_kept_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(ADD)
    delegate = Watched()
    cache = tmp_path / "cache"
    interpreter = Interpreter(path, experimental_delegates=[delegate], cache_dir=cache)
    os.utime(path, (1, 1))
    interpreter.allocate_tensors()
    assert files(cache) == []


def test_shapes_without_end_do_not_fill_the_disk(tmp_path: Path) -> None:
    interpreter, _ = made(ADD, tmp_path)
    for rows in range(1, 2 * store.MOST_FILES):
        resized(interpreter, rows)
    assert len(files(tmp_path)) == store.MOST_FILES


@pytest.mark.parametrize("switch", ["option", "environment", "guard", "size"])
def test_nothing_is_kept_where_it_is_not_wanted(
    switch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if switch == "environment":
        monkeypatch.setenv(keys.VARIABLE, "0")
    if switch == "guard":
        monkeypatch.setenv(GUARD_VARIABLE, "1")
    if switch == "size":
        monkeypatch.setattr(store, "LEAST_NODES", 3)
    answers(made(ADD, tmp_path, Watched(kept_programs=switch != "option"))[0])
    assert not list(tmp_path.rglob("*.blob"))


def test_other_options_and_threads_have_programs_of_their_own(tmp_path: Path) -> None:
    for threads, exact in ((2, True), (1, True), (2, False), (2, True)):
        made(CONTENT, tmp_path, Watched(threads=threads, exact=exact))
    assert len(files(tmp_path)) == 3


def test_a_constant_with_another_value_is_kept_nowhere(tmp_path: Path) -> None:
    model = graph_model(
        [("ADD", "x c", "y")],
        inputs="x c",
        outputs="y",
        tensors={
            "x": tensor((4,)),
            "c": constant(np.arange(4, dtype=np.float32)),
            "y": tensor((4,)),
        },
    )
    interpreter, _ = made(model, tmp_path)
    x, c = (details["index"] for details in interpreter.get_input_details())
    for value in (7.0, 9.0):
        interpreter.set_tensor(c, np.full(4, value, np.float32))
        interpreter.allocate_tensors()
        interpreter.set_tensor(x, np.ones(4, np.float32))
        interpreter.invoke()
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_array_equal(found, np.full(4, value + 1, np.float32))
    assert len(files(tmp_path)) == 1


REJECTED = graph_model(
    [("ADD", "x c", "y"), ("CUMSUM", "y axis", "z")],
    inputs="x",
    outputs="z",
    tensors={
        "x": tensor((1, 4)),
        "c": constant(np.arange(4, dtype=np.float32)),
        "axis": constant(np.array(1, np.int32)),
        "y": tensor((1, 4)),
        "z": tensor((1, 4)),
    },
)


def test_claims_from_a_file_are_those_that_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = made(REJECTED, tmp_path)
    expected = first.placement.to_json()
    monkeypatch.setattr(Watched, "decided", None)  # is not asked
    again, _ = made(REJECTED, tmp_path)
    assert again.placement.to_json() == expected


SOME: claims.Answers = {
    0: None,
    2: Rejection("dtype", actual="INT8", expected=[1, 2.5], tensor=3),
    3: Rejection("shape", "why", actual=(1, 2)),
}


def test_claims_come_back_with_their_reasons() -> None:
    content = claims.written(SOME, [0, 1, 2, 3])
    assert content is not None
    assert claims.read(content, [0, 1, 2, 3]) == SOME


def test_claims_with_a_reason_that_is_no_plain_value_are_not_kept() -> None:
    assert claims.written({0: Rejection("dtype", actual=np.float32)}, [0]) is None


def test_damaged_claims_are_none() -> None:
    content = claims.written(SOME, [0, 1, 2, 3])
    assert content is not None
    assert claims.read(content, [0, 1, 2]) is None
    assert claims.read(b"\3" + content[1:], [0, 1, 2, 3]) is None
    for end in range(len(content)):
        assert claims.read(content[:end], [0, 1, 2, 3]) is None
    assert claims.read(content.replace(b'"why"', b"[[1]]"), [0, 1, 2, 3]) is None


def test_a_key_follows_from_the_shapes(tmp_path: Path) -> None:
    interpreter, delegate = made(ADD, tmp_path, unkept())
    params = delegate.kernels[0].params
    x = interpreter.subgraph().tensors[0]

    def key() -> bytes:
        return keys.program_key(params.context, "model", params.nodes_to_replace, (0, 3), [])

    first = key()
    x.shape = (2, 4)
    assert key() != first
    x.shape = (1, 4)
    assert key() == first


def test_starts_have_the_default_options() -> None:
    options = NumbaCpuOptions()
    assert (options.cpu, options.kept_programs) == (start.CPU, start.KEPT_PROGRAMS)
