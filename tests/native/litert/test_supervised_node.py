"""Shadow and validation of delegates in both official APIs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from delegraph import DelegateContext, DelegateFlags, FailurePolicy, Interpreter, Node
from delegraph.delegation import Capabilities, Tolerance
from delegraph.errors import OperatorError
from delegraph.native import LiteRtInterpreter, compiled_model, litert_delegate
from delegraph.native.litert import thunks
from delegraph.runtime.arguments import OpResolverType
from support.by_name import ByName, ByNameKernel, sines
from support.policy_models import MODELS, assert_same, floats, stepped

official = pytest.importorskip("ai_edge_litert.compiled_model")

STEPS = floats(7)


def nothing(y: Any) -> None:
    """Change nothing."""


class Wrong(ByName):
    """Takes operators by name, and changes each result by a function of its output tensor."""

    def __init__(
        self,
        *ops: str,
        fault: Callable[[Any], object] = nothing,
        from_run: int = 1,
        tolerance: float | None = None,
        name: str = "wrong",
    ) -> None:
        super().__init__(
            *ops, flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS, name=name, kernel=WrongKernel
        )
        self.fault, self.from_run, self.tolerance = fault, from_run, tolerance
        self.runs = 0

    def capabilities(self) -> Capabilities:
        allowed = (
            None if self.tolerance is None else {"FLOAT32": Tolerance(absolute=self.tolerance)}
        )
        return Capabilities(tolerance=allowed)


class WrongKernel(ByNameKernel):
    delegate: Wrong

    def eval(self, context: DelegateContext, node: Node) -> None:
        super().eval(context, node)
        self.delegate.runs += 1
        if self.delegate.runs >= self.delegate.from_run:
            self.delegate.fault(context.tensors[node.outputs[0]])


def off(y: Any) -> None:
    y.data[-1:] += 0.1


def in_interpreter(
    content: bytes, steps: Sequence[Any], delegates: Sequence[Any], policy: FailurePolicy
) -> tuple[Any, list[Any]]:
    made: Any = LiteRtInterpreter(
        model_content=content,
        delegates=delegates,
        failures=policy,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    return made, stepped(made, steps)


def in_compiled_model(
    content: bytes, steps: Sequence[Any], delegates: Sequence[Any], policy: FailurePolicy
) -> tuple[Any, list[Any]]:
    cpu = official.CpuOptions(kernel_mode=official.CpuKernelMode.BUILTIN)
    made = compiled_model(
        content, delegates, options=official.Options(cpu_options=cpu), failures=policy
    )
    found, shape = [], None
    for x in steps:
        if x.shape != shape:
            made.resize_input_tensor(0, x.shape, strict=False)
            inputs, outputs = made.create_input_buffers(0), made.create_output_buffers(0)
            shape = x.shape
        inputs[0].write(x)
        made.run_by_index(0, inputs, outputs)
        found.append(outputs[0].read(x.size, np.float32).reshape(x.shape))
    return made, found


both_apis = pytest.mark.parametrize("run", [in_interpreter, in_compiled_model])


def assert_close(found: Sequence[Any], expected: Sequence[Any]) -> None:
    """Check results that LiteRT's own SIN has a part in, which rounds elsewhere."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def right(steps: Sequence[Any] = STEPS) -> list[Any]:
    return stepped(Interpreter(model_content=sines(), delegates=[]), steps)


@both_apis
def test_a_wrong_delegate_is_quarantined_at_the_first_run_in_all_its_nodes(run: Any) -> None:
    delegate = Wrong("SIN", fault=off)
    made, found = run(sines(), STEPS, [delegate], FailurePolicy("shadow"))
    assert_same(found, right())
    assert delegate.runs == 1
    (incident,) = made.incidents
    assert incident.is_quarantined
    assert (incident.subgraph, incident.node_index, incident.nodes) == (0, 5, (0,))
    assert incident.error.startswith("Tensor(1, 'a', FLOAT32[4]) is ")
    assert "at [3], the largest of 1 differences in 4 elements" in incident.error
    assert made.placement.quarantined == ("wrong",)


@both_apis
def test_a_right_delegate_keeps_its_nodes_and_others_are_not_touched(run: Any) -> None:
    delegates = [Wrong("SIN", fault=off, name="a"), Wrong("ADD", name="b")]
    made, found = run(sines(), STEPS, delegates, FailurePolicy("shadow", shadow_share=1))
    assert_same(found, right())
    assert (delegates[0].runs, delegates[1].runs) == (1, 7)
    assert [incident.delegate for incident in made.incidents] == ["a"]


