"""Which bytes rows touch: a rule for each kind, as tight as the kernel; a wrong row is refused."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attention_model import Attention
from delegated import delegated, rows_of
from delegraph.errors import DelegateError, DelegraphError
from delegraph.testing import cases, one_op_model, tensor
from delegraph_numba_cpu import instructions
from delegraph_numba_cpu.bounds import Overrun, check_row, rules
from delegraph_numba_cpu.instructions import Instruction, elementwise
from delegraph_numba_cpu.instructions.memory import SLACK, Address, Memory, Row, constant
from delegraph_numba_cpu.instructions.moves import COPY, NEST
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.lowering import OPERATORS, Call
from delegraph_numba_cpu.program.builder import ProgramBuilder

RECORDS = {"matrix", "windows", "taps", "gate"}
"""Blocks that are no kernel's, but constants that rows point to."""

TARGETS = ("target", "y", "project_y")

OF_EVERY_LEVEL = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "LSTM", "SOFTMAX")
"""Operators whose kernels read by the size of registers."""

BEST, *OTHERS = (level.name for level in supported_levels())


def all_instructions() -> Iterator[Instruction]:
    for module in pkgutil.iter_modules(instructions.__path__, f"{instructions.__name__}."):
        found = vars(importlib.import_module(module.name)).values()
        yield from (each for each in found if isinstance(each, Instruction))


def test_every_kind_of_row_has_a_rule() -> None:
    for family in rules.FAMILIES:
        importlib.import_module(f"delegraph_numba_cpu.bounds.{family}")
    kinds = {(instruction.family, instruction.kernel) for instruction in all_instructions()}
    assert {kind for kind in kinds if kind[1] not in RECORDS} == set(rules.RULES)


def attention_row(level: str, mask: tuple[int, ...]) -> Row:
    """Return the kernel call of an attention."""
    rows = rows_of(Attention((2, 3), mask=mask).model(), level, threads=2)
    return next(row for row in rows if row.instruction.kernel == "attention")


def cut(row: Row, name: str) -> Row:
    """Return a row whose memory of one word has a byte less."""
    address = row.words[name]
    shorter = Memory(address.memory.size - 1, tensor=address.memory.tensor)
    words = row.words | {name: Address(shorter, address.offset)}
    return Row(row.instruction, row.tiles, words, row.nodes, row.replaceable)


@pytest.mark.parametrize(
    ("op", "level"),
    [(op, BEST) for op in sorted(OPERATORS)]
    + [(op, level) for op in OF_EVERY_LEVEL for level in OTHERS],
)
def test_a_byte_less_than_a_row_writes_is_refused(op: str, level: str) -> None:
    for case in cases(op, seed=1, count=1):
        try:
            rows = rows_of(case.model(), level, threads=2)
        except DelegraphError as error:
            if isinstance(error.__cause__, DelegateError):
                raise  # a sound row was refused
            continue
        written = [(row, name) for row in rows for name in TARGETS if name in row.words]
        writers = Counter(
            id(row.words[name].memory)
            for row, name in written
            if isinstance(row.words[name], Address)
        )
        for row, name in written:
            address = row.words[name]
            if isinstance(address, Address) and writers[id(address.memory)] == 1:
                if not address.memory.size or row.instruction.kernel in (
                    "quantize",
                    "round",
                    "nest",
                ):
                    continue
                with pytest.raises(Overrun, match="writes bytes 0 to"):
                    check_row(cut(row, name), 2, 64)


@pytest.mark.parametrize("level", [BEST, *OTHERS])
def test_attention_touches_all_bytes_of_its_operands(level: str) -> None:
    sizes = {each.name: each.vector_bytes for each in supported_levels()}
    for mask in ((2, 1, 9, 20), (3, 1, 1)):
        row = attention_row(level, mask)
        for name in ("x", "y", "mask", "keys", "values"):
            with pytest.raises(Overrun, match=rf"bytes 0 to \d+ of .* by '{name}'"):
                check_row(cut(row, name), 2, sizes[level])
        words = dict(row.words)  # other rows may need more of the scratch memory
        words["scratch_bytes"] = words["scores_at"] + 4 * words["together"] * words["key_count"]
        check_row(Row(row.instruction, row.tiles, words), 2, sizes[level])
        words["scratch_bytes"] -= 1
        with pytest.raises(Overrun, match="a worker's scratch memory takes"):
            check_row(Row(row.instruction, row.tiles, words), 2, sizes[level])


