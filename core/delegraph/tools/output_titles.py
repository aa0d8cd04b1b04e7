"""Meaningful titles for outputs, in place of names such as ``Identity_1``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from delegraph.graph.metadata import ModelMetadata
from delegraph.graph.model import Model, SubgraphSpec
from delegraph.tools.model_call import Details

_SAYS_NOTHING = re.compile(
    r"|(?:\w*/)?(?:Stateful)?(?:PartitionedCall|Identity)(?:_?\d+)?(?::\d+)?"
)
"""Names that converters give to outputs for which they know none."""


def output_titles(
    model: Model, signature: str | None, details: Sequence[Details], said: ModelMetadata
) -> list[str]:
    """Return a title for each output, from the model's texts if possible.

    The title is the first meaningful name: in a signature, in the metadata, or of the tensor.
    Otherwise it is the operator that writes the output, with the output's number if there are
    several. Equal titles get the tensor's index.

    Args:
        model: the model.
        signature: name of the called signature; None means the whole model.
        details: details of the outputs; a signature's details have its names.
        said: the model's metadata.
    """
    called = next((s for s in model.signatures if s.key == signature), None)
    graph = model.subgraphs[0 if called is None else called.subgraph_index]
    named = _signature_names(model, graph.index)
    titles = []
    for entry in details:
        index = int(entry["index"])
        names = [entry["name"]] if called is not None else [named.get(index, "")]
        names += [said.tensor(index).name, entry["name"]]
        telling = (name for name in names if not _SAYS_NOTHING.fullmatch(name))
        titles.append(next(telling, None) or _maker(graph, index) or entry["name"])
    counts = Counter(titles)
    return [
        f"{title} (tensor {int(entry['index'])})" if counts[title] > 1 else title
        for title, entry in zip(titles, details, strict=True)
    ]


def _signature_names(model: Model, subgraph: int) -> Mapping[int, str]:
    """Return a mapping from output tensors to their names in the first signature with them."""
    names: dict[int, str] = {}
    for signature in model.signatures:
        if signature.subgraph_index == subgraph:
            for name, index in signature.outputs.items():
                names.setdefault(index, name)
    return names


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
