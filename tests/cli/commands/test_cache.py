"""``delegraph cache``: list, clear and warm."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delegraph.delegation.blob_cache import BlobCache
from delegraph.delegation.configuration import cache_folder
from delegraph.delegation.placement import Placement
from delegraph.testing import command
from delegraph.tools import cache_versions, cache_warming
from delegraph.tools.setup import Setup
from support.command import Command, Refused, Terminal
from support.fake_distributions import write_plugin


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fill() -> None:
    BlobCache("mine", "1.0").put("a", bytes(3000))
    BlobCache("mine", "1.0").put("b", bytes(2000))
    BlobCache("other", "2.0-cpu").put("a", bytes(10))


def test_an_empty_cache_says_where_it_is(delegraph: Command, folder: Path) -> None:
    assert delegraph("cache", "list").out.strip() == f"{folder} is not there yet"
    folder.mkdir(mode=0o700)
    assert delegraph("cache", "list").out.strip() == f"{folder} is empty"


def test_list_has_a_row_for_each_cache_and_json_one_for_each_version(
    delegraph: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_versions, "current_versions", dict)  # delegates may keep digests
    fill()
    BlobCache("mine", "2.0").put("a", bytes(1000))
    lines = delegraph("cache", "list").lines
    assert lines[0] == str(folder)
    assert lines[1] == "cache versions files size stale last used"
    assert any(line.startswith("mine 2 3 6.0 kB unknown 20") for line in lines)
    assert any(line.startswith("other 1 1 10 B unknown 20") for line in lines)
    assert any(line.startswith("all 3 4 6.0 kB unknown 20") for line in lines)
    assert any(line.startswith("at most 4.0 GB are kept") for line in lines)
    answer = delegraph("cache", "list", "--json").json
    found = {(e["cache"], e["version"], e["files"], e["bytes"]) for e in answer["entries"]}
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
    ).out.splitlines()[2]
    assert re.search(r"numba_cpu-programs .* \d{4}-\d\d-\d\d \d\d:\d\d$", row)


def test_the_list_says_how_to_keep_more(delegraph: Command) -> None:
    fill()
    assert "cache.size = '8GB' in delegraph.toml changes that" in " ".join(
        delegraph("cache", "list").lines
    )


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
    delegraph: Command, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill()
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    err = refused("cache", "clear", code=1)
    assert "nothing is removed" in err
    assert "Remove all 3 files, 5.0 kB? [y/N]" in err
    assert delegraph("cache", "clear", "--yes").out.strip() == "removed 3 files, 5.0 kB"


def test_clear_removes_all_caches_of_a_delegate(delegraph: Command) -> None:
    fill()
    BlobCache("mine-sources", "1.0").put("a", bytes(10))
    BlobCache("mine2", "1.0").put("a", bytes(10))
    assert delegraph("cache", "clear", "mine").out.strip() == "removed 3 files, 5.0 kB"
    left = delegraph("cache", "list", "--json").json["entries"]
    assert {entry["cache"] for entry in left} == {"mine2", "other"}


STALE = """
from delegraph import DelegateSpec, hookimpl

@hookimpl
def delegraph_delegates():
    versions = lambda: {"mine": ["2.0"]}
    return [DelegateSpec("mine", "", lambda: object, cache_versions=versions)]
"""


def test_versions_that_no_delegate_uses_are_stale(
    fresh_delegraph: Command, folder: Path, tmp_path: Path
) -> None:
    fill()
    BlobCache("mine", "2.0").put("a", bytes(1000))
    write_plugin(tmp_path / "site", "mine", STALE)
    environment = {"DELEGRAPH_PLUGINS": "mine", "DELEGRAPH_CACHE": str(folder)}
    listed = fresh_delegraph("cache", "list", **environment)
    assert any(line.startswith("mine 2 3 6.0 kB 5.0 kB ") for line in listed.lines)
    assert any(line.startswith("other 1 1 10 B unknown ") for line in listed.lines)
    assert any(line.startswith("all 3 4 6.0 kB 5.0 kB+ ") for line in listed.lines)
    told = "unknown, +: nothing installed here tells which versions of a cache are in use"
    assert told in listed.lines
    assert listed.lines[-1].startswith("stale: 2 files, 5.0 kB, of versions not in use")
    answer = fresh_delegraph("cache", "list", "--json", **environment).json
    assert answer["limit"] == 4_000_000_000
    found = {(e["cache"], e["version"]): e["is_current"] for e in answer["entries"]}
    assert found == {("mine", "1.0"): False, ("mine", "2.0"): True, ("other", "2.0-cpu"): None}
    assert answer["stale_bytes"] == 5000
    assert fresh_delegraph("cache", "clear", "--stale", **environment).out.startswith(
        "removed 2 files, 5.0 kB"
    )


def test_clear_removes_what_has_not_been_used_for_some_days(delegraph: Command) -> None:
    fill()
    old = BlobCache("mine", "1.0").get("a")
    assert old is not None
    os.utime(old, (0, 0))
    assert delegraph("cache", "clear", "--older-than", "2").out == "removed 1 file, 3.0 kB\n"
    assert delegraph("cache", "clear", "--older-than", "2").out == "removed 0 files, 0 B\n"


def test_clear_of_an_unknown_delegate_is_a_mistake(refused: Refused) -> None:
    fill()
    assert "nothing of 'mien' is kept (did you mean 'mine'?)" in refused("cache", "clear", "mien")
    BlobCache("numba_cpu-programs", "1").put("a", bytes(10))
    err = refused("cache", "clear", "numba")
    assert "nothing of 'numba' is kept (did you mean 'numba_cpu'?)" in err


MODEL = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"

KEEPING = """
from support.by_name import ByName

