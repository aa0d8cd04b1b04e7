"""Options, rules, failure policies and other features of interpreters in ``compiled_model``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateFlags,
    FailurePolicy,
    Limits,
    Node,
    OpResolverType,
    PlacementPolicy,
    PlacementRule,
)
from delegraph.delegation import raise_if_requested
from delegraph.errors import (
    ArgumentError,
    CallCancelledError,
    ExternalBufferError,
    OperatorError,
    PlacementError,
    PluginOptionError,
)
from delegraph.native import LiteRtInterpreter, compiled_model
from delegraph.schema.options import AddOptions
from delegraph.testing import graph_model
from support.bundles import FLOAT, file_of
from support.by_name import ByName, ByNameKernel, X, doubling_while, sines
from support.external_buffers import with_external_buffers
from support.signatures import two_signatures

official = pytest.importorskip("ai_edge_litert.compiled_model")

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS
ALONE = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES


def without_xnnpack(kind: str = "BUILTIN") -> Any:
    cpu = official.CpuOptions(kernel_mode=official.CpuKernelMode[kind])
    return official.Options(cpu_options=cpu)


def run(model: Any, x: Any = X, count: int | None = None) -> Any:
    (source,), (target,) = model.create_input_buffers(0), model.create_output_buffers(0)
    source.write(x)
    model.run_by_index(0, [source], [target])
    return target.read(x.size if count is None else count, np.float32)


def assert_right(model: Any) -> None:
    np.testing.assert_allclose(run(model), np.sin(X) + X + np.sin(2 * X), rtol=1e-5, atol=1e-6)


class Calls(ByName):
    """Takes SIN, and calls a function with the context in one phase."""

    def __init__(self, function: Any, phase: str = "eval") -> None:
        super().__init__("SIN", flags=DYNAMIC, name="calls", kernel=CallsKernel)
        self.function, self.phase = function, phase


class CallsKernel(ByNameKernel):
    delegate: Calls

    def in_phase(self, phase: str, context: DelegateContext) -> None:
        if phase == self.delegate.phase:
            self.delegate.function(context)

    def init(self, context: DelegateContext, params: Any) -> None:
        self.in_phase("init", context)
        super().init(context, params)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        self.in_phase("prepare", context)
        super().prepare(context, node)

    def eval(self, context: DelegateContext, node: Node) -> None:
        self.in_phase("eval", context)
        super().eval(context, node)


def lose(context: DelegateContext) -> None:
    raise OSError("device lost")


# -- options ---------------------------------------------------------------------------------------


def test_delegates_by_name_have_options() -> None:
    for least, taken in ((1, 2), (3, 0)):
        with compiled_model(sines(), {"add_sub": {"min_nodes": least}}) as model:
            assert [n.delegate for n in model.placement.nodes].count("add_sub") == taken
            assert_right(model)
    with pytest.raises(PluginOptionError, match="fewest"):
        compiled_model(sines(), {"add_sub": {"fewest": 1}})


@pytest.mark.parametrize("kind", ["DELEGATE", "BUILTIN", "REFERENCE"])
def test_kernels_learn_which_official_kernels_there_are(kind: str) -> None:
    seen: list[Any] = []
    delegate = Calls(lambda context: seen.append(context.numerics), "prepare")
    with compiled_model(sines(), [delegate], options=without_xnnpack(kind)) as model:
        assert_right(model)
    assert set(seen) == {"reference" if kind == "REFERENCE" else "builtin"}


def test_delegates_keep_what_they_compile_in_the_users_folder(tmp_path: Path) -> None:
    delegate = Calls(lambda context: context.cache("here", "1").put("key", b"blob"), "init")
    compiled_model(sines(), [delegate], cache_dir=tmp_path).close()
    assert any(path.is_file() for path in tmp_path.rglob("*"))


def test_the_switch_interval_lasts_as_long_as_a_run() -> None:
    seen: list[float] = []
    delegate = Calls(lambda context: seen.append(sys.getswitchinterval()))
    before = sys.getswitchinterval()
    with compiled_model(sines(), [delegate], switch_interval=1e-4) as model:
        assert_right(model)
        assert sys.getswitchinterval() == before
    assert seen == pytest.approx([1e-4, 1e-4])


def test_constants_in_other_folders_need_the_users_word(tmp_path: Path) -> None:
    content, weights = with_external_buffers(FLOAT)
    (tmp_path / "model").mkdir()
    path = file_of(tmp_path / "model", content, "model.tflite")
    limits = Limits(weights_dir=file_of(tmp_path, weights, "weights.bin").parent)
    with pytest.raises(ExternalBufferError, match=r"weights\.bin"):
        compiled_model(path, [])
    pixels = np.linspace(0, 1, 64, dtype=np.float32)
    with compiled_model(path, [], limits=limits) as model, compiled_model(FLOAT, []) as whole:
        found, wanted = [run(each, pixels, 10) for each in (model, whole)]
        np.testing.assert_array_equal(found, wanted)


# -- rules -----------------------------------------------------------------------------------------


def test_rules_come_from_a_file_and_give_the_placement_of_the_interpreter(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text("[[rule]]\naction = 'exclude'\nnodes = 3\ndelegate = 'by_name'")
    policy = PlacementPolicy(rules=file)
    other = LiteRtInterpreter(
        model_content=sines(),
        delegates=[ByName("SIN", "ADD")],
        placement=policy,
        experimental_op_resolver_type=ALONE,
    )
    other.allocate_tensors()
    options = without_xnnpack()
    with compiled_model(
        sines(), [ByName("SIN", "ADD")], placement=policy, options=options
    ) as model:
        assert model.placement.nodes == other.placement.nodes
        assert str(model.placement.nodes[3].rejections["by_name"]).startswith(
            "rule 1 of rules.toml"
        )
        assert_right(model)


def test_rules_hold_in_other_subgraphs() -> None:
    rules = [PlacementRule("exclude", "by_name", subgraph=1)]
    with compiled_model(
        two_signatures(),
        [ByName("SIN", "NEG")],
        placement=PlacementPolicy(rules),
        options=without_xnnpack(),
    ) as model:
        assert [node.delegate for node in model.placement.nodes] == ["by_name", None]


@pytest.mark.parametrize(
    ("rule", "error", "text"),
    [
        (PlacementRule("exclude", nodes=9), ArgumentError, "matches nothing: the last node is 4"),
        (PlacementRule("pin", "by_name", nodes=1), PlacementError, r"node 1 \(ADD\): op: is ADD"),
    ],
)
def test_rules_that_cannot_hold_are_errors(rule: Any, error: Any, text: str) -> None:
    policy, options = PlacementPolicy([rule]), without_xnnpack()
    with pytest.raises(error, match=text):
        compiled_model(sines(), [ByName("SIN")], options=options, placement=policy)


def test_a_resize_that_breaks_a_requirement_is_an_error() -> None:
    class Small(ByName):
        def is_node_supported_by_delegate(self, registration: Any, node: Node, context: Any) -> Any:
            return context.tensors[node.inputs[0]].shape == (4,)

    model = compiled_model(
        sines(), [Small()], placement=PlacementPolicy(require="full"), options=without_xnnpack()
    )
    with model, pytest.raises(PlacementError, match="nodes stay behind"):
        model.resize_input_tensor(0, [5], strict=False)


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["init", "prepare", "eval"])
def test_kernels_take_over_what_a_delegate_fails_to_do(phase: str) -> None:
    failures = FailurePolicy("fallback")
    with compiled_model(sines(), [Calls(lose, phase)], failures=failures) as model:
        for _ in range(2):
            assert_right(model)
        assert {incident.phase for incident in model.incidents} == {phase}
        assert {incident.error for incident in model.incidents} == {
            *["OSError: device lost"] * (phase != "init"),
            *[
                f"its kernel for nodes [{i}]: OSError: device lost"
                for i in (0, 3)
                if phase == "init"
            ],
        }
        taken = [node.delegate for node in model.placement.nodes].count("calls")
        assert taken == (0 if phase == "init" else 2)


def test_what_calls_a_subgraph_stays_with_the_runtimes_state() -> None:
    class FailsKernel(ByNameKernel):
        def prepare(self, context: DelegateContext, node: Node) -> None:
            raise OSError("device lost")

    with pytest.raises(OperatorError, match="device lost; Delegraph's kernels cannot take over"):
        run(
            compiled_model(
                doubling_while(),
                [ByName("WHILE", flags=DYNAMIC, kernel=FailsKernel)],
                failures=FailurePolicy("fallback"),
            ),
            np.float32([3]),
        )


def test_a_kernel_may_run_another_model_and_handle_its_errors() -> None:
    def run_another(context: DelegateContext) -> None:
        with compiled_model(sines(), [Calls(lose)]) as inner, pytest.raises(OSError, match="lost"):
            run(inner)

    with compiled_model(sines(), [Calls(run_another)]) as model:
        assert_right(model)


def test_signatures_by_name_raise_what_delegates_raise() -> None:
    content = two_signatures()
    with compiled_model(content, [Calls(lose)]) as model:
        key = model.get_signature_by_index(1)["key"]
        (name,), (result,) = model.get_signature_list()[key].values()
        inputs = {name: model.create_input_buffer_by_name(key, name)}
        outputs = {result: model.create_output_buffer_by_name(key, result)}
        inputs[name].write(np.float32([1]))
        with pytest.raises(OSError, match="device lost"):
            model.run_by_name(key, inputs, outputs)


# -- limits and profile ----------------------------------------------------------------------------


def test_a_stop_request_of_another_host_stops_a_run() -> None:
    class Stopped:
        word = np.zeros(1, np.int32)

        def raise_if_requested(self) -> None:
            if self.word[0]:
                raise CallCancelledError("enough")

    stopped: Any = Stopped()
    limits = Limits(cancellation=stopped)
    with compiled_model(sines(), [Calls(raise_if_requested)], limits=limits) as model:
        assert_right(model)
        stopped.word[0] = 1
        with pytest.raises(CallCancelledError, match="enough"):
            run(model)


def test_a_profile_has_the_events_of_delegates() -> None:
    def tell(context: DelegateContext) -> None:
        context.record_event("INNER", 0, 1, 7, ())

    with compiled_model(sines(), [Calls(tell)]) as model:
        with model.profile(whole_partitions=True) as profile:
            assert_right(model)
        assert_right(model)
    assert [event.name for event in profile.events] == ["INNER", "calls"] * 2


def test_the_largest_partitions_are_those_of_the_interpreter() -> None:
    nodes = [
        ("ADD", "x x", "a", AddOptions()),
        ("SIN", "a", "b"),
        ("ADD", "b a", "y", AddOptions()),
    ]
    content = graph_model(nodes, inputs="x", outputs="y")
    other = LiteRtInterpreter(
        model_content=content,
        delegates=[ByName("ADD"), ByName("SIN", name="sines")],
        experimental_op_resolver_type=ALONE,
    )
    other.allocate_tensors()
    delegates = [ByName("ADD"), ByName("SIN", name="sines")]
    with compiled_model(content, delegates, options=without_xnnpack()) as model:
        assert model.placement.partitions == other.placement.partitions