@both_apis
def test_results_within_the_tolerance_are_the_delegates(run: Any) -> None:
    delegate = Wrong("ADD", fault=off, tolerance=0.2)
    made, found = run(sines(), STEPS, [delegate], FailurePolicy("shadow", shadow_share=1))
    assert made.incidents == ()
    for a, b in zip(found, right(), strict=True):
        np.testing.assert_allclose(a - b, [0, 0, 0, 0.1], rtol=1e-5, atol=1e-6)


@both_apis
@pytest.mark.parametrize(("share", "noticed"), [(1.0, 2), (0.5, 3), (0.25, 5)])
def test_recomputed_runs_are_spread_also_across_resizes(
    run: Any, share: float, noticed: int
) -> None:
    steps = [*floats(2), *floats(2, 3), *floats(3, 5)]
    delegate = Wrong("MUL", fault=off, from_run=2)
    _, found = run(sines(), steps, [delegate], FailurePolicy("shadow", shadow_share=share))
    assert delegate.runs == noticed
    assert_close(found[noticed - 1 :], right(steps)[noticed - 1 :])


@both_apis
@pytest.mark.parametrize("policy", ["fallback", "shadow"])
def test_a_failure_falls_back_without_quarantine(run: Any, policy: Any) -> None:
    def fail(y: Any) -> None:
        y.data[...] = 99
        raise OSError("device lost")

    delegate = Wrong("ADD", fault=fail)
    made, found = run(sines(), STEPS, [delegate], FailurePolicy(policy, validate=True))
    assert_close(found, right())
    assert delegate.runs == 7
    assert [incident.error for incident in made.incidents] == ["OSError: device lost"]
    assert not any(incident.is_quarantined for incident in made.incidents)


VIOLATIONS = {
    "NaN": (lambda y: y.data.fill(np.nan), "is NaN or infinite where it should be a number"),
    "dtype": (lambda y: setattr(y, "data", np.zeros(4)), r"was given an array of float64\[4\]"),
    "shape": (lambda y: setattr(y, "shape", (2, 2)), r"has a wrong shape, expected \[4\]"),
}


@both_apis
@pytest.mark.parametrize("name", VIOLATIONS)
def test_validation_finds_what_cannot_be_right(run: Any, name: str) -> None:
    fault, text = VIOLATIONS[name]
    with pytest.raises(OperatorError, match=rf"Tensor\(1, 'a', .* ?{text}"):
        run(sines(), STEPS, [Wrong("SIN", fault=fault)], FailurePolicy("raise", validate=True))
    made, found = run(
        sines(), STEPS, [Wrong("SIN", fault=fault)], FailurePolicy("fallback", validate=True)
    )
    assert_same(found, right())
    assert [incident.count for incident in made.incidents] == [7, 7]


@both_apis
def test_a_delegates_own_error_is_raised_itself_under_validation(run: Any) -> None:
    error = OperatorError("device lost")

    def fail(y: Any) -> None:
        raise error

    with pytest.raises(OperatorError) as caught:
        run(sines(), STEPS, [Wrong("SIN", fault=fail)], FailurePolicy("raise", validate=True))
    assert caught.value is error


class Remembering(Wrong):
    """Computes the RNN of ``remembering()``."""

    def create_delegate_kernel_interface(self) -> ByNameKernel:
        return RememberingKernel(self)


class RememberingKernel(ByNameKernel):
    delegate: Wrong

    def prepare(self, context: DelegateContext, node: Node) -> None:
        context.resize_tensor(context.tensors[node.outputs[0]], [1, 1])

    def eval(self, context: DelegateContext, node: Node) -> None:
        x, y = context.tensors[node.inputs[0]].data, context.tensors[node.outputs[0]].data
        state = next(t for t in map(context.tensors.__getitem__, node.inputs) if t.is_variable)
        y[...] = x + np.float32(0.5) * state.data
        state.data[...] = y
        self.delegate.runs += 1
        self.delegate.fault(state)


