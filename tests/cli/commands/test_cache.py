"""``delegraph cache``: list, clear and warm."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from pathlib import Path

import pytest

from delegraph.delegation.blob_cache import BlobCache
from support.command import Command


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def fill() -> None:
    BlobCache("mine", "1.0").put("a", bytes(3000))
    BlobCache("mine", "1.0").put("b", bytes(2000))
    BlobCache("other", "2.0-cpu").put("a", bytes(10))


def test_an_empty_cache_says_where_it_is(delegraph: Command, folder: Path) -> None:
    assert delegraph("cache", "list").out.strip() == f"{folder} is not there yet"
    folder.mkdir(mode=0o700)
    assert delegraph("cache", "list").out.strip() == f"{folder} is empty"


def test_list_has_a_row_for_each_cache_and_json_one_for_each_version(
    delegraph: Command, folder: Path
) -> None:
    fill()
    BlobCache("mine", "2.0").put("a", bytes(1000))
    lines = delegraph("cache", "list").lines
    assert lines[0] == str(folder)
    assert lines[1] == "cache versions files size last used"
    assert any(line.startswith("mine 2 3 6.0 kB 20") for line in lines)
    assert any(line.startswith("other 1 1 10 B 20") for line in lines)
    assert lines[-1].startswith("all 3 4 6.0 kB 20")
    answer = delegraph("cache", "list", "--json").json
    found = {(e["delegate"], e["version"], e["files"], e["bytes"]) for e in answer["entries"]}
    assert found == {
        ("mine", "1.0", 2, 5000),
        ("mine", "2.0", 1, 1000),
        ("other", "2.0-cpu", 1, 10),
    }


def test_names_and_dates_of_the_list_are_whole_in_a_narrow_terminal(
    fresh_delegraph: Command, folder: Path
) -> None:
    BlobCache("numba_cpu-programs", "8e8cc3c9f2333085-6a0252ad").put("a", bytes(10))
    row = fresh_delegraph(
        "cache", "list", COLUMNS="60", DELEGRAPH_CACHE=str(folder)
    ).out.splitlines()[-1]
    assert re.search(r"numba_cpu-programs .* \d{4}-\d\d-\d\d \d\d:\d\d$", row)


def test_clear_removes_what_is_named_or_all(delegraph: Command) -> None:
    fill()
    assert delegraph("cache", "clear", "mine").out.strip() == "removed 2 files, 5.0 kB"
    assert delegraph("cache", "clear", "--json").json == {"files": 1, "bytes": 10}
    assert delegraph("cache", "clear").out.strip() == "removed 0 files, 0 B"


@pytest.mark.parametrize("words", [("list",), ("clear",), ("list", "--json")])
def test_a_cache_that_may_not_be_read_is_named(
    delegraph: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def refuses(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "scandir", refuses)
    ran = delegraph("cache", *words)
    monkeypatch.undo()
    assert ran.code == 2
    told = f"the cache cannot be used: {folder}: Permission denied; DELEGRAPH_CACHE=FOLDER names"
    assert f"error: {told}" in ran.err


def test_a_terminal_is_asked_before_all_is_removed(
    delegraph: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill()
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    ran = delegraph("cache", "clear")
    assert (ran.code, ran.out) == (130, "")
    assert "Remove all 3 files, 5.0 kB? [y/N]" in ran.err
    assert delegraph("cache", "clear", "--yes").out.strip() == "removed 3 files, 5.0 kB"


def test_clear_removes_all_caches_of_a_delegate(delegraph: Command) -> None:
    fill()
    BlobCache("mine-sources", "1.0").put("a", bytes(10))
    BlobCache("mine2", "1.0").put("a", bytes(10))
    assert delegraph("cache", "clear", "mine").out.strip() == "removed 3 files, 5.0 kB"
    left = delegraph("cache", "list", "--json").json["entries"]
    assert {entry["delegate"] for entry in left} == {"mine2", "other"}


def test_clear_of_an_unknown_delegate_is_a_mistake(delegraph: Command) -> None:
    fill()
    ran = delegraph("cache", "clear", "mien")
    assert ran.code == 2
    assert "nothing of 'mien' is kept (did you mean 'mine'?)" in ran.err


MODEL = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"

KEEPING = """
from delegraph import SimpleDelegateInterface

class Keeping(SimpleDelegateInterface):
    def name(self):
        return "keeping"

    def initialize(self, context):
        context.cache("keeping", "1").get_or_make("key", lambda: b"compiled")

    def is_node_supported_by_delegate(self, registration, node, context):
        return False

    def create_delegate_kernel_interface(self):
        raise NotImplementedError
"""


def test_warm_lets_delegates_keep_what_they_compile(
    delegraph: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping = tmp_path / "keeping.py"
    keeping.write_text(KEEPING)
    first = delegraph("cache", "warm", str(MODEL), "--delegate-file", str(keeping), "--json").json
    (model,) = first["models"]
    assert (model["model"], model["new_files"], model["new_bytes"]) == (str(MODEL), 1, 8)
    again = delegraph(
        "cache", "warm", str(MODEL), "--delegate-file", str(keeping), "--threads", "1"
    ).lines
    assert any(" 0 0 B 1 " in line for line in again)


def test_warm_prepares_the_batches_of_a_server(delegraph: Command, tmp_path: Path) -> None:
    keeping = tmp_path / "keeping.py"
    key = "str(context.tensors[0].shape)"
    keeping.write_text(KEEPING.replace('"key"', key))
    words = ["cache", "warm", str(MODEL), "--delegate-file", str(keeping), "--json"]
    (model,) = delegraph(*words, "--max-batch-size", "6").json["models"]
    assert model["new_files"] == 4  # batches of 1, 2, 4 and 6 rows


def test_warm_prepares_each_signature(delegraph: Command, tmp_path: Path) -> None:
    keeping = tmp_path / "keeping.py"
    keeping.write_text(KEEPING)
    model = str(MODEL.parent / "language_model.tflite")
    words = ["cache", "warm", model, "--delegate-file", str(keeping), "--json"]
    (warmed,) = delegraph(*words, "--max-batch-size", "2").json["models"]
    assert warmed["new_files"] == 1


def test_warm_of_a_missing_model_is_a_mistake(delegraph: Command) -> None:
    assert (
        "File 'missing.tflite' does not exist" in delegraph("cache", "warm", "missing.tflite").err
    )
