from __future__ import annotations

import sys
from pathlib import Path

import pytest

from delegraph.delegation.driver import SimpleDelegate
from delegraph.errors import ArgumentError, PluginLoadError, PluginOptionError
from delegraph.plugins.delegate_file import delegate_from_file

IMPORTS = """\
from __future__ import annotations
from dataclasses import dataclass
from delegraph import Delegate, SimpleDelegateInterface

"""
CLASS = """\
class {name}(SimpleDelegateInterface):
    def name(self): return "{name}"
    def is_node_supported_by_delegate(self, registration, node, context): return False
    def create_delegate_kernel_interface(self): raise AssertionError("takes no node")
"""
MINE = IMPORTS + CLASS.format(name="Mine")
OTHER = CLASS.format(name="Other")

WITH_OPTIONS = (
    MINE
    + """
@dataclass(frozen=True)
class Options:
    level: int = 1
    def __post_init__(self):
        if self.level < 1:
            raise ValueError("level must be positive")

class Tuned(Mine):
    def __init__(self, options: Options): self.options = options

delegate = Tuned
"""
)

ENGINE = """
from __future__ import annotations
from dataclasses import dataclass
from delegraph import Capabilities, DelegateOptions, EngineDelegate

@dataclass(frozen=True)
class Options:
    min_nodes: int = 3

class Mine(EngineDelegate):
    options: Options
    version = "1"
    def name(self): return "mine"
    def capabilities(self): return Capabilities([])
    def delegate_options(self):
        return DelegateOptions(min_nodes_per_partition=self.options.min_nodes)
    def compile(self, model): raise AssertionError("takes no node")
    def load(self, compiled, context): raise AssertionError("takes no node")
"""

