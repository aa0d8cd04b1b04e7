"""The user's configuration file: where it is, what it may say, and who may have written it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from delegraph.delegation import configuration as module
from delegraph.delegation.blob_cache import BlobCache
from delegraph.delegation.configuration import (
    CONFIG_VARIABLE,
    Configuration,
    byte_count,
    cache_folder,
    configuration,
)
from delegraph.errors import ArgumentError, ConfigurationError
from support.configured import configure

Write = Callable[[str], Path]

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes are another matter there")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file that is then the one in force."""

    return partial(configure, monkeypatch, tmp_path)


def test_a_file_may_say_everything(write: Write) -> None:
    path = write(
        """
        delegates = ["numba_cpu:exact=false", "dist:sin"]
        [plugins]
        allow = ["*"]
        disable = []
        [cache]
        folder = "~/compiled"
        size = "1.5M"
        """
    )
    assert configuration() == Configuration(
        path,
        ("numba_cpu:exact=false", "dist:sin"),
        ("*",),
        (),
        Path("~/compiled").expanduser(),
        1536 * 1024,
    )


def test_a_file_may_say_nothing(write: Write) -> None:
    path = write("# later\n[cache]\n")
    assert configuration() == Configuration(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "delegate = []",
            r"no key 'delegate' is known \(did you mean 'delegates'\?\); valid keys: cache\.folder",
        ),
        ("[cache]\nfolders = 'x'", "no key 'cache.folders' is known .did you mean 'cache.folder'"),
        ("[caches]\nsize = 1", "no key 'caches' is known .did you mean 'cache"),
        ("[empty]", "no key 'empty' is known"),
        ("cache = 3", "no key 'cache' is known .did you mean"),
        ("delegates = 'sin'", r"delegates is 'sin', expected a list of delegates, such as"),
        ("delegates = [3]", r"delegates is \[3\], expected a list"),
        ("delegates = ['']", r"delegates is \[''\], expected a list"),
        ("[delegates]\nsin = 1", "delegates is {'sin': 1}, expected a list of delegates"),
        ("[plugins]\nallow = 'x'", "plugins.allow is 'x', expected a list of plugins"),
        ("[cache]\nsize = 0", "cache.size is 0, expected bytes above 0"),
        ("[cache]\nsize = -1", "cache.size is -1, expected bytes above 0"),
        ("[cache]\nsize = true", "cache.size is True, expected bytes"),
        (
            "[cache]\nsize = 'much'",
            "cache.size is 'much', expected bytes above 0, such as 4096, '512MB'",
        ),
        ("[cache]\nfolder = 'here'", "cache.folder is 'here', expected a whole path"),
        ("[cache]\nfolder = 1", "cache.folder is 1, expected a whole path"),
        ("delegates = [", "is not TOML"),
        ("\x00", "is not TOML"),
    ],
)
def test_a_mistake_names_file_key_and_what_is_allowed(
    write: Write, text: str, message: str
) -> None:
    path = write(text)
    with pytest.raises(ConfigurationError, match=message) as caught:
        configuration()
    assert str(caught.value).startswith(f"configuration file {str(path)!r}: ")
    assert str(caught.value).endswith("(DELEGRAPH_CONFIG= reads no file)")
    assert isinstance(caught.value, ArgumentError)


def test_all_mistakes_of_a_file_are_told_at_once(write: Write) -> None:
    write("delegate = []\nrules = 1\n[cache]\nsize = 0")
    message = r"'delegate' .*; no key 'rules' is known; cache\.size is 0, .*; valid keys: cache\."
    with pytest.raises(ConfigurationError, match=message):
        configuration()


def test_bytes_that_are_no_text_are_no_toml(write: Write) -> None:
    write("").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        configuration()


def test_units_with_a_b_are_those_of_printed_sizes_and_others_count_1024() -> None:
    assert (byte_count("2GB"), byte_count("1.5 kB"), byte_count("9B")) == (2_000_000_000, 1500, 9)
    assert (byte_count("2G"), byte_count("1.5k")) == (2 << 30, 1536)


@pytest.mark.parametrize("text", ["nothing", "1,5M", "2 T", "-1", "1e3"])
def test_text_that_is_no_number_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        byte_count(text)


# -- where it is -----------------------------------------------------------------------------------


def test_an_empty_variable_reads_none(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("delegates = ['sin']")
    monkeypatch.setenv(CONFIG_VARIABLE, "")
    assert configuration() == Configuration()


def test_a_file_that_is_named_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "no.toml"))
    with pytest.raises(ConfigurationError, match=r"no\.toml': is not read: No such file"):
        configuration()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_the_users_own_folder_is_looked_into_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    module.configuration_of.cache_clear()
    assert configuration() == Configuration()
    (tmp_path / "delegraph").mkdir()
    (tmp_path / "delegraph" / "delegraph.toml").write_text("delegates = ['sin']")
    assert configuration() == Configuration()  # it was looked for
    module.configuration_of.cache_clear()
    assert configuration().delegates == ("sin",)
    module.configuration_of.cache_clear()  # so that no other test sees it


@pytest.mark.skipif(sys.platform == "win32", reason="homes are another matter there")
def test_a_user_without_a_home_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert module.configuration_path(None) is None


# -- who may have written it -----------------------------------------------------------------------


@posix
def test_a_file_that_others_may_write_is_refused(write: Write) -> None:
    path = write("delegates = ['sin']")
    path.chmod(0o666)
    with pytest.raises(ConfigurationError, match=r"is not read: may be written by others; 'chmod"):
        configuration()
    path.chmod(0o1666)  # the sticky bit protects names in a folder, not what is in a file
    with pytest.raises(ConfigurationError, match="may be written by others"):
        configuration()


@posix
def test_a_file_in_a_folder_that_others_may_write_is_refused(write: Write) -> None:
    path = write("delegates = ['sin']")
    path.parent.chmod(0o777)
    with pytest.raises(ConfigurationError, match=f"{path.parent} may be written by others"):
        configuration()


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_a_file_of_another_user_is_refused(write: Write) -> None:
    path = write("delegates = ['sin']")
    os.chown(path, 65534, 65534)
    with pytest.raises(ConfigurationError, match="is not read: belongs to user"):
        configuration()


@posix
def test_a_link_to_a_safe_file_is_followed(write: Write, tmp_path: Path) -> None:
    path = write("delegates = ['sin']")
    path.rename(tmp_path / "mine.toml")
    path.symlink_to(tmp_path / "mine.toml")
    assert configuration().delegates == ("sin",)


@posix
def test_what_is_no_file_is_refused(write: Write, tmp_path: Path) -> None:
    path = write("")
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigurationError, match="is not read"):
        configuration()
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(ConfigurationError, match="is not read"):
        configuration()


# -- the cache -------------------------------------------------------------------------------------


def test_the_cache_lies_where_the_file_says_unless_the_variable_says_otherwise(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(f"[cache]\nfolder = '{tmp_path / 'kept'}'")
    monkeypatch.delenv("DELEGRAPH_CACHE", raising=False)
    assert cache_folder() == str(tmp_path / "kept")
    assert BlobCache("a", "1").put("key", b"x").is_relative_to(tmp_path / "kept")
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path / "other"))
    assert cache_folder() == str(tmp_path / "other")


def test_the_cache_is_as_large_as_the_file_says(write: Write, tmp_path: Path) -> None:
    write("[cache]\nsize = 150")
    cache = BlobCache("a", "1", tmp_path / "kept")
    cache.put("first", bytes(100))
    cache.put("second", bytes(100))
    assert (cache.get("first"), cache.get("second") is not None) == (None, True)
