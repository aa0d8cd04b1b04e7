"""Compiled partitions on disk: found again, made once, checked, bounded."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from delegraph.delegation import blob_cache, cache_files
from delegraph.delegation import cache_entries as entries_module
from delegraph.delegation.blob_cache import BlobCache
from delegraph.delegation.cache_entries import DAY, SIZES, CacheEntry, cache_entries, remove_entry
from delegraph.errors import ArgumentError, DelegateError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(blob_cache, "warned_of", set())
    blob_cache.own_folder.cache_clear()
    return tmp_path / "cache"


def never() -> bytes:
    raise AssertionError("it is in the cache")


def test_what_was_made_is_found_again(folder: Path) -> None:
    path = BlobCache("mine", "1.0", folder).get_or_make("key", lambda: b"compiled")
    assert path.read_bytes() == b"compiled"
    again = BlobCache("mine", "1.0", folder).get_or_make("key", never)
    assert again == path


def test_pieces_are_kept_as_a_whole(folder: Path) -> None:
    cache = BlobCache("mine", "1", folder)
    assert cache.keep("key", [memoryview(b"one"), memoryview(b""), memoryview(b"two")])
    assert cache.read("key") == b"onetwo"


@pytest.mark.parametrize(("name", "version"), [("mine", "1.1"), ("other", "1.0")])
def test_another_version_or_delegate_has_entries_of_its_own(
    folder: Path, name: str, version: str
) -> None:
    BlobCache("mine", "1.0", folder).put("key", b"old")
    found = BlobCache(name, version, folder).get_or_make("key", lambda: b"new")
    assert found.read_bytes() == b"new"


def test_what_is_read_whole_is_found_again(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder)
    assert cache.read("key") is None
    assert cache.read_or_make("key", lambda: b"compiled") == b"compiled"
    assert cache.read_or_make("key", never) == cache.read("key") == b"compiled"
    assert [entry.path.parents[1] for entry in cache.entries()] == [cache.folder]
    assert BlobCache("mine", "1.1", folder).entries() == []


def test_a_file_moved_from_another_version_fits_no_key(folder: Path) -> None:
    path = BlobCache("mine", "1.0", folder).put("key", b"compiled")
    other = BlobCache("mine", "1.1", folder)
    place = other.put("another key", b"x").parent.with_name(path.parent.name)
    place.mkdir(exist_ok=True)
    path.rename(place / path.name)
    assert other.read("key") is None


def test_the_variable_says_where(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELEGRAPH_CACHE", str(folder))
    assert BlobCache("mine", "1.0").put("key", b"x").is_relative_to(folder)


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "a b", "-x", "x" * 101, "a\n"])
def test_names_that_would_lead_elsewhere_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(ArgumentError, match="the namespace of a cache is"):
        BlobCache(name, "1.0", folder)
    with pytest.raises(ArgumentError, match="the version of a cache is"):
        BlobCache("mine", name, folder)


@pytest.mark.parametrize("damage", [b"", b"compilex", b"compiled and more"])
def test_a_damaged_entry_is_made_again(
    folder: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    cache = BlobCache("mine", "1.0", folder)
    path = cache.put("key", b"compiled")
    path.write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        assert cache.get_or_make("key", lambda: b"compiled").read_bytes() == b"compiled"
    assert "is damaged; it is made again" in caplog.text


def test_what_fails_to_be_made_is_not_kept(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder)

    def fail() -> bytes:
        raise ValueError("no licence")

    with pytest.raises(ValueError, match="no licence"):
        cache.get_or_make("key", fail)
    assert cache.get("key") is None
    with pytest.raises(DelegateError, match="is str, not bytes"):
        cache.get_or_make("key", lambda: "text")  # type: ignore[arg-type, return-value]


# -- who may write ---------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="access rights of POSIX")
def test_what_others_may_write_is_not_used(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = BlobCache("mine", "1.0", folder)
    path = cache.put("key", b"compiled")
    path.chmod(0o666)
    with caplog.at_level(logging.WARNING):
        found = cache.get_or_make("key", lambda: b"made anew")
    assert found.read_bytes() == b"made anew"
    assert "may be written by others" in caplog.text


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="access rights of POSIX")
def test_a_folder_of_others_is_replaced_by_one_of_this_process(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    cache = BlobCache("mine", "1.0", folder)
    with caplog.at_level(logging.WARNING):
        path = cache.get_or_make("key", lambda: b"compiled")
        assert cache.get_or_make("key", never) == path
    assert not path.is_relative_to(folder)
    assert caplog.text.count("the cache cannot be used") == 1


def test_a_full_disk_costs_the_cache_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write = cache_files.replace_file

    def full(path: Path, content: bytes) -> None:
        if Path(path).is_relative_to(folder):
            raise OSError(28, "No space left on device", str(path))
        write(path, content)

    monkeypatch.setattr(cache_files, "replace_file", full)
    cache = BlobCache("mine", "1.0", folder)
    with caplog.at_level(logging.WARNING):
        path = cache.get_or_make("key", lambda: b"compiled")
    assert path.read_bytes() == b"compiled"
    assert cache.get_or_make("key", never) == path
    assert "No space left on device" in caplog.text
    assert not list(folder.rglob("*.blob*"))


@pytest.fixture
def full_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(cache_files, "replace_file", full)


@pytest.mark.usefixtures("full_disks")
def test_no_room_anywhere_is_an_error_that_says_so(folder: Path) -> None:
    with pytest.raises(DelegateError, match=r"8 bytes, can be written neither.*No space left"):
        BlobCache("mine", "1.0", folder).get_or_make("key", lambda: b"compiled")


@pytest.mark.usefixtures("full_disks")
def test_what_is_read_whole_needs_no_room(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = BlobCache("mine", "1.0", folder).read_or_make("key", lambda: b"compiled")
    assert made == b"compiled"
    assert caplog.text.count("No space left on device") == 1


# -- bounds ----------------------------------------------------------------------------------------


def test_the_entries_used_longest_ago_leave_first(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder, limit=250)
    paths = [cache.put(f"key {i}", bytes([i]) * 100) for i in range(2)]
    for age, path in zip((100, 200), paths, strict=True):
        os.utime(path, (time.time() - age,) * 2)
    cache.put("key 2", bytes([2]) * 100)
    assert [path.exists() for path in paths] == [True, False]


def test_using_an_entry_keeps_it(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder, limit=250)
    paths = [cache.put(f"key {i}", bytes([i]) * 100) for i in range(2)]
    for path in paths:
        os.utime(path, (time.time() - 100,) * 2)
    cache.get_or_make("key 0", never)
    cache.put("key 2", bytes([2]) * 100)
    assert [path.exists() for path in paths] == [True, False]


def test_an_entry_larger_than_all_is_kept_alone(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder, limit=250)
    small = cache.put("small", b"x")
    assert cache.put("large", b"x" * 1000).exists()
    assert not small.exists()


def test_files_of_others_stay(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder, limit=1)
    own = cache.put("key", b"compiled").parent / "notes.blob"
    own.write_bytes(b"x" * 100)
    cache.put("other", b"compiled")
    assert own.exists()


def test_half_written_files_leave_after_a_day(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder)
    path = cache.put("key", b"compiled")
    old, new = (path.with_name(f"{path.name}.{name}.unfinished") for name in ("old", "new"))
    for half, age in ((old, 2), (new, 0)):
        half.write_bytes(b"com")
        os.utime(half, (time.time() - age * DAY,) * 2)
    (folder / SIZES).unlink()  # as after a day
    cache.put("other", b"x")
    assert (old.exists(), new.exists()) == (False, True)


def test_entries_are_listed_and_removed(folder: Path) -> None:
    assert cache_entries(folder) == []
    path = BlobCache("mine", "1.0", folder).put("key", b"compiled")
    (entry,) = cache_entries(folder)
    assert (entry.namespace, entry.version, entry.path, entry.size) == ("mine", "1.0", path, 8)
    remove_entry(entry)
    remove_entry(entry)
    assert cache_entries(folder) == []
    assert not (folder / "mine").exists()


def test_a_look_up_lists_one_shard(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = BlobCache("mine", "1.0", folder)
    paths = {key: cache.put(key, b"compiled") for key in map(str, range(20))}
    listed: list[str] = []
    listdir = os.listdir

    def listing(place: str) -> list[str]:
        listed.append(place)
        return listdir(place)

    monkeypatch.setattr(os, "listdir", listing)
    for key, path in paths.items():
        assert cache.get(key) == path
        assert bytes(cache.map(key) or b"") == b"compiled"
    assert listed == [str(path.parent) for path in paths.values() for _ in range(2)]
    assert len(set(listed)) > 10


def test_entries_outside_of_shards_leave_after_a_day(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder)
    path = cache.put("key", b"compiled")
    old, new = (path.parents[1] / f"{digit * 32}-{digit * 64}.blob" for digit in "01")
    for outside, age in ((old, 2), (new, 0)):
        outside.write_bytes(b"compiled")
        os.utime(outside, (time.time() - age * DAY,) * 2)
    (folder / SIZES).unlink()  # as after a day
    cache.put("other", b"x")
    assert (old.exists(), new.exists()) == (False, True)


# -- several processes -----------------------------------------------------------------------------

MAKER = """
import sys, time
from pathlib import Path
from delegraph.delegation.blob_cache import BlobCache

