"""Which kept files are used, whoever tries to slip in another; and what a disk may do to them."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from platformdirs import PlatformDirs

from delegraph.delegation import cache_files
from delegraph.delegation.cache_files import CacheFolder, user_cache_folder, user_config_folder

if sys.platform == "win32":
    pytest.skip("owners and modes are another matter there", allow_module_level=True)

NOBODY = 65534
NAME = "level/a.kernels"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away and mounts")


@pytest.fixture
def cache(tmp_path: Path) -> CacheFolder:
    """A cache with one file, in two folders of its own."""
    made = CacheFolder(tmp_path / "above" / "cache")
    made.write(NAME, b"kept")
    return made


def places(cache: CacheFolder) -> dict[str, Path]:
    return {
        "file": cache.path / NAME,
        "inner folder": cache.path / "level",
        "cache": cache.path,
        "above": cache.path.parent,
    }


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


# -- reading and writing ---------------------------------------------------------------------------


def test_what_was_written_is_read_and_replaced(cache: CacheFolder) -> None:
    assert cache.read(NAME) == b"kept"
    cache.write(NAME, b"another")
    assert cache.read(NAME) == b"another"
    assert listed(cache.path) == ["a.kernels", "level"]


def test_a_missing_file_or_cache_is_not_found(cache: CacheFolder, tmp_path: Path) -> None:
    for missing in (cache, CacheFolder(tmp_path / "no" / "cache")):
        with pytest.raises(FileNotFoundError):
            missing.read("level/b.kernels")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_is_made_is_written_by_its_owner_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        made = CacheFolder(tmp_path / "above" / "cache")
        made.write(NAME, b"kept")
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE(path.stat().st_mode) for name, path in places(made).items()}
    folder = 0o755 & ~umask
    assert modes == {
        "file": 0o644 & ~umask,
        "inner folder": folder,
        "cache": folder,
        "above": folder,
    }
    assert made.read(NAME) == b"kept"


# -- whose it is -----------------------------------------------------------------------------------


def refused(cache: CacheFolder, reason: str, place: Path) -> None:
    """Check that the file is not read, and why."""
    with pytest.raises(PermissionError, match=reason) as caught:
        cache.read(NAME)
    assert caught.value.filename == str(place)


@pytest.mark.parametrize("what", ["file", "inner folder", "cache", "above"])
@pytest.mark.parametrize("mode", [0o777, 0o702])
def test_what_others_may_write_is_refused(cache: CacheFolder, what: str, mode: int) -> None:
    place = places(cache)[what]
    place.chmod(mode)
    refused(cache, f"may be written by others; 'chmod go-w {place}' ends that", place)
    if what != "file":
        with pytest.raises(PermissionError, match="may be written by others"):
            cache.write(NAME, b"new")
        assert (cache.path / NAME).read_bytes() == b"kept"


@pytest.mark.parametrize("what", ["file", "inner folder", "cache"])
def test_what_a_group_may_write_is_refused(cache: CacheFolder, what: str) -> None:
    places(cache)[what].chmod(0o770)
    refused(cache, "may be written by others", places(cache)[what])


@as_root
@pytest.mark.parametrize("what", ["file", "inner folder", "cache", "above"])
def test_what_another_user_owns_is_refused(cache: CacheFolder, what: str) -> None:
    place = places(cache)[what]
    os.chown(place, NOBODY, -1)
    refused(cache, "belongs to user .*, not to 'root'", place)
    if what != "file":
        with pytest.raises(PermissionError, match="belongs to user"):
            cache.write(NAME, b"new")
        assert (cache.path / NAME).read_bytes() == b"kept"


def test_another_users_folder_is_refused_whoever_this_is(
    cache: CacheFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_lstat, stranger = os.lstat, os.geteuid() + 12345

    def lstat(path: str) -> os.stat_result:
        status = list(true_lstat(path))
        if Path(path) == cache.path:
            status[stat.ST_UID] = stranger
        return os.stat_result(status)

    monkeypatch.setattr(os, "lstat", lstat)
    refused(cache, f"belongs to user {stranger}, not to ", cache.path)


def test_a_file_that_changes_hands_before_it_is_opened_is_refused(
    cache: CacheFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, true_open = cache.path / NAME, cache_files.open_itself

    def change_hands(name: str, flags: int) -> int:
        file.unlink()
        file.write_bytes(b"another's")
        file.chmod(0o666)
        return true_open(name, flags)

    monkeypatch.setattr(cache_files, "open_itself", change_hands)
    refused(cache, "may be written by others", file)


READ = """
import os, sys
from pathlib import Path
from delegraph.delegation.cache_files import CacheFolder
os.setgroups([])
os.setgid(int(sys.argv[3]))
os.setuid(int(sys.argv[3]))
try:
    print(CacheFolder(Path(sys.argv[1])).read(sys.argv[2]).decode())