WRONG_ATTENTION = {
    "together": 1 << 20, "heads": 0, "queries": 10, "mask_inner": 4, "mask_step": 8, "y_head": -1,
    "x_row": -4, "keys_row": -4, "values_column": 8, "turned_at": 64, "scores_at": 64,
}  # fmt: skip
"""Words of an attention that its memory does not allow."""


@pytest.mark.parametrize("name", WRONG_ATTENTION)
def test_wrong_words_of_an_attention_are_refused(name: str) -> None:
    row = attention_row(BEST, (9, 20))
    words = row.words | {name: WRONG_ATTENTION[name]}
    with pytest.raises(Overrun, match="'attention'"):
        check_row(Row(row.instruction, row.tiles, words), 2, supported_levels()[0].vector_bytes)


MANY = (1 << 31) - 1

DAMAGES = {
    "no outputs per position": ("ARG_MAX", "arg_min_max arg", {"outer": MANY, "inner": 0}),
    "one image many times": (
        "CONV_2D",
        "conv_f32 conv",
        {"images": MANY, "in_image": 0, "out_image": 0},
    ),
    "one matrix many times": (
        "BATCH_MATMUL",
        "conv_f32 pack_matrix",
        {"images": MANY, "source_image": 0, "target_image": 0},
    ),
    "no hybrid outputs": (
        "FULLY_CONNECTED",
        "conv_hybrid multiply",
        {"layout": 0, "pixels": MANY, "image_pixels": MANY, "outputs": 0, "windows.height": 0},
    ),
    "no int16 outputs": (
        "FULLY_CONNECTED",
        "conv_int16 convolve_int16",
        {"pixels": MANY, "outputs": 0, "windows.height": 0},
    ),
    "no int8 outputs": (
        "CONV_2D",
        "conv_int8 convolve",
        {"layout": 0, "pixels": MANY, "matrix.outputs": 0, "windows.height": 0},
    ),
    "one depthwise image many times": (
        "DEPTHWISE_CONV_2D",
        "depthwise_conv_f32 depthwise",
        {"images": MANY, "in_image": 0, "out_image": 0},
    ),
    "no int8 channels": (
        "DEPTHWISE_CONV_2D",
        "depthwise_conv_int8 depthwise",
        {"rows": MANY, "windows.channels": 0, "taps.channels": 0},
    ),
    "no values in rows": (
        "L2_NORMALIZATION",
        "l2_normalization l2_normalization",
        {"rows": MANY, "length": 0},
    ),
    "one step many times": (
        "LSTM",
        "lstm_f32 lstm",
        {"steps": MANY, "gates_step": 0, "target_step": 0},
    ),
    "empty runs": ("CONCATENATION", "moves recode", {"runs": MANY, "run": 0, "step": 0}),
    "no channels": ("AVERAGE_POOL_2D", "pooling mean_f32", {"rows": MANY, "channels": 0}),
    "no columns": ("AVERAGE_POOL_2D", "pooling mean_f32", {"rows": MANY, "out_width": 0}),
    "no sums per position": ("SUM", "reductions sum_f32", {"outer": MANY, "inner": 0}),
    "no resized channels": (
        "RESIZE_BILINEAR",
        "resize bilinear_f32",
        {"rows": MANY, "channels": 0},
    ),
    "no resized columns": (
        "RESIZE_BILINEAR",
        "resize bilinear_f32",
        {"rows": MANY, "out_width": 0},
    ),
    "empty rows": ("SOFTMAX", "softmax softmax", {"rows": MANY, "length": 0}),
    "one integer step many times": (
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "lstm_int8 lstm",
        {"steps": MANY, "gates_step": 0, "target_step": 0},
    ),
    "no units": ("SVDF", "svdf svdf_f32", {"batch": MANY, "units": 0}),
}
"""Words whose loops have many steps that touch no further byte; ``windows.height`` is a word of
the record ``windows``.
"""


