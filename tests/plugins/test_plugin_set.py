from __future__ import annotations

import json
import logging
import re
import sys
from pathlib import Path

import pytest
from importlib_metadata import EntryPoint

from delegraph.delegation import Delegate, SimpleDelegate
from delegraph.errors import (
    AmbiguousDelegateError,
    PluginError,
    PluginLoadError,
    PluginOptionError,
    UnknownDelegateError,
)
from delegraph.operators import Registration, unregister_custom_op
from delegraph.plugins import PluginSet
from delegraph.plugins.sources import pip_install
from support.fake_distributions import GOOD, write_distribution, write_plugin

OPTIONS = """\
import dataclasses
from delegraph.plugins import DelegateSpec, hookimpl
made = []

@dataclasses.dataclass
class Options:
    level: int = 1

def _load():
    from fake_tunable_heavy import FakeDelegate
    def make(options):
        made.append(options)
        return FakeDelegate()
    return make

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("tunable", "a fake with options", _load, Options)]
"""

CUSTOM_OP = """\
from delegraph.plugins import CustomOpSpec, hookimpl

def _load():
    {body}

@hookimpl
def delegraph_custom_ops():
    return [CustomOpSpec({name!r}, "a fake operator", _load)]
"""

DELEGATES = """\
from delegraph.plugins import DelegateSpec, hookimpl

def _load():
    {body}

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("fragile", "a fake", _load)]
"""


def test_a_simple_delegate_comes_wrapped(site: Path) -> None:
    write_plugin(site, "good")
    delegate = PluginSet().create_delegate("good")
    assert isinstance(delegate, SimpleDelegate)
    assert delegate.name() == "fake"


def test_a_low_level_delegate_comes_as_it_is(site: Path) -> None:
    body = (
        "from delegraph.delegation.delegate import Delegate\n"
        "    class Own(Delegate):\n"
        "        def name(self): return 'own'\n"
        "        def prepare(self, context): pass\n"
        "    return Own"
    )
    write_plugin(site, "own", DELEGATES.format(body=body))
    delegate = PluginSet().create_delegate("fragile")
    assert isinstance(delegate, Delegate)
    assert not isinstance(delegate, SimpleDelegate)


@pytest.mark.parametrize("given", [{"level": 3}, {"level": "3"}, "level=3"])
def test_options_reach_the_delegate(site: Path, given: object) -> None:
    write_plugin(site, "tunable", OPTIONS)
    plugins = PluginSet()
    plugins.create_delegate("tunable", given)
    plugins.create_delegate("tunable:level=4")
    plugins.create_delegate("fake-tunable:tunable:level=5")
    plugins.create_delegate("tunable")
    assert [options.level for options in sys.modules["fake_tunable"].made] == [3, 4, 5, 1]


def test_options_given_twice_are_refused(site: Path) -> None:
    write_plugin(site, "tunable", OPTIONS)
    with pytest.raises(PluginOptionError, match="options of delegate 'tunable' are given twice"):
        PluginSet().create_delegate("tunable:level=4", {"level": 3})


def test_an_unknown_option_is_refused_before_anything_heavy_is_imported(site: Path) -> None:
    write_plugin(site, "tunable", OPTIONS)
    with pytest.raises(PluginOptionError, match=r"valid options: level \(int, default 1\)"):
        PluginSet().create_delegate("tunable:speed=3")
    assert "fake_tunable_heavy" not in sys.modules


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "tunable:level",
            r"option 'level' of .*'tunable' has no value \(int\); write 'tunable:level=",
        ),
        (
            "tunable:levle",
            r"'tunable' has no option 'levle' \(did you mean 'level'\?\); valid options: ",
        ),
        ("fake-tunable:tunable:level", r"cannot be read, .* an option without '=' has no value"),
        ("tunable,other", "cannot be read, .* several delegates are named one by one"),
        ("fake-tunable:level", "no installed plugin provides delegate 'level' of 'fake-tunable'"),
    ],
)
def test_text_that_is_no_delegate_is_told(site: Path, address: str, message: str) -> None:
    write_plugin(site, "tunable", OPTIONS)
    with pytest.raises(PluginError, match=message):
        PluginSet().create_delegate(address)


