"""``delegraph diff``: compares a model's results with Delegraph's kernels or other set-ups."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.diff import print_cause, print_difference, print_layers, print_verdict
from delegraph.cli.answers.diff_bisection import bisect_and_print
from delegraph.cli.answers.printing import console, print_json
from delegraph.cli.answers.progress_bar import shown_progress
from delegraph.cli.answers.result_file import write_text
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.arguments import diagnosis_options, json_option
from delegraph.cli.options.inputs import inner_option, input_request_options
from delegraph.cli.options.kinds import (
    choice_option,
    number_option,
    seconds_option,
    switch_option,
)
from delegraph.cli.options.output_files import output_option
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.setup import changed_setup, setup_options
from delegraph.cli.options.without_effect import require_effect
from delegraph.errors import printable

if TYPE_CHECKING:
    from delegraph.delegation.tolerance import Tolerance
    from delegraph.tools.differing.cause import Cause
    from delegraph.tools.differing.difference import Difference
    from delegraph.tools.differing.layer_difference import LayersDifference
    from delegraph.tools.differing.metrics import Figures
    from delegraph.tools.differing.watched_side import Inner
    from delegraph.tools.progress import Progress
    from delegraph.tools.requested_inputs import InputRequest
    from delegraph.tools.setup import Setup

_TOLERANCE = re.compile(r"(?:(.*)=)?([^=,]+)(?:,([^=,]+))?", re.DOTALL)


def _require_folder(ctx: click.Context, parameter: click.Parameter, path: str) -> str:
    """Check that the optional folder of ``--bisect`` is not the model file."""
    if path is not None and os.path.isfile(path):
        raise click.BadParameter(
            f"{path!r} is a file, not a folder; MODEL comes first: delegraph diff MODEL --bisect"
        )
    return path


_WORDS = f"{__name__}.words"


class _DiffCommand(SectionedCommand):
    """Command for one model; the error about a second model suggests ``--reference``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them as typed."""
        ctx.meta[_WORDS] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if not error.message.startswith("Got unexpected extra argument"):
                raise
            text = f"{error.message}; --reference FILE compares with another model"
            raise click.UsageError(text, ctx) from None


@click.command("diff", cls=_DiffCommand)
@setup_options
@click.option(
    "--reference",
    metavar='"[OPTION]..."',
    help="Set-up to compare with.  [default: Delegraph's kernels alone]",
)
@number_option("--runs", "Runs, each with new values.  [default: by input, at most 50]")
@number_option("--warmup", "Invokes before the runs, on either side.", default=1, least=0)
@input_request_options("inference_diff")
@click.option("--signature", metavar="NAME", help="Call this signature, by its names.")
@click.option(
    "--tolerance",
    "tolerances",
    multiple=True,
    metavar="[OUTPUT=]ABS[,REL]",
    help="Fail above ABS + REL * |right|, in stored values; repeatable.",
)
@switch_option("--layers", "Also compare every tensor that a node computes.")
@inner_option
@choice_option("--sort", ["order", "worst"], "Order of layers.", default="order")
@output_option("--plot", "FILE", "Draw the layers to a .png or .svg; needs matplotlib.")
@click.option(
    "--node-data", metavar="FOLDER", help="Write the layers' differences for Model Explorer."
)
@output_option(
    "--html", "FILE", "Write a page with verdict, figures and histograms.", ".html", ".htm"
)
@click.option(
    "--bisect",
    is_flag=False,
    flag_value="bisect",
    callback=_require_folder,
    metavar="[FOLDER]",
    help="Find nodes that cause differences.  [default folder: bisect]",
)
@seconds_option("--probe-time-limit", "Longest probe of --bisect.", default=60.0)
@json_option
@diagnosis_options
def command(
    setup: Setup,
    reference: str | None,
    signature: str | None,
    warmup: int,
    tolerances: tuple[str, ...],
    as_json: bool,
    layers: bool,
    inner: Inner | None,
    sort: str,
    plot: str | None,
    node_data: str | None,
    html: str | None,
    bisect: str | None,
    probe_time_limit: float,
    inputs: InputRequest,
    runs: int | None,
) -> None:
    """Compare outputs in two set-ups, on the same inputs.

    The first line is the verdict. Without --tolerance, also with --bisect, outputs are the same
    within the numerics profile if they differ by roundings only. A rounding is a small share of the
    largest value for floats, and 1 for quantized integers (beside floats, their scale).

    The options describe the tested set-up; --reference describes the set-up to compare with.
    """
    from delegraph.tools.differing.difference import diff
    from delegraph.tools.differing.difference_texts import layers_run
    from delegraph.tools.differing.html_page import difference_page
    from delegraph.tools.differing.verdict import verdict_of, worst_run

    _require_use(layers=layers, bisects=bisect is not None, plot=plot)
    right = None if reference is None else changed_setup(setup, reference, "--reference")
    given: Any = {"inputs": inputs, "runs": runs, "signature": signature}
    if bisect is not None:
        given |= {"folder": bisect, "time_limit": probe_time_limit}
        with shown_progress() as progress:
            bisect_and_print(
                setup, right, _tolerances(tolerances), given, progress, as_json=as_json
            )
        return
    seen = None
    with shown_progress() as progress:
        found = diff(
            setup,
            right,
            **given,
            warmup=warmup,
            tolerance=_tolerances(tolerances),
            progress=progress,
        )
        if layers:
            figures: Figures = "all" if as_json or html is not None else "main"
            part = {} if runs is not None else {"runs": 1, "first": worst_run(found)}
            seen = _layers(setup, right, inner, progress, given | part | {"figures": figures})
        cause = _cause(found, inputs, progress) if found.failures else None
    verdict = verdict_of(found, seen)
    if seen is not None:
        _write_layers(seen, plot, node_data)
    if html is not None:
        words = click.get_current_context().meta[_WORDS]
        line = shlex.join(["delegraph", "diff", *map(printable, words)])
        is_worst = sort == "worst"
        page = difference_page(found, verdict, seen, cause, command=line, worst_first=is_worst)
        write_text(html, page, "--html")
        click.echo(f"page written to {printable(html)}", err=True)
    if as_json:
        shown: dict[str, Any] = {"verdict": verdict.to_json()}
        shown |= {} if seen is None else {"layers": seen.to_json()}
        shown |= {} if cause is None else {"cause": cause.to_json()}
        print_json(found.to_json() | shown)
    else:
        out = console()
        is_one = found.test == found.reference
        print_verdict(
            out, verdict, has_layers=layers, has_tolerance=bool(tolerances), is_one_setup=is_one
        )
        print_difference(out, found)
        if seen is not None:
            run = layers_run(seen, found)
            print_layers(out, seen, run=run, worst_first=sort == "worst")
        if cause is not None:
            print_cause(out, cause)
    if found.failures:
        raise CheckFailed(f"further off than the tolerance: {'; '.join(found.failures)}")


def _require_use(*, layers: bool, bisects: bool, plot: str | None) -> None:
    """Check, before any computation, that every given option has an effect."""
    if layers and bisects:
        raise click.UsageError("--bisect and --layers exclude each other: give one")
    if not layers:
        require_effect(("inner", "sort", "plot", "node_data"), "needs --layers")
    if bisects:
        require_effect(("warmup",), "has no effect with --bisect, which takes no times")
        bound = "--probe-time-limit bounds applying the delegates, and a run"
        require_effect(("time_limit",), f"has no effect with --bisect: {bound}")
        require_effect(("html",), "has no effect with --bisect, which writes files to a folder")
    else:
        require_effect(("probe_time_limit",), "needs --bisect")
    if plot is not None:
        from delegraph.tools.differing.layers_plot import require_drawable

        require_drawable(plot)


def _cause(found: Difference, inputs: InputRequest, progress: Progress) -> Cause | None:
    from delegraph.tools.differing.cause import cause_of

    return cause_of(found, inputs=inputs, progress=progress)


def _layers(
    setup: Setup, reference: Setup | None, inner: Inner | None, progress: Progress, given: Any
) -> LayersDifference:
    from delegraph.tools.differing.layers import diff_layers
    from delegraph.tools.differing.numerics_profile import rounding

    return diff_layers(
        setup, reference, inner=inner, tolerance=rounding, progress=progress, **given
    )


def _write_layers(found: LayersDifference, plot: str | None, node_data: str | None) -> None:
    """Write the plot and the node data file, if the user asks for them."""
    if plot is not None:
        from delegraph.tools.differing.layers_plot import draw_layers

        draw_layers(found, plot)
        click.echo(f"layers drawn to {printable(plot)}", err=True)
    if node_data is not None:
        from delegraph.tools.differing.layers_node_data import write_layers_node_data

        write_layers_node_data(found, node_data)
        click.echo(f"layers' differences written to {printable(node_data)}", err=True)


def _tolerances(words: tuple[str, ...]) -> dict[str, Tolerance] | None:
    """Return the tolerance of each named output; the key ``""`` is for all others.

    The result is None if *words* is empty.
    """
    from delegraph.delegation.tolerance import Tolerance
    from delegraph.errors import ArgumentError

    found: dict[str, Tolerance] = {}
    for word in words:
        match = _TOLERANCE.fullmatch(word)
        try:
            if match is None:
                raise ValueError
            tolerance = Tolerance(absolute=float(match[2]), relative=float(match[3] or 0))
        except (ValueError, ArgumentError):
            raise click.BadParameter(
                f"{word!r}: expected [OUTPUT=]ABSOLUTE[,RELATIVE], numbers of at least 0",
                param_hint="--tolerance",
            ) from None
        found[match[1] or ""] = tolerance
    return found or None
