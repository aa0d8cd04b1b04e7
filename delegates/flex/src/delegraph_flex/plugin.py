"""Plugin of this distribution; importing it is fast, since Delegraph imports it to list plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph import CommandSpec, DelegateSpec, hookimpl
from delegraph_flex.options import FlexOptions

if TYPE_CHECKING:
    import click

    from delegraph_flex.delegate import FlexDelegate

DELEGRAPH_API = 1


def _load() -> type[FlexDelegate]:
    from delegraph_flex.delegate import FlexDelegate

    return FlexDelegate


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Return the specs of this plugin's delegates."""
    return [
        DelegateSpec(
            "flex",
            "TensorFlow operators (SELECT_TF_OPS), by TensorFlow or by NumPy",
            _load,
            FlexOptions,
            rank=-100,
            custom_ops=("Flex*",),
        )
    ]


def _load_command() -> click.Command:
    from delegraph_flex.command import command

    return command


@hookimpl
def delegraph_commands() -> list[CommandSpec]:
    """Return the specs of this plugin's commands."""
    return [CommandSpec("flex", "Make models with TensorFlow's operators.", _load_command)]
