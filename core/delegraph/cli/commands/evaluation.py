"""Common parts of the tasks of ``delegraph evaluate``: options, result file and output."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import click
from click.core import ParameterSource

from delegraph.cli.answers.printing import (
    console,
    heading,
    print_json,
    print_paragraph,
    print_table,
)
from delegraph.cli.answers.progress_bar import shown_progress
from delegraph.cli.answers.result_file import write_result
from delegraph.cli.answers.setup_names import short_names
from delegraph.cli.options.arguments import diagnosis_options, json_option
from delegraph.cli.options.kinds import (
    Command,
    group,
    number_option,
    switch_option,
)
from delegraph.cli.options.output_files import OutputFile
from delegraph.cli.options.preprocessing import PRESETS
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.setup import against_option, setup_options, setups_against
from delegraph.cli.options.without_effect import require_effect
from delegraph.quantities import duration, plural
from delegraph.tools.benchmarking.threads import threads_text

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.bootstrap import Interval
    from delegraph.tools.evaluation.answers import Answers
    from delegraph.tools.evaluation.preprocessing import Preprocessing
    from delegraph.tools.latency import Latency
    from delegraph.tools.progress import Progress
    from delegraph.tools.setup import Setup

BAD_SHOWN = 10
"""Largest number of unusable samples in the table; JSON has all."""


class Evaluated(Protocol):
    """Interface of the result that a task returns."""

    @property
    def answers(self) -> Answers:
        """Answers of the set-ups, with times and unusable samples."""

    def to_json(self) -> dict[str, Any]:
        """Return all results as dictionaries and lists for JSON."""


AnyEvaluated = TypeVar("AnyEvaluated", bound=Evaluated)


class EvaluationCommand(SectionedCommand):
    """Command of a task; one error names all options that are missing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter:
            found, _, _ = self.make_parser(ctx).parse_args(given)
            words = {
                name for name, value in found.items() if isinstance(value, str | tuple) and value
            }
            missing = [each for each in self.params if each.required and each.name not in words]
            raise click.UsageError(f"missing: {', '.join(map(_wanted, missing))}", ctx) from None


def _wanted(parameter: click.Parameter) -> str:
    """Text for a missing *parameter*: an option with its value and meaning, or an argument."""
    if not isinstance(parameter, click.Option):
        return (parameter.name or "").upper()
    meaning = (parameter.help or "").rstrip(".")
    return f"{parameter.opts[0]} {parameter.metavar or 'FILE'} ({meaning})"


@dataclass(frozen=True)
class Evaluation:
    """Parsed options that all tasks share.

    Attributes:
        setups: the set-up of MODEL and its options, then one for each ``--against``.
        output: path of the result file; the journal is beside it.
        restart: whether to delete an existing journal.
        warmup_runs: number of runs of each set-up before times are measured.
        as_json: whether to print JSON.
    """

    setups: tuple[Setup, ...]
    output: str | None
    restart: bool
    warmup_runs: int
    as_json: bool

    @property
    def journal(self) -> str | None:
        """Path of the journal; None if no result file is requested."""
        return None if self.output is None else f"{self.output}.journal"

    def finish(
        self,
        evaluate: Callable[[Progress], AnyEvaluated],
        show: Callable[[Console, AnyEvaluated], object],
    ) -> None:
        """Evaluate, write the result, delete the journal, and print.

        *show* prints the task's own part of the result, between set-ups and bad samples.
        """
        if self.restart and self.journal is not None:
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.journal)
        try:
            with shown_progress() as progress:
                result = evaluate(progress)
        except KeyboardInterrupt:
            if self.journal is not None and os.path.exists(self.journal):
                how = " without --restart" * self.restart
                click.echo(f"finished samples are kept: the same command{how} goes on", err=True)
            raise
        if self.output is not None and self.journal is not None:
            write_result(self.output, result.to_json(), "--output")
            os.remove(self.journal)
        if self.as_json:
            print_json(result.to_json())
        else:
            out = console()
            _print_setups(out, result.answers)
            show(out, result)
            _print_bad(out, result.answers)


def evaluation_options(command: Command) -> Command:
    """Add MODEL, set-up options, ``--against``, ``--output`` and other common options.

    The command gets them as an :class:`Evaluation` called *evaluation*.
    """

    @functools.wraps(command)
    def run(
        *arguments: Any,
        setup: Setup,
        against: Sequence[str],
        output: str | None,
        restart: bool,
        warmup_runs: int,
        as_json: bool,
        **options: Any,
    ) -> Any:
        if output is None:
            require_effect(["restart"], "needs --output: the journal lies beside it")
        else:
            _require_json_ending(output)
        setups = (setup, *setups_against(setup, against))
        evaluation = Evaluation(setups, output, restart, warmup_runs, as_json)
        return command(*arguments, evaluation=evaluation, **options)

    return setup_options(_options(json_option(diagnosis_options(cast(Command, run)))))


def _require_json_ending(output: str) -> None:
    """Check that the result file ends in ``.json``."""
    if output.lower().endswith(".json"):
        return
    names = {name for each in click.get_current_context().command.params for name in each.opts}
    table = "; --csv FILE.csv writes a table of the answers" if "--csv" in names else ""
    raise click.UsageError(f"--output {output!r}: expected a file ending in .json{table}")


