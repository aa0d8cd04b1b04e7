from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pytest

from delegraph.errors import ArgumentError, PluginOptionError
from delegraph.plugins import DelegateSpec
from delegraph.plugins.address import DelegateAddress
from delegraph.plugins.options import describe_options, make_options, options_text


class Level(enum.Enum):
    LOW = "l"
    HIGH = "h"


@dataclass(frozen=True)
class Options:
    threads: int = field(default=2, metadata={"help": "how many threads"})
    ratio: float = 0.5
    fast: bool = False
    cache: str = ""
    bus: Literal["usb", "pci"] = "usb"
    level: Level = Level.LOW
    ops: tuple[str, ...] = ("ADD",)
    limit: int | None = None
    sizes: tuple[int, ...] = field(default=(), metadata={"minimum": 1, "maximum": 8})

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}, expected 1 or more")


@dataclass
class Needy:
    path: str


SPEC = DelegateSpec("fake", "a fake", print, Options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (Options(), ""),
        (Options(threads=4, fast=True), "threads=4,fast=true"),
        (Options(cache="a,b=c", level=Level.HIGH), "cache=a,b=c,level=HIGH"),
        (Options(ops=(), limit=3, sizes=(1, 2)), "ops=,limit=3,sizes=1,2"),
    ],
)
def test_options_as_text_have_what_is_not_default(options: Options, text: str) -> None:
    assert options_text(SPEC, options) == text


def test_options_as_text_are_read_again() -> None:
    for options in (Options(), Options(ratio=0.25, bus="pci", ops=(), sizes=(3,), limit=7)):
        assert make_options(SPEC, options_text(SPEC, options)) == options


def test_defaults_apply_when_nothing_is_given() -> None:
    assert make_options(SPEC, None) == Options()
    assert make_options(SPEC, "") == Options()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("threads=4", Options(threads=4)),
        ("threads=0x10", Options(threads=16)),
        ("ratio=1", Options(ratio=1.0)),
        ("fast=true", Options(fast=True)),
        ("fast=ON,threads=1", Options(fast=True, threads=1)),
        ("cache=C:/tmp", Options(cache="C:/tmp")),
        ("cache=a=b", Options(cache="a=b")),
        ("bus=pci", Options(bus="pci")),
        ("level=HIGH", Options(level=Level.HIGH)),
        ("ops=SUB,MUL,threads=3", Options(ops=("SUB", "MUL"), threads=3)),
        ("ops=", Options(ops=())),
        ("limit=7", Options(limit=7)),
        ("limit=none", Options(limit=None)),
    ],
)
def test_text_is_read_by_the_annotated_types(text: str, expected: Options) -> None:
    assert make_options(SPEC, text) == expected


def test_a_mapping_takes_values_and_text_alike() -> None:
    given = {"threads": "4", "ratio": 1, "level": Level.HIGH, "ops": ["SUB"], "limit": None}
    assert make_options(SPEC, given) == Options(4, 1.0, level=Level.HIGH, ops=("SUB",))
    assert type(make_options(SPEC, given).ratio) is float  # type: ignore[attr-defined]


@pytest.mark.parametrize("word", ["false", "no", "off", "0", "OFF"])
def test_a_word_for_false_is_false(word: str) -> None:
    assert make_options(SPEC, {"fast": word}) == Options(fast=False)


def test_a_value_that_is_no_text_may_be_any_kind_of_a_union() -> None:
    assert make_options(SPEC, {"limit": 5}) == Options(limit=5)
    assert make_options(SPEC, {"bus": "pci"}) == Options(bus="pci")
    with pytest.raises(PluginOptionError, match=r"'limit' .* is 1.5, expected int or none"):
        make_options(SPEC, {"limit": 1.5})


@dataclass
class Numbered:
    channel: Literal[1, 2] = 1
    levels: tuple[int, ...] = ()
    pairs: Sequence[int] = ()


def test_a_literal_takes_its_own_values_only() -> None:
    spec = DelegateSpec("numbered", "", print, Numbered)
    for right in (2, "2"):
        assert make_options(spec, {"channel": right}) == Numbered(2)
    for wrong in (True, 1.0, 3):
        with pytest.raises(PluginOptionError, match=f"is {wrong}, expected one of 1, 2"):
            make_options(spec, {"channel": wrong})


def test_a_list_is_read_entry_by_entry() -> None:
    spec = DelegateSpec("numbered", "", print, Numbered)
    assert make_options(spec, {"levels": [1, "2"]}) == Numbered(levels=(1, 2))


@pytest.mark.parametrize("value", ["1,2", [1, 2]])
def test_an_annotation_that_no_value_can_be_checked_by_takes_none(value: object) -> None:
    spec = DelegateSpec("numbered", "", print, Numbered)
    with pytest.raises(PluginOptionError, match=r"option 'pairs' .* expected .*Sequence\[int\]"):
        make_options(spec, {"pairs": value})


def test_the_options_own_error_passes_as_it_is() -> None:
    @dataclass
    class Picky:
        device: str = ""

        def __post_init__(self) -> None:
            raise PluginOptionError("no such device")

    with pytest.raises(PluginOptionError, match=r"^no such device$"):
        make_options(DelegateSpec("picky", "", print, Picky), None)


