from __future__ import annotations

import json
from pathlib import Path

import pytest

from delegraph.cli.commands.explain import command as explain
from delegraph.cli.failure import with_options
from delegraph.delegation.configuration import DEFAULT_DELEGATES_VARIABLE
from delegraph.plugins import known_packages
from delegraph.testing import command, graph_model, one_op_model, tensor
from support.chosen_plugins import use_plugins_of
from support.command import Command
from support.configured import configure
from support.fake_distributions import write_plugin
from support.signatures import two_signatures

MODELS = Path(__file__).parents[3] / "docs" / "demo" / "models"


def test_stages_come_in_execution_order(delegraph: Command, sines: Path) -> None:
    ran = delegraph("explain", sines, "--delegate", "sin")
    assert (ran.code, ran.err) == (0, "")
    start = ran.lines.index("In execution order")
    assert ran.lines[start + 1 : start + 6] == [
        "partition runs on count nodes in out operators",
        "0 sin 1 0 4 B 4 B SIN",
        "- Delegraph 2 1-2 - - ADD, MUL",
        "1 sin 1 3 4 B 4 B SIN",
        "- Delegraph 1 4 - - ADD",
    ]


def test_refused_nodes_come_with_reason_and_where_they_run(delegraph: Command, sines: Path) -> None:
    ran = delegraph("explain", sines, "-d", "sin", "-d", "add_sub")
    start = ran.lines.index("Left by sin")
    assert ran.lines[start + 1 :] == [
        "count out operators reason nodes runs on",
        "3 12 B ADD x2, MUL takes only SIN 1-2, 4 add_sub, Delegraph",
        "",
        "Left by add_sub",
        "count out operators reason nodes runs on",
        "1 4 B MUL takes only ADD or SUB 2 Delegraph",
        "",
        "What would help",
        "sin could claim MUL: 1 more node, 1 partition fewer",
        "add_sub could claim MUL: 1 more node",
    ]


def test_without_any_delegate_all_nodes_run_on_delegraphs_kernels(
    delegraph: Command, sines: Path
) -> None:
    ran = delegraph("explain", sines)
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[1:] == delegraph("explain", sines, "-d", "none").lines[1:]
    assert any(line.startswith("Delegraph 5 0-4 ") for line in ran.lines)


def test_the_tables_of_all_delegates_have_the_same_columns(fresh_delegraph: Command) -> None:
    model = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_float.tflite"
    lines = fresh_delegraph("explain", model, "-d", "sin", "-d", "add_sub", COLUMNS="72").lines
    heads = [lines[i + 1] for i, line in enumerate(lines) if line.startswith("Left by")]
    assert len(heads) == 2
    assert heads[0] == heads[1]