except PermissionError as error:
    print(error.strerror)
"""


def read_as_nobody(cache: CacheFolder) -> str:
    """What a process of another user reads."""
    command = [sys.executable, "-c", READ, str(cache.path), NAME, str(NOBODY)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def seen_by_all() -> Iterator[CacheFolder]:
    """A cache in a folder that every user may enter."""
    folder = Path("/var/tmp", f"delegraph-test-{os.getpid()}")
    made = CacheFolder(folder / "cache")
    made.write(NAME, b"kept")
    for place in (folder, *places(made).values()):
        place.chmod(0o755)
    yield made
    shutil.rmtree(folder)


@as_root
def test_a_user_uses_the_own_files_and_roots_and_nobody_elses(seen_by_all: CacheFolder) -> None:
    assert read_as_nobody(seen_by_all) == "kept"
    file = seen_by_all.path / NAME
    os.chown(file, NOBODY, NOBODY)
    assert read_as_nobody(seen_by_all) == "kept"
    refused(seen_by_all, "belongs to user", file)
    os.chown(file, NOBODY - 1, NOBODY)
    assert "belongs to user" in read_as_nobody(seen_by_all)


# -- folders above the cache -----------------------------------------------------------------------


def test_only_above_the_cache_may_a_folder_be_like_tmp(cache: CacheFolder) -> None:
    cache.path.parent.chmod(0o1777)
    assert cache.read(NAME) == b"kept"
    cache.path.chmod(0o1777)
    refused(cache, "may be written by others", cache.path)


@as_root
def test_a_group_that_others_are_in_may_not_write_above_the_cache(cache: CacheFolder) -> None:
    cache.path.parent.chmod(0o775)
    assert cache.read(NAME) == b"kept"  # root's group
    os.chown(cache.path.parent, -1, NOBODY)
    refused(cache, "may be written by others", cache.path.parent)


@pytest.mark.parametrize(("members", "is_own"), [([], True), (["me"], True), (["me", "x"], False)])
def test_the_own_group_has_the_users_name_and_no_other_member(
    monkeypatch: pytest.MonkeyPatch, members: list[str], is_own: bool
) -> None:
    import grp
    import pwd

    user = pwd.struct_passwd(("me", "x", 7, 7, "", "/", ""))
    monkeypatch.setattr(pwd, "getpwuid", lambda number: user)
    monkeypatch.setattr(grp, "getgrgid", lambda number: grp.struct_group(("me", "", 7, members)))
    assert cache_files.is_own_group(7) is is_own
    monkeypatch.setattr(grp, "getgrgid", lambda number: grp.struct_group(("all", "", 7, [])))
    assert not cache_files.is_own_group(7)


# -- links -----------------------------------------------------------------------------------------


@pytest.fixture
def linked(cache: CacheFolder, tmp_path: Path) -> CacheFolder:
    """The same cache, by way of two links."""
    (tmp_path / "first").symlink_to(Path("second", "cache"))
    (tmp_path / "second").symlink_to(tmp_path / "above" / ".." / "above")
    return CacheFolder(tmp_path / "first")


def test_own_links_above_the_cache_are_followed(linked: CacheFolder) -> None:
    assert linked.read(NAME) == b"kept"
    linked.write(NAME, b"another")
    assert linked.read(NAME) == b"another"


@as_root
def test_the_link_of_another_user_is_refused(linked: CacheFolder, tmp_path: Path) -> None:
    os.lchown(tmp_path / "second", NOBODY, NOBODY)
    refused(linked, "belongs to user", tmp_path / "second")


def test_a_link_in_a_folder_that_others_may_write_is_refused(
    linked: CacheFolder, tmp_path: Path
) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "cache").symlink_to(tmp_path / "above" / "cache")
    refused(CacheFolder(tmp_path / "open" / "cache"), "may be written", tmp_path / "open")


def test_links_inside_the_cache_are_refused(cache: CacheFolder, tmp_path: Path) -> None:
    (cache.path / "level").rename(tmp_path / "elsewhere")
    (cache.path / "level").symlink_to(tmp_path / "elsewhere")
    refused(cache, "is a symbolic link", cache.path / "level")
    (cache.path / "level").unlink()
    (cache.path / "level").mkdir()
    (cache.path / NAME).symlink_to(tmp_path / "elsewhere" / "a.kernels")
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number tells
        cache.read(NAME)
    assert caught.value.errno == errno.ELOOP


def test_links_in_a_circle_and_to_nowhere_end_in_an_error(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="symbolic links"):
        CacheFolder(tmp_path / "circle").read(NAME)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    nowhere = CacheFolder(tmp_path / "dangling")
    for action in (lambda: nowhere.read(NAME), lambda: nowhere.write(NAME, b"new")):
        with pytest.raises(FileNotFoundError):
            action()
    assert listed(tmp_path) == ["circle", "dangling"]


# -- other things than files and folders -----------------------------------------------------------


def test_a_folder_in_a_files_place_is_an_error(cache: CacheFolder) -> None:
    (cache.path / NAME).unlink()
    (cache.path / NAME).mkdir()
    for action in (lambda: cache.read(NAME), lambda: cache.write(NAME, b"new")):
        with pytest.raises(IsADirectoryError) as caught:
            action()
        assert caught.value.filename == str(cache.path / NAME)
    assert listed(cache.path) == ["a.kernels", "level"]


def test_a_file_in_a_folders_place_is_an_error(cache: CacheFolder) -> None:
    for occupied in (CacheFolder(cache.path / NAME), CacheFolder(cache.path / NAME / "deeper")):
        for action in (lambda c=occupied: c.read("b"), lambda c=occupied: c.write("b", b"new")):
            with pytest.raises(NotADirectoryError):
                action()


def test_a_pipe_is_not_waited_for(cache: CacheFolder) -> None:
    (cache.path / NAME).unlink()
    os.mkfifo(cache.path / NAME, 0o600)
    refused(cache, "is no regular file", cache.path / NAME)


# -- disks -----------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Mount a disk of 64 kB at ``tmp_path / "disk"``, or change how it is mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(*options: str) -> None:
        given = ",".join(("size=64k", "mode=755", *options))
        command = ["mount", "-t", "tmpfs", "-o", given, "tmpfs", str(disk)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("nothing can be mounted here")

    yield mount
    subprocess.run(["umount", str(disk)], capture_output=True, check=False)


@as_root
def test_a_full_disk_is_an_error_and_leaves_the_old_file(
    small_disk: Callable[..., None], tmp_path: Path
) -> None:
    small_disk()
    cache = CacheFolder(tmp_path / "disk" / "cache")
    cache.write(NAME, b"kept")
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number tells
        cache.write(NAME, bytes(100_000))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(cache.path / NAME))
    assert cache.read(NAME) == b"kept"
    assert listed(cache.path) == ["a.kernels", "level"]


@as_root
def test_a_disk_that_is_read_only_is_read(small_disk: Callable[..., None], tmp_path: Path) -> None:
    small_disk()
    cache = CacheFolder(tmp_path / "disk" / "cache")
    cache.write(NAME, b"kept")
    small_disk("remount", "ro")
    with pytest.raises(OSError, match="Read-only"):
        cache.write(NAME, b"new")
    assert cache.read(NAME) == b"kept"


def test_a_limit_on_the_size_of_files_is_an_error(cache: CacheFolder) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            cache.write(NAME, bytes(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert listed(cache.path) == ["a.kernels", "level"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS])
def test_whatever_stops_the_last_step_leaves_nothing_half_written(
    cache: CacheFolder, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number), str(source))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number tells
        cache.write(NAME, b"new")
    assert (caught.value.errno, caught.value.filename) == (number, str(cache.path / NAME))
    assert cache.read(NAME) == b"kept"
    assert listed(cache.path) == ["a.kernels", "level"]


# -- where it is -----------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="caches are elsewhere there")
def test_caches_are_where_the_platform_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert user_cache_folder() == "/caches/delegraph"
    for unset in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert user_cache_folder() == "/home/me/.cache/delegraph"


@pytest.mark.skipif(sys.platform != "linux", reason="caches are elsewhere there")
@pytest.mark.parametrize("variables", [
    {}, {"HOME": "/home/me"}, {"HOME": "relative"}, {"HOME": "/"}, {"HOME": ""},
    {"XDG_CACHE_HOME": "/c/", "XDG_CONFIG_HOME": "/d"}, {"HOME": "/h", "XDG_CACHE_HOME": "~/c"},
], ids=str)  # fmt: skip
def test_folders_are_those_of_platformdirs(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    places = PlatformDirs("delegraph", appauthor=False, roaming=True, opinion=False)
    assert Path(user_cache_folder()) == places.user_cache_path
    assert Path(user_config_folder()) == places.user_config_path


def test_who_has_no_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(FileNotFoundError, match="set HOME"):
        user_cache_folder()


def test_where_files_have_no_such_owners_the_system_protects_them(
    cache: CacheFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.path.chmod(0o777)
    monkeypatch.delattr(os, "geteuid")
    assert cache.read(NAME) == b"kept"
    cache.write(NAME, b"new")
    assert cache.read(NAME) == b"new"


def test_what_is_read_and_written_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = CacheFolder(tmp_path / "cache")
    with caplog.at_level("DEBUG", "delegraph"):
        folder.write("a/b", b"12")
        folder.read("a/b")
    name = str(tmp_path / "cache" / "a" / "b")
    assert caplog.messages == [f"wrote {name}, 2 bytes", f"read {name}"]