def test_one_name_from_two_distributions_is_ambiguous_until_addressed(site: Path) -> None:
    write_plugin(site, "one", delegate="shared")
    write_plugin(site, "two", delegate="shared")
    plugins = PluginSet()
    with pytest.raises(AmbiguousDelegateError) as caught:
        plugins.create_delegate("shared")
    assert str(caught.value) == (
        "delegate 'shared' is provided by 2 plugins: plugin 'one' of fake-one 1.0, plugin 'two' "
        "of fake-two 1.0; write 'fake-one:shared' or 'fake-two:shared'"
    )
    assert plugins.find("fake_two:shared").plugin.name == "two"
    assert plugins.create_delegate("fake-one:shared").name() == "fake"


def test_one_name_twice_from_one_distribution_cannot_be_addressed(site: Path) -> None:
    points = {"one": "fake_one", "two": "fake_two"}
    sources = {name: DELEGATES.format(body="return None") for name in points.values()}
    write_distribution(site, "fake-both", sources, points)
    with pytest.raises(
        AmbiguousDelegateError, match=r"2 plugins: .*; leave one out with DELEGRAPH"
    ):
        PluginSet().find("fragile")


def test_equal_plugin_names_of_two_distributions_are_two_plugins(site: Path) -> None:
    write_plugin(site, "one", delegate="first")
    write_distribution(site, "fake-copy", {}, {"one": "fake_gone"})
    plugins = [p for p in PluginSet(disable=["fake-copy:one"]).plugins if p.name == "one"]
    assert [(p.distribution, p.state.value) for p in plugins] == [
        ("fake-copy", "disabled"),
        ("fake-one", "ok"),
    ]