def damaged(row: Row, changes: dict[str, int]) -> Row:
    """Return a row with other words, by name as in ``DAMAGES``."""
    words = dict(row.words)
    for name, value in changes.items():
        record, _, word = name.rpartition(".")
        if record:
            memory = copy(words[record].memory)
            memory.records = [{**each, word: value} for each in memory.records]
            words[record] = Address(memory)
        else:
            words[name] = value
    return Row(row.instruction, row.tiles, words)


def refused(op: str, kernel: str, changes: dict[str, int], what: str) -> None:
    """Check that a row of an operator is refused after changes of its words."""
    found: list[Row] = []
    for case in cases(op, seed=3, count=1):
        with suppress(DelegraphError):
            found += rows_of(case.model(), BEST, threads=2)
    row = next(
        row for row in found if kernel == f"{row.instruction.family} {row.instruction.kernel}"
    )
    with pytest.raises(Overrun, match=what):
        check_row(damaged(row, changes), 2, supported_levels()[0].vector_bytes)


@pytest.mark.parametrize("name", DAMAGES)
def test_loops_have_no_more_steps_than_bytes(name: str) -> None:
    refused(*DAMAGES[name], "steps of its loops touch")


@pytest.mark.parametrize(
    ("op", "kernel", "changes", "what"),
    [
        ("CONV_2D", "conv_int8 convolve", {"layout": 0, "windows.stride_w": 0}, "windows move on"),
        (
            "DEPTHWISE_CONV_2D",
            "depthwise_conv_int8 depthwise",
            {"windows.left": -(1 << 39)},
            "with its padding",
        ),
        (
            "DEPTHWISE_CONV_2D",
            "depthwise_conv_int8 depthwise",
            {"taps.is_paired": 1, "windows.kernel_h": 1},
            "are in pairs",
        ),
        ("BATCH_MATMUL", "conv_int8 pack_stack", {"outputs": 0}, "each image gets its record"),
        ("LSTM", "lstm_f32 lstm", {"cells": 0}, "a layer has cells"),
    ],
)
def test_words_by_which_kernels_would_leave_their_memory_are_refused(
    op: str, kernel: str, changes: dict[str, int], what: str
) -> None:
    refused(op, kernel, changes, what)


def test_a_rule_that_forgets_the_loops_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rules.RULES, ("moves", "copy"), lambda row: row.read("source", 8))
    with pytest.raises(DelegateError, match="no rule for its loops"):
        emit(COPY, source=Memory(64), target=0, bytes=64)


def wrong(call: Call, builder: ProgramBuilder) -> None:
    """Emit a copy of more than there is."""
    x, y = call.input(0), call.output()
    source, target = builder.tensor(x.index), builder.tensor(y.index)
    builder.emit(COPY, source=source, target=target, bytes=y.bytes + 4)


def test_a_wrong_lowering_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPERATORS, "ABS", replace(OPERATORS["ABS"], lower=wrong))
    model = one_op_model("ABS", [tensor((5,))], [tensor((5,))])
    interpreter = delegated(model)
    message = r"node 0 \(ABS\): 'copy' reads bytes 0 to 24 of tensor 0 '\w+' by 'source'; it has 20"
    with pytest.raises(DelegateError, match=message):
        interpreter.allocate_tensors()


def emit(instruction: Instruction, **words: Any) -> None:
    library: Any = SimpleNamespace(level=supported_levels()[0])
    context: Any = SimpleNamespace(tensors=[])
    ProgramBuilder(context, library, 2, True, {}).emit(instruction, 1, **words)


def test_rows_do_not_write_to_constants() -> None:
    constant = Memory(64, 4096, array=np.zeros(64, np.uint8))
    with pytest.raises(DelegateError, match=r"a row of no node: 'copy' writes to .* a constant"):
        emit(COPY, source=Memory(64), target=constant, bytes=64)


