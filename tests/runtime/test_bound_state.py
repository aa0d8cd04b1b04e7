"""KV caches and other states that stay in arrays between the calls of a signature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import DelegateContext, FailurePolicy, Interpreter, SignatureRunner
from delegraph.errors import ArgumentError, DelegateError
from delegraph.schema import read_model, tables, write_model
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import constant, tensor
from delegraph.testing.subgraphs import Graph, Op, records_of
from support.by_name import ByName, ByNameKernel
from support.language_models import fed_back, language_model, tokens
from support.signatures import two_signatures

MAP = tables.TensorMap
CACHES = ("kv_cache_k_0", "kv_cache_k_1", "kv_cache_v_0", "kv_cache_v_1")
ONES = np.ones(64, np.float32)


def bound(interpreter: Interpreter) -> tuple[list[NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return the logits of each step and the caches, which both signatures have in arrays."""
    runners = {key: interpreter.get_signature_runner(key) for key in ("prefill_8", "decode")}
    caches = runners["decode"].bind_state()
    assert runners["prefill_8"].bind_state(caches) == caches
    outputs = [runners[key](**inputs) for key, inputs in tokens()]
    assert [list(each) for each in outputs] == [[], *[["logits"]] * 20]
    return [each["logits"] for each in outputs[1:]], caches


def in_place(interpreter: Interpreter) -> list[tuple[str, ...]]:
    return [state.in_place for _, state in sorted(interpreter.session.bound_states.items())]


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_20_steps_on_bound_caches_give_the_answers_of_litert(weights: str) -> None:
    """Weights of int8: beside LiteRT's own kernels, as XNNPACK rounds activations otherwise."""
    from ai_edge_litert import interpreter as litert

    content = language_model(weights=weights)
    resolver = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    official = litert.Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    expected, their_caches = fed_back(official)
    interpreter = Interpreter(model_content=content)
    logits, caches = bound(interpreter)
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)
    for name, values in their_caches.items():
        np.testing.assert_allclose(caches[name], values, rtol=1e-4, atol=1e-5)
    assert in_place(interpreter) == [CACHES, CACHES]


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_bound_caches_hold_what_fed_back_ones_hold_to_the_bit(weights: str) -> None:
    content = language_model(weights=weights)
    expected, caches = fed_back(Interpreter(model_content=content))
    logits, kept = bound(Interpreter(model_content=content))
    np.testing.assert_array_equal(logits, expected)
    for name, values in caches.items():
        np.testing.assert_array_equal(kept[name], values)


# -- models of two nodes -----------------------------------------------------------------------


def accumulating(*, reads_again: bool, is_int: bool = False) -> bytes:
    """``state = state + x``; and ``y``, a product of the old or of the new state and x."""
    kind = "INT32" if is_int else "FLOAT32"
    state, x, made, y = (tensor((64,), kind, name=name) for name in ("s", "x", "t", "y"))
    product = Op("MUL", [state if reads_again else made, x], [y], MulOptions())
    nodes = [Op("ADD", [state, x], [made], AddOptions()), product]
    records = records_of(Graph([state, x], [made, y], nodes))
    indices = {str(t.name): i for i, t in enumerate((records.subgraphs or ())[0].tensors or ())}

    def named(**names: str) -> tuple[tables.TensorMap, ...]:
        return tuple(tables.TensorMap(name=n, tensor_index=indices[t]) for n, t in names.items())

    signature = tables.SignatureDef(
        inputs=named(state="s", x="x"),
        outputs=named(state="t", y="y"),
        signature_key="step",
        subgraph_index=0,
    )
    return write_model(records.replace(signature_defs=(signature,)))


def runner_of(content: bytes, **arguments: Any) -> tuple[Interpreter, SignatureRunner]:
    interpreter = Interpreter(model_content=content, **arguments)
    return interpreter, interpreter.get_signature_runner("step")


@pytest.mark.parametrize("reads_again", [False, True])
def test_a_state_that_a_later_node_reads_is_copied(reads_again: bool) -> None:
    interpreter, step = runner_of(accumulating(reads_again=reads_again))
    state = step.bind_state()["state"]
    products = [step(x=ONES)["y"][0] for _ in range(3)]
    assert products == ([0, 1, 2] if reads_again else [1, 2, 3])
    assert state.tolist() == [3] * 64
    assert in_place(interpreter) == [() if reads_again else ("state",)]


class OverwritingKernel(ByNameKernel):
    def may_share_memory(self, context: DelegateContext, given: int, made: int) -> bool:
        return True


COMPARING = FailurePolicy(on_failure="shadow", shadow_share=1.0)


@pytest.mark.parametrize(
    ("delegate", "failures", "expected"),
    [
        (ByName("ADD", "MUL", kernel=OverwritingKernel), None, ("state",)),
        (ByName("ADD", "MUL", kernel=OverwritingKernel), COMPARING, ()),
        (ByName("ADD", "MUL", kernel=OverwritingKernel), FailurePolicy(on_failure="fallback"), ()),
        (ByName("ADD", "MUL"), None, ()),
    ],
    ids=["allowed", "shadow", "fallback", "by default not"],
)
def test_a_delegate_and_its_policy_must_allow_it(
    delegate: ByName, failures: FailurePolicy | None, expected: tuple[str, ...]
) -> None:
    interpreter, step = runner_of(
        accumulating(reads_again=False), delegates=[delegate], failures=failures
    )
    state = step.bind_state()["state"]
    assert [step(x=ONES)["y"][0] for _ in range(3)] == [1, 2, 3]
    assert (state.tolist(), in_place(interpreter)) == ([3] * 64, [expected])


