"""Names of a model's inputs and outputs: one name for each, the same in all commands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from delegraph.errors import ArgumentError, did_you_mean
from delegraph.graph.metadata import ModelMetadata
from delegraph.graph.model import Model, Signature, SubgraphSpec
from delegraph.tools.called_inputs import called_metadata
from delegraph.tools.model_call import Details, ModelCall
from delegraph.tools.setup import Setup

_SAYS_NOTHING = re.compile(
    r"|(?:\w*/)?(?:Stateful)?(?:PartitionedCall|Identity)(?:_?\d+)?(?::\d+)?"
)
"""Pattern of the names that converters give to outputs whose names they do not know."""


@dataclass(frozen=True, slots=True)
class TensorNames:
    """Names of the inputs and outputs of a call, each unique among its kind.

    Attributes:
        inputs: name of each input, in the order of ``ModelCall.input_details``.
        outputs: name of each output, in the order of ``ModelCall.output_details``.
    """

    inputs: Sequence[str]
    outputs: Sequence[str]


def tensor_names(
    setup: Setup, signature: str | None, call: ModelCall, model: Model | None = None
) -> TensorNames:
    """Return the names of a call's inputs and outputs.

    A signature that is called names its tensors. For a whole model, the name is the first
    meaningful one: in a signature, in the metadata, of the tensor. Otherwise it is the operator
    that writes an output, or ``input_0`` and so on. Equal names get the tensor's index.

    Args:
        setup: the set-up that runs the model.
        signature: name of the called signature; None means the whole model.
        call: the call.
        model: the model of the set-up; None loads it if it is needed.
    """
    inputs, outputs = call.input_details(), call.output_details()
    if signature is not None:
        return TensorNames(*([entry["name"] for entry in each] for each in (inputs, outputs)))
    model = setup.loaded_model() if model is None else model
    said = called_metadata(model, None)
    return TensorNames(input_names(model, said, inputs), output_names(model, said, outputs))


def input_names(model: Model, said: ModelMetadata, details: Sequence[Details]) -> list[str]:
    """Return the name of each input of the whole model, which has the metadata *said*."""
    named = _of_signatures(model, lambda signature: signature.inputs)
    names: list[str] = []
    for position, entry in enumerate(details):
        index = int(entry["index"])
        words = (named.get(index), said.tensor(index).name, entry["name"], f"input_{position}")
        names.append(next(filter(None, words)))
    return _unique(names, details)


def output_names(model: Model, said: ModelMetadata, details: Sequence[Details]) -> list[str]:
    """Return the name of each output of the whole model, which has the metadata *said*."""
    named = _of_signatures(model, lambda signature: signature.outputs)
    names: list[str] = []
    for entry in details:
        index = int(entry["index"])
        words = [name for name in (said.tensor(index).name, entry["name"]) if _tells(name)]
        words = [named.get(index, ""), *words, _maker(model.subgraphs[0], index), entry["name"]]
        names.append(next(filter(None, words), f"output_{len(names)}"))
    return _unique(names, details)


def names_in_calls(model: Model) -> dict[int, str]:
    """Return the name of each input and output of the whole model, by the tensor's index."""
    graph, said = model.subgraphs[0], called_metadata(model, None)
    found: dict[int, str] = {}
    for sides, names_of in ((graph.inputs, input_names), (graph.outputs, output_names)):
        indices = [index for index in sides if index >= 0]
        details = [{"index": index, "name": graph.tensors[index].name} for index in indices]
        found |= zip(indices, names_of(model, said, details), strict=True)
    return found


def with_names(details: Sequence[Details], names: Sequence[str]) -> list[Details]:
    """Return details with *names* instead of their own names, which :func:`called_name` returns."""
    return [
        {**entry, "name": name, "called_name": entry["name"]}
        for entry, name in zip(details, names, strict=True)
    ]


def called_name(details: Details) -> str:
    """Return the name that a tensor has in the model or its signature."""
    return str(details.get("called_name", details["name"]))


def with_tensor_names(
    details: Sequence[Details], model: Model, signature: str | None
) -> list[Details]:
    """Return details with the names that tensors have in the file, as ``tensor_name``.

    Args:
        details: details of inputs or outputs.
        model: the loaded model.
        signature: name of the called signature; None means the only one, or the first subgraph.
    """
    called = [s.subgraph_index for s in model.signatures if signature in (s.key, None)] or [0]
    tensors = model.subgraphs[called[0]].tensors
    return [{**entry, "tensor_name": tensors[int(entry["index"])].name} for entry in details]


def names_by_any_name(
    details: Sequence[Details], model: Model, signature: str | None
) -> dict[str, str]:
    """Return a mapping to each tensor's name in *details* from all of its names.

    A tensor also has a name in the file, and one in the model or its signature.

    Args:
        details: details of inputs or outputs.
        model: the loaded model.
        signature: name of the called signature; None means the only one, or the first subgraph.
    """
    entries = with_tensor_names(details, model, signature)
    names = {str(entry["tensor_name"]): str(entry["name"]) for entry in entries}
    names |= {called_name(entry): entry["name"] for entry in entries}
    return names | {entry["name"]: entry["name"] for entry in entries}


def by_own_names(kind: str, given: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Return *given*, a mapping from any names of tensors, by the names in the details.

    Args:
        kind: ``"input"`` or ``"output"``, for messages.
        given: mapping from a name of each tensor to a column.
        known: mapping of :func:`names_by_any_name`.

    Raises:
        ArgumentError: a name is unknown, or two are names of the same tensor.
    """
    for name in sorted({*given} - {*known}):
        text = f"the model has no {kind} {name!r}{did_you_mean(name, known)}; it has "
        raise ArgumentError(text + ", ".join(dict.fromkeys(known.values())))
    found = {known[name]: column for name, column in given.items()}
    if len(found) < len(given):
        raise ArgumentError(f"of {', '.join(given)}, two are names of the same {kind}")
    return found


def _of_signatures(
    model: Model, tensors_of: Callable[[Signature], Mapping[str, int]]
) -> Mapping[int, str]:
    """Return a mapping from tensors of the first subgraph to their names in the first signature."""
    names: dict[int, str] = {}
    for signature in model.signatures:
        if signature.subgraph_index == 0:
            for name, index in tensors_of(signature).items():
                names.setdefault(index, name)
    return names


def _tells(name: str) -> bool:
    return _SAYS_NOTHING.fullmatch(name) is None


def _maker(graph: SubgraphSpec, tensor: int) -> str:
    """Return the name of the operator that writes *tensor*; empty for inputs and constants.

    Args:
        graph: a subgraph of the model.
        tensor: index of the tensor.
    """
    operator = next((o for o in graph.operators if tensor in o.outputs), None)
    if operator is None:
        return ""
    position = operator.outputs.index(tensor)
    return f"{operator.name}:{position}" if len(operator.outputs) > 1 else operator.name


def _unique(names: Sequence[str], details: Sequence[Details]) -> list[str]:
    """Return *names* made unique: equal names get the tensor's index, or else the position."""
    counts = Counter(names)
    indices = [int(entry["index"]) for entry in details]
    what = "tensor" if len(set(indices)) == len(indices) else "number"
    numbers = indices if what == "tensor" else range(len(names))
    return [
        f"{name} ({what} {number})" if counts[name] > 1 else name
        for name, number in zip(names, numbers, strict=True)
    ]