def test_an_instance_passes_as_it_is() -> None:
    options = Options(threads=9)
    assert make_options(SPEC, options) is options


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("threads=two", "option 'threads' of delegate 'fake' is 'two', expected int"),
        ("ratio=x", "option 'ratio' of delegate 'fake' is 'x', expected float"),
        ("fast=maybe", "'maybe', expected true or false"),
        ("bus=isa", "'isa', expected one of 'pci', 'usb'"),
        ("level=MID", "'MID', expected one of 'HIGH', 'LOW'"),
        ("limit=x", "'x', expected int or none"),
        ({"threads": 1.5}, "is 1.5, expected int"),
        ({"threads": True}, "is True, expected int"),
        ({"fast": 1}, "is 1, expected true or false"),
        ({"ops": "ADD", "cache": 3}, "option 'cache' of delegate 'fake' is 3, expected str"),
        ({"threads": [2]}, r"is \[2\], expected int"),
        ({"ops": 5}, "is 5, expected comma-separated str"),
        ({"ops": [1]}, r"is \[1\], expected comma-separated str"),
        ("threads=0", "options of delegate 'fake': threads is 0, expected 1 or more"),
        ("sizes=3,9", r"'sizes' of delegate 'fake' is \(3, 9\), expected .* int, 1 to 8"),
        ({"sizes": [0]}, r"is \(0,\), expected comma-separated int, 1 to 8"),
        (Options(sizes=(0,)), r"is \(0,\), expected comma-separated int, 1 to 8"),
        ("threads=1,threads=2", "option 'threads' of delegate 'fake' is given twice"),
        ("threads", "options of delegate 'fake' are 'threads', expected 'key=value,key=value'"),
        (7, "options of delegate 'fake' are 7, expected text, a mapping or Options"),
    ],
)
def test_a_bad_value_names_option_value_and_expected_type(given: object, message: str) -> None:
    with pytest.raises(PluginOptionError, match=message):
        make_options(SPEC, given)


def test_an_unknown_option_lists_the_valid_ones_with_their_defaults() -> None:
    with pytest.raises(PluginOptionError) as caught:
        make_options(SPEC, "thread=4")
    assert str(caught.value) == (
        "delegate 'fake' has no option 'thread' (did you mean 'threads'?); valid options: "
        "threads (int, default 2); "
        "ratio (float, default 0.5); fast (true or false, default false); "
        "cache (str, default (empty)); bus (one of 'pci', 'usb', default usb); "
        "level (one of 'HIGH', 'LOW', default LOW); ops (comma-separated str, default ADD); "
        "limit (int or none, default none); "
        "sizes (comma-separated int, 1 to 8, default (empty))"
    )


def test_a_required_option_must_be_given() -> None:
    spec = DelegateSpec("needy", "", print, Needy)
    with pytest.raises(
        PluginOptionError, match=r"delegate 'needy' needs option path \(str, required\)"
    ):
        make_options(spec, None)
    assert make_options(spec, "path=x") == Needy("x")


def test_a_delegate_without_options_takes_none() -> None:
    spec = DelegateSpec("plain", "", print)
    assert make_options(spec, None) is None
    assert describe_options(spec) == ()
    with pytest.raises(PluginOptionError, match="delegate 'plain' has no options"):
        make_options(spec, "a=1")


def test_options_are_described_in_order_with_help() -> None:
    first, *_, last = describe_options(SPEC)
    assert (first.name, first.type, first.default, first.help) == (
        "threads",
        "int",
        "2",
        "how many threads",
    )
    assert (last.name, last.type) == ("sizes", "comma-separated int, 1 to 8")


def test_an_annotation_that_cannot_be_evaluated_is_reported() -> None:
    @dataclass
    class Odd:
        x: NoSuchType = None  # type: ignore[name-defined]  # noqa: F821 - the point of the test

    with pytest.raises(PluginOptionError, match="an annotation that cannot be evaluated"):
        describe_options(DelegateSpec("odd", "", print, Odd))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("sin", ("sin", None, "")),
        ("dist:sin", ("sin", "dist", "")),
        ("sin:a=1", ("sin", None, "a=1")),
        ("my.dist-x:sin:a=1,b=c:d=e", ("sin", "my.dist-x", "a=1,b=c:d=e")),
        ("sin:a=b:c", ("sin", None, "a=b:c")),
        ("sin:path=C:/x,y", ("sin", None, "path=C:/x,y")),
    ],
)
def test_an_address_is_unambiguous(text: str, parts: tuple[str, str | None, str]) -> None:
    address = DelegateAddress.parse(text)
    assert (address.name, address.distribution, address.options) == parts


@pytest.mark.parametrize("text", ["", "a:", ":a", "a:b:c", "a=1", "a,b", "a:=1"])
def test_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(PluginOptionError, match="cannot be read, expected 'name', 'dist:name'"):
        DelegateAddress.parse(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1a", "", print), "DelegateSpec name is '1a', expected a letter"),
        (("a", None, print), "summary is None, expected one line of text"),
        (("a", "", None), "load is None, expected a function"),
        (("a", "", print, int), "options is <class 'int'>, expected a dataclass"),
        (("a", "", print, Options()), r"options is Options\(.*, expected a dataclass"),
    ],
)
def test_a_spec_refuses_bad_fields(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        DelegateSpec(*arguments)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("name", ["all", "help", "none"])
def test_a_delegate_cannot_be_called_what_the_command_line_understands(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"name '{name}' means something else to users"):
        DelegateSpec(name, "", print)


@pytest.mark.parametrize("rank", ["1", 1.0, True, None])
def test_a_rank_is_a_whole_number(rank: object) -> None:
    with pytest.raises(ArgumentError, match=r"rank is .*, expected an int"):
        DelegateSpec("fake", "", print, rank=rank)  # type: ignore[arg-type]  # wrong on purpose
