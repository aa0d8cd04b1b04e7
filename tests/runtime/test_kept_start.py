"""Starts with a kept program: when one is used, and that nothing else differs."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from delegraph.schema.options import AddOptions, FullyConnectedOptions, GatherOptions
from delegraph.testing.one_op import TensorDef, constant, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of

pytest.importorskip("delegraph_numba_cpu")

MODEL = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"

PRELUDE = f"""
import sys
import numpy as np
from delegraph import Interpreter
MODEL = {str(MODEL)!r}
PICTURE = (np.arange(64) * 37 % 256 - 128).astype(np.int8).reshape(1, 8, 8, 1)
def is_kept():
    return "delegraph.runtime.session" not in sys.modules
def answer(i):
    i.allocate_tensors()
    i.set_tensor(i.get_input_details()[0]["index"], PICTURE)
    i.invoke()
    return i.get_tensor(i.get_output_details()[0]["index"])
def expected():
    return answer(Interpreter(MODEL, delegates=[]))
def said(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return type(error).__name__, str(error)
"""

ONE_RUN = "i = Interpreter(MODEL, num_threads=1); got = answer(i); print(is_kept()); "

SETTLED = "import delegraph.graph.model_files as files; files.SETTLED = -1"
"""Statements after which a file may have been changed a moment ago."""


def ran(script: str, cache: Path, **variables: str) -> list[str]:
    """Return the lines that a new process prints, whose caches are in the folder *cache*."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DELEGRAPH_")}
    environment |= {"XDG_CACHE_HOME": str(cache), **variables}
    command = [sys.executable, "-c", PRELUDE + script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of caches in which a start of the model is stored."""
    folder = tmp_path_factory.mktemp("cache")
    lines = ran(ONE_RUN + "print(*i.placement.delegates)", folder)
    if lines != ["False", "numba_cpu"]:
        pytest.skip("numba_cpu has no kernels here")
    return folder


def stored(model: bytes, folder: Path) -> str:
    path = folder / "model.tflite"
    path.write_bytes(model)
    return str(path)


def negations(*chain: TensorDef) -> list[Op]:
    """NEG nodes from each tensor to the next: programs of few nodes are not kept."""
    return [Op("NEG", [x], [y]) for x, y in pairwise(chain)]


def starts(cache: Path) -> list[Path]:
    return sorted(cache.glob("delegraph/compiled/starts/*/*/*.blob"))


def test_the_second_process_gives_the_answer_without_reading_the_model(cache: Path) -> None:
    script = "print(np.array_equal(got, expected()), got.dtype, got.shape)"
    assert ran(ONE_RUN + script, cache) == ["True", "True int8 (1, 10)"]


def test_inputs_and_outputs_are_described_as_by_the_model(cache: Path) -> None:
    script = """
def text(i):
    return repr([i.get_input_details(), i.get_output_details()])
i = Interpreter(MODEL, num_threads=1)
described = text(i)
i.allocate_tensors()
print(is_kept(), described == text(i) == text(Interpreter(MODEL, delegates=[])))
"""
    assert ran(script, cache) == ["True True"]


def test_the_session_takes_over_the_values(cache: Path) -> None:
    script = """
print(*i.placement.delegates, is_kept(), i.numerics)
print(np.array_equal(i.get_tensor(0), PICTURE), np.array_equal(i.get_output_details(), 0))
print(np.array_equal(i.get_tensor(i.get_output_details()[0]["index"]), got))
i.invoke()
print(np.array_equal(i.tensor(i.get_output_details()[0]["index"])(), got))
"""
    lines = ["True", "numba_cpu False builtin", "True False", "True", "True"]
    assert ran(ONE_RUN + script, cache) == lines


@pytest.mark.parametrize(
    "statement",
    [
        "i.get_tensor_details()",
        "i.get_signature_list()",
        "i.resize_tensor_input(0, [2, 8, 8, 1]); i.allocate_tensors(); i.invoke()",
        "i.reset_all_variables(); i.modify_graph_with_delegate('numba_cpu')",
        "i.remove_all_delegates(); i.invoke()",
        "i.profile().__enter__(); i.invoke()",
        "i.invoke_async().result()",
        "repr(i); i._repr_html_()",
    ],
)
def test_everything_else_is_done_by_the_session(statement: str, cache: Path) -> None:
    assert ran(f"{ONE_RUN}{statement}; print(is_kept())", cache) == ["True", "False"]


@pytest.mark.parametrize(
    "statement",
    [
        "i.invoke",
        "i.get_tensor, 0",
        "i.set_tensor, 0, PICTURE",
        "i.allocate_tensors(); i.set_tensor, 0, PICTURE.astype(np.float32)",
        "i.allocate_tensors(); i.set_tensor, 0, PICTURE[:, :4]",
        "i.allocate_tensors(); i.set_tensor, 99, PICTURE",
        "i.allocate_tensors(); i.get_tensor, 99",
        "i.close(); i.invoke",
        "i.close(); i.allocate_tensors",
        "i.close(); i.get_input_details",
    ],
)
def test_errors_are_those_of_the_session(statement: str, cache: Path) -> None:
    *before, call = statement.split("; ")
    script = f"""
def error(i):
    {"; ".join(before) or "pass"}
    return said({call})
kept = error(Interpreter(MODEL, num_threads=1))
import delegraph.runtime.session
print(kept == error(Interpreter(MODEL, num_threads=1)), kept is not None)
"""
    assert ran(script, cache) == ["True True"]


@pytest.mark.parametrize(
    "arguments",
    ["num_threads=2", "num_threads=1, delegates=[]", "num_threads=1, on_loaded=lambda: None"],
)
def test_other_arguments_have_a_start_of_their_own_or_none(arguments: str, cache: Path) -> None:
    script = f"answer(Interpreter(MODEL, {arguments})); print(is_kept())"
    assert ran(script, cache) == ["False"]


@pytest.mark.parametrize(
    ("variable", "value", "delegates"),
    [
        ("DELEGRAPH_NUMBA_KEEP", "0", "numba_cpu"),
        ("DELEGRAPH_DISABLE_PLUGINS", "numba_cpu", ""),
        ("DELEGRAPH_DEFAULT_DELEGATES", "", ""),
        ("DELEGRAPH_NUMBA_CPU", "generic", "numba_cpu"),
    ],
)
def test_settings_of_the_environment_hold(
    variable: str, value: str, delegates: str, cache: Path
) -> None:
    script = ONE_RUN + "print(*i.placement.delegates); print(np.array_equal(got, expected()))"
    assert ran(script, cache, **{variable: value}) == ["False", delegates, "True"]


def test_a_process_that_logs_reads_the_model(cache: Path) -> None:
    script = "import logging; logging.basicConfig(level='INFO'); "
    assert ran(script + ONE_RUN, cache) == ["False"]


def test_a_file_with_other_content_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    settled = "import delegraph.graph.model_files as f; f.SETTLED = -1e9; MODEL = sys.argv[-1]; "
    script = f"import sys; sys.argv.append({str(path)!r}); {settled}{ONE_RUN}"
    path.write_bytes(MODEL.read_bytes())
    assert [ran(script, tmp_path) for _ in range(2)] == [["False"], ["True"]]
    path.write_bytes(MODEL.read_bytes() + b"\0")
    assert ran(script, tmp_path) == ["False"]


def test_a_file_that_was_changed_a_moment_ago_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    script = f"MODEL = {str(path)!r}; {ONE_RUN}"
    for _ in range(2):
        path.write_bytes(MODEL.read_bytes())
        assert ran(script, tmp_path) == ["False"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_opened_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = f"""
import threading
threading.Thread(target=lambda: open({str(pipe)!r}, "wb").close(), daemon=True).start()
print(said(Interpreter, {str(pipe)!r})[0])
"""
    assert ran(script, tmp_path) == ["MalformedModelError"]


def test_a_removed_file_remains_readable(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(MODEL.read_bytes())
    settled = "import delegraph.graph.model_files as f; f.SETTLED = -1e9; "
    script = f"MODEL = {str(path)!r}; {settled}{ONE_RUN}"
    ran(script, tmp_path)
    script += "import os; os.remove(MODEL); print(len(i.get_tensor_details()) > 2)"
    assert ran(script, tmp_path) == ["True", "True"]


def test_a_damaged_start_is_made_again(cache: Path) -> None:
    for path in starts(cache):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    check = "print(np.array_equal(got, expected()))"
    assert ran(ONE_RUN + check, cache) == ["False", "True"]
    assert ran(ONE_RUN + check, cache) == ["True", "True"]


def test_a_start_of_other_code_is_made_again(cache: Path) -> None:
    script = """
import delegraph_numba_cpu.kept.start as programs
programs.made_for = lambda num_threads: "another version"
"""
    assert ran(script + ONE_RUN, cache) == ["False"]
    assert ran(ONE_RUN, cache) == ["False"]
    assert ran(ONE_RUN, cache) == ["True"]


def test_a_start_without_its_program_reads_the_model(cache: Path) -> None:
    for path in cache.glob("delegraph/compiled/numba_cpu-programs/*/*/*.blob"):
        path.unlink()
    check = "print(np.array_equal(got, expected()))"
    assert ran(ONE_RUN + check, cache) == ["False", "True"]
    assert ran(ONE_RUN + check, cache) == ["True", "True"]


def test_a_start_with_huge_tensors_reads_the_model(cache: Path) -> None:
    script = """
i = Interpreter(MODEL, num_threads=1)
i._kept_start.known[0].shape = (1 << 20, 1 << 20)
print(np.array_equal(answer(i), expected()))
"""
    ran(ONE_RUN, cache)
    assert ran(script, cache) == ["True"]


def test_a_program_that_fails_is_run_by_the_session(cache: Path) -> None:
    script = """
i = Interpreter(MODEL, num_threads=1)
i.allocate_tensors()
def fail():
    raise MemoryError("no memory")
i._kept_start._call = fail
print(np.array_equal(answer(i), expected()))
"""
    assert ran(script, cache) == ["True"]


def test_a_program_that_values_can_stop_raises_the_error_of_the_session(tmp_path: Path) -> None:
    x, position = tensor((5,), "FLOAT32"), tensor((1,), "INT32")
    found, *chain = (tensor((1,), "FLOAT32") for _ in range(4))
    nodes = [Op("GATHER", [x, position], [found], GatherOptions()), *negations(found, *chain)]
    path = stored(model_of(Graph([x, position], chain[-1:], nodes)), tmp_path)
    script = f"""{SETTLED}
def gathered(i, position):
    i.allocate_tensors()
    i.set_tensor(0, np.arange(5, dtype=np.float32))
    i.set_tensor(1, np.int32([position]))
    i.invoke()
    return -float(i.get_tensor(i.get_output_details()[0]["index"])[0])
i = Interpreter({path!r}, num_threads=1)
print(gathered(i, 3), is_kept())
other = Interpreter({path!r}, num_threads=2)
print(said(gathered, i, 9) == said(gathered, other, 9) != None, gathered(i, 4))
"""
    assert ran(script, tmp_path) == ["3.0 False", "True 4.0"]
    assert ran(script, tmp_path) == ["3.0 True", "True 4.0"]


@pytest.mark.parametrize(("op", "needs_session"), [("FULLY_CONNECTED", False), ("ADD", True)])
def test_a_program_that_holds_converted_constants_needs_no_session(
    op: str, needs_session: bool, tmp_path: Path
) -> None:
    x, wide, *chain = (tensor(shape, "FLOAT32") for shape in [(2, 2)] * 6)
    halves = constant(np.array([[1.5, 0], [0, 1.5]], np.float16))
    options = AddOptions() if op == "ADD" else FullyConnectedOptions()
    nodes = [Op("DEQUANTIZE", [halves], [wide]), Op(op, [x, wide], chain[:1], options)]
    path = stored(model_of(Graph([x], chain[-1:], nodes + negations(*chain))), tmp_path)
    script = f"""{SETTLED}
i = Interpreter({path!r}, num_threads=1)
i.allocate_tensors()
i.set_tensor(0, np.ones((2, 2), np.float32))
i.invoke()
print(*-i.get_tensor(1).reshape(-1), is_kept())
"""
    expected = "2.5 1.0 1.0 2.5" if op == "ADD" else "1.5 1.5 1.5 1.5"
    assert ran(script, tmp_path) == [f"{expected} False"]
    assert ran(script, tmp_path) == [f"{expected} {not needs_session}"]
    assert len(starts(tmp_path)) == (not needs_session)


def test_one_call_runs_at_a_time(cache: Path) -> None:
    script = """
i.cancel()  # no call runs, so it stops none
i.invoke()
turn = i._kept_start.calls.turn
turn["owner"] = "invoke", 1
print(said(i.invoke)[0], said(i.allocate_tensors), is_kept())
del turn["owner"]
i.invoke()
"""
    assert ran(ONE_RUN + script, cache) == ["True", "StateError None True"]


def test_a_stopped_run_raises_the_error_of_a_cancelled_call(cache: Path) -> None:
    script = """
start = i._kept_start
start.cancellation.begin = start.cancellation.forget = lambda: None
i.cancel()
print(said(i.invoke), is_kept())
"""
    text = "('CallCancelledError', 'Client requested cancel during Invoke()') True"
    assert ran(ONE_RUN + script, cache) == ["True", text]


def test_threads_that_need_the_session_get_the_same_one(cache: Path) -> None:
    script = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as threads:
    print(len(set(threads.map(lambda _: i.session, range(4)))))
"""
    assert ran(ONE_RUN + script, cache) == ["True", "1"]