@pytest.fixture
def resting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the delegate ``taker``, applied by default, which takes ADD."""
    code = (
        "from delegraph import DelegateSpec, hookimpl\n"
        "from support.by_name import ByName\n\n"
        "@hookimpl\n"
        "def delegraph_delegates():\n"
        "    make = lambda: ByName('ADD', name='taker')\n"
        "    return [DelegateSpec('taker', 'takes ADD', lambda: make, default_rank=0)]\n"
    )
    write_plugin(tmp_path / "site", "taker", code)
    use_plugins_of(monkeypatch, tmp_path / "site")
    monkeypatch.setattr(known_packages, "OUR_DISTRIBUTIONS", {"fake-taker"})
    monkeypatch.delenv(DEFAULT_DELEGATES_VARIABLE)


@pytest.mark.usefixtures("resting")
def test_the_default_delegate_has_the_rest_and_takes_nothing(
    delegraph: Command, sines: Path
) -> None:
    ran = delegraph("explain", sines, "-d", "sin")
    rest = "the rest: 2 on taker (by default), 1 on Delegraph's kernels"
    assert f"5 nodes: sin takes 2 in 2 partitions; {rest}" in ran.lines
    assert "4 tensors cross to or from a named delegate, 16 B an invoke" in ran.lines
    start = ran.lines.index("In execution order")
    assert ran.lines[start + 2 : start + 6] == [
        "0 sin 1 0 4 B 4 B SIN",
        "- Delegraph 1 2 - - MUL",
        "1 sin 1 3 4 B 4 B SIN",
        "- taker 2 1, 4 - - ADD x2",
    ]
    assert "Left by taker" not in ran.lines
    shown = delegraph("explain", sines, "-d", "sin", "--json").json
    totals, others = shown["totals"], shown["default_totals"]
    for name in ("partitions", "crossings"):
        assert totals[name] + others[name] == len(shown[name])
    assert others["partitions"] == 1
    assert (totals["delegated"], totals["by_default"], totals["partitions"]) == (2, 2, 2)
    assert totals["crossing_bytes"] == 16
    ran = delegraph("explain", sines, "-d", "sin", "-d", "add_sub", "--require", "full")
    assert "1 node stays behind; see 'Left by'" in ran.err


@pytest.mark.usefixtures("resting")
def test_none_means_nothing_but_the_core(delegraph: Command, sines: Path) -> None:
    assert "taker takes 2 in 1 partition (by default)" in delegraph("explain", sines).out
    ran = delegraph("explain", sines, "-d", "none")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[1:] == [
        "5 nodes: 5 stay with Delegraph's kernels",
        "",
        "In execution order",
        "runs on count nodes operators",
        "Delegraph 5 0-4 ADD x2, SIN x2, MUL",
    ]


def test_hints_are_in_the_json(delegraph: Command, sines: Path) -> None:
    shown = delegraph("explain", sines, "-d", "sin", "--json").json
    assert shown["hints"][0] == {
        "delegate": "sin",
        "change": "claim MUL",
        "nodes": 1,
        "macs": 0,
        "share": None,
        "fewer_partitions": 1,
        "macs_are_least": False,
    }
    assert shown["refusals"][0]["nodes"] == [1, 2, 4]


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_word_is_broken(delegraph: Command, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(command, "WIDTH", width)
    ran = delegraph("explain", MODELS / "digits_float.tflite", "-d", "add_sub")
    words = {word for line in ran.out.splitlines()[1:] for word in line.split()}
    assert {"partition", "FULLY_CONNECTED,", "share", "reason"} <= words
    assert max(map(len, ran.out.splitlines()[1:])) <= width


def test_json_holds_partitions_nodes_and_stages(delegraph: Command, sines: Path) -> None:
    shown = delegraph("explain", sines, "-d", "sin", "--json").json
    assert shown["delegates"] == ["sin"]
    assert shown["numerics"] == "builtin"
    assert [p["nodes"] for p in shown["partitions"]] == [[0], [3]]
    assert shown["nodes"][1]["rejections"]["sin"]["constraint"] == "op"
    assert [stage["ops"] for stage in shown["stages"]] == [
        ["SIN"],
        ["ADD", "MUL"],
        ["SIN"],
        ["ADD"],
    ]


@pytest.mark.parametrize("runtime", ["delegraph", "litert", "litert2"])
def test_nothing_runs_operators_that_nobody_has(
    delegraph: Command, custom: Path, sines: Path, runtime: str
) -> None:
    words = ("explain", custom, "-d", "sin", "--runtime", runtime)
    ran = delegraph(*words)
    assert ran.code == 0
    assert "1 node: sin takes none, 1 that nothing can run" in ran.lines
    assert "nothing 1 0 FlexErf" in ran.lines
    assert any("FlexErf takes only SIN 0 nothing" in line for line in ran.lines)
    assert "What would help" in ran.lines
    assert delegraph(*words, "--require", "full").code == 1
    shown = delegraph(*words, "--json").json
    assert shown["totals"]["unresolved"] == 1
    assert shown["nodes"][0]["is_unresolved"] is True
    assert shown["stages"][0]["is_unresolved"] is True
    assert shown["refusals"][0]["runs_on"] == ["nothing"]
    assert "error" not in shown


def test_the_nodes_around_an_unresolved_one_are_told_apart(
    delegraph: Command, tmp_path: Path
) -> None:
    model = tmp_path / "open.tflite"
    nodes = [("SIN", "x", "a"), ("Unknown", "a", "b"), ("COS", "b", "y")]
    model.write_bytes(graph_model(nodes, inputs="x", outputs="y"))
    ran = delegraph("explain", model)  # no delegate is needed to see what nothing runs
    assert (ran.code, ran.err) == (0, "")
    start = ran.lines.index("In execution order")
    assert ran.lines[start + 2 :] == [
        "Delegraph 1 0 SIN",
        "nothing 1 1 Unknown",
        "Delegraph 1 2 COS",
        "",
        "What would help",
        "Unknown (1 node): it needs register_custom_op(), or a delegate that claims it",
    ]


def test_a_reason_names_the_option_that_sets_a_limit(delegraph: Command, sines: Path) -> None:
    ran = delegraph("explain", sines, "-d", "sin", "--memory-limit", "1")
    assert "the limit of 1 bytes; --memory-limit sets another" in " ".join(ran.out.split())
    assert ran.lines[1].startswith("cannot run, allocation fails: Node number 0 (SIN)")
    shown = delegraph("explain", sines, "-d", "sin", "--memory-limit", "1", "--json").json
    assert shown["allocation_error"].endswith("1 bytes; --memory-limit sets another")
    assert "--memory-limit" not in delegraph("explain", sines, "-d", "sin").out
    assert delegraph("explain", sines, "-d", "sin", "--json").json["allocation_error"] is None


def test_a_lock_of_a_model_that_cannot_run_is_no_success(
    delegraph: Command, custom: Path, sines: Path, tmp_path: Path
) -> None:
    lock = tmp_path / "custom.lock.json"
    assert delegraph("explain", custom, "-d", "sin", "--lock", lock).code == 1
    assert not lock.exists()


def test_options_reach_the_delegate(delegraph: Command, sines: Path) -> None:
    ran = delegraph("explain", sines, "-d", "add_sub:min_nodes=3")
    assert "2 8 B ADD x2 min-nodes-per-partition: is 2, needs 3 1, 4 Delegraph" in ran.lines


def test_plugin_trouble_exits_with_3_and_a_wrong_option_with_2(
    delegraph: Command, sines: Path
) -> None:
    for delegate, code, message in (
        ("nosuch", 3, "no installed plugin provides delegate 'nosuch'"),
        ("sin:x=1", 2, "delegate 'sin' has no options"),
        ("a:b:c", 2, "delegate 'a:b:c' cannot be read"),
        ("", 2, "or 'name:key=value,key=value'; it is empty"),
    ):
        ran = delegraph("explain", sines, "-d", delegate)
        assert ran.code == code
        assert message in ran.err
        assert len(ran.err.splitlines()) == 1


def test_what_crosses_is_told_in_a_sentence(delegraph: Command, sines: Path) -> None:
    ran = delegraph("explain", sines, "-d", "add_sub")
    assert "4 tensors cross to or from a delegate, 16 B an invoke" in ran.lines


def test_without_partitions_nothing_is_said_of_them(delegraph: Command, sines: Path) -> None:
    ran = delegraph("explain", sines, "-d", "add_sub:min_nodes=9")
    assert "runs on count nodes operators" in ran.lines
    assert "cross" not in ran.out


def test_sizes_that_are_not_known_are_a_question_mark(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    model = tmp_path / "open.tflite"
    model.write_bytes(
        graph_model([("Unknown", "x", "a"), ("SIN", "a", "y")], inputs="x", outputs="y")
    )
    assert "0 sin 1 1 16 B 16 B SIN" in delegraph("explain", model, "-d", "sin").lines
    model.write_bytes(
        graph_model(
            [("UNIQUE", "x", "a i"), ("SIN", "a", "y")],
            inputs="x",
            outputs="y",
            tensors={"i": tensor((4,), "INT32")},
        )
    )
    ran = delegraph("explain", model, "-d", "sin")
    assert "0 sin 1 1 ? ? SIN" in ran.lines
    assert (
        "2 tensors cross to or from a delegate, 0 B and 2 of a size known only while invoking"
        in ran.lines
    )


def test_rules_of_a_file_hold(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\naction = 'exclude'\nnodes = 3")
    ran = delegraph("explain", sines, "-d", "sin", "--rules", rules)
    reason = "rule 1 of rules.toml: exclude nodes 3 from every delegate"
    assert f"1 4 B SIN {reason} 3 Delegraph" in ran.lines


def test_mistakes_in_rules_exit_with_2(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\naction = 'exclude'\nnodes = 9")
    ran = delegraph("explain", sines, "-d", "sin", "--rules", rules)
    assert (ran.code, ran.out) == (2, "")
    assert "matches nothing: the last node is 4" in ran.err


def test_missed_pins_exit_with_1(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\naction = 'pin'\ndelegate = 'sin'\nnodes = 1")
    ran = delegraph("explain", sines, "-d", "sin", "--rules", rules)
    assert ran.code == 1
    assert "node 1 (ADD): op: is ADD, needs SIN" in ran.err


def test_require_full_shows_the_placement_and_exits_with_1(delegraph: Command, sines: Path) -> None:
    ran = delegraph("explain", sines, "-d", "sin", "--require", "full")
    assert ran.code == 1
    assert "Left by sin" in ran.lines
    assert ran.err == "error: --require full: 3 nodes stay behind; see 'Left by'\n"
    told = delegraph("explain", sines, "-d", "sin", "--require", "full", "--json")
    assert "3 nodes stay behind: ADD (nodes 1, 4: sin " in told.json["error"]["message"]


@pytest.mark.parametrize("runtime", ["litert", "litert2"])
def test_a_placement_in_litert_has_the_same_hints(
    delegraph: Command, sines: Path, runtime: str
) -> None:
    pytest.importorskip("ai_edge_litert")
    words = ("explain", sines, "-d", "sin", "-d", "add_sub", "--runtime")
    expected = delegraph(*words, "delegraph")
    found = delegraph(*words, runtime)
    start = expected.lines.index("What would help")
    assert found.lines[-3:] == expected.lines[start:]
    assert delegraph(*words, runtime, "--json").json["hints"][0]["change"] == "claim MUL"


def test_a_search_for_hints_that_finds_none_is_told(delegraph: Command, tmp_path: Path) -> None:
    model = tmp_path / "int8.tflite"
    x, y = (tensor((4,), "INT8", scale=0.1) for _ in range(2))
    model.write_bytes(one_op_model("RELU", [x], [y]))
    lines = delegraph("explain", model, "-d", "add_sub").lines
    told = "no small addition to what a delegate claims would give it 1 % more of the arithmetic"
    assert lines[-1] == told


def test_nodes_that_are_not_listed_are_counted_as_nodes(delegraph: Command, tmp_path: Path) -> None:
    model = tmp_path / "pairs.tflite"
    names = [f"t{i}" for i in range(31)]
    ops = [("ADD" if i % 3 else "SIN", *names[i : i + 2]) for i in range(30)]
    ops = [(op, f"{x} {x}" if op == "ADD" else x, y) for op, x, y in ops]
    tensors = {name: tensor((4,)) for name in names}
    model.write_bytes(graph_model(ops, inputs="t0", outputs="t30", tensors=tensors))
    out = delegraph("explain", model, "-d", "sin").out
    assert "1-2, 4-5, 7-8, 10-11, 13-14, 16-17, 19-20, 22-23 and 4 more" in " ".join(out.split())


def test_a_lock_is_written_and_checked(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    lock = tmp_path / "sines.lock.json"
    ran = delegraph("explain", sines, "-d", "sin", "-d", "add_sub:min_nodes=2", "--lock", lock)
    assert (ran.code, ran.err) == (0, f"placement written to {lock}\n")
    assert json.loads(lock.read_text())["delegates"] == ["sin", "add_sub:min_nodes=2"]
    ran = delegraph("explain", sines, "--check", lock)
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines == [
        f"ok: sines.tflite is placed as {lock} says: 5 nodes: sin takes 2 in 2 partitions, "
        "add_sub takes 2 in 1 partition, 1 stays with Delegraph's kernels"
    ]


@pytest.mark.usefixtures("resting")
def test_a_lock_of_no_delegate_warns(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    ran = delegraph("explain", sines, "-d", "none", "--lock", tmp_path / "sines.lock.json")
    assert ran.code == 0
    assert "takes a node by default: the lock guards only the model's contents" in ran.err


@pytest.mark.usefixtures("resting")
def test_a_lock_of_no_named_delegate_is_of_the_default_one(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    lock = tmp_path / "sines.lock.json"
    ran = delegraph("explain", sines, "--lock", lock)
    assert (ran.code, ran.err) == (0, f"placement written to {lock}\n")
    content = json.loads(lock.read_text())
    [(name, package)] = content["by_default"].items()
    assert name in content["subgraphs"][0]["nodes"].values()
    assert delegraph("explain", sines, "--check", lock).code == 0
    lock.write_text(lock.read_text().replace(package, "other 0.1"))
    assert delegraph("explain", sines, "--check", lock).code == 0
    ran = delegraph("explain", sines, "--check", lock, "-d", "none")
    assert ran.code == 1
    assert f"nodes left {name}" in ran.err


def test_a_lock_of_a_default_delegate_that_is_not_there_differs(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    lock = tmp_path / "sines.lock.json"
    delegraph("explain", sines, "-d", "sin", "--lock", lock)
    content = json.loads(lock.read_text())
    lock.write_text(json.dumps(content | {"delegates": [], "by_default": {"sin": "package 1.0"}}))
    ran = delegraph("explain", sines, "--check", lock)
    assert ran.code == 1
    assert ran.err == f"error: the placement is not as {lock} says: 2 nodes left sin\n"


def test_a_difference_from_the_lock_exits_with_1(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    lock, rules = tmp_path / "sines.lock.json", tmp_path / "rules.toml"
    delegraph("explain", sines, "-d", "sin", "--lock", lock)
    rules.write_text("[[rule]]\naction = 'exclude'\noperators = 'SIN'")
    ran = delegraph("explain", sines, "--check", lock, "--rules", rules)
    assert ran.code == 1
    assert ran.err == f"error: the placement is not as {lock} says: 2 nodes left sin\n"
    reason = "rule 1 of rules.toml: exclude operators SIN from every delegate"
    assert f"SIN 2 0, 3 sin the rest {reason}" in ran.lines
    found = delegraph("explain", sines, "--check", lock, "--rules", rules, "--json")
    assert found.code == 1
    assert found.json["ok"] is False
    assert found.json["difference"]["summary"] == "2 nodes left sin"
    assert found.json["difference"]["nodes"][1]["index"] == 3
    assert delegraph("explain", sines, "--check", lock, "--json").json["ok"] is True


def test_a_placement_as_locked_may_still_not_be_full(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    lock = tmp_path / "sines.lock.json"
    delegraph("explain", sines, "-d", "sin", "--lock", lock)
    ran = delegraph("explain", sines, "--check", lock, "--require", "full", "--json")
    assert ran.code == 1
    assert ran.json["ok"] is True
    assert "--require full: 3 nodes stay behind" in ran.err


def test_all_delegates_are_written_out_in_a_lock(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    lock = tmp_path / "sines.lock.json"
    assert delegraph("explain", sines, "-d", "all", "--lock", lock).code == 0
    names = json.loads(lock.read_text())["delegates"]
    assert "all" not in names
    assert any(name.endswith("sin") for name in names)


@pytest.mark.parametrize("content", ["", '{"format": "delegraph-placement-lock", "version": 9}'])
def test_a_bad_lock_exits_with_2(
    delegraph: Command, sines: Path, tmp_path: Path, content: str
) -> None:
    lock = tmp_path / "sines.lock.json"
    lock.write_text(content)
    ran = delegraph("explain", sines, "--check", lock)
    assert (ran.code, ran.out) == (2, "")
    assert str(lock) in ran.err


def test_writing_and_checking_exclude_each_other(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    lock = tmp_path / "sines.lock.json"
    delegraph("explain", sines, "-d", "sin", "--lock", lock)
    ran = delegraph("explain", sines, "-d", "sin", "--lock", lock, "--check", lock)
    assert ran.code == 2
    assert "give one of them" in ran.err


MINE = """
from delegraph import Delegate

