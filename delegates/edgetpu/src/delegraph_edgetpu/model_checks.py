"""Checks of a whole model, made before the rules for its operators."""

from __future__ import annotations

from delegraph.graph import Model, SubgraphSpec, TensorSpec, called_subgraphs
from delegraph_edgetpu.custom_options import CUSTOM_OP
from delegraph_edgetpu.errors import CannotCompile
from delegraph_edgetpu.tensor_rules import EIGHT_BITS


def require_compilable(model: Model) -> SubgraphSpec:
    """Return the model's only subgraph.

    Raises:
        CannotCompile: there are several subgraphs, inputs may change their shape, no tensor is
            quantised, or the model is already compiled.
    """
    if len(model.subgraphs) != 1:
        raise CannotCompile(
            f"the model has {len(model.subgraphs)} subgraphs, expected 1: {_other_subgraphs(model)}"
        )
    subgraph = model.subgraphs[0]
    if not subgraph.operators:
        raise CannotCompile("the model has no operators")
    _require_not_compiled(subgraph)
    _require_quantised(subgraph)
    _require_fixed_inputs(subgraph)
    return subgraph


def _other_subgraphs(model: Model) -> str:
    """Text with the operators that call other subgraphs, and advice on avoiding the calls."""
    operators = (operator for subgraph in model.subgraphs for operator in subgraph.operators)
    called = {index for operator in operators for index in called_subgraphs(operator.options)}
    apart = [s for s in model.signatures if s.subgraph_index not in {0, *called}]
    if apart:
        told = ", ".join(
            f"{_name(model.subgraphs[s.subgraph_index])} is the subgraph of the signature {s.key!r}"
            for s in apart[:3]
        )
        return (
            f"{told}; convert each signature to a model of its own, with signature_keys=[KEY] of "
            "TFLiteConverter.from_saved_model"
        )
    others = model.subgraphs[1:4]
    return (
        f"{', '.join(map(_name, others))} {'belongs' if len(others) == 1 else 'belong'} to a loop, "
        "a condition or a composite; convert the model without them"
    )


def _name(subgraph: SubgraphSpec) -> str:
    return repr(subgraph.name or f"subgraph {subgraph.index}")


def _require_not_compiled(subgraph: SubgraphSpec) -> None:
    for operator in subgraph.operators:
        if operator.name == CUSTOM_OP:
            raise CannotCompile(
                f"node {operator.index} is {CUSTOM_OP}: the model has been compiled already; "
                "compile the model that it was made from"
            )


def _require_fixed_inputs(subgraph: SubgraphSpec) -> None:
    for index in subgraph.inputs:
        tensor = subgraph.tensors[index]
        if -1 in tensor.shape_signature:
            raise CannotCompile(
                f"input {tensor.name!r} has the shape {list(tensor.shape_signature)}, where -1 may "
                f"change; expected fixed numbers, such as {list(tensor.shape)}: convert the model "
                "with a fixed batch size"
            )


def _require_quantised(subgraph: SubgraphSpec) -> None:
    """Raise an error if no input or computed tensor of *subgraph* is 8-bit quantized."""
    computed = [t for o in subgraph.operators for t in o.outputs if t >= 0]
    if any(_is_quantised(subgraph.tensors[i]) for i in (*subgraph.inputs, *computed)):
        return
    first = subgraph.operators[0]
    seen = next((i for i in (*first.inputs, *first.outputs) if i >= 0), None)
    found = ""
    if seen is not None:
        tensor = subgraph.tensors[seen]
        found = f": the first operator, node 0 ({first.name}), has {tensor.name!r} as "
        found += tensor.type.name
        found += " without a scale" if tensor.type in EIGHT_BITS else ""
    raise CannotCompile(
        f"the model is not quantised{found}, expected INT8 or UINT8 with a scale; convert it with "
        "full integer quantization"
    )


def _is_quantised(tensor: TensorSpec) -> bool:
    quantization = tensor.quantization
    return (
        tensor.type in EIGHT_BITS
        and tensor.data is None
        and quantization is not None
        and len(quantization.scales) > 0
    )
