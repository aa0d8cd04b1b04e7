"""Plugin of this distribution; importing it is fast, since Delegraph imports it to list plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delegraph import CommandSpec, CompilerSpec, CustomOpSpec, DelegateSpec, hookimpl
from delegraph_edgetpu.options import EdgeTpuOptions

if TYPE_CHECKING:
    import click

    from delegraph import (
        CustomOp,
        DelegateContext,
        DelegateParams,
        PartitionModel,
        Registration,
        SimpleDelegateKernelInterface,
    )
    from delegraph_edgetpu.delegate import EdgeTpuDelegate
    from delegraph_edgetpu.mapped_nodes import MappedNodes

DELEGRAPH_API = 1


def _load() -> type[EdgeTpuDelegate]:
    from delegraph_edgetpu.delegate import EdgeTpuDelegate

    return EdgeTpuDelegate


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Return the specs of this plugin's delegates."""
    return [
        DelegateSpec(
            "edgetpu",
            "models compiled for the Edge TPU, on a simulated device",
            _load,
            EdgeTpuOptions,
            rank=-100,
        )
    ]


def _load_mapped_nodes() -> type[MappedNodes]:
    from delegraph_edgetpu.mapped_nodes import MappedNodes

    return MappedNodes


def _compile(model: PartitionModel, options: EdgeTpuOptions) -> bytes:
    from delegraph_edgetpu.ahead_of_time import compile_partition

    return compile_partition(model, options)


def _load_compiled(
    blob: bytes, context: DelegateContext, params: DelegateParams
) -> SimpleDelegateKernelInterface:
    from delegraph_edgetpu.ahead_of_time import load_compiled

    return load_compiled(blob, context, params)


def _version() -> str:
    from delegraph_edgetpu.ahead_of_time import version

    return version()


@hookimpl
def delegraph_compilers() -> list[CompilerSpec]:
    """Return the compiler specs for ``delegraph compile``.

    The format differs from that of ``delegraph edgetpu compile``.
    """
    return [CompilerSpec("edgetpu", _compile, _load_compiled, _version, _load_mapped_nodes)]


def _load_custom_op() -> Registration:
    from delegraph_edgetpu.custom_op import edgetpu_custom_op

    return edgetpu_custom_op()


def _describe(custom_options: bytes) -> Mapping[str, str]:
    from delegraph_edgetpu.description import describe_options

    return describe_options(custom_options)


def _load_posenet_decoder() -> CustomOp | Registration:
    from delegraph_edgetpu.posenet_decoder import posenet_decoder

    return posenet_decoder


@hookimpl
def delegraph_custom_ops() -> list[CustomOpSpec]:
    """Return the specs of the custom operators that run without a delegate."""
    return [
        CustomOpSpec(
            "edgetpu-custom-op",
            "what `delegraph edgetpu compile` made of a model",
            _load_custom_op,
            _describe,
        ),
        CustomOpSpec("PosenetDecoderOp", "poses of persons, from heatmaps", _load_posenet_decoder),
    ]


def _load_command() -> click.Command:
    from delegraph_edgetpu.command import command

    return command


@hookimpl
def delegraph_commands() -> list[CommandSpec]:
    """Return the specs of this plugin's commands."""
    return [CommandSpec("edgetpu", "Compile models for the Edge TPU.", _load_command)]