@pytest.mark.parametrize("is_right", [True, False])
def test_a_state_is_advanced_once_and_compared(is_right: bool) -> None:
    content, steps = MODELS["variable"]
    fault = nothing if is_right else lambda state: state.data.__iadd__(1)
    delegate = Remembering("RNN", fault=fault)
    policy = FailurePolicy("shadow", validate=True, shadow_share=1)
    made, found = in_interpreter(content, steps, [delegate], policy)
    assert_close(found, stepped(Interpreter(model_content=content, delegates=[]), steps))
    assert delegate.runs == (len(steps) if is_right else 1)
    assert ["'h'" in incident.error for incident in made.incidents] == [True] * (not is_right)


def test_sizes_that_are_known_only_while_invoking() -> None:
    content, steps = MODELS["dynamic"]
    steps = [x for x in steps if (x > 0).any()]
    expected = stepped(Interpreter(model_content=content, delegates=[]), steps)
    for fault, is_quarantined in ((nothing, []), (off, [True])):
        delegate = Wrong("MUL", fault=fault)
        policy = FailurePolicy("shadow", validate=True, shadow_share=1)
        made, found = in_interpreter(content, steps, [delegate], policy)
        assert_same(found, expected)
        assert [incident.is_quarantined for incident in made.incidents] == is_quarantined


def test_a_partition_that_calls_subgraphs_runs_unsupervised() -> None:
    content, steps = MODELS["loop"]

    class Fails(Wrong):
        def create_delegate_kernel_interface(self) -> ByNameKernel:
            return FailsKernel(self)

    class FailsKernel(ByNameKernel):
        def prepare(self, context: DelegateContext, node: Node) -> None:
            raise OSError("device lost")

    with pytest.raises(OperatorError, match=r"device lost; .* node 0 calls a subgraph"):
        in_interpreter(content, steps, [Fails("WHILE")], FailurePolicy("shadow"))


def test_values_in_buffers_of_the_delegate_are_compared() -> None:
    class Buffering(Wrong):
        def create_delegate_kernel_interface(self) -> ByNameKernel:
            return BufferingKernel(self)

        def copy_from_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
            tensor.data[...] = self.buffer

    class BufferingKernel(ByNameKernel):
        delegate: Buffering

        def eval(self, context: DelegateContext, node: Node) -> None:
            super().eval(context, node)
            self.delegate.runs += 1
            y = context.tensors[node.outputs[0]]
            self.delegate.buffer = y.data + (0 if self.delegate.runs == 1 else 1)
            y.data[...] = 99
            context.set_buffer_handle(y, 1, self.delegate)
            y.data_is_stale = True

    delegate = Buffering("ADD")
    policy = FailurePolicy("shadow", shadow_share=1)
    made, found = in_interpreter(sines(), STEPS, [delegate], policy)
    assert_close(found, right())
    assert delegate.runs == 2
    assert [incident.is_quarantined for incident in made.incidents] == [True]


def test_kernels_go_with_the_interpreter() -> None:
    gc.collect()
    before = thunks.living()
    made, _ = in_interpreter(sines(), STEPS, [Wrong("SIN", fault=off)], FailurePolicy("shadow"))
    made.close()
    del made
    assert thunks.living()[1] == before[1]


def test_the_official_class_takes_it_too() -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    delegate = litert_delegate(Wrong("SIN", fault=off), model=sines(), on_failure="shadow")
    made = litert.Interpreter(model_content=sines(), experimental_delegates=[delegate])
    assert_close(stepped(made, STEPS), right())
    assert [incident.is_quarantined for incident in delegate.incidents] == [True]


def test_an_isolated_delegate_is_compared() -> None:
    policy = FailurePolicy("shadow", isolate="process", shadow_share=1, validate=True)
    made, found = in_compiled_model(sines(), STEPS, ["sin"], policy)
    assert_close(found, right())
    assert made.incidents == ()
    made.close()


@both_apis
def test_values_that_a_delegate_does_not_write_are_counted(run: Any) -> None:
    class Half(WrongKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            before = context.tensors[node.outputs[0]].data.copy()
            super().eval(context, node)
            context.tensors[node.outputs[0]].data[2:] = before[2:]

    delegate = Wrong("ADD")
    delegate.create_delegate_kernel_interface = lambda: Half(delegate)  # type: ignore[method-assign]  # one that errs
    with pytest.raises(OperatorError, match="wrote only 2 of 4 values of its output Tensor"):
        run(sines(), STEPS, [delegate], FailurePolicy(validate=True))
