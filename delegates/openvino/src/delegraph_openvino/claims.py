"""What OpenVINO computes as TFLite does: data that ``tools/ask_openvino.py`` has written.

The script runs the kit's models of every operator, one by one, and keeps the types and features
with which all results were right.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from delegraph import Capabilities, Claim, DelegateContext, Node, Registration, Rejection, Tolerance
from delegraph.delegation.node_form import NodeForm
from delegraph.operators.tensor import Tensor

QUANTIZED = frozenset({"INT8", "UINT8"})
TOLERANCE = {
    "FLOAT32": Tolerance(relative=1e-3, absolute=1e-4),
    "INT8": Tolerance(absolute=2),
    "UINT8": Tolerance(absolute=2),
}


@cache
def record() -> dict[str, Any]:
    """Return what was found: version, claims, and what the kit's features depend on.

    ``parameters`` has for each operator the inputs that are constants in most models,
    ``element_wise`` the operators whose inputs broadcast when their shapes differ.
    """
    file = files("delegraph_openvino").joinpath("claims.json")
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


@cache
def capabilities(quantized: bool) -> Capabilities:
    """Return the claims, with or without those of 8-bit types."""
    claims = [
        Claim(op, types, *features)
        for op, types, features in record()["claims"]
        if quantized or not QUANTIZED.intersection(types)
    ]
    return Capabilities(claims, tolerance=TOLERANCE)


def check_features(
    claimed: Capabilities, registration: Registration, node: Node, context: DelegateContext
) -> bool | Rejection:
    """Return whether a claim covers a node's types together with its features."""
    name = registration.name
    border = enumerate((*node.inputs, *node.outputs))
    tensors = {position: context.tensors[index] for position, index in border if index >= 0}
    form = NodeForm.of(name, node, context.tensors)
    features = set(_features(name, node, tensors))
    if claimed.covers(form, features):
        return True
    for feature in sorted(features):
        if not claimed.covers(form, {feature}):
            return Rejection(feature, f"OpenVINO differs for {name} with {feature}")
    return Rejection(
        "features", f"OpenVINO differs for {name} with {' and '.join(sorted(features))}"
    )


def _features(name: str, node: Node, tensors: dict[int, Tensor]) -> Iterator[str]:
    """Yield the features that a node shows; the names are those of claims."""
    inputs = {i: tensor for i, tensor in tensors.items() if i < len(node.inputs)}
    parameters = record()["parameters"].get(name, ())
    activation = getattr(node.options, "fused_activation_function", None)
    if activation is not None and activation.name != "NONE":
        yield "activation"
    if name in record()["element_wise"] and len({tensor.shape for tensor in inputs.values()}) > 1:
        yield "broadcast"
    if any(i in parameters and not tensor.is_constant for i, tensor in inputs.items()):
        yield "computed-weights"
    for i, tensor in tensors.items():
        is_data = i not in parameters
        if is_data and tensor.shape == ():
            yield "scalar"
        if is_data and len(tensor.shape) > 4:
            yield "many-dims"
        if 0 in tensor.shape:
            yield "empty"
        if tensor.sparsity is not None:
            yield "sparse"
        if tensor.quantization is not None and len(tensor.quantization.scales) > 1:
            yield "per-channel"
        if tensor.allocation_type.name == "DYNAMIC":
            yield "dynamic-shapes"
