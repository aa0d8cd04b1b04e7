"""``delegraph benchmark --against``: its options, and the printed comparison."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from delegraph.cli.answers.benchmark import print_handed_on
from delegraph.cli.answers.printing import (
    heading,
    print_paragraph,
    print_table,
    print_title,
    size,
)
from delegraph.cli.answers.progress_bar import about, shown_progress
from delegraph.cli.answers.setup_names import short_names
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.kinds import (
    Command,
    number_option,
    seconds_option,
    with_options_added,
)
from delegraph.cli.options.op_profile import PROFILE_OPTIONS
from delegraph.cli.options.run_control import CONTROL_OPTIONS
from delegraph.cli.options.setup import against_option, setups_against
from delegraph.cli.options.without_effect import require_effect
from delegraph.quantities import duration, plural, rate_text
from delegraph.tools.benchmarking.threads import threads_text

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.benchmarking.comparison import Comparison, Timed
    from delegraph.tools.progress import Progress
    from delegraph.tools.requested_inputs import InputRequest
    from delegraph.tools.setup import Setup

_PERCENT = click.FloatRange(0)

_OF_COMPARING = ("blocks", "seconds", "same_within", "fail_above")
_OF_JUDGING = ("same_within", "fail_above")
_OF_BOTH = "max_seconds"
_OF_ONE_ALONE = tuple(name for name in CONTROL_OPTIONS if name != _OF_BOTH)


_LITTLE = 5.0
"""Seconds by which a comparison may exceed the announced time before a message says so."""


@dataclass(frozen=True)
class Against:
    """Options of a comparison: the set-ups, and how to compare them.

    Attributes:
        setup: the tested set-up, which all verdicts are about.
        others: set-ups to compare with.
        blocks: number of new interpreters for each set-up.
        seconds: duration of all turns together, in seconds.
        same_within: the largest difference that counts as equal, in percent.
        fail_above: percentage above which a slower set-up makes the command fail; None means never.
        max_seconds: seconds after which no block begins; None means no limit.
    """

    setup: Setup
    others: tuple[Setup, ...]
    blocks: int
    seconds: float
    same_within: float
    fail_above: float | None
    max_seconds: float | None

    def measured(self, inputs: InputRequest, signature: str | None) -> Comparison:
        """Measure and return the comparison of the set-ups, while a progress bar shows."""
        from delegraph.tools.benchmarking.comparison import compare

        with shown_progress() as progress:
            return compare(
                self.setup,
                self.others,
                inputs,
                signature=signature,
                blocks=self.blocks,
                seconds=self.seconds,
                max_seconds=self.max_seconds,
                same_within=self.same_within / 100,
                progress=with_whole_time(progress, self.blocks, self.seconds),
            )

    def duration(self) -> str:
        """Text saying how long the comparison takes at least."""
        seconds = self.seconds
        if self.max_seconds is not None:
            seconds = min(seconds, self.max_seconds)
        count = len(self.others) + 2  # MODEL twice
        most = "" if self.max_seconds is None else f"; no block begins after {self.max_seconds:g} s"
        return (
            f"takes at least {seconds:g} s, and the time to make {count} "
            f"interpreters {self.blocks} times{most}"
        )

    def check(self, found: Comparison) -> None:
        """Raise an error if a set-up failed, or if MODEL is too slow.

        Raises:
            CheckFailed: MODEL is slower than another set-up by more than :attr:`fail_above`.
            Exception: the error of the first set-up that failed.
        """
        slower = [] if self.fail_above is None else found.slower_than(self.fail_above / 100)
        if slower:
            names = "; ".join(other.name for other in slower)
            raise CheckFailed(f"slower by more than {self.fail_above:g} % than {names}")
        for other in found.others:
            if other.failure is not None:
                raise other.failure


def with_whole_time(progress: Progress, blocks: int, announced: float) -> Progress:
    """Return a progress function that also says after the first block how long all blocks take.

    A bar on a terminal shows the remaining time by itself. A time slightly longer than *announced*
    seconds is not reported.
    """
    begin, is_told = time.monotonic(), sys.stderr.isatty()

    def tell(what: str, done: float, total: float | None) -> None:
        nonlocal is_told
        if not is_told and total and done * blocks >= total:
            is_told = True
            whole = (time.monotonic() - begin) * total / done
            if whole > announced + _LITTLE:
                click.echo(f"by its first block, it takes {about(whole)} in all", err=True)
        progress(what, done, total)

    return tell


def against_options(command: Command) -> Command:
    """Add ``--against`` and related options; the command gets an :class:`Against`, or None.

    This decorator must stand below ``setup_options``, whose *setup* it uses.
    """

    @functools.wraps(command)
    def run(*arguments: Any, setup: Setup, against: Sequence[str], **options: Any) -> Any:
        _require_use(bool(against), options.get("compare_with") is not None)
        own = {name: options.pop(name) for name in _OF_COMPARING}
        judging = {name: own[name] for name in _OF_JUDGING}
        others = setups_against(setup, against)
        source = click.get_current_context().get_parameter_source(_OF_BOTH)
        limit = options[_OF_BOTH] if source is ParameterSource.COMMANDLINE else None
        wanted = Against(setup, others, **own, max_seconds=limit) if others else None
        return command(*arguments, setup=setup, against=wanted, **judging, **options)

    options = [
        against_option("Compare with another set-up"),
        click.option(
            "--fail-above",
            type=_PERCENT,
            metavar="PERCENT",
            help="Fail if MODEL is slower than a set-up, or FILE, by more.",
        ),
        number_option(
            "--blocks", "Processes, at least 5; all take turns in each.", default=12, least=5
        ),
        seconds_option("--seconds", "Total time of the comparison.", default=12.0, metavar=None),
        click.option(
            "--same-within",
            type=_PERCENT,
            default=5.0,
            show_default=True,
            metavar="PERCENT",
            help="Largest difference that counts as equal.",
        ),
    ]
    return with_options_added(cast(Command, run), options)


def _require_use(is_against: bool, has_earlier: bool) -> None:
    """Check that every given option has an effect, with or without ``--against``."""
    if is_against:
        in_vain = "has no effect with --against"
        require_effect(_OF_ONE_ALONE, f"{in_vain}: --blocks and --seconds say how long")
        require_effect(("name",), f"{in_vain}: set-ups are named by their options")
        require_effect(("save",), f"{in_vain}: --result-json FILE saves a comparison")
        require_effect(
            ("compare_with",),
            f"{in_vain}, whose set-ups take turns; --result-json FILE saves a comparison",
        )
        require_effect(PROFILE_OPTIONS, f"{in_vain}: a profile is of one set-up")
        return
    judging = () if has_earlier else _OF_JUDGING
    require_effect(judging, "needs --against or --compare-with")
    require_effect(set(_OF_COMPARING) - set(_OF_JUDGING), "needs --against")


def _tokens_and_copies(timed: Timed) -> tuple[str, str]:
    """Return tokens per second, and the bytes of states that each run copies, as texts."""
    rate, handed_on = timed.tokens_per_second, timed.handed_on
    copied = "" if handed_on is None else size(handed_on.copied_bytes)
    return "" if rate is None else rate_text(rate), copied


def print_comparison(out: Console, found: Comparison) -> None:
    """Print the set-ups with their times, ratios and verdicts."""
    memory = "" if found.one.memory is None else f", {size(found.one.memory)} of memory"
    threads = f"threads: {threads_text(found.one.threads)}"
    figures = f"{duration(found.one.median or 0.0)}{memory}, {threads}"
    if len(found.one.name) < out.width:
        out.print(f"{found.one.name}: {figures}")
    else:
        print_title(out, found.one.name)
        print_paragraph(out, figures)
    if found.signature is not None:
        print_paragraph(out, f"signature {found.signature}")
    print_handed_on(out, found.one.handed_on, found.one.tokens_per_second)
    heading(out, "Against")
    names = short_names([timed.name for timed in (found.one, *found.others)])[1:]
    named = dict(zip(map(id, found.others), names, strict=True))
    others = [timed for timed in found.others if timed.verdict is not None]
    ratio = "ratio [95 %]"
    columns = ["set-up", "threads", "median", "memory", ratio, "MODEL is"]
    rows = [
        [
            named[id(timed)],
            threads_text(timed.threads),
            duration(timed.median or 0.0),
            size(timed.memory),
            timed.verdict.ratio,
            found.words_on(timed),
        ]
        for timed in others
        if timed.verdict is not None
    ]
    if any(timed.handed_on is not None for timed in others):
        columns[3:3] = ["tokens/s", "copied"]
        for row, timed in zip(rows, others, strict=True):
            row[3:3] = _tokens_and_copies(timed)
    print_table(
        out,
        columns,
        rows,
        right=("threads", "median", "memory", "tokens/s", "copied", ratio),
        names=(),
        optional=(("memory",), ("set-up",)),
        below="set-up",
    )
    for timed in found.others:
        if timed.error:
            out.print(f"  {named[id(timed)]}: failed: {timed.error}")
    out.print()
    out.print(
        "ratio: time of MODEL by that of the set-up; beside itself it is "
        f"{found.control} in {plural(len(found.one.blocks), 'block')}"
    )
    for caution in found.cautions:
        out.print(f"caution: {caution}")
    for timed in found.others:
        if timed.verdict is not None and timed.verdict.warning:
            out.print(f"caution: {named[id(timed)]}: {timed.verdict.warning}")