folder, made = map(Path, sys.argv[1:])
def make():
    with open(made, "a") as file:
        file.write("x")
    time.sleep(0.5)
    return b"compiled"
path = BlobCache("mine", "1.0", folder).get_or_make("key", make)
assert path.read_bytes() == b"compiled"
"""


def test_processes_that_start_at_once_make_it_once(folder: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    words: list[Any] = [sys.executable, "-c", MAKER, folder, made]
    running = [subprocess.Popen(words) for _ in range(4)]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    assert made.read_text() == "x"


KILLED = MAKER.replace("time.sleep(0.5)", "import os; os.kill(os.getpid(), 9)")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_maker_that_is_killed_holds_nobody_up(folder: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    words: list[Any] = [sys.executable, "-c", KILLED, folder, made]
    assert subprocess.run(words, check=False).returncode == -9
    assert BlobCache("mine", "1.0", folder).get_or_make("key", lambda: b"again").exists()


def test_a_key_may_be_any_text(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder)
    keys = ["", "../..", "a" * 10_000, json.dumps({"device": "CPU"}), "\N{SNOWMAN}"]
    for key in keys:
        cache.put(key, key.encode())
    assert [cache.get_or_make(key, never).read_bytes() for key in keys] == [
        key.encode() for key in keys
    ]


def test_what_is_mapped_is_read_only_and_outlives_its_file(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder)
    assert cache.map("key") is None
    assert cache.keep("key", b"compiled")
    content = cache.map("key")
    assert content is not None
    cache.entries()[0].path.unlink()
    assert content.readonly
    assert bytes(content) == b"compiled"


def test_what_is_kept_takes_the_place_of_a_damaged_file(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder)
    cache.put("key", b"damaged")
    assert cache.keep("key", b"sound")
    assert len(cache.entries()) == 1
    assert cache.read("key") == b"sound"


def test_mapped_content_may_bring_its_own_digest(folder: Path) -> None:
    cache = BlobCache("mine", "1.0", folder)
    assert cache.keep("key", b"compiled", "0123456789abcdef" * 4)
    content = cache.map("key")
    assert content is not None
    assert bytes(content) == b"compiled"
    assert cache.read("key") is None  # a reader of the whole content compares its SHA-256


def test_what_cannot_be_kept_is_said_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.write_bytes(b"")  # no folder
    cache = BlobCache("mine", "1.0", folder)
    assert cache.map("key") is None
    assert not cache.keep("key", b"compiled")
    assert caplog.text.count("cannot be used") == 1


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One item for each time that the cache's entries were counted."""
    found: list[object] = []
    count = entries_module.cache_entries

    def counting(place: Path) -> list[CacheEntry]:
        found.append(place)
        return count(place)

    monkeypatch.setattr(entries_module, "cache_entries", counting)
    return found