class Keeping(ByName):
    def initialize(self, context):
        context.cache("keeping", "1").get_or_make("key", lambda: b"compiled")

delegate = Keeping()
"""


@pytest.fixture
def warmed(delegraph: Command, tmp_path: Path) -> Callable[..., Any]:
    """Warm a model for a delegate that keeps a file; return the model's part of the answer."""

    def warm(*words: object, model: Path = MODEL, source: str = KEEPING) -> Any:
        (tmp_path / "keeping.py").write_text(source)
        delegate = ("--delegate-file", tmp_path / "keeping.py")
        (answer,) = delegraph("cache", "warm", model, *delegate, *words, "--json").json["models"]
        return answer

    return warm


def test_warm_lets_delegates_keep_what_they_compile(
    delegraph: Command, warmed: Callable[..., Any], tmp_path: Path
) -> None:
    model = warmed()
    assert (model["model"], model["new_files"], model["new_bytes"]) == (str(MODEL), 1, 8)
    assert model["state"] == "filled"
    words = ("--delegate-file", tmp_path / "keeping.py", "--threads", "1")
    again = delegraph("cache", "warm", MODEL, *words).lines
    assert any(" warm already 0 0 B " in line for line in again)


def test_warm_says_why_a_model_keeps_nothing(delegraph: Command) -> None:
    ran = delegraph("cache", "warm", str(MODEL), "-d", "none")
    assert any(" keeps nothing 0 0 B " in line for line in ran.lines)
    assert "no delegate keeps anything: 15 nodes: 15 stay with Delegraph's kernels" in " ".join(
        ran.out.split()
    )
    batches = delegraph("cache", "warm", str(MODEL), "-d", "none", "--max-batch-size", "2")
    assert "no delegate keeps anything: 15 nodes: 15 stay" in " ".join(batches.out.split())


def test_warm_shows_the_placement_if_a_named_delegate_takes_no_node(delegraph: Command) -> None:
    words = ("cache", "warm", MODEL, "-d", "sin")
    answer = delegraph(*words, "--json").json
    assert answer["folder"] == str(cache_folder())
    assert answer["models"][0]["delegates_without_nodes"] == ["sin"]
    assert "digits_int8.tflite: 15 nodes: sin takes none, " in " ".join(
        delegraph(*words).out.split()
    )


def test_warm_prepares_the_batches_of_a_server(warmed: Callable[..., Any]) -> None:
    source = KEEPING.replace('"key"', "str(context.tensors[0].shape)")
    model = warmed("--max-batch-size", "6", source=source)
    assert model["new_files"] == 4  # batches of 1, 2, 4 and 6 rows


def test_warm_prepares_each_signature(warmed: Callable[..., Any]) -> None:
    model = warmed("--max-batch-size", "2", model=MODEL.with_name("language_model.tflite"))
    assert model["new_files"] == 1


def test_warm_without_a_cache_that_can_be_written_is_an_error(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    monkeypatch.setenv("DELEGRAPH_CACHE", str(file / "cache"))
    assert "error: the cache cannot be used: " in refused("cache", "warm", str(MODEL))


def test_warm_counts_no_files_of_other_processes(
    warmed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = cache_warming.allocate

    def beside_another(setup: Setup) -> Placement:
        placement = prepare(setup)
        code = "from delegraph.delegation import BlobCache; BlobCache('other', '1').put('a', b'')"
        own = {name: text for name, text in os.environ.items() if not name.startswith("_DELEGRAPH")}
        subprocess.run([sys.executable, "-c", code], check=True, env=own)
        return placement

    monkeypatch.setattr(cache_warming, "allocate", beside_another)
    model = warmed()
    assert (model["new_files"], model["used_files"]) == (1, 0)


def test_warm_counts_files_of_its_child_processes(warmed: Callable[..., Any]) -> None:
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', CODE], check=True)"
    code = "from delegraph.delegation import BlobCache; BlobCache('other', '1').put('a', b'')"
    source = KEEPING.replace("context.cache", f"CODE = {code!r}; {child}; context.cache")
    assert warmed(source=source)["new_files"] == 2


def test_warm_names_each_model_by_its_whole_file_name(
    delegraph: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "WIDTH", 80)
    folder = tmp_path / "in_a_folder_with_a_long_name_of_its_own"
    name = "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite"
    paths = [folder / name, *(folder / place / "model.tflite" for place in "ab")]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(MODEL.read_bytes())
    lines = delegraph("cache", "warm", *paths).lines
    shown = [line.split()[0] for line in lines if ".tflite" in line]
    assert shown[0].endswith(f"wn/{name}")
    assert "..." in shown[0]
    assert shown[1].endswith("a/model.tflite")
    assert shown[2].endswith("b/model.tflite")


def test_a_model_that_cannot_be_warmed_leaves_the_others_result(
    delegraph: Command, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes(MODEL.read_bytes()[:1000])
    ran = delegraph("cache", "warm", str(MODEL), str(damaged))
    assert ran.code == 1
    assert any(line.split()[0].endswith(MODEL.name) for line in ran.lines[1:])
    assert "error: damaged.tflite: The model is not a valid Flatbuffer" in ran.err.replace(
        f"{tmp_path}/", ""
    )
    answer = delegraph("cache", "warm", str(MODEL), str(damaged), "--json").json
    assert [bool(each["error"]) for each in answer["models"]] == [False, True]
