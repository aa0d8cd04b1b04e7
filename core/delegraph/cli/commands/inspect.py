"""``delegraph inspect``: shows the contents of a model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.author_metadata import print_author_metadata
from delegraph.cli.answers.kept_entries import print_kept_entries
from delegraph.cli.answers.model_listing import print_filled, print_nodes, print_tensors
from delegraph.cli.answers.printing import (
    amount,
    console,
    heading,
    print_facts,
    print_json,
    print_paragraph,
    print_table,
    print_title,
    progress,
    shortened,
    size,
)
from delegraph.cli.answers.unknown_shapes import LEAST_MACS, macs_amount, shape_text
from delegraph.cli.options.arguments import (
    diagnosis_options,
    json_option,
    model_argument,
    table_limit_option,
    weights_dir_option,
)
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.without_effect import require_effect
from delegraph.json_records import to_json
from delegraph.quantities import percent, plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.bundles.bundle import Bundle
    from delegraph.tools.bundle_summary import SectionSummary
    from delegraph.tools.model_summary import (
        ModelSummary,
        OperatorCount,
        SubgraphSummary,
        TensorSummary,
    )


_FLEX_ADVICE = (
    "Flex operators are TensorFlow's own (SELECT_TF_OPS). delegraph-flex runs most of them by "
    "NumPy; with {command} it runs all."
)


@click.command("inspect", cls=SectionedCommand)
@model_argument
@click.option("--nodes", is_flag=True, help="List all nodes: operators, tensors, options.")
@click.option("--tensors", is_flag=True, help="List all tensors: types, shapes, quantization.")
@table_limit_option
@weights_dir_option
@json_option
@diagnosis_options
def command(
    model: str,
    nodes: bool,
    tensors: bool,
    table_limit: int | None,
    weights_dir: str | None,
    as_json: bool,
) -> None:
    """Show the contents of a model file.

    Shows inputs and outputs, operators with their arithmetic, parameters, how the model is
    quantized, signatures and metadata, with the author's description and labels. The model is not
    run. Of a bundle it shows the sections; FILE#SECTION is a model in it.

    --nodes and --tensors list what a model consists of instead. A narrow terminal shows fewer
    columns, --json always everything.
    """
    from delegraph.graph.loader import load_model
    from delegraph.graph.model_files import bundle_at
    from delegraph.tools.model_listing import list_nodes, list_tensors
    from delegraph.tools.model_summary import summarize_model
    from delegraph.tools.tensor_names import names_in_calls

    with progress(f"reading {model}"):
        bundle = bundle_at(model)
    if bundle is not None:
        require_effect(("nodes", "tensors"), f"needs a model of the bundle: {model}#SECTION")
        _show_bundle(model, bundle, as_json)
        return
    with progress(f"reading {model}"):
        found = load_model(model, table_limit, weights_dir=weights_dir)
        summary = summarize_model(found)
    if as_json:
        shown = {"nodes": to_json(list_nodes(found))} if nodes else {}
        shown |= {"tensors": to_json(list_tensors(found))} if tensors else {}
        print_json({"model": model, **summary.to_json(), **shown})
        return
    out = console()
    _print_facts(out, model, summary)
    if nodes:
        print_nodes(out, found)
    if tensors:
        print_tensors(out, found)
    if not (nodes or tensors):
        _print(out, summary, names_in_calls(found))


def _show_bundle(model: str, bundle: Bundle, as_json: bool) -> None:
    from delegraph.tools.bundle_summary import summarize_bundle

    summary = summarize_bundle(bundle)
    if as_json:
        print_json({"bundle": model, **summary.to_json()})
        return
    out = console()
    print_title(out, model)
    kind = " ".join(filter(None, (f"{summary.format} bundle", summary.version)))
    out.print(f"  {size(summary.bytes)}, {kind}, {plural(len(summary.sections), 'section')}")
    if summary.metadata:
        heading(out, "Metadata")
        facts = [(key, _value(value)) for key, value in summary.metadata.items()]
        print_table(out, ("name", "value"), facts)
    heading(out, "Sections")
    rows = [
        (s.index, s.name or s.items.get("model_type") or "-", s.type, size(s.bytes), _items(s))
        for s in summary.sections
    ]
    columns = ("section", "name", "type", "size", "facts")
    print_table(out, columns, rows, right=("section", "size"))


def _items(section: SectionSummary) -> str:
    facts = [f"{key}={_value(value)}" for key, value in section.items.items()]
    return ", ".join([*facts, *(["packed"] * section.is_packed)])


def _value(value: Any) -> str:
    return "of an unknown type" if value is None else str(value)


def _print_facts(out: Console, model: str, summary: ModelSummary) -> None:
    print_title(out, model)
    facts = [
        size(summary.bytes),
        f"schema version {summary.version}",
        plural(len(summary.subgraphs), "subgraph"),
        f"{plural(summary.constants, 'constant')}, {size(summary.constant_bytes)}",
    ]
    out.print("  " + ", ".join(facts))
    if summary.parameters or summary.macs or summary.macs_are_least:
        print_paragraph(out, _weight(summary))
    if summary.uncounted_operators:
        names = ", ".join(summary.uncounted_operators)
        inside = "MACs of custom operators, and parameters inside them, are not counted"
        print_paragraph(out, f"{inside}: {names}")
    if summary.quantization:
        print_paragraph(out, summary.quantization)
    if summary.sparse_constants:
        count = plural(summary.sparse_constants, "sparse constant")
        print_paragraph(out, f"{count}: {percent(summary.sparsity)} zeros, which are not stored")
    if summary.description:
        print_paragraph(out, f"description: {summary.description}")


def _print(out: Console, summary: ModelSummary, names: Mapping[int, str]) -> None:
    """Print the whole summary; *names* are those of inputs and outputs of the first subgraph."""
    for subgraph in summary.subgraphs:
        _print_subgraph(out, subgraph, {} if subgraph.index else names)
    heading(out, "Operators")
    _print_operators(out, summary.operators)
    _print_weights(out, summary)
    for described in summary.described:
        where = f" of subgraph {described.subgraph}" if described.subgraph else ""
        heading(out, f"Operator {described.operator}{where}, {described.op}")
        print_facts(out, described.facts.items())
    if summary.signatures:
        heading(out, "Signatures")
        rows = [
            (s.key, s.subgraph, _names(s.inputs), _names(s.outputs)) for s in summary.signatures
        ]
        print_table(out, ("name", "subgraph", "inputs", "outputs"), rows)
    if summary.metadata:
        told = summary.metadata_facts
        heading(out, "Metadata")
        print_table(
            out,
            ("name", "size", *(("content",) if told else ())),
            [
                (name, size(count), *((told.get(name, ""),) if told else ()))
                for name, count in summary.metadata.items()
            ],
            right=("size",),
        )
    if summary.kept:
        heading(out, "Kept by delegates, after the model")
        kept = [(name, size(count)) for name, count in summary.kept.items()]
        print_table(out, ("name", "size"), kept, right=("size",))
    if summary.kept_entries:
        out.print()
        print_kept_entries(out, summary.kept_entries)
    if summary.author_metadata is not None:
        print_author_metadata(out, summary.author_metadata)


def _weight(summary: ModelSummary) -> str:
    parameters = f"{amount(summary.parameters)} parameter{'s' * (summary.parameters != 1)}"
    if not summary.macs and not summary.macs_are_least:
        return parameters
    least = "at least " if summary.macs_are_least else ""
    count = f"{least}{amount(summary.macs)}" if summary.macs else "an unknown number of"
    return f"{parameters}, {count} multiply-accumulates (MACs)"


def _print_subgraph(out: Console, subgraph: SubgraphSummary, names: Mapping[int, str]) -> None:
    name = f" {subgraph.name!r}" if subgraph.name else ""
    numbers = f"{plural(subgraph.operators, 'operator')}, {plural(subgraph.tensors, 'tensor')}"
    heading(out, f"Subgraph {subgraph.index}{name}: {numbers}")
    rows = [
        (
            side,
            tensor.index,
            _named(tensor, names),
            tensor.type,
            shape_text(tensor.shape),
            _scale(tensor),
        )
        for side, tensors in (("input", subgraph.inputs), ("output", subgraph.outputs))
        for tensor in tensors
    ]
    columns = ("", "tensor", "name", "type", "shape", "quantization")
    print_filled(
        out, columns, rows, right=("tensor",), optional=(("quantization",),), below="quantization"
    )


def _named(tensor: TensorSummary, names: Mapping[int, str]) -> str:
    """Name of an input or output in all commands, with the tensor's name if that is another."""
    name = names.get(tensor.index, tensor.name)
    return (name if name == tensor.name or not tensor.name else f"{name} ({tensor.name})") or "-"