class Mine(Delegate):
    def name(self):
        return 'mine'

    def prepare(self, context):
        pass
"""


def test_delegate_files_are_part_of_a_lock(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    file, lock = tmp_path / "mine.py", tmp_path / "sines.lock.json"
    file.write_text(MINE)
    delegraph("explain", sines, "--delegate-file", file, "--lock", lock)
    assert json.loads(lock.read_text())["delegate_files"] == ["mine.py"]
    ran = delegraph("explain", sines, "--check", lock)
    assert (ran.code, ran.err) == (0, "")
    assert "mine takes none" in ran.out


def test_files_of_a_lock_are_found_from_its_folder(
    delegraph: Command, sines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "mine.py").write_text(MINE)
    lock = Path("locks/sines.lock.json")
    monkeypatch.chdir(tmp_path)
    assert delegraph("explain", sines, "-d", "./mine.py", "-d", "sin", "--lock", lock).code == 0
    assert json.loads(lock.read_text())["delegates"] == ["../mine.py", "sin"]
    monkeypatch.chdir("locks")
    for named in ([], ["-d", "../mine.py", "-d", "sin"]):
        ran = delegraph("explain", sines, *named, "--check", lock.name)
        assert (ran.code, ran.err) == (0, "")


WAITING = '''
from delegraph import Delegate, DelegateFlags, Registration

class Waiting(Delegate):
    """Takes every node; waits while its kernel is prepared until it is to stop."""

    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def name(self):
        return "waiting"

    def prepare(self, context):
        kernel = Registration("Waiting", self.wait)
        context.replace_node_subsets_with_delegate_kernels(
            kernel, context.get_execution_plan(), self
        )

    def wait(self, context, node):
        while True:
            context.cancellation.raise_if_requested()
'''


def test_a_time_limit_ends_what_takes_too_long(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    file = tmp_path / "waiting.py"
    file.write_text(WAITING)
    ran = delegraph("explain", sines, "--delegate-file", file, "--time-limit", "0.05")
    assert ran.code == 4
    assert ran.err.startswith("error: The call took more than the time limit of 0.05 s")


def test_delegates_of_the_configuration_apply_unless_options_name_others(
    delegraph: Command, sines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, tmp_path, "delegates = ['sin']")
    assert "sin takes 2 in 2 partitions (by default)" in delegraph("explain", sines).out
    assert "by default" not in delegraph("explain", sines, "-d", "add_sub").out
    assert "sin takes" not in delegraph("explain", sines, "-d", "none").out
    ran = delegraph("run", sines, "--json").json
    assert ran["placement"]["delegates"] == ["sin"]
    none = delegraph("run", sines, "--no-default-delegates", "--json").json
    assert none["placement"]["delegates"] == []


FAILING = """
from delegraph import DelegateSpec, SimpleDelegateInterface, hookimpl

