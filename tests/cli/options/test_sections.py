"""Tests of delegraph.cli.options.sections: the help of a command under headings."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from delegraph.cli import COMMANDS, delegraph
from delegraph.cli.options.sections import SHORT, SectionedCommand


def command(*options: str, **how: object) -> click.Command:
    params = [click.Option([name], **how) for name in options]  # type: ignore[arg-type]
    return SectionedCommand("tried", params=params)  # type: ignore[arg-type]


def own_commands() -> Iterator[tuple[str, click.Command]]:
    """Yield Delegraph's commands without subcommands, by the words that call them."""
    root = click.Context(delegraph)
    for name in COMMANDS:
        found = delegraph.get_command(root, name)
        assert found is not None
        if not isinstance(found, click.Group):
            yield name, found
            continue
        for task in found.list_commands(root):
            inner = found.get_command(root, task)
            assert inner is not None
            yield f"{name} {task}", inner


def options_of(shown: click.Command, width: int) -> list[str]:
    formatter = click.HelpFormatter(width=width - 2)
    shown.format_options(click.Context(shown, help_option_names=["-h", "--help"]), formatter)
    return formatter.getvalue().splitlines()


def test_many_options_stand_under_headings_and_unknown_ones_first() -> None:
    numbers = [f"--number-{count}" for count in range(SHORT)]
    lines = options_of(command("--time-limit", "--delegate", *numbers), 80)
    headings = [line for line in lines if line.endswith(":")]
    assert headings == ["Options:", "Delegates:", "Limits:", "Messages:"]


def test_few_options_have_no_headings() -> None:
    lines = options_of(command("--time-limit", "--delegate"), 80)
    assert [line for line in lines if line.endswith(":")] == ["Options:"]


def test_a_hidden_option_is_not_shown() -> None:
    assert "--number" not in "".join(options_of(command("--number", hidden=True), 80))


def test_the_choices_stand_beside_the_default() -> None:
    shown = command("--by", type=click.Choice(["a", "b"]), default="b", show_default=True, help="X")
    assert options_of(shown, 80)[1] == "  --by WORD   X  [default: b; or a]"


@pytest.mark.parametrize(("name", "shown"), list(own_commands()))
def test_each_option_takes_one_line_of_100_columns(name: str, shown: click.Command) -> None:
    wrapped = [line for line in options_of(shown, 100) if line.startswith("      ")]
    assert wrapped == []


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for name, shown in own_commands():
        long = [line for line in options_of(shown, width) if len(line) > max(width, 50)]
        assert long == [], name
