"""Cause of differences beyond a tolerance: a wrong node, or roundings that nodes magnify.

Each node before an output beyond the tolerance runs alone, on the reference's values of its inputs.
A node whose result differs by more than roundings is wrong. If no node is wrong and results still
drift apart, right nodes have magnified small differences. For example, QUANTIZE turns a difference
in the last bit into a whole step, and so do nodes that quantize their inputs for integer weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from delegraph.delegation.partition_tolerance import STEPS
from delegraph.delegation.placement import Placement
from delegraph.errors import in_words
from delegraph.graph.model import SubgraphSpec
from delegraph.native.litert.placement import RUNTIME_DELEGATE
from delegraph.tools.called_inputs import called_metadata
from delegraph.tools.differing.difference import Difference, OutputDifference
from delegraph.tools.differing.layer_difference import LayerDifference
from delegraph.tools.differing.layer_units import FOLDED, SAME_KERNELS
from delegraph.tools.differing.layers import diff_layers
from delegraph.tools.differing.numerics_profile import rounding
from delegraph.tools.progress import Progress, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.tensor_names import output_names

Kind = Literal["wrong node", "magnified roundings", "roundings", "nodes together", "unknown"]

_JUMPING = STEPS | {"CAST", "QUANTIZE"}
"""Operators that turn a rounding difference into a whole step."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Reason why outputs differ by more than a tolerance.

    Attributes:
        kind: ``wrong node``, ``magnified roundings``, ``roundings`` (outputs are within the
            numerics profile), ``nodes together`` (each node is right when it runs alone, but their
            partition is wrong), or ``unknown``.
        layer: the first tensor that shows the cause: the output of a wrong node that was given the
            reference's inputs. Without a wrong node, it is the first tensor with more than rounding
            differences when each side uses its own values.
        not_compared: nodes that could not run alone.
        why_unknown: why the cause is unknown; empty if it is known.
        can_bisect: whether a delegate that follows placement rules computes nodes; LiteRT's XNNPACK
            follows none.
    """

    kind: Kind
    layer: LayerDifference | None = None
    not_compared: tuple[int, ...] = ()
    why_unknown: str = ""
    can_bisect: bool = True

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, named: Callable[[str], str] = str) -> str:
        """Return the cause as a sentence, with the tensor's name as *named* returns it."""
        return f"{self._finding(named)}{self._rest()}"

    def _finding(self, named: Callable[[str], str]) -> str:
        node = "" if self.layer is None else f"node {self.layer.node} ({self.layer.op})"
        if self.kind == "wrong node" and self.layer is not None:
            extent = _extent(self.layer.same_inputs, named)
            return f"{node} is wrong: on the reference's inputs {extent}"
        if self.kind == "magnified roundings" and self.layer is not None:
            return (
                "roundings were magnified: each node is right on the reference's inputs; of "
                f"roundings before it {node} makes more: {_extent(self.layer.drift, named)}"
            )
        if self.kind == "roundings":
            return "roundings alone: each node and the outputs are within the numerics profile"
        if self.kind == "nodes together":
            return (
                "each node alone is right, so the difference comes of nodes that are computed "
                f"together: --layers --inner exposed{' or --bisect' * self.can_bisect} tells more"
            )
        return f"it is not known why: {self.why_unknown}"

    def _rest(self) -> str:
        if not self.not_compared or self.kind == "wrong node":
            return ""
        nodes = ", ".join(map(str, self.not_compared))
        return f" (not compared, since they do not run alone: nodes {nodes})"

    def to_json(self) -> dict[str, Any]:
        """Return kind, node, tensor and text of the cause."""
        layer = self.layer
        return {
            "kind": self.kind,
            "node": None if layer is None else layer.node,
            "operator": None if layer is None else layer.op,
            "tensor": None if layer is None else layer.name,
            "not_compared": list(self.not_compared),
            "text": str(self),
        }


def _extent(found: OutputDifference | None, named: Callable[[str], str]) -> str:
    assert found is not None
    differences = found.runs
    unequal, count = (sum(getattr(d, name) for d in differences) for name in ("unequal", "count"))
    far = "" if found.worst.compared is None else f", by up to {found.worst.compared.max:.4g}"
    return f"{unequal} of {count} elements of {named(found.name)!r} differ{far}"