class Failing(SimpleDelegateInterface):
    def name(self):
        return "failing"

    def is_node_supported_by_delegate(self, registration, node, context):
        return True

    def create_delegate_kernel_interface(self):
        raise OSError("device lost")

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("failing", "fails", lambda: Failing)]
"""


def test_what_a_default_delegate_fails_in_is_shown(
    fresh_delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    write_plugin(tmp_path / "site", "failing", FAILING)
    environment = {"DELEGRAPH_CACHE": str(tmp_path), "DELEGRAPH_DEFAULT_DELEGATES": "failing"}
    ran = fresh_delegraph("explain", sines, **environment)
    assert ran.code == 0
    assert ran.err.count("DefaultDelegateWarning") == 1
    assert "5 nodes: 5 stay with Delegraph's kernels; failing failed in init" in ran.lines
    assert "Incidents" in ran.lines
    assert "device lost" in ran.out


LANGUAGE = MODELS / "language_model.tflite"


def test_a_signature_is_explained_alone(delegraph: Command) -> None:
    ran = delegraph("explain", LANGUAGE, "-d", "sin", "--signature", "decode")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[1:3] == [
        "signature decode; others: prefill_8",
        "130 nodes: sin takes 1 in 1 partition, 129 stay with Delegraph's kernels",
    ]
    assert "Signatures" not in ran.lines
    shown = delegraph("explain", LANGUAGE, "-d", "sin", "--signature", "decode", "--json").json
    assert (shown["signature"], shown["totals"]["nodes"]) == ("decode", 130)
    assert [each["name"] for each in shown["signatures"]] == ["decode", "prefill_8"]


def test_sizes_of_all_signatures_are_known(delegraph: Command, tmp_path: Path) -> None:
    model = tmp_path / "two.tflite"
    model.write_bytes(two_signatures())
    assert "1 0 sin 1 0 4 B 4 B SIN" in delegraph("explain", model, "-d", "sin").lines


def test_columns_without_room_are_named(fresh_delegraph: Command) -> None:
    model = MODELS / "digits_int8.tflite"
    lines = fresh_delegraph("explain", model, "-d", "sin", COLUMNS="72").lines
    assert "no room for runs on: wider terminals and --json show more" in lines


def test_operators_of_another_chip_are_told_as_such(delegraph: Command, tmp_path: Path) -> None:
    """Vela's operator reads a tensor of scratch memory, which nothing writes."""
    model = tmp_path / "vela.tflite"
    model.write_bytes(
        graph_model(
            [("ethos-u", "x scratch", "y")],
            inputs="x",
            outputs="y",
            tensors={name: tensor((4,), "INT8") for name in ("x", "scratch", "y")},
        )
    )
    ran = delegraph("explain", model, "-d", "sin")
    assert ran.lines[-1].startswith("ethos-u (1 node): probably Arm's Vela compiler for Ethos-U")