def test_many_new_entries_read_the_folder_once(folder: Path, counts: list[object]) -> None:
    """A process that keeps hundreds of entries would read thousands of files for each."""
    for number in range(5):
        assert BlobCache("d", "1", folder).keep(str(number), b"content")
    assert len(counts) == 1


@pytest.mark.parametrize("content", [None, b"", b"7", b"7\n8\n", b"%d\nx\n", b"%d\n-9\n"])
def test_entries_are_counted_where_no_sound_sum_is_known(
    folder: Path, counts: list[object], content: bytes | None
) -> None:
    cache = BlobCache("d", "1", folder)
    cache.put("first", b"content")
    if content is None:
        (folder / SIZES).unlink()
    else:
        (folder / SIZES).write_bytes(content.replace(b"%d", b"%d" % time.time()))
    cache.put("second", b"content")
    cache.put("third", b"content")
    assert len(counts) == 2


def test_a_long_list_of_sizes_is_counted_again(folder: Path, counts: list[object]) -> None:
    cache = BlobCache("d", "1", folder)
    cache.put("first", b"content")
    with (folder / SIZES).open("ab") as file:
        file.write(b"1\n" * 2100)
    cache.put("second", b"content")
    assert len(counts) == 2
    assert (folder / SIZES).read_bytes().split()[1:] == [b"14"]