class BrokenKernel(ByNameKernel):
    def may_share_memory(self, context: DelegateContext, given: int, made: int) -> bool:
        raise ValueError("who knows")


def test_a_delegate_that_fails_to_say_is_named() -> None:
    _, step = runner_of(
        accumulating(reads_again=False), delegates=[ByName("ADD", "MUL", kernel=BrokenKernel)]
    )
    step.bind_state()
    with pytest.raises(DelegateError, match=r"'by_name', may_share_memory.*who knows"):
        step(x=ONES)


def test_programs_may_write_and_read_the_array_between_calls() -> None:
    _, step = runner_of(accumulating(reads_again=False, is_int=True))
    state = step.bind_state()["state"]
    state[...] = 10
    x = np.full(64, 2, np.int32)
    assert (step(x=x)["y"][0], state[0]) == (24, 12)
    state[...] = 0
    assert (step(x=x)["y"][0], state[0]) == (4, 2)


def test_a_delegate_may_come_and_go_while_a_state_is_bound() -> None:
    interpreter, step = runner_of(accumulating(reads_again=False))
    state = step.bind_state()["state"]
    step(x=ONES)
    interpreter.modify_graph_with_delegate(ByName("ADD"))
    step(x=ONES)
    interpreter.remove_delegate("by_name")
    step(x=ONES)
    assert (state[0], in_place(interpreter)) == (3, [("state",)])


def test_an_empty_mapping_ends_the_binding() -> None:
    _, step = runner_of(accumulating(reads_again=False))
    state = step.bind_state()["state"]
    step(x=ONES)
    assert step.bind_state({}) == {}
    assert step(state=5 * ONES, x=ONES)["state"][0] == 6
    assert state[0] == 1


def test_all_runners_of_a_signature_see_the_binding() -> None:
    interpreter, step = runner_of(accumulating(reads_again=False))
    state = step.bind_state()["state"]
    interpreter.get_signature_runner("step")(x=ONES)
    assert state[0] == 1
    with pytest.raises(ArgumentError, match=r"expected 1 vs provided 2; the inputs are: x$"):
        step(x=ONES, state=ONES)


def aligned(count: int, dtype: Any = np.float32) -> NDArray[Any]:
    _, step = runner_of(accumulating(reads_again=False, is_int=dtype == np.int32))
    return step.bind_state()["state"][:count]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": aligned(64)}, "has no state 'y'; it has: state"),
        ({"state": aligned(32)}, r"state 'state' is float32 \[32\], expected float32 \[64\]"),
        ({"state": aligned(64, np.int32)}, r"is int32 \[64\], expected float32 \[64\]"),
        ({"state": [0.0]}, r"is \[0.0\], expected float32 \[64\]"),
        ({"state": np.zeros(65, np.float32)[1:]}, "at a multiple of 64 bytes"),
    ],
    ids=["name", "shape", "type", "list", "place"],
)
def test_arrays_that_do_not_fit(arrays: Any, message: str) -> None:
    _, step = runner_of(accumulating(reads_again=False))
    with pytest.raises(ArgumentError, match=message):
        step.bind_state(arrays)
    assert step(state=ONES, x=ONES)["state"][0] == 2  # nothing is bound


def strings_and_nibbles() -> bytes:
    """Signature ``step`` of states that no array holds, as strings, and int4 in pairs."""
    text, other, four, more = (
        tensor((2,), kind, name=name)
        for name, kind in (("a", "STRING"), ("b", "STRING"), ("c", "INT4"), ("d", "INT4"))
    )
    nodes = [
        Op("RESHAPE", [x, constant(np.array([2], np.int32))], [y])
        for x, y in ((text, other), (four, more))
    ]
    records = records_of(Graph([text, four], [other, more], nodes))
    signature = tables.SignatureDef(
        inputs=(MAP(name="text", tensor_index=0), MAP(name="four", tensor_index=1)),
        outputs=(MAP(name="text", tensor_index=2), MAP(name="four", tensor_index=3)),
        signature_key="step",
        subgraph_index=0,
    )
    return write_model(records.replace(signature_defs=(signature,)))


def test_strings_and_packed_integers_are_no_states() -> None:
    _, step = runner_of(strings_and_nibbles())
    assert step.state_names == ()
    with pytest.raises(ArgumentError, match="'step' has no state"):
        step.bind_state()


def test_a_tensor_of_two_names_is_no_state() -> None:
    records = read_model(np.frombuffer(accumulating(reads_again=False), np.uint8))
    (signature,) = records.signature_defs or ()
    again = tuple(MAP(name="again", tensor_index=m.tensor_index) for m in (signature.outputs or ()))
    more = signature.replace(outputs=(*(signature.outputs or ()), again[0]))
    _, step = runner_of(write_model(records.replace(signature_defs=(more,))))
    assert step.state_names == ()


def test_two_states_in_one_array() -> None:
    decode = Interpreter(model_content=language_model()).get_signature_runner("decode")
    caches = decode.bind_state()
    caches["kv_cache_k_1"] = caches["kv_cache_k_0"]
    with pytest.raises(ArgumentError, match="'kv_cache_k_0' and 'kv_cache_k_1' share memory"):
        decode.bind_state(caches)


def test_a_signature_without_a_state() -> None:
    runner = Interpreter(model_content=two_signatures()).get_signature_runner("wave")
    with pytest.raises(ArgumentError, match="signature 'wave' has no state: no output has"):
        runner.bind_state()