def test_reasons_in_a_delegates_own_words_are_told_once(
    delegraph: Command, custom: Path, tmp_path: Path
) -> None:
    """They may have a remedy of their own, so it is not said that nothing would help."""
    own = tmp_path / "picky.py"
    own.write_text(
        "from delegraph import Rejection\n"
        "from support.by_name import ByName\n\n"
        "class Picky(ByName):\n"
        "    def __init__(self):\n"
        "        super().__init__('SIN', name='picky')\n\n"
        "    def is_node_supported_by_delegate(self, registration, node, context):\n"
        "        return Rejection('version', 'too old: convert it again')\n"
    )
    for model in (custom, MODELS / "digits_int8.tflite"):
        ran = delegraph("explain", model, "-d", own)
        assert ran.out.count("too old") == 1
        assert "no small addition" not in ran.out


def test_a_model_with_several_signatures_has_the_placement_of_each(delegraph: Command) -> None:
    ran = delegraph("explain", LANGUAGE, "-d", "sin")
    start = ran.lines.index("Signatures")
    assert ran.lines[start + 2].startswith("decode 1 130 nodes: sin takes 1 in 1 partition")
    assert ran.lines[-1] == "--signature NAME shows one of them alone"


def test_require_is_about_the_explained_signature(delegraph: Command) -> None:
    words = ("-d", "sin", "--require", "full")
    ran = delegraph("explain", LANGUAGE, *words, "--signature", "decode")
    assert ran.code == 1
    assert "130" in ran.err or "129" in ran.err


@pytest.mark.parametrize("option", ["--lock", "--check"])
def test_a_lock_is_about_all_signatures(
    delegraph: Command, sines: Path, tmp_path: Path, option: str
) -> None:
    lock = tmp_path / "lock.json"
    lock.touch()
    ran = delegraph("explain", sines, "-d", "sin", "--signature", "serving_default", option, lock)
    assert ran.code == 2
    assert f"{option} is about all signatures: leave out --signature" in ran.err


def test_the_official_interpreter_tells_xnnpacks_nodes_of_the_first_subgraph_only(
    delegraph: Command,
) -> None:
    words = ("-d", "default", "--signature", "decode")
    ran = delegraph("explain", LANGUAGE, "--runtime", "litert", *words)
    assert "130 nodes: 130 stay with LiteRT's kernels" in ran.lines
    assert "reports the nodes of XNNPACK in the first subgraph only" in " ".join(ran.out.split())
    ran = delegraph("explain", LANGUAGE, "--runtime", "litert2", *words)
    assert "XNNPACK takes 117 in 3 partitions" in ran.out


def test_an_error_about_delegates_speaks_of_options() -> None:
    told = with_options("require='full' ...: add delegates=['npu']", explain)
    assert told == "--require full ...: add -d npu"