def _print_operators(out: Console, operators: Sequence[OperatorCount]) -> None:
    total = sum(operator.macs for operator in operators)
    are_least = any(operator.macs_are_least for operator in operators)
    has_macs = total or are_least
    columns = ["operator", "count", "version", *(("MACs", "share") if has_macs else ())]
    rows = [
        (o.op, o.count, o.version, *(_arithmetic(o, total) if has_macs else ())) for o in operators
    ]
    print_table(out, columns, rows, right=columns[1:])
    if are_least:
        print_paragraph(out, LEAST_MACS)
    custom = [(o.op, _provider(o)) for o in operators if o.custom]
    if custom:
        heading(out, "Custom operators")
        print_table(out, ("operator", "provider"), custom)
    if any(o.package == "delegraph-flex" and not o.installed for o in operators):
        from delegraph.plugins.sources import pip_install

        out.print()
        command = pip_install("delegraph-flex", "tensorflow")
        print_paragraph(out, _FLEX_ADVICE.format(command=command))


def _arithmetic(count: OperatorCount, total: int) -> tuple[str, str]:
    share = percent(count.macs / total) if count.macs else ""
    return macs_amount(count.macs, count.macs_are_least), share


def _provider(operator: OperatorCount) -> str:
    from delegraph.plugins.known_packages import install_command

    if operator.package is None:
        return operator.guess or "unknown: give it a kernel by register_custom_op()"
    command = install_command(operator.op) or f"pip install {operator.package}"
    if not operator.installed:
        return f"runs with: {command}"
    extra = f" and its extra: {command}" if "[" in command else ""
    return f"runs with {operator.package}{extra}"


