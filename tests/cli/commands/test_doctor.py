from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delegraph import Interpreter, __version__
from delegraph.errors import DefaultDelegateWarning
from delegraph.runtime.delegates.requested_delegates import as_delegate
from support.by_name import ByName, sines
from support.command import Command
from support.fake_distributions import write_plugin

SOUND = """
from delegraph import DelegateSpec, hookimpl

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("good", "", lambda: object)]
"""


def test_a_sound_machine_is_shown(
    fresh_delegraph: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ai_edge_litert")
    write_plugin(tmp_path / "site", "good")
    environment = {"DELEGRAPH_PLUGINS": "good", "DELEGRAPH_SOME_CACHE": str(tmp_path)}
    environment["DELEGRAPH_DEFAULT_DELEGATES"] = ""
    ran = fresh_delegraph("doctor", XDG_CACHE_HOME=str(tmp_path), **environment)
    assert (ran.code, ran.err) == (0, "")
    for title in ("Machine", "Versions", "Imported from", "Extras", "Hosts", "Plugins", "Caches"):
        assert title in ran.lines
    assert f"fake-good {tmp_path / 'site'}" in ran.lines
    assert f"delegraph delegraph {__version__} Interpreter works" in ran.lines
    assert [line.split()[0] for line in ran.lines if "CompiledModel" in line] == ["litert2"]
    assert "good fake-good 1.0 ok" in ran.lines
    assert "not installed" not in ran.out
    assert "By default: Delegraph's own kernels (set by DELEGRAPH_DEFAULT_DELEGATES)" in ran.lines
    assert "DELEGRAPH_PLUGINS good" in ran.lines
    place = ran.lines.index(f"folder {tmp_path}")
    assert ran.lines[place + 1] == "set by DELEGRAPH_SOME_CACHE"
    assert ran.lines[place + 2].startswith("content ")


def test_what_is_broken_exits_with_1(fresh_delegraph: Command, tmp_path: Path) -> None:
    write_plugin(tmp_path / "site", "broken", "raise ImportError('no driver')")
    environment = {"DELEGRAPH_PLUGINS": "broken", "XDG_CACHE_HOME": str(tmp_path)}
    ran = fresh_delegraph("doctor", **environment)
    assert ran.code == 1
    assert "broken fake-broken 1.0 failed" in ran.lines
    assert ran.lines[0].startswith("1 error")
    assert "error: plugin 'broken' of fake-broken 1.0: broken: ImportError: no driver" in ran.out
    shown = fresh_delegraph("doctor", "--json", **environment)
    assert shown.code == 1
    assert shown.json["ok"] is False
    assert {"processor", "system", "versions", "hosts", "caches", "variables"} < shown.json.keys()
    assert [p["outcome"] for p in shown.json["plugins"] if p["name"] == "broken"] == ["failed"]
    assert shown.json["findings"][0]["level"] == "error"


def test_a_cache_that_cannot_be_used_is_told_once(fresh_delegraph: Command, tmp_path: Path) -> None:
    keeping = "from delegraph.delegation import BlobCache\nBlobCache('a', '1').put('key', b'x')"
    write_plugin(tmp_path / "site", "keeper", keeping)
    cache = tmp_path / "file"
    cache.write_text("")
    environment = {"DELEGRAPH_PLUGINS": "keeper", "DELEGRAPH_CACHE": str(cache)}
    ran = fresh_delegraph("doctor", **environment)
    assert (ran.code, ran.err) == (1, "")
    assert f"error: cache {cache}: is not used: is no folder" in ran.out


def test_a_file_of_settings_that_is_missing_has_a_remedy(
    fresh_delegraph: Command, tmp_path: Path
) -> None:
    ran = fresh_delegraph("doctor", DELEGRAPH_CONFIG=str(tmp_path / "no.toml"))
    assert ran.code == 1
    assert "next: correct DELEGRAPH_CONFIG, or unset it; the other findings are" in ran.out


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ("foo", "no installed plugin provides delegate 'foo'"),
        ("good:a=1", "delegate 'good' has no options, 'a=1' was given"),
        ("none", "no installed plugin provides delegate 'none'"),
        ("bad", "delegate 'bad' could not be made by plugin 'bad'"),
    ],
)
def test_a_chosen_default_delegate_that_cannot_be_used_is_an_error(
    fresh_delegraph: Command, tmp_path: Path, named: str, text: str
) -> None:
    write_plugin(tmp_path / "site", "good", SOUND)
    bad = SOUND.replace('"good", "", lambda: object', '"bad", "", lambda: lambda: 1 / 0')
    write_plugin(tmp_path / "site", "bad", bad)
    environment = {"DELEGRAPH_PLUGINS": "good,bad", "DELEGRAPH_CACHE": str(tmp_path / "cache")}
    ran = fresh_delegraph("doctor", DELEGRAPH_DEFAULT_DELEGATES=named, **environment)
    assert ran.code == 1
    assert ran.lines[0].startswith("1 error")
    assert f"DELEGRAPH_DEFAULT_DELEGATES: models cannot be loaded: {text}" in ran.out