def test_asking_for_a_broken_plugin_gives_the_reason_and_how_to_disable_it(site: Path) -> None:
    write_plugin(site, "broken_one", "raise RuntimeError('no driver')")
    with pytest.raises(PluginLoadError) as caught:
        PluginSet().create_delegate("broken-one")
    with pytest.raises(PluginLoadError, match="'Broken_One' cannot be used"):
        PluginSet().create_delegate("Broken_One")
    assert str(caught.value) == (
        "delegate 'broken-one' cannot be used: plugin 'broken_one' of fake-broken_one 1.0 is "
        "broken: RuntimeError: no driver; repair it with 'pip install --upgrade fake-broken_one', "
        "or leave it out with DELEGRAPH_DISABLE_PLUGINS=broken_one"
    )
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_asking_for_a_disabled_plugin_says_who_disabled_it(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugin(site, "good")
    monkeypatch.setenv("DELEGRAPH_DISABLE_PLUGINS", "good")
    with pytest.raises(PluginLoadError, match="PLUGINS; DELEGRAPH_DISABLE_PLUGINS= allows it"):
        PluginSet().create_delegate("good")
    monkeypatch.delenv("DELEGRAPH_DISABLE_PLUGINS")
    monkeypatch.setenv("DELEGRAPH_PLUGINS", "other")
    with pytest.raises(PluginLoadError, match="'other'; DELEGRAPH_PLUGINS=other,good allows it"):
        PluginSet().create_delegate("good")


@pytest.mark.parametrize("address", ["fake-packed:zip", "fake_packed:zip:level=1"])
def test_a_delegate_of_a_named_distribution_that_is_broken_gives_the_reason(
    site: Path, address: str
) -> None:
    write_plugin(site, "packed", "raise RuntimeError('no driver')")
    with pytest.raises(PluginLoadError, match=r"delegate 'zip' of 'fake.packed' cannot be used: "):
        PluginSet().create_delegate(address)


def test_a_delegate_of_a_known_package_that_is_broken_gives_the_reason(site: Path) -> None:
    broken = {"fake_flex": "raise RuntimeError('no driver')"}
    write_distribution(site, "Delegraph.Flex", broken, {"other_name": "fake_flex"})
    with pytest.raises(PluginLoadError, match=r"'flex' cannot be used: .* no driver"):
        PluginSet().create_delegate("flex")


def test_an_unknown_delegate_lists_what_there_is_and_what_is_broken(site: Path) -> None:
    write_plugin(site, "known")
    write_plugin(site, "broken", "raise RuntimeError('no driver')")
    with pytest.raises(UnknownDelegateError) as caught:
        PluginSet().create_delegate("knwon")
    text = str(caught.value)
    assert text.startswith("no installed plugin provides delegate 'knwon' (did you mean 'known'?)")
    assert "fake-known:known" in text
    assert "plugin 'broken' of fake-broken 1.0: RuntimeError: no driver" in text
    assert "pip install" not in text


def test_a_delegate_of_another_distribution_is_not_taken(site: Path) -> None:
    write_plugin(site, "known")
    with pytest.raises(UnknownDelegateError, match="provides delegate 'known' of 'other'"):
        PluginSet().find("other:known")


@pytest.mark.parametrize("name", ["my-chip", "My.Chip", "fake-chip:my-chip", "my-chip:speed=1"])
def test_dashes_and_underscores_are_the_same(site: Path, name: str) -> None:
    write_plugin(site, "chip", GOOD.format(module="fake_chip", delegate="my_chip"))
    assert PluginSet().find(name).spec.name == "my_chip"


def test_a_name_with_the_same_dashes_comes_first(site: Path) -> None:
    both = "[DelegateSpec('my-chip', '', print), DelegateSpec('my_chip', '', print)]"
    hook = "@hookimpl\ndef delegraph_delegates():\n    return "
    write_plugin(site, "chip", f"from delegraph import DelegateSpec, hookimpl\n{hook}{both}")
    for name in ("my-chip", "my_chip"):
        assert PluginSet().find(name).spec.name == name


@pytest.mark.parametrize(
    "group", ["delegraph.delegates", "delegraph_plugins", "delegraphs.plugins"]
)
def test_a_misspelled_group_of_entry_points_is_suspected(site: Path, group: str) -> None:
    points = f"[{group}]\nmine = fake_mine\n\n[console_scripts]\nmine = fake_mine:main\n"
    write_distribution(site, "fake-mine", {"fake_mine": ""}, points)
    wanted = (
        f"; fake-mine 1.0 has entry points of group '{group}', which Delegraph does not read: name "
        "it 'delegraph.plugins' in its pyproject.toml, and install it again; available: "
    )
    with pytest.raises(UnknownDelegateError, match=re.escape(wanted)):
        PluginSet().find("mine")
    (text,) = PluginSet().misspelled_groups()
    assert text in wanted


def test_a_known_package_is_named(site: Path) -> None:
    with pytest.raises(UnknownDelegateError) as caught:
        PluginSet(entry_points=[]).find("flex")
    command = pip_install("delegraph-flex")
    assert f"delegraph-flex has one of this name: {command}; available" in str(caught.value)


def test_a_file_of_that_name_is_offered_before_a_package(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sin.py").touch()
    (tmp_path / "my_sin.py").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownDelegateError, match=r"such as one of my_sin\.py here"):
        PluginSet(entry_points=[]).find("my-sin")
    wanted = (
        r"delegate 'sin'; delegates=\[MyDelegate\(\)\] applies a class, .* of sin\.py here; deleg"
    )
    with pytest.raises(UnknownDelegateError, match=wanted):
        PluginSet(entry_points=[]).find("sin")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("gpu", "pip installs delegates, delegates=[MyDelegate()] applies a class"),
        ("xnnpack", "XNNPACK is LiteRT's: the official Interpreter applies it by itself"),
        ("none", "delegates=[] applies none"),
    ],
)
def test_an_unknown_delegate_is_advised_on_in_python(site: Path, name: str, advice: str) -> None:
    write_plugin(site, "edgetpu")
    with pytest.raises(
        UnknownDelegateError, match=re.escape(f"'{name}'; {advice}; avail")
    ) as caught:
        PluginSet().find(name)
    assert "did you mean" not in str(caught.value)
    assert "--" not in str(caught.value)


