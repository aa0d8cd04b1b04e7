"""Facts about the inputs of a call: metadata, further names, and memory for the values."""

from __future__ import annotations

from collections.abc import Sequence

from delegraph.graph.metadata import ModelMetadata, read_metadata
from delegraph.graph.model import Model
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.tools.model_call import Details
from delegraph.tools.model_inputs import require_room
from delegraph.tools.setup import Setup


def called_metadata(model: Model, signature: str | None) -> ModelMetadata:
    """Return the metadata of the first subgraph; empty if *signature* calls another subgraph.

    Args:
        model: the loaded model.
        signature: name of the signature to call; None for the first subgraph.
    """
    called = {s.subgraph_index for s in model.signatures if s.key == signature}
    metadata = read_metadata(model) if called <= {0} else None
    return metadata or ModelMetadata()


def other_input_names(
    model: Model, signature: str | None, details: Sequence[Details]
) -> dict[str, int]:
    """Return the input position of each further name: of names in signatures, and of tensors.

    If *signature* is given, its names are the only ones, so the result is empty.

    Args:
        model: the loaded model.
        signature: name of the signature to call; None for the first subgraph.
        details: details of the inputs.
    """
    if signature is not None:
        return {}
    positions = {int(entry["index"]): position for position, entry in enumerate(details)}
    tensors = model.subgraphs[0].tensors if model.subgraphs else ()
    names = {tensors[index].name: position for index, position in positions.items()}
    names.pop("", None)
    return names | {
        name: positions[index]
        for signature_ in model.signatures
        if signature_.subgraph_index == 0
        for name, index in signature_.inputs.items()
        if index in positions
    }


def require_room_for(setup: Setup, model: Model, details: Sequence[Details]) -> None:
    """Check that the declared input sizes fit the memory limit, before values are generated.

    The official interpreter has no limit, so nothing is checked for it.

    Args:
        setup: the model with delegates and options.
        model: the loaded model.
        details: details of the inputs.

    Raises:
        OperatorError: an input exceeds the memory limit of *setup*.
    """
    if setup.runtime == "delegraph":
        limit = MemoryLimit.of(setup.memory_limit, model.bytes)
        for entry in details:
            require_room(entry, limit)
