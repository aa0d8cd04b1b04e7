"""The roof: loops that do what they say, the arithmetic of the roofline, and the answer's shape."""

from __future__ import annotations

import ctypes
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from delegated import levels
from delegraph import (
    DelegateContext,
    Eval,
    Node,
    NodeByNodeKernel,
    NodeCall,
    Registration,
    SimpleDelegateInterface,
)
from delegraph.errors import ArgumentError
from delegraph.graph import parse_model
from delegraph.schema.options import Conv2DOptions, FullyConnectedOptions, GatherOptions
from delegraph.testing import constant, graph_model, one_op_model, run_command, tensor
from delegraph.tools import InputRequest, Recording, Setup, record
from delegraph_numba_cpu.instructions import roof as layout
from delegraph_numba_cpu.library.cpu import level_named, supported_levels
from delegraph_numba_cpu.library.kernel_library import library
from delegraph_numba_cpu.program.pool import POOL
from delegraph_numba_cpu.roof import processor, report
from delegraph_numba_cpu.roof.caches import TYPICAL, Cache, caches
from delegraph_numba_cpu.roof.operators import OperatorRoof, Work, findings, roof_seconds, work_of
from delegraph_numba_cpu.roof.printing import print_roofs
from delegraph_numba_cpu.roof.processor import MemoryRoof, ProcessorRoof, processor_roof
from delegraph_numba_cpu.roof.report import RoofReport, roof_report

WEIGHTS = np.random.default_rng(0).normal(size=(8, 1, 1, 4)).astype(np.float32)

