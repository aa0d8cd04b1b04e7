"""Prints the author's metadata of a model, for ``inspect``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import heading, print_table, size
from delegraph.errors import printable
from delegraph.quantities import plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.graph.metadata import BoxLayout, ModelMetadata, TensorMetadata

_LABELS_SHOWN = 3
_MAX_TEXT = 300
_BOX_NUMBERS = {
    "boundaries": ("left", "top", "right", "bottom"),
    "upper left": ("left", "top", "width", "height"),
    "center": ("x of the centre", "y of the centre", "width", "height"),
}


def print_author_metadata(out: Console, metadata: ModelMetadata) -> None:
    """Print name, author, inputs and outputs, and the files in the zip after the model."""
    about = [
        (what, text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]} ...")
        for what in ("name", "version", "author", "license", "description")
        if (text := str(getattr(metadata, what)))
    ]
    if about:
        heading(out, "About the model, by its author")
        print_table(out, ("", "text"), about)
    rows = [
        (side, tensor.index, tensor.name or "-", tensor.content or "-", _facts(tensor))
        for side, tensors in (("input", metadata.inputs), ("output", metadata.outputs))
        for tensor in tensors
    ]
    if rows:
        heading(out, "Inputs and outputs, by its author")
        print_table(out, ("", "tensor", "name", "content", "facts"), rows, right=("tensor",))
    if metadata.files:
        heading(out, "Files in the zip after the model")
        uses = {
            name: use
            for t in (*metadata.inputs, *metadata.outputs)
            for name, use in t.files.items()
        }
        files = [(name, size(count), uses.get(name, "")) for name, count in metadata.files.items()]
        print_table(out, ("name", "size", "type"), files, right=("size",))
    for fault in metadata.faults:
        out.print(printable(f"  not used: {fault}"))


def _facts(tensor: TensorMetadata) -> str:
    """Return the metadata that the author gave a tensor, as text of one line."""
    facts = []
    if tensor.size:
        facts.append("{} x {}".format(*tensor.size))
    if tensor.sample_rate:
        facts.append(f"{tensor.sample_rate} Hz")
    if tensor.channels:
        facts.append(plural(tensor.channels, "channel"))
    if tensor.mean:
        facts.append(f"(x - {_numbers(tensor.mean)}) / {_numbers(tensor.std)}")
    if tensor.boxes:
        unit = "in pixels" if tensor.boxes.is_pixels else "as parts of the picture's size"
        facts.append(f"{', '.join(_box_numbers(tensor.boxes))} {unit}")
    if tensor.score_threshold is not None:
        facts.append(f"scores from {tensor.score_threshold:g}")
    if tensor.tokenizer:
        words = plural(len(tensor.tokenizer.vocabulary), "word")
        facts.append(f"{tensor.tokenizer.kind} tokenizer, {words}")
    facts += [_labels(labels) for labels in (tensor.axis_labels, tensor.value_labels) if labels]
    return "; ".join(facts)


def _box_numbers(layout: BoxLayout) -> list[str]:
    """Return the names of a box's numbers, in their stored order."""
    names = _BOX_NUMBERS[layout.type]
    return [name for _, name in sorted(zip(layout.index, names, strict=True))]


def _labels(labels: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, labels[:_LABELS_SHOWN]))
    more = ", ..." if len(labels) > _LABELS_SHOWN else ""
    return f"{plural(len(labels), 'label')}: {shown}{more}"


def _numbers(values: tuple[float, ...]) -> str:
    """Return one number as text, or a list with a number per channel.

    >>> _numbers((127.5,)), _numbers((1.0, 2.5))
    ('127.5', '[1, 2.5]')
    """
    numbers = [f"{value:g}" for value in values]
    return numbers[0] if len(set(numbers)) == 1 else f"[{', '.join(numbers)}]"
