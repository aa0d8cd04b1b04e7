"""``delegraph test``: runs the conformance kit on delegates, installed or in files."""

from __future__ import annotations

import shutil
from collections import Counter
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import print_json
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.arguments import complete_delegate, diagnosis_options, json_option
from delegraph.cli.options.kinds import switch_option
from delegraph.cli.options.output_files import output_option
from delegraph.cli.options.sections import SectionedCommand
from delegraph.errors import ArgumentError
from delegraph.quantities import plural

if TYPE_CHECKING:
    import pytest

    from delegraph.testing.conformance.scorecard import Scorecard

_LETTERS = (
    "s: a check of what the delegate does not claim or have, or that was not tried; "
    "deselected: random models, which 'delegraph test-operators' runs"
)
"""Meanings of pytest's words that users of the command may not know."""

_FAILED, _INTERRUPTED = 1, 2
_FAILURES = {_FAILED: "a check failed", 5: "no check was run"}
"""Meanings of pytest's exit codes."""


@click.command("test", cls=SectionedCommand)
@click.argument(
    "delegates",
    metavar="DELEGATE[:KEY=VALUE,...]...",
    nargs=-1,
    required=True,
    shell_complete=complete_delegate,
)
@switch_option("--quick", "Try a sample of what the delegates claim.")
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(0),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="End a check that takes longer for one model; 0 for no limit.",
)
@output_option("--badge", "FILE", "Write a badge: FILE.svg, or FILE.json for shields.io.")
@json_option
@diagnosis_options
def command(
    delegates: tuple[str, ...], quick: bool, seconds: float, badge: str | None, as_json: bool
) -> None:
    """Test all that delegates claim, with the conformance kit.

    A delegate is the name of an installed one, or a Python FILE.py. The kit makes models for all
    claims, compares results with Delegraph's own kernels, and checks the rules that every delegate
    keeps. It runs in pytest, whose output is shown, and needs pip install "delegraph[testing]".
    With --json, the scorecard is printed. The exit code is 1 if a check failed. Random models are
    deselected: 'delegraph test-operators' runs them.
    """
    from delegraph.runtime.delegates.requested_delegates import load_delegate

    for name in delegates:
        load_delegate(name)
    if badge is not None:
        from delegraph.testing.badge import require_badge_ending

        require_badge_ending(badge)
    arguments = ["--pyargs", "delegraph.testing", *(f"--delegate={name}" for name in delegates)]
    arguments += [f"--delegate-timeout={seconds}", *["--quick"] * quick, "--no-header"]
    arguments += [] if badge is None else [f"--delegate-badge={badge}"]
    code, card = _run(arguments)
    if as_json and card is not None:
        print_json(card.to_json())
    if code == _INTERRUPTED:
        raise click.Abort
    if code == _FAILED and card is not None:
        raise CheckFailed(_failed(card))
    if code:
        raise CheckFailed(_FAILURES.get(code, f"pytest ended with exit code {code}"))


def _failed(card: Scorecard) -> str:
    """Text that counts the failed checks of each delegate."""
    failed = Counter(result.delegate for result in card.results if result.outcome == "failed")
    return ", ".join(f"{name}: {plural(n, 'check')} failed" for name, n in failed.items())


class _Cards:
    """Plugin of pytest that keeps the scorecard of a run."""

    card: Scorecard | None = None

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        from delegraph.testing.pytest_plugin import NOTES

        notes: Any = config.pluginmanager.get_plugin(NOTES)
        self.card = None if notes is None else notes.card()


def _run(arguments: list[str]) -> tuple[int, Scorecard | None]:
    """Run pytest in this process; return its exit code and the scorecard."""
    try:
        import hypothesis  # noqa: F401 - the kit's modules need it
        import pytest
    except ImportError as error:
        raise ArgumentError(
            f'the kit needs {error.name}; install it with: pip install "delegraph[testing]"'
        ) from error
    # Modules of the kit that this process has imported already are no fault of the delegates.
    # The scorecard names the failed checks again.
    click.echo(fill(_LETTERS, shutil.get_terminal_size().columns))
    cards, quiet = _Cards(), ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-rN"]
    return int(pytest.main([*arguments, *quiet], plugins=[cards])), cards.card