_options = group(
    against_option("Compare with another set-up"),
    click.option(
        "-o",
        "--output",
        type=OutputFile(),
        metavar="FILE.json",
        help="Write the result; an interrupted run goes on from FILE.journal.",
    ),
    switch_option("--restart", "Start again; drop an interrupted run's results."),
    number_option("--warmup-runs", "Runs before times are measured.", default=1, least=0),
)


def _print_setups(out: Console, answers: Answers) -> None:
    total = len(answers.keys) + len(answers.bad)
    resumed = f", {answers.resumed} of {total} done in an earlier run" if answers.resumed else ""
    out.print(f"{plural(len(answers.keys), 'sample')}{resumed}")
    names = [str(setup) for setup in answers.setups]
    is_one_model = len({name.partition(", ")[0] for name in names}) == 1
    what = "Set-ups" if len(names) > 1 else "Set-up"
    heading(out, f"{what} of {names[0].partition(', ')[0]}" if is_one_model else what)
    shown = short_names(names)
    times = map(_times, answers.invoke)
    rows: list[tuple[object, ...]] = [
        (number, name, threads_text(threads), *latency)
        for number, (name, threads, latency) in enumerate(
            zip(shown, answers.threads, times, strict=True), 1
        )
    ]
    rows.append(("", "preparing a sample", "", *_times(answers.prepare)))
    columns = ("", "set-up", "threads", "mean", "std", "median", "p95")
    less_important = (("std",), ("p95",), ("set-up",))
    print_table(
        out,
        columns,
        rows,
        right=columns[2:],
        names=(),
        optional=less_important,
        below="set-up",
    )


def _times(latency: Latency) -> Iterable[str]:
    times = (latency.mean, latency.std, latency.median, latency.percentiles[95])
    return map(duration, times)


def setup_headings(setups: Sequence[object]) -> list[str]:
    """Return the column headings for the set-ups."""
    return [f"set-up {position}" for position in range(1, len(setups) + 1)]


def print_preprocessing(out: Console, preprocessing: Preprocessing) -> None:
    """Print the preset by which pictures became inputs, the reason for it, and other presets."""
    out.print()
    out.print(f"Preprocessing: {preprocessing.name} ({preprocessing.reason})")
    context = click.get_current_context(silent=True)
    if context and context.get_parameter_source("preset") is ParameterSource.DEFAULT:
        others = ", ".join(PRESETS[1:])
        print_paragraph(out, f"by default; --preset has the steps of other frameworks: {others}")


def print_changes(
    out: Console, kind: str, changes: Iterable[tuple[object, str, float, Interval | None]]
) -> None:
    """Print how figures of other set-ups differ from those of set-up 1.

    *kind* is the heading of the column with the figures' names. *changes* have the number of a
    set-up, the name of a figure, its drop and the interval of the drop; None if there is a single
    sample, which gives no interval.
    """
    heading(out, "Change from set-up 1")
    columns = ("", kind, "change", "95 % interval", "verdict")
    rows = [
        (
            position,
            name,
            change(drop, "{:.3g}"),
            *_judged(drop, interval),
        )
        for position, name, drop, interval in changes
    ]
    print_table(out, columns, rows, right=("95 % interval",), names=())
    if any("unclear" in row for row in rows):
        print_paragraph(out, "unclear: the interval has 0 in it, so it may be chance")


def _judged(drop: float, interval: Interval | None) -> tuple[str, str]:
    """Return the text of the *interval* of the change *drop*, and the verdict on the change.

    The verdict is ``clear`` if the interval excludes 0, and else ``unclear``. It is empty if the
    change is 0, or if there is no interval.
    """
    if interval is None or drop != drop:
        return "-", ""
    verdict = "clear" if interval.excludes(0) else "unclear" if drop else ""
    return change_interval(interval, "{:+.3g}"), verdict


def change(drop: float, form: str) -> str:
    """Text that says whether a figure is lower or higher than in set-up 1, and by how much.

    >>> change(0.25, "{:.2f}"), change(-0.25, "{:.2f}"), change(0.0, "{:.2f}")
    ('0.25 lower', '0.25 higher', 'none')

    *drop* is the figure of set-up 1 minus the other figure; *form* is the format of a figure.
    """
    if drop != drop:
        return "no number"
    return f"{form.format(abs(drop))} {'lower' if drop > 0 else 'higher'}" if drop else "none"


def change_interval(interval: Interval, form: str) -> str:
    """Text of the interval of a change; it is negative where the figure is lower than in set-up 1.

    *interval* is that of the drop, whose sign is that of a loss. *form* is the format of a figure,
    with its sign.
    """
    ends = (0.0 - interval.high, 0.0 - interval.low)
    return " to ".join(form.format(end) if end else "0" for end in ends)


def _print_bad(out: Console, answers: Answers) -> None:
    if not answers.bad:
        return
    heading(out, f"{plural(len(answers.bad), 'sample')} could not be used")
    for sample in answers.bad[:BAD_SHOWN]:
        out.print(f"  {sample.key}: {sample.reason}")
    if len(answers.bad) > BAD_SHOWN:
        out.print(f"  and {len(answers.bad) - BAD_SHOWN} more")


def images_option(text: str) -> Callable[[Command], Command]:
    """Return a decorator that adds ``--images``, a folder, with *text* as its help."""
    folder = click.Path(exists=True, file_okay=False)
    return click.option("--images", required=True, type=folder, metavar="FOLDER", help=text)


num_images_option = number_option(
    "--num-images", "Number of pictures, by name; 0 means all.", default=0, least=0
)
"""Decorator that adds ``--num-images``, for every task on pictures."""