def test_rows_do_not_write_to_inputs() -> None:
    given = Memory(64, is_read_only=True)
    with pytest.raises(DelegateError, match=r"'copy' writes to .* an input"):
        emit(COPY, source=Memory(64), target=given, bytes=64)


def test_words_are_addresses_where_kernels_take_them_for_addresses_only() -> None:
    with pytest.raises(DelegateError, match="the word 'source' is 4096, not an address"):
        emit(COPY, source=4096, target=Memory(64), bytes=0)
    with pytest.raises(DelegateError, match="the word 'bytes' is an address, not a number"):
        emit(COPY, source=Memory(64), target=Memory(64), bytes=Memory(64))


NO_NEST = {"rows": 3, "unit": 3, "grain": 0}
"""Words of a nest that its loops do not allow."""


@pytest.mark.parametrize("name", NO_NEST)
def test_a_nest_moves_the_elements_of_its_loops_only(name: str) -> None:
    loops = np.array([[2, 32, 32], [4, 4, 4]], np.int64)
    words = {
        "source": Memory(64), "target": Memory(64), "loops": constant(loops), "depth": 2,
        "rows": 2, "grain": 1, "unit": 4,
    }  # fmt: skip
    emit(NEST, **words)
    with pytest.raises(DelegateError, match=r"'nest': (rows are|elements have|tiles have)"):
        emit(NEST, **words | {name: NO_NEST[name]})


def test_a_nest_does_not_move_one_element_again_and_again() -> None:
    loops = constant(np.array([[MANY, 0, 0], [4, 4, 4]], np.int64))
    words = {"source": Memory(64), "target": Memory(64), "loops": loops, "depth": 2, "rows": MANY}
    with pytest.raises(DelegateError, match="'nest': 8589934588 steps of its loops touch 176"):
        emit(NEST, **words, grain=1, unit=4)


@pytest.mark.parametrize(
    ("operation", "layout", "what"),
    [
        (len(elementwise.OPERATIONS), 0, "operation 89 exists"),
        (-1, 0, "operation -1 exists"),
        (elementwise.Operation.ABS, 3, "a source has a layout"),
        (elementwise.Operation.ABS, -1, "a source has a layout"),
        (elementwise.Operation.LOOKUP, 0, "LOOKUP reads 1 bytes an element of 4"),
    ],
)
def test_chains_have_known_operations_and_layouts(operation: int, layout: int, what: str) -> None:
    step = np.zeros(elementwise.STEP_WORDS + 40, np.int64)  # and a table of 256 bytes
    step[[elementwise.Step.OPERATION, elementwise.Step.TARGET]] = operation, 1
    record = np.zeros(elementwise.RECORD_WORDS, np.int64)
    record[[elementwise.Record.LAYOUT, elementwise.Record.ITEMSIZE]] = layout, 4
    words: dict[str, Any] = dict.fromkeys(elementwise.CHAIN.names, 1)
    places = ("scratch", "source", "target")
    words |= {name: Memory(64) for name in words if name.startswith(places)}
    words |= {"steps": constant(step), "records": constant(record), "source_count": 1}
    words |= {"scratch_bytes": 64, "target_itemsize": 4}
    with pytest.raises(DelegateError, match=what):
        emit(elementwise.CHAIN, **words)


def test_a_kind_without_a_rule_is_refused() -> None:
    with pytest.raises(DelegateError, match="'new': no rule says what it touches"):
        emit(Instruction("new", "family", "source"), source=Memory(64))


def test_a_rule_that_forgets_an_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rules.RULES, ("moves", "copy"), lambda row: row.read("source", 8))
    with pytest.raises(DelegateError, match=r"no rule for the addresses \['target'\]"):
        emit(COPY, source=Memory(64), target=Memory(64), bytes=64)


def test_reads_may_go_on_into_the_room_after_memory_of_the_programs_own() -> None:
    emit(COPY, source=Memory(64), target=Memory(64 + SLACK), bytes=64 + SLACK)
    with pytest.raises(DelegateError, match="reads bytes 0 to"):
        emit(COPY, source=Memory(64), target=Memory(128 + SLACK), bytes=65 + SLACK)