def test_a_plugin_that_offers_nothing_is_named(site: Path) -> None:
    write_plugin(site, "bare", "")
    wanted = (
        "plugin 'bare' of fake-bare 1.0 offers nothing: define hooks in fake_bare, as "
        "delegraph_delegates, with @delegraph.hookimpl; available"
    )
    with pytest.raises(UnknownDelegateError, match=re.escape(wanted)):
        PluginSet().find("mine")
    with pytest.raises(UnknownDelegateError, match="provides delegate 'sin' of 'other'; available"):
        PluginSet().find("other:sin")


def test_a_broken_editable_plugin_is_mended_in_its_folder(site: Path, tmp_path: Path) -> None:
    write_plugin(site, "broken", "raise RuntimeError('no driver')")
    (info,) = site.glob("fake_broken-*.dist-info")
    origin = {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(origin))
    with pytest.raises(PluginLoadError) as caught:
        PluginSet().create_delegate("broken")
    assert f"no driver; mend its code in {tmp_path}, or leave it out with" in str(caught.value)


def test_a_known_package_that_is_installed_is_not_advised(site: Path) -> None:
    write_distribution(site, "delegraph-flex", {"fake_flex": ""}, {"flex": "fake_flex"})
    with pytest.raises(UnknownDelegateError) as caught:
        PluginSet(allow=["flex"]).find("flex")
    assert "pip install" not in str(caught.value)


RANKED = """\
from delegraph.plugins import DelegateSpec, hookimpl

@hookimpl
def delegraph_delegates():
    return [
        DelegateSpec("a-last", "", print, rank=5, custom_ops=("Flex*",)),
        DelegateSpec("b-second", "", print),
        DelegateSpec("c-first", "", print, rank=-1, custom_ops=("Other", "FlexErf")),
    ]
"""


def test_delegates_apply_by_rank_then_by_name(site: Path) -> None:
    write_plugin(site, "ranked", RANKED)
    write_plugin(site, "plain", delegate="b-first")
    found = [offer.spec.name for offer in PluginSet(allow=["ranked", "plain"]).by_rank()]
    assert found == ["c-first", "b-first", "b-second", "a-last"]


@pytest.mark.parametrize(
    ("custom_ops", "delegates"),
    [
        (["FlexErf"], ["c-first", "a-last"]),
        (["FlexAdd", "Mine"], ["a-last"]),
        (["Other"], ["c-first"]),
        (["Mine"], []),
        ([], []),
    ],
)
def test_a_custom_operator_finds_the_delegates_that_are_there_for_it(
    site: Path, custom_ops: list[str], delegates: list[str]
) -> None:
    write_plugin(site, "ranked", RANKED)
    found = PluginSet(allow=["ranked"]).for_custom_ops(custom_ops)
    assert [offer.spec.name for offer in found] == delegates


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "PluginOptionError('level 7')"])
def test_an_interrupt_and_a_plugin_error_while_a_delegate_is_made_pass_as_they_are(
    site: Path, raised: str
) -> None:
    body = f"from delegraph.errors import PluginOptionError\n    raise {raised}"
    write_plugin(site, "fragile", DELEGATES.format(body=body))
    with pytest.raises((KeyboardInterrupt, PluginOptionError)) as caught:
        PluginSet().create_delegate("fragile")
    assert str(caught.value) in ("", "level 7")