ROOF = ProcessorRoof(
    level="made up",
    threads=1,
    float32=1000.0,
    int8=4000.0,
    memory=(
        MemoryRoof("L1", 100, 500.0),
        MemoryRoof("L2", 1000, 200.0),
        MemoryRoof("memory", None, 10.0),
    ),
    call_seconds=0.0,
    rounds=8,
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """CONV_2D, RELU, FULLY_CONNECTED, and FLOOR_MOD, which the core computes."""
    tensors = {
        "x": tensor((1, 6, 6, 4)),
        "w": constant(WEIGHTS),
        "b": constant(np.zeros(8, np.float32)),
        **{name: tensor((1, 6, 6, 8)) for name in "ac"},
        "v": constant(np.ones((3, 8), np.float32)),
        "d": constant(np.zeros(3, np.float32)),
        **{name: tensor((36, 3)) for name in "ey"},
        "m": constant(np.full(3, 2, np.float32)),
    }
    nodes: list[Any] = [
        ("CONV_2D", "x w b", "a", Conv2DOptions(stride_h=1, stride_w=1)),
        ("RELU", "a", "c"),
        ("FULLY_CONNECTED", "c v d", "e", FullyConnectedOptions()),
        ("FLOOR_MOD", "e m", "y"),
    ]
    path = tmp_path / "chain.tflite"
    path.write_bytes(graph_model(nodes, inputs="x", outputs="y", tensors=tensors))
    return path


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements of the processor of a moment."""
    monkeypatch.setattr(processor, "SECONDS", 0.0)
    monkeypatch.setattr(processor, "_CALL_SECONDS", 1e-6)
    monkeypatch.setattr(processor, "_MEMORY_BYTES", (1 << 16, 1 << 16))


# -- loops that measure ----------------------------------------------------------------------------


def called(level: str, kernel: str, record: Any, tile: int = 0) -> None:
    address = library(level_named(level)).address("roof", kernel)
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(address)(record.ctypes.data, tile, 0)


@levels
def test_products_are_those_that_are_counted(level: str) -> None:
    record = np.zeros(layout.SUMS + layout.RESULT_WORDS, np.int64)
    factors = record[layout.FACTORS : layout.SUMS].view(np.float32)
    factors[:16], factors[16:] = 1.5, 2.0
    record[layout.ROUNDS] = 10
    called(level, layout.MULTIPLY_F32, record)
    lanes = level_named(level).vector_bytes // 4
    sums = int(record[layout.AMOUNT]) // (2 * lanes)
    found = record[layout.SUMS :].view(np.float32)[:lanes]
    np.testing.assert_array_equal(found, sum(range(sums)) + 10 * sums * 3.0)


@levels
def test_int8_products_are_those_that_are_counted(level: str) -> None:
    """Weights of 0 add nothing, so the sums stay what they were at first: 0, 1, 2, ..."""
    record = np.zeros(layout.SUMS + layout.RESULT_WORDS, np.int64)
    record[layout.ROUNDS] = 3
    called(level, layout.MULTIPLY_INT8, record)
    sums = int(record[layout.AMOUNT]) // (2 * 16 * 4)
    np.testing.assert_array_equal(record[layout.SUMS :].view(np.int32), sum(range(sums)))


@levels
def test_each_tile_reads_all_its_bytes(level: str) -> None:
    values = np.random.default_rng(0).integers(-(2**31), 2**31, (2, 256), np.int64)
    source = values.astype(np.int32)
    record = np.zeros(layout.SUMS + 2 * layout.RESULT_WORDS, np.int64)
    record[[layout.ROUNDS, layout.SOURCE, layout.BYTES]] = 3, source.ctypes.data, 1024
    for tile in range(2):
        called(level, layout.READ, record, tile)
    found = record[layout.SUMS :].view(np.int32).reshape(2, 16).astype(np.int64).sum(axis=1)
    np.testing.assert_array_equal(found.astype(np.int32), (3 * values.sum(axis=1)).astype(np.int32))
    assert record[layout.AMOUNT] == 1024


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("threads", [1, 2])
def test_the_roof_has_all_levels_of_memory(threads: int) -> None:
    roof = processor_roof(level_named("auto"), threads)
    assert roof.float32 > 0
    assert roof.int8 is None or roof.int8 > 0
    assert [memory.name for memory in roof.memory][-1] == "memory"
    assert all(memory.bytes_per_second > 0 for memory in roof.memory)
    sizes = [memory.bytes for memory in roof.memory[:-1]]
    assert sizes == [cache.capacity(threads) for cache in caches()]


@pytest.mark.usefixtures("brief")
def test_the_best_round_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now, step = 0.0, 1.0

    def clock() -> float:
        nonlocal now
        now += step
        return now

    monkeypatch.setattr(processor, "perf_counter", clock)
    monkeypatch.setattr(processor, "SECONDS", 10.0)
    monkeypatch.setattr(processor, "ROUNDS", 1)
    measurement = processor.RoofMeasurement(level_named("auto"), 1)
    rates = []
    for seconds in (1.0, 0.25, 1.0):
        step = seconds
        measurement.measure()
        rates.append(measurement.roof().float32)
    assert rates == [rates[0], 4 * rates[0], 4 * rates[0]]


@pytest.mark.usefixtures("brief")
def test_the_processor_is_measured_between_the_runs(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(report, "RUNS", replace(report.RUNS, runs=2 * processor.ROUNDS))
    measure = processor.RoofMeasurement.measure
    monkeypatch.setattr(
        processor.RoofMeasurement, "measure", lambda self: (done.append("round"), measure(self))
    )
    roof_report(str(model), progress=lambda what, *share: done.append(what))
    profiled = done[done.index("profiling") :]
    assert profiled[:-1] == ["profiling", "round", "profiling"] * processor.ROUNDS
    assert profiled[-1] == "measuring the processor"


def test_caches_are_what_linux_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {3}, raising=False)
    told = [
        ("1", "Data", "48K", "2-3"),
        ("1", "Instruction", "32K", "2-3"),
        ("2", "Unified", "2048K", "2-3"),
        ("3", "Unified", "16M", "0-5,8-9"),
    ]
    for number, values in enumerate(told):
        folder = tmp_path / f"cpu3/cache/index{number}"
        folder.mkdir(parents=True)
        names = ("level", "type", "size", "shared_cpu_list")
        for name, value in zip(names, values, strict=True):
            (folder / name).write_text(f"{value}\n")
    found = caches(tmp_path)
    assert found == (Cache("L1", 48 << 10), Cache("L2", 2 << 20), Cache("L3", 16 << 20, 4))
    assert [cache.capacity(2) for cache in found] == [96 << 10, 4 << 20, 16 << 20]
    assert caches(tmp_path / "none") == TYPICAL


# -- the arithmetic --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "whole", "expected"),
    [
        (Work(float32=500, values=50), 0, (1.0, "compute")),
        (Work(int8=2000, values=50), 0, (1.0, "compute")),
        (Work(float32=1, values=100), 0, (0.2, "L1")),
        (Work(float32=1, values=101), 0, (101 / 200, "L2")),
        (Work(values=50, constants=60), 900, (50 / 500 + 60 / 200, "L2")),
        (Work(values=50, constants=5000), 6000, (50 / 500 + 5000 / 10, "memory")),
        (Work(values=900, constants=100), 1000, (5.0, "L2")),
    ],
)
def test_the_longer_of_computing_and_moving_counts(
    work: Work, whole: int, expected: tuple[float, str]
) -> None:
    seconds, bound = roof_seconds(work, ROOF, whole)
    assert seconds == pytest.approx(expected[0])
    assert bound == expected[1]


def test_inner_values_of_nodes_that_are_computed_together_are_not_moved(model: Path) -> None:
    graph = parse_model(model.read_bytes()).subgraphs[0]
    work = work_of((0, 1), graph, graph.tensors)
    products = sum(4 for _pixel in range(36) for _output in range(8))
    assert work == Work(products, 0, WEIGHTS.nbytes + 32, 4 * (36 * 4 + 36 * 8))


def test_products_by_8_bit_weights_are_int8() -> None:
    data = one_op_model(
        "FULLY_CONNECTED",
        [
            tensor((2, 4), "INT8", scale=1.0),
            constant(np.ones((3, 4)), "INT8", scale=1.0),
            constant(np.zeros(3), "INT32", scale=1.0),
        ],
        [tensor((2, 3), "INT8", scale=1.0)],
        FullyConnectedOptions(),
    )
    graph = parse_model(data).subgraphs[0]
    assert work_of((0,), graph, graph.tensors) == Work(0, 24, 12 + 12, 8 + 6)


def test_a_table_is_read_as_far_as_rows_are_taken() -> None:
    table, rows = constant(np.ones((1000, 4), np.float32)), tensor((2,), "INT32")
    data = one_op_model("GATHER", [table, rows], [tensor((2, 4))], GatherOptions())
    graph = parse_model(data).subgraphs[0]
    assert work_of((0,), graph, graph.tensors) == Work(0, 0, 32, 32 + 8)


def operator(seconds: float, share: float, least: float) -> OperatorRoof:
    return OperatorRoof((0,), "ADD", None, (1,), seconds, share, 10, 5, 8, least, "L1")


def test_what_takes_long_and_is_far_from_the_roof_is_a_finding() -> None:
    slow, slower = operator(1.0, 0.06, 0.59), operator(2.0, 0.9, 0.1)
    others = [operator(1.0, 0.05, 0.59), operator(1.0, 0.06, 0.6), operator(0.0, 0.0, 0.1)]
    assert findings([others[0], slow, *others[1:], slower]) == [slower, slow]
    assert (slower.of_roof, others[-1].of_roof) == (0.05, None)
    assert (slower.operations_per_second, slower.bytes_per_second) == (15.0, 4.0)


def test_what_is_too_brief_to_be_a_finding_is_marked() -> None:
    brief, slow = operator(1e-5, 0.9, 1e-6), operator(1e-4, 0.05, 1e-6)
    assert (brief.is_finding, brief.is_too_brief, slow.is_too_brief) == (False, True, False)
    text = shown(brief, slow)
    assert "nothing is below 60% of the roof, over 5% of the time, at least 20 us" in text
    assert "\n 10 us*  90.0%" in text
    assert "\n100 us    5.0%" in text
    assert "* would be a finding, but takes less than 20 us" in text


def test_the_briefest_operators_are_counted_together() -> None:
    text = shown(operator(1e-4, 0.99, 1e-4), *(operator(5e-7, 0.0005, 1e-7) for _ in range(20)))
    assert "and 20 more of at most 0.5 us, 1.0% of the time together" in text


def shown(*rows: OperatorRoof, cautions: tuple[str, ...] = ()) -> str:
    text = StringIO()
    out = Console(width=160, file=text, highlight=False, markup=False)
    print_roofs(out, RoofReport("m.tflite", True, 60, 1e-4, ROOF, rows, cautions))
    assert all(line == line.rstrip() for line in text.getvalue().splitlines())
    return text.getvalue()


def test_a_busy_machine_is_a_caution() -> None:
    seen = "busy machine: other processes used 1.0 of 2 cores meanwhile"
    assert f"caution: {seen}\n" in shown(operator(1e-4, 1.0, 1e-4), cautions=(seen,))


@pytest.mark.usefixtures("brief")
def test_cautions_are_those_of_the_profile(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = replace(record(Setup(str(model), delegates=("numba_cpu",))), cautions=("busy",))
    monkeypatch.setattr(report, "record", lambda *given, **named: recording)
    assert roof_report(str(model)).cautions == ("busy",)


def test_a_single_operator_is_counted_as_one() -> None:
    assert "1 operator, " in shown(operator(1e-4, 1.0, 1e-4))


# -- the answer ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("brief")
def test_each_node_is_in_one_row_and_shares_add_up(model: Path) -> None:
    report = roof_report(str(model))
    assert sorted(i for row in report.operators for i in row.nodes) == [0, 1, 2, 3]
    assert sum(row.share for row in report.operators) == pytest.approx(1.0)
    assert sum(row.seconds for row in report.operators) == pytest.approx(report.seconds)
    names = ("CONV_2D", "RELU", "FULLY_CONNECTED", "FLOOR_MOD")
    for row in report.operators:
        assert row.operators == "+".join(names[i] for i in row.nodes)
        assert row.delegate == (None if row.nodes == (3,) else "numba_cpu")
        assert row.shape == ((1, 6, 6, 8) if row.nodes[-1] < 2 else (36, 3))


class Modulo(SimpleDelegateInterface):
    """Delegate that takes FLOOR_MOD and records its partitions as a whole."""

    def name(self) -> str:
        return "modulo"

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool:
        return registration.name == "FLOOR_MOD"

    def create_delegate_kernel_interface(self) -> NodeByNodeKernel:
        return ModuloKernel()


class ModuloKernel(NodeByNodeKernel):
    def prepare_node(self, call: NodeCall) -> Eval:
        x, m, y = call.input(0), call.input(1), call.output()
        return lambda: np.mod(x.data, m.data, out=y.data)


@pytest.fixture
def with_modulo(brief: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings in which another delegate computes FLOOR_MOD."""

    def recorded(setup: Setup, *given: Any, **named: Any) -> Recording:
        delegates = (Modulo(), *(setup.delegates or ()))
        return record(replace(setup, delegates=delegates), *given, **named)

    monkeypatch.setattr(report, "record", recorded)


@pytest.mark.usefixtures("with_modulo")
def test_partitions_of_other_delegates_have_a_row_without_a_roof(model: Path) -> None:
    answer = json.loads(run_command("numba", "roof", model, "--json").out)
    rows = answer["operators"]
    assert sorted(i for row in rows for i in row["nodes"]) == [0, 1, 2, 3]
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    (row,) = (row for row in rows if row["delegate"] == "modulo")
    assert (row["nodes"], row["operators"], row["seconds"] > 0) == ([3], "FLOOR_MOD", True)
    assert (row["roof_seconds"], row["bound"], row["of_roof"]) == (None, None, None)


@pytest.mark.usefixtures("with_modulo")
def test_partitions_of_other_delegates_are_counted_apart(model: Path) -> None:
    text = run_command("numba", "roof", model).out
    assert " and 1 partition of modulo (" in text
    assert "FLOOR_MOD (modulo)" in text


@pytest.mark.usefixtures("with_modulo")
def test_a_model_of_which_others_take_all_has_no_roof(tmp_path: Path) -> None:
    path, x = tmp_path / "others.tflite", tensor((4,))
    path.write_bytes(one_op_model("FLOOR_MOD", [x, x], [tensor((4,))]))
    with pytest.raises(ArgumentError, match=r"numba_cpu takes no node of .*others\.tflite"):
        roof_report(str(path))


@pytest.mark.usefixtures("with_modulo")
def test_a_delegate_that_takes_no_node_is_a_caution(tmp_path: Path) -> None:
    path, x = tmp_path / "add.tflite", tensor((4,))
    path.write_bytes(one_op_model("ADD", [x, x], [tensor((4,))]))
    assert roof_report(str(path)).cautions[0] == "modulo takes no node"


def test_the_model_has_a_share_of_its_roof() -> None:
    others = replace(operator(8.0, 0.4, 0.0), delegate="tpu", roof_seconds=None, bound=None)
    rows = (operator(2.0, 0.1, 1.0), operator(8.0, 0.4, 1.0), others)
    answer = RoofReport("m.tflite", True, 60, 18.0, ROOF, rows).to_json()
    assert (answer["roof_seconds"], answer["of_roof"]) == (2.0, 0.2)
    assert "the operators together run at 20% of their roof, which is 2 s\n" in shown(*rows)
    assert RoofReport("m.tflite", True, 60, 8.0, ROOF, (others,)).of_roof is None


def test_the_operators_of_a_large_partition_are_counted() -> None:
    nodes, names = (0, 1, 2, 5, 7, 8), "+".join(["ADD"] * 6)
    row = OperatorRoof(nodes, names, "tpu", (1,), 1e-4, 1.0, 0, 0, 8, None, None)
    assert "  6 operators (tpu)  0-2 5 7-8  1\n" in shown(row)


@pytest.mark.usefixtures("brief")
def test_signature_and_delegates_are_as_asked(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def recorded(setup: Setup, *given: Any, signature: str | None, **named: Any) -> Recording:
        seen.extend((signature, *(setup.delegates or ())))
        return record(Setup(setup.model, delegates=("numba_cpu",)), *given, **named)

    monkeypatch.setattr(report, "record", recorded)
    words = ("--signature", "serve", "-d", "first:k=v", "--delegate", "second", "--cpu", "auto")
    assert run_command("numba", "roof", model, *words).code == 0
    assert seen[:3] == ["serve", "first:k=v", "second"]
    assert seen[3].startswith("numba_cpu:")


def test_numba_cpu_is_not_a_further_delegate(model: Path) -> None:
    result = run_command("numba", "roof", model, "-d", "numba_cpu:fuse=false")
    assert (result.code, "numba_cpu always runs" in result.err) == (2, True)


@pytest.mark.usefixtures("brief")
def test_findings_come_first(model: Path) -> None:
    result = run_command("numba", "roof", model)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0].startswith("chain.tflite, ")
    assert " operators, " in lines[1]
    assert "float32" in lines[2]
    assert "memory" in result.out
    marked = next(i for i, line in enumerate(lines) if "below 60% of the roof" in line)
    others = next(i for i, line in enumerate(lines) if line.startswith("other operators"))
    assert marked < others
    assert "FLOOR_MOD (core)" in result.out
    assert "(core): computed by Delegraph's own kernels" in result.out


@pytest.mark.parametrize("width", [60, 80])
def test_lines_break_between_words_on_a_narrow_terminal(width: int) -> None:
    names, shape = "CONV_2D+DEPTHWISE_CONV_2D+CONV_2D+ADD", (1, 112, 112, 16)
    row = OperatorRoof((3, 4, 5, 6), names, "numba_cpu", shape, 5e-4, 0.104, 9, 0, 8, 4e-4, "L1")
    text = StringIO()
    out = Console(width=width, file=text, highlight=False, markup=False)
    print_roofs(out, RoofReport("m.tflite", True, 60, 5e-4, ROOF, (row,)))
    lines = text.getvalue().splitlines()
    shown = " ".join(lines[next(i for i, line in enumerate(lines) if "of roof" in line) :])
    assert max(map(len, lines)) <= width
    assert lines == [line.rstrip() for line in lines]
    assert lines[2].startswith("  ") or lines[3].startswith("  ")
    assert any(line.startswith("500 us") for line in lines)
    assert set(names.split("+")) | {"3-6"} <= set(shown.split())
    assert ("1x112x112x16" in shown) == (width == 80)
    omitted = "no room for Gop/s, GB/s, output: wider terminals and --json show more"
    assert (omitted in " ".join(shown.split())) == (width == 60)
    assert ("no room" in shown) == (width == 60)


def test_many_nodes_wrap_on_a_narrow_terminal() -> None:
    nodes, name = tuple(range(0, 40, 2)), "A_LONG_NAME_OF_AN_OPERATOR"
    row = OperatorRoof(nodes, "+".join([name] * 4), None, (1,), 5e-4, 1.0, 0, 0, 8, 4e-4, "L1")
    text = StringIO()
    print_roofs(
        Console(width=60, file=text, highlight=False, markup=False),
        RoofReport("m.tflite", True, 60, 5e-4, ROOF, (row,)),
    )
    assert set(map(str, nodes)) <= set(text.getvalue().split())
    assert max(map(len, text.getvalue().splitlines())) <= 60


@pytest.mark.usefixtures("brief")
def test_inputs_are_as_asked(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def recorded(setup: Setup, inputs: InputRequest, **named: Any) -> Recording:
        seen.append(inputs)
        return record(setup, inputs, **named)

    monkeypatch.setattr(report, "record", recorded)
    words = ("--input-shape", "1,8,8,4", "--input-range", "x=3,4")
    answer = json.loads(run_command("numba", "roof", model, *words, "--json").out)
    assert answer["operators"][-1]["output_shape"] == [64, 3]
    assert seen == [InputRequest((), {"": (1, 8, 8, 4)}, ranges={"x": (3, 4)})]
    assert run_command("numba", "roof", model, "--input", "x=zeros").code == 0
    assert seen[-1] == InputRequest(("x=zeros",))


@pytest.mark.parametrize("wrong", ["x=3", "x=3,b"])
def test_a_wrong_range_is_a_mistake_in_the_usage(model: Path, wrong: str) -> None:
    result = run_command("numba", "roof", model, "--input-range", wrong)
    assert (result.code, "expected [NAME=]LOW,HIGH" in result.err) == (2, True)


def test_json_has_the_roof_and_the_operators(model: Path) -> None:
    answer = json.loads(run_command("numba", "roof", model, "--threads", "2", "--json").out)
    assert (answer["roof"]["threads"], answer["exact"]) == (2, True)
    assert answer["roof"]["float32_operations_per_second"] > 0
    assert "int8_operations_per_second" in answer["roof"]
    assert answer["model"] == str(model)
    (row,) = (row for row in answer["operators"] if row["nodes"] == [2])
    assert (row["operators"], row["macs_float32"], row["macs_int8"]) == ("FULLY_CONNECTED", 864, 0)
    assert isinstance(row["is_finding"], bool)


def test_a_model_of_which_nothing_is_taken_has_no_roof(tmp_path: Path) -> None:
    x = tensor((4,))
    path = tmp_path / "core.tflite"
    path.write_bytes(one_op_model("FLOOR_MOD", [x, x], [tensor((4,))]))
    with pytest.raises(ArgumentError, match=r"numba_cpu takes no node of .*core\.tflite"):
        roof_report(str(path))
    result = run_command("numba", "roof", path)
    assert result.code != 0
    assert "delegraph explain" in result.err


def test_times_between_guards_are_not_shown(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELEGRAPH_NUMBA_GUARD", "1")
    with pytest.raises(ArgumentError, match="DELEGRAPH_NUMBA_GUARD is set"):
        roof_report(str(model))


@pytest.mark.parametrize("command", ["roof", "warmup"])
def test_a_level_that_this_processor_lacks_is_a_mistake_in_the_usage(
    command: str, model: Path
) -> None:
    has = {level.name for level in supported_levels()}
    lacking = next(name for name in ("neon", "avx2") if name not in has)
    result = run_command("numba", command, *[model] * (command == "roof"), "--cpu", lacking)
    assert result.code == 2
    assert f"--cpu={lacking}: this processor has only: " in result.err
    assert ".py" not in result.err


def test_a_missing_model_is_named() -> None:
    result = run_command("numba", "roof", "missing.tflite")
    assert result.code == 2
    assert "Invalid value for 'MODEL': File 'missing.tflite' does not exist" in result.err


@pytest.mark.usefixtures("brief")
def test_no_more_threads_than_processors_are_measured(model: Path) -> None:
    report = roof_report(str(model), threads=POOL.most_threads + 97)
    assert report.roof.threads == POOL.most_threads
    assert report.cautions[0].startswith(f"{POOL.most_threads + 97} threads were asked for; ")


def test_rates_of_several_threads_are_those_of_all_together() -> None:
    text = StringIO()
    out = Console(width=200, file=text, highlight=False, markup=False)
    print_roofs(out, RoofReport("m.tflite", True, 60, 5e-3, replace(ROOF, threads=2), ()))
    assert "roof, rates and caches of 2 threads together: float32" in text.getvalue()
    assert "0 operators, 5 ms together" in text.getvalue()
