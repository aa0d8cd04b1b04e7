"""Claims by role, version and activation are proved by models of that form, and by no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delegraph import (
    Capabilities,
    Claim,
    DelegateContext,
    Eval,
    Node,
    NodeByNodeKernel,
    NodeCall,
    Registration,
    Rejection,
    SimpleDelegateInterface,
)
from delegraph.delegation.node_traits import fused_activation
from delegraph.testing.conformance import numbers, soundness
from delegraph.testing.conformance.bundles import attempts
from delegraph.testing.conformance.claim_evidence import at_versions
from delegraph.testing.conformance.sampling import Effort
from delegraph.testing.conformance.subject import Subject, subject_of
from delegraph.testing.operator_cases import cases
from support import seeded_faults as faulty

OP = "EMBEDDING_LOOKUP"
HYBRID = Claim(OP, "FLOAT32", "per-channel", lookup="INT32", weights="INT8", versions=(2, 4))
EITHER, ROLES = (OP, "FLOAT32", "per-channel"), {"lookup": "INT32", "weights": ["INT8", "FLOAT32"]}
FLOATS = Claim(OP, "FLOAT32", lookup="INT32")


class LookupKernel(NodeByNodeKernel):
    def prepare_node(self, call: NodeCall) -> Eval:
        ids, table, y = call.input(0), call.input(1), call.output()
        call.resize((*ids.shape, *table.shape[1:]))
        scales = None if table.quantization is None else table.quantization.scales

        def look_up() -> None:
            rows = table.data[ids.data]
            if scales is not None:
                of_rows = scales[ids.data] if len(scales) > 1 else scales
                rows = rows * of_rows.reshape(-1, *[1] * (rows.ndim - 1))
            y.data[...] = rows

        return look_up


class Lookup(SimpleDelegateInterface):
    """Takes what it claims, with the other claims given, and computes it rightly."""

    def __init__(self, *claims: Claim, takes: Claim | None = None) -> None:
        self._claims = Capabilities(claims)
        self._takes = Capabilities(claims if takes is None else [takes])

    def name(self) -> str:
        return "lookup"

    def capabilities(self) -> Capabilities:
        return self._claims

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        if node.outputs and any(0 in context.tensors[i].shape for i in node.outputs):
            return Rejection("empty")
        return self._takes.check(registration, node, context)

    def create_delegate_kernel_interface(self) -> LookupKernel:
        return LookupKernel()


@pytest.fixture(autouse=True)
def _no_gallery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soundness, "placings", lambda subject: ())  # of every operator; slow


def subject(folder: Path, *claims: Claim, takes: Claim | None = None) -> Subject:
    few = Effort(random_cases=12, enough=8)
    return replace(subject_of(lambda: Lookup(*claims, takes=takes)), folder=folder, effort=few)


def test_a_claim_of_hybrid_is_proved_by_hybrid_models(tmp_path: Path) -> None:
    tested = subject(tmp_path, HYBRID, FLOATS)
    soundness.claims_are_executed(tested, OP)
    soundness.nothing_unclaimed_is_taken(tested)
    numbers.results_are_right(tested, OP)
    taken = [made.trial for made in attempts(tested, OP) if made.is_taken]
    found = {(dict(form.types)["weights"], form.version) for t in taken for form in t.forms}
    assert found >= {("INT8", version) for version in (2, 3, 4)}
    assert ("INT8", 5) not in found
    assert ("FLOAT32", 5) in found


@pytest.mark.parametrize(
    ("claim", "takes", "message"),
    [
        (HYBRID, FLOATS, "claimed but never taken.*weights are INT8; claimed is FLOAT32"),
        (
            HYBRID,
            Claim(OP, "FLOAT32", lookup="INT32", weights="INT8", versions=(2, 3)),
            "claimed but never taken: version 4 for EMBEDDING_LOOKUP.*version is 4; claimed is 2-3",
        ),
        (
            Claim(OP, "FLOAT32", lookup="INT32", weights=["FLOAT32", "STRING"]),
            FLOATS,
            "claims weights STRING for EMBEDDING_LOOKUP, and the kit has no such model",
        ),
    ],
)
def test_a_claimed_form_that_is_left_is_named(
    claim: Claim, takes: Claim, message: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=f"(?s){message}"):
        soundness.claims_are_executed(subject(tmp_path, claim, takes=takes), OP)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (FLOATS, r"EMBEDDING_LOOKUP v\d of lookup INT32, weights INT8, output FLOAT32"),
        (Claim(*EITHER, versions=(1, 2), **ROLES), "EMBEDDING_LOOKUP v3 of lookup INT32"),
    ],
)
def test_an_unclaimed_form_that_is_taken_is_named(
    claim: Claim, message: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=f"takes forms that it does not claim: {message}"):
        soundness.nothing_unclaimed_is_taken(
            subject(tmp_path, claim, takes=Claim(*EITHER, **ROLES))
        )


class LeavesAnActivation(faulty.SoundDelegate):
    claims = Capabilities([Claim("ADD", "FLOAT32", "broadcast", activations=["RELU", "RELU6"])])

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> Any:
        if fused_activation(node.options) == "RELU6":
            return Rejection("activation")
        return super().is_node_supported_by_delegate(registration, node, context)


class TakesAnActivation(faulty.SoundDelegate):
    claims = Capabilities([Claim("ADD", "FLOAT32", "activation", "broadcast")])


@pytest.mark.repetition(1)
@pytest.mark.parametrize(
    ("check", "kind", "message"),
    [
        (
            lambda subject: soundness.claims_are_executed(subject, "ADD"),
            LeavesAnActivation,
            "claimed but never taken: activation RELU6 for ADD",
        ),
        (
            soundness.nothing_unclaimed_is_taken,
            TakesAnActivation,
            "takes forms that it does not claim: "
            "ADD v3 of input FLOAT32, output FLOAT32 with RELU_N1",
        ),
    ],
)
def test_activations_are_claimed_by_name(
    check: Callable[[Subject], None], kind: type, message: str, tmp_path: Path
) -> None:
    only_relu = Capabilities([Claim("ADD", "FLOAT32", "broadcast", activations="RELU")])
    claimed = None if kind is LeavesAnActivation else only_relu
    with pytest.raises(AssertionError, match=message):
        check(replace(subject_of(kind, claimed), folder=tmp_path))


def test_cases_are_drawn_at_each_claimed_version_and_at_those_beside() -> None:
    drawn = [case.version for case in at_versions([HYBRID], cases(OP, count=5))]
    assert set(drawn) == {1, 2, 3, 4, 5}
    unclaimed = Claim("ABS", "FLOAT32", versions=(4, 9))
    assert {case.version for case in at_versions([unclaimed], cases("ABS"))} == {3, 4, 5}
    assert list(at_versions([FLOATS], given := list(cases(OP)))) == given