def test_an_interrupt_while_a_custom_op_is_loaded_passes_as_it_is(site: Path) -> None:
    body = "raise KeyboardInterrupt"
    write_plugin(site, "ops", CUSTOM_OP.format(name="MyOp", body=body))
    with pytest.raises(KeyboardInterrupt):
        PluginSet().custom_ops()["MyOp"].load()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit('no device')", "SystemExit: no device"),
        ("return lambda: 1 / 0", "ZeroDivisionError: division by zero"),
        ("return lambda: {}", "made a dict, expected a SimpleDelegateInterface or a Delegate"),
        ("return None", "returned a NoneType, expected the class of the delegate"),
    ],
)
def test_a_delegate_that_cannot_be_made_names_its_plugin(
    site: Path, body: str, message: str
) -> None:
    write_plugin(site, "fragile", DELEGATES.format(body=body))
    with pytest.raises(PluginLoadError, match=f"plugin 'fragile' of fake-fragile 1.0.*{message}"):
        PluginSet().create_delegate("fragile")


def test_the_cause_is_chained(site: Path) -> None:
    write_plugin(site, "fragile", DELEGATES.format(body="return lambda: 1 / 0"))
    with pytest.raises(PluginLoadError) as caught:
        PluginSet().create_delegate("fragile")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_custom_ops_are_listed_and_loaded_on_demand(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    body = (
        "from delegraph.operators.registration import Registration\n"
        "    return Registration('MyOp', lambda context, node: lambda: None)"
    )
    write_plugin(site, "ops", CUSTOM_OP.format(name="MyOp", body=body))
    with caplog.at_level(logging.WARNING):
        spec = PluginSet().custom_ops()["MyOp"]
    assert not caplog.records
    assert spec.summary == "a fake operator"
    assert spec.load().name == "MyOp"


def test_a_custom_op_may_be_a_decorated_function(site: Path) -> None:
    body = (
        "from delegraph import custom_op\n"
        "    @custom_op('Decorated')\n"
        "    def decorated(x): return x\n"
        "    return decorated"
    )
    write_plugin(site, "ops", CUSTOM_OP.format(name="MyOp", body=body))
    loaded = PluginSet().custom_ops()["MyOp"].load()
    unregister_custom_op("Decorated")
    assert isinstance(loaded, Registration)
    assert loaded.custom_name == "Decorated"


@pytest.mark.parametrize(
    ("body", "message"),
    [("1 / 0", "ZeroDivisionError"), ("return 1", "returned a int, expected a Registration")],
)
def test_a_custom_op_that_cannot_be_loaded_names_its_plugin(
    site: Path, body: str, message: str
) -> None:
    write_plugin(site, "ops", CUSTOM_OP.format(name="MyOp", body=body))
    with pytest.raises(PluginLoadError, match=f"'MyOp'.* plugin 'ops' of fake-ops 1.0.*{message}"):
        PluginSet().custom_ops()["MyOp"].load()


def test_a_custom_op_offered_twice_comes_from_the_first_and_the_log_says_so(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_plugin(site, "b", CUSTOM_OP.format(name="MyOp", body="return 'b'"))
    write_plugin(site, "a", CUSTOM_OP.format(name="MyOp", body="return 'a'"))
    plugins = PluginSet()
    with caplog.at_level(logging.WARNING), pytest.raises(PluginLoadError, match="plugin 'a'"):
        plugins.custom_ops()["MyOp"].load()
    assert "plugin 'a' of fake-a 1.0 is used, not plugin 'b' of fake-b 1.0" in caplog.text
    assert [p.name for p in plugins.custom_op_providers()["MyOp"]] == ["a", "b"]


def test_entry_points_may_be_given(site: Path) -> None:
    write_plugin(site, "good")
    point = EntryPoint(name="given", value="fake_good", group="delegraph.plugins")
    (plugin,) = PluginSet(entry_points=[point]).plugins
    assert (plugin.name, plugin.distribution) == ("given", "(unknown distribution)")
    assert [spec.name for spec in plugin.delegates] == ["good"]


def test_an_entry_point_that_names_a_function_is_told_to_name_the_module(site: Path) -> None:
    sources = {"fake_inner": "def delegraph_delegates(): return []"}
    write_distribution(site, "fake-inner", sources, {"inner": "fake_inner:delegraph_delegates"})
    (plugin,) = (p for p in PluginSet().plugins if p.name == "inner")
    assert plugin.missing_hook.startswith(
        "name the module fake_inner in its entry point, without :"
    )