HOOK = """
from delegraph import DelegateSpec, hookimpl
@hookimpl
def delegraph_delegates():
    return [{specs}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "my.py"


@pytest.mark.parametrize(
    "source",
    [
        MINE,
        MINE + "\ndef delegate(): return Mine()",
        MINE + "\ndelegate = Mine()",
        MINE + OTHER + "\ndelegate = Mine",
        MINE + OTHER + HOOK.format(specs='DelegateSpec("x", "", lambda: Mine)'),
        MINE + "\nAlias = Mine",
    ],
)
def test_the_delegate_of_a_file_is_found(file: Path, source: str) -> None:
    file.write_text(source)
    assert delegate_from_file(file).name() == "Mine"


def test_a_low_level_delegate_comes_as_it_is(file: Path) -> None:
    file.write_text(
        "from delegraph import Delegate\n"
        "class Own(Delegate):\n"
        "    def name(self): return 'own'\n"
        "    def prepare(self, context): pass\n"
    )
    assert not isinstance(delegate_from_file(str(file)), SimpleDelegate)


def test_a_class_that_is_only_imported_does_not_count(tmp_path: Path, file: Path) -> None:
    (tmp_path / "beside_my.py").write_text(IMPORTS + OTHER)
    file.write_text(MINE + "from beside_my import Other\n")
    before = list(sys.path)
    try:
        assert delegate_from_file(file).name() == "Mine"
    finally:
        sys.modules.pop("beside_my", None)
    assert sys.path == before


def test_the_folder_of_the_file_comes_first(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "beside_my.py").write_text("name = 'elsewhere'")
    (tmp_path / "beside_my.py").write_text("name = 'beside'")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    file.write_text(MINE + "import beside_my\nMine.name = lambda self: beside_my.name")
    try:
        assert delegate_from_file(file).name() == "beside"
    finally:
        sys.modules.pop("beside_my", None)


@pytest.mark.parametrize(
    "parameters", ["device: int = 0", "device: int | None = None", "device: NoSuchType = None"]
)
def test_a_parameter_that_is_no_dataclass_is_left_to_its_default(
    file: Path, parameters: str
) -> None:
    file.write_text(MINE + f"    def __init__(self, {parameters}): assert not device")
    assert delegate_from_file(file).name() == "Mine"


def test_a_file_whose_name_is_none_for_a_delegate_is_called_delegate(tmp_path: Path) -> None:
    (tmp_path / "2nd.py").write_text(MINE)
    with pytest.raises(PluginOptionError, match="delegate 'delegate' has no options"):
        delegate_from_file(tmp_path / "2nd.py", "level=1")


def test_a_changed_file_is_run_anew(file: Path) -> None:
    for name in ("Aaaa", "Bbbb"):
        file.write_text(IMPORTS + CLASS.format(name=name))
        assert delegate_from_file(file).name() == name
    assert not (file.parent / "__pycache__").exists()


@pytest.mark.parametrize("given", ["level=3", {"level": "3"}, {"level": 3}])
def test_the_dataclass_of_the_constructor_is_the_options(file: Path, given: object) -> None:
    file.write_text(WITH_OPTIONS)
    delegate = delegate_from_file(file, given)
    assert isinstance(delegate, SimpleDelegate)
    assert delegate.simple.options.level == 3  # type: ignore[attr-defined]  # the file's own class


def test_options_have_their_defaults(file: Path) -> None:
    file.write_text(WITH_OPTIONS)
    for given in (None, "", {}):
        delegate = delegate_from_file(file, given)
        assert isinstance(delegate, SimpleDelegate)
        assert delegate.simple.options.level == 1  # type: ignore[attr-defined]  # as above


def test_the_annotated_attribute_of_an_engine_s_class_is_the_options(file: Path) -> None:
    file.write_text(ENGINE)
    for given, nodes in ((None, 3), ("min_nodes=7", 7)):
        made = delegate_from_file(file, given)
        assert isinstance(made, SimpleDelegate)
        assert made.simple.delegate_options().min_nodes_per_partition == nodes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "speed=3",
            r"delegate 'my' has no option 'speed'; valid options: level \(int, default 1\)",
        ),
        ("level=fast", "option 'level' of delegate 'my' is 'fast', expected int"),
        ("level=0", "level must be positive"),
    ],
)
def test_options_that_do_not_fit_are_refused(file: Path, given: str, message: str) -> None:
    file.write_text(WITH_OPTIONS)
    with pytest.raises(PluginOptionError, match=message):
        delegate_from_file(file, given)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="there annotations are evaluated later")
def test_annotations_are_evaluated_unless_the_file_says_otherwise(file: Path) -> None:
    file.write_text("x: no_such_name = 1")
    with pytest.raises(PluginLoadError, match="line 1: NameError"):
        delegate_from_file(file)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="there the file itself is refused")
def test_an_annotation_that_the_file_does_not_know_is_no_dataclass_of_options(file: Path) -> None:
    source = MINE + "    def __init__(self, options: no_such_name = None): pass"
    file.write_text(source.replace("from __future__ import annotations\n", ""))
    assert isinstance(delegate_from_file(file), SimpleDelegate)


def test_options_for_a_delegate_without_any_are_refused(file: Path) -> None:
    file.write_text(MINE)
    with pytest.raises(PluginOptionError, match="delegate 'my' has no options"):
        delegate_from_file(file, "level=1")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = (", r"file '.*my.py', line 1: SyntaxError: '\(' was never closed"),
        ("import os\n\nraise OSError('no driver')", r"file '.*my.py', line 3: OSError: no driver"),
        ("x = no_such_name", "line 1: NameError"),
        ("import no_such_module", "line 1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys\nsys.exit(4)", "line 2: SystemExit: 4"),
        ("x = 1", "defines no delegate; expected one class that is"),
        (MINE + OTHER, r"defines 2 delegates \(Mine, Other\); expected one class"),
        (
            "from delegraph import SimpleDelegateInterface\nclass Half(SimpleDelegateInterface):\n"
            "    def name(self): return 'half'",
            "class Half of file '.*my.py' lacks methods: create_delegate_kernel_interface, is_node",
        ),
        (
            MINE + "    def __init__(self, device, *, speed): pass",
            "Mine of file '.*my.py' needs arguments: device, speed; it may take none, or one that",
        ),
        (
            WITH_OPTIONS.replace("options: Options)", "options: Options, device)"),
            "Tuned of file '.*my.py' needs arguments: device; it may take",
        ),
        (
            MINE + "    def __init__(self): raise OSError('no driver')",
            "delegate 'my' could not be made by file '.*my.py': OSError: no driver",
        ),
        ("delegate = 7", "made a int, expected a SimpleDelegateInterface or a Delegate"),
        (HOOK.format(specs="7"), r"returned \[7\], expected a list of DelegateSpec"),
        (HOOK.format(specs=""), "defines no delegate; expected"),
        (
            HOOK.format(specs='DelegateSpec("a", "", print), DelegateSpec("b", "", print)'),
            r"defines 2 delegates \(a, b\)",
        ),
        ("def delegraph_delegates(): return 1 / 0", "line 1: ZeroDivisionError"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(file: Path, source: str, message: str) -> None:
    file.write_text(source)
    with pytest.raises(PluginLoadError, match=message):
        delegate_from_file(file)


def test_a_file_that_is_not_there_is_an_argument_error(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"no delegate file '.*none.py'"):
        delegate_from_file(tmp_path / "none.py")
    with pytest.raises(ArgumentError, match="no delegate file"):
        delegate_from_file(tmp_path)


def test_a_file_knows_its_own_path(file: Path) -> None:
    file.write_text(MINE + "\nMine.name = lambda self: __file__")
    assert delegate_from_file(file).name() == str(file)


@pytest.mark.parametrize(
    "source", ["raise KeyboardInterrupt", "def delegate(): raise KeyboardInterrupt"]
)
def test_an_interrupt_is_not_swallowed(file: Path, source: str) -> None:
    file.write_text(source)
    with pytest.raises(KeyboardInterrupt):
        delegate_from_file(file)
