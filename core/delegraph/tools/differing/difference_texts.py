"""Texts about a difference that the terminal and the HTML page both show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delegraph.delegation.placement import node_numbers
from delegraph.quantities import duration, percent, plural
from delegraph.tools.differing.difference import Difference, OutputDifference
from delegraph.tools.differing.layer_difference import LayersDifference
from delegraph.tools.latency import Latency

ONE_TIME = "times of one run each; --runs N or benchmark measures more"

_SAME_INPUTS = {
    "alone": "each node computes from the reference's values, so this is what it adds itself.",
    "exposed": "each partition, and each node without a delegate, computes from the reference's "
    "values, so this is what its partition adds up to there.",
    "boundaries": "each partition, and each node without a delegate, computes from the reference's "
    "values, so this is what it adds.",
}

_STATISTICS = ("mean", "std", "min", "median", "max")


def number(value: float) -> str:
    """Return a number as text with four digits.

    >>> number(0.0), number(1.5e-7), number(float("inf"))
    ('0', '1.5e-07', 'inf')
    """
    return f"{value:.4g}"


def different_numbers(one: float, other: float) -> tuple[str, str]:
    """Two numbers as texts with four digits, or with nine where four show no difference.

    >>> different_numbers(0.5, 0.25), different_numbers(0.53764, 0.53763998)
    (('0.5', '0.25'), ('0.53764', '0.53763998'))
    """
    if number(one) != number(other):
        return number(one), number(other)
    return f"{one:.9g}", f"{other:.9g}"


def unequal_elements(output: OutputDifference) -> str:
    """Text with the number of elements that differ; of labels, with their share as well."""
    unequal, count = (sum(getattr(d, name) for d in output.runs) for name in ("unequal", "count"))
    share = f" ({percent(unequal / count, 2)})" if output.are_labels and unequal else ""
    return f"{unequal} of {count}{share}"


def output_facts(output: OutputDifference, runs: Sequence[str]) -> Iterator[str]:
    """Yield place and values of the greatest difference, numbers of NaN and infinities, remarks.

    Args:
        output: difference of one output.
        runs: description of the input values of each run.
    """
    compared = output.worst.compared
    if output.are_strings and compared is not None and compared.max > 0:
        yield f"first difference at {list(compared.index)} ({_worst_run(output, runs)})"
    elif compared is not None and compared.max > 0:
        found, expected = different_numbers(compared.found, compared.expected)
        yield (
            f"greatest difference at {list(compared.index)}: {found}, expected {expected} "
            f"({_worst_run(output, runs)})"
        )
    for what, name in (("nan", "NaN"), ("infinite", "infinite")):
        test, reference = (sum(getattr(d, what)[side] for d in output.runs) for side in (0, 1))
        if test or reference:
            yield f"{plural(test, f'{name} value')}, {reference} in the reference"
    yield from output.remarks


def _worst_run(output: OutputDifference, runs: Sequence[str]) -> str:
    return f"run {output.worst_run + 1}: {runs[output.worst_run]}"


def alone_texts(found: Difference) -> Iterator[str]:
    """Yield a text for each output that only one side has."""
    for side, names in (("test", found.only_in_test), ("reference", found.only_in_reference)):
        yield from (f"{name}: only the {side} has it" for name in names)


def latency_columns(found: Difference) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and rows of the table of run times; after a single run, one time per side."""
    sides = {"test": found.test_latency, "reference": found.reference_latency}
    if len(found.runs) == 1:
        return ("", "time"), [(side, duration(time.mean)) for side, time in sides.items()]
    return ("", "runs", *_STATISTICS), [(side, *_statistics(time)) for side, time in sides.items()]


def _statistics(time: Latency) -> tuple[str, ...]:
    return str(time.count), *(duration(getattr(time, name)) for name in _STATISTICS)


def layers_run(layers: LayersDifference, found: Difference) -> str:
    """Text that names the one run of *layers*; empty if they have all runs of *found*."""
    if len(layers.runs) == len(found.runs):
        return ""
    runs = plural(len(found.runs), "run")
    if all(run.are_equal for output in found.outputs for run in output.runs):
        return f"layers of {layers.runs[0]}; outputs of all {runs} are equal"
    return f"layers of {layers.runs[0]}, the worst of {runs}"


def layer_figures(found: LayersDifference) -> str:
    """Text that says what the figures of layers are."""
    text = "Drift: each side goes on with its own values."
    if found.same_inputs_say_more:
        return f"{text} Same inputs: {_SAME_INPUTS[found.inner]}"
    if found.inner == "alone":
        return text
    return f"{text} --inner alone tells what each node adds on the reference's values."


def uncompared_layers(found: LayersDifference) -> Iterator[str]:
    """Yield a text for each reason why tensors are left out, with their nodes."""
    reasons: dict[str, list[int]] = {}
    constants = sum(layer.is_equal_constant for layer in found.layers)
    if constants:
        yield f"{plural(constants, 'constant')} left out: equal on both sides"
    for layer in found.layers:
        if not layer.is_compared:
            reasons.setdefault(layer.drift_note, []).append(layer.node)
    for reason, nodes in reasons.items():
        many = "s" * (len(nodes) != 1)
        yield f"{plural(len(nodes), 'tensor')} of node{many} {node_numbers(set(nodes))}: {reason}"
    if found.inner == "boundaries" and any("inside" in reason for reason in reasons):
        yield "--inner exposed or --inner alone has delegates compute these, too."