def cause_of(
    difference: Difference, *, inputs: InputRequest, first: int = 0, progress: Progress = untold
) -> Cause | None:
    """Return the reason why the outputs of two set-ups differ by more than the tolerance.

    The result is None if outputs are within the tolerance, or if the models differ.

    Args:
        difference: a difference with a tolerance.
        inputs: the input values from which *difference* was computed.
        first: number of the first run of *difference*.
        progress: function that is called with the state of the work.
    """
    test, reference = difference.test, difference.reference
    if not difference.failures or test.model != reference.model:
        return None
    outside = [output for output in difference.outputs if output.outside]
    worst = max(outside, key=lambda output: output.outside or 0).worst_run if outside else 0
    try:
        found = diff_layers(
            test,
            reference,
            inner="alone",
            inputs=inputs,
            runs=1,
            first=first + worst,
            signature=difference.signature,
            tolerance=rounding,
            figures="main",
            progress=progress,
        )
    except (RuntimeError, ValueError) as error:  # of Delegraph and of LiteRT
        return Cause("unknown", why_unknown=in_words(error))
    nodes = _nodes_before(outside, difference)
    cause = _judged([layer for layer in found.layers if layer.node in nodes])
    if cause.kind == "nodes together" and outside and not any(o.beyond_rounding for o in outside):
        return Cause("roundings")
    return replace(cause, can_bisect=has_bisectable(difference.test_placement))


def has_bisectable(placement: Placement) -> bool:
    """Whether a delegate that follows placement rules computes nodes, as ``--bisect`` requires."""
    return any(partition.delegate != RUNTIME_DELEGATE for partition in placement.partitions)


def _nodes_before(outputs: Sequence[OutputDifference], difference: Difference) -> set[int]:
    """Return the nodes on which *outputs* of the test depend; if it is empty, those of all outputs.

    Nodes without outputs count as well, since they write variables that others read.
    """
    spec, named = _called(difference)
    names = {output.name for output in outputs}
    needed = {named[name] for name in names} if names and names <= {*named} else {*spec.outputs}
    nodes = set()
    for operator in reversed(spec.operators):
        made = {i for i in operator.outputs if i >= 0}
        if not made or made & needed:
            nodes.add(operator.index)
            needed.update(operator.inputs)
    return nodes


def _called(difference: Difference) -> tuple[SubgraphSpec, Mapping[str, int]]:
    """Return the called subgraph, and a mapping from each output's name to its tensor's index."""
    model = difference.test.loaded_model()
    for signature in model.signatures:
        if signature.key == difference.signature:
            return model.subgraphs[signature.subgraph_index], signature.outputs
    spec = model.subgraphs[0]
    details = [{"index": i, "name": spec.tensors[i].name} for i in spec.outputs]
    names = output_names(model, called_metadata(model, None), details)
    return spec, dict(zip(names, spec.outputs, strict=True))


def _judged(layers: Sequence[LayerDifference]) -> Cause:
    wrong = next((layer for layer in layers if _is_outside(layer.same_inputs)), None)
    if wrong is not None:
        return Cause("wrong node", wrong)
    unknown = {
        layer.node
        for layer in layers
        if layer.same_inputs is None and layer.same_inputs_note not in (FOLDED, SAME_KERNELS)
    }
    drifted = next((layer for layer in layers if _has_drifted(layer)), None)
    kind: Kind = "nodes together" if drifted is None else "magnified roundings"
    if drifted is not None and drifted.node in unknown:
        text = f"node {drifted.node} ({drifted.op}) cannot run alone, and differs first"
        return Cause("unknown", drifted, tuple(sorted(unknown)), text)
    return Cause(kind, drifted, tuple(sorted(unknown)))


def _has_drifted(layer: LayerDifference) -> bool:
    if layer.drift is not None and layer.op in _JUMPING:
        return any(difference.unequal for difference in layer.drift.runs)
    return _is_outside(layer.drift)


def _is_outside(found: OutputDifference | None) -> bool:
    return found is not None and bool(found.outside)