def test_a_broken_configuration_file_is_a_finding(fresh_delegraph: Command, tmp_path: Path) -> None:
    write_plugin(tmp_path / "site", "good", SOUND)
    file = tmp_path / "delegraph.toml"
    file.write_text("delegates = 'good'")
    ran = fresh_delegraph("doctor", "--json", DELEGRAPH_CONFIG=str(file), DELEGRAPH_PLUGINS="good")
    assert ran.code == 1
    first = ran.json["findings"][0]
    assert (first["level"], first["subject"]) == ("error", f"configuration file {str(file)!r}")
    assert first["text"].startswith("delegates is 'good', expected a list of delegates")
    assert ran.json["variables"]["DELEGRAPH_CONFIG"] == str(file)
    assert [p["outcome"] for p in ran.json["plugins"] if p["name"] == "good"] == ["ok"]


class Lost(ByName):
    def is_node_supported_by_delegate(self, *about: Any) -> bool:
        raise OSError("device lost")


def test_what_default_delegates_failed_at_is_shown(
    fresh_delegraph: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path / "cache"))
    model = tmp_path / "sines.tflite"
    model.write_bytes(sines())
    interpreter = Interpreter(model, delegates=[])
    session = interpreter.session
    session.by_default = [as_delegate(Lost("ADD"))]
    with pytest.warns(DefaultDelegateWarning):
        session.apply(session.by_default[0])
    environment = {"DELEGRAPH_PLUGINS": "", "DELEGRAPH_CACHE": str(tmp_path / "cache")}
    ran = fresh_delegraph("doctor", **environment)
    assert ran.lines[0].startswith("Nothing is broken; ")
    assert ran.lines.index("Failures of default delegates") > ran.lines.index("Machine")
    assert "failed at 1 model (sines.tflite)" in " ".join(ran.out.split())
    assert (
        "delegate by_name sines.tflite claim tried asked about node 0 (SIN): OSError: device lost"
        in " ".join(ran.out.split())
    )
    assert "device lost" in ran.out
    [failure] = fresh_delegraph("doctor", "--json", **environment).json["default_failures"]
    assert (failure["delegate"], failure["phase"]) == ("by_name", "claim")
    assert failure["is_skipped"] is False


def test_a_report_of_a_fault_has_no_private_paths(fresh_delegraph: Command, tmp_path: Path) -> None:
    write_plugin(tmp_path / "site", "broken", f"raise ImportError('no {tmp_path}/driver.so')")
    file = tmp_path / "fault.md"
    environment = {"DELEGRAPH_PLUGINS": "broken", "DELEGRAPH_CACHE": str(tmp_path / "cache")}
    ran = fresh_delegraph("doctor", "--report", file, **environment)
    assert ran.code == 1
    assert f"written to {file}: read it before you send it" in ran.lines
    text = file.read_text()
    assert "error: plugin 'broken' of fake-broken 1.0: broken: ImportError: no <path>" in text
    assert '"DELEGRAPH_CACHE": "<path>"' in text
    assert str(tmp_path) not in text


def test_a_report_that_cannot_be_written_is_told_before_any_work(delegraph: Command) -> None:
    ran = delegraph("doctor", "--report", "absent/fault.md")
    assert ran.code == 2
    assert ran.err.startswith(
        "error: Invalid value for '--report': 'absent/fault.md': there is no folder 'absent'"
    )


def test_every_finding_says_what_to_do_next(fresh_delegraph: Command, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    slow = """
from delegraph import DelegateSpec, hookimpl

@hookimpl
def delegraph_delegates():
    advice = lambda: [("is slow here,\\nas it says", "make it fast"), ("has 3 units", "")]
    return [DelegateSpec("slow", "", lambda: object, advice=advice)]
"""
    write_plugin(tmp_path / "site", "slow", slow)
    environment = {"DELEGRAPH_PLUGINS": "slow", "DELEGRAPH_CACHE": str(tmp_path / "cache")}
    ran = fresh_delegraph("doctor", **environment)
    assert "warning: delegate fake-slow:slow: is slow here, as it says" in ran.out
    assert "next: make it fast" in ran.lines
    assert "slow: has 3 units" in ran.lines
    findings = fresh_delegraph("doctor", "--json", **environment).json["findings"]
    levels = [finding["level"] for finding in findings if finding["subject"] != "imports"]
    assert levels == ["warning"] * 2  # it and the default
    assert all(finding["remedy"] for finding in findings)
