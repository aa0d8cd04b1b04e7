"""Nodes that were checked in an earlier process are not checked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from delegraph import DelegateFlags, Interpreter
from delegraph.delegation.blob_cache import BlobCache
from delegraph.operators.op_table import OP_TABLE
from delegraph.runtime.delegates import checked_nodes, kept_findings
from delegraph.runtime.delegates.node_facts import Findings
from support.by_name import ByName

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"


class Dynamic(ByName):
    """Needs no shapes when it is asked, so nodes are checked before they are prepared."""

    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Findings]:
    """Return the findings of all checks from now on."""
    found: list[Findings] = []
    check = checked_nodes.check_nodes

    def noted(*args: object, **options: object) -> Findings:
        found.append(check(*args, **options))  # type: ignore[arg-type]  # as they are given
        return found[-1]

    monkeypatch.setattr(checked_nodes, "check_nodes", noted)
    return found


def made(folder: Path, shape: Sequence[int] = (1, 8, 8, 1)) -> Interpreter:
    interpreter = Interpreter(DIGITS, delegates=[], cache_dir=folder)
    interpreter.resize_tensor_input(0, shape)
    interpreter.modify_graph_with_delegate(Dynamic("ABS"))
    return interpreter


def entries(folder: Path) -> list[Path]:
    return [entry.path for entry in BlobCache(kept_findings.NAMESPACE, "1", folder).entries()]


def test_a_second_interpreter_knows_what_the_first_has_found(
    tmp_path: Path, checks: list[Findings]
) -> None:
    first, second = made(tmp_path), made(tmp_path)
    assert len(checks) == 1
    assert second.session.subgraphs[0].findings == first.session.subgraphs[0].findings == checks[0]
    assert checks[0].known


def test_other_shapes_and_other_code_are_checked_by_themselves(
    tmp_path: Path, checks: list[Findings], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        made(tmp_path, [2, 8, 8, 1])
        made(tmp_path)
    assert len(checks) == len(entries(tmp_path)) == 2
    monkeypatch.setattr(kept_findings, "code_state", lambda *folders: "another version")
    made(tmp_path)
    assert len(checks) == 3


def test_errors_come_from_the_kernels_each_time(tmp_path: Path, checks: list[Findings]) -> None:
    for _ in range(2):
        made(tmp_path, [1, 8, 8, 3])
    texts = [str(error) for findings in checks for error in findings.errors.values()]
    assert len(texts) == 2
    assert "16 filters do not divide into 3 groups" in texts[1]
    assert entries(tmp_path) == []


def test_kernels_of_users_are_asked_each_time(
    tmp_path: Path, checks: list[Findings], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = OP_TABLE["CONV_2D"]
    other = replace(own, prepare=lambda context, node: own.prepare(context, node))
    monkeypatch.setitem(OP_TABLE.entered, "CONV_2D", other)
    for _ in range(2):
        made(tmp_path)
    assert len(checks) == 2
    assert entries(tmp_path) == []


@pytest.mark.parametrize("damage", [b"", b"\1", np.array([0, 99, 1, 0], "<i8").tobytes()])
def test_a_file_that_does_not_fit_is_made_again(
    tmp_path: Path, checks: list[Findings], damage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(kept_findings, "written", lambda findings: damage)
        made(tmp_path)
    for _ in range(2):
        made(tmp_path)
    assert len(checks) == 2