def _print_weights(out: Console, summary: ModelSummary) -> None:
    """Print the constants by type, and the types of arithmetic if there are several."""
    if summary.constant_bytes:
        heading(out, "Constants")
        rows = [
            (t.type, t.constants, amount(t.parameters), size(t.bytes), _share(t.bytes, summary))
            for t in summary.types
        ]
        columns = ("type", "count", "parameters", "size", "share")
        print_table(out, columns, rows, right=columns[1:])
        shared = sum(t.bytes for t in summary.types) - summary.constant_bytes
        if shared:
            print_paragraph(
                out, f"{size(shared)} count more than once: tensors of several types share them"
            )
    if len(summary.precisions) > 1:
        heading(out, "Arithmetic with weights")
        kinds = [
            (
                p.activations,
                f"{p.weights} {p.scales}".rstrip(),
                p.nodes,
                macs_amount(p.macs, p.macs_are_least),
            )
            for p in summary.precisions
        ]
        types = ("activations", "weights", "nodes", "MACs")
        print_table(out, types, kinds, right=("nodes", "MACs"))


def _share(count: int, summary: ModelSummary) -> str:
    return percent(count / summary.constant_bytes)


def _scale(tensor: TensorSummary) -> str:
    if tensor.scale is None:
        return ""
    if tensor.channels is not None:
        return f"{tensor.channels} scales, one a channel"
    if not tensor.zero_point:
        return f"{tensor.scale:.8g} * q"
    sign = "-" if tensor.zero_point > 0 else "+"
    return f"{tensor.scale:.8g} * (q {sign} {abs(tensor.zero_point)})"


def _names(tensors: dict[str, int]) -> str:
    return ", ".join(f"{shortened(name)} (tensor {index})" for name, index in tensors.items())
