"""Executables: partitions compiled by XLA and serialised, to be stored in files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import jax
from jax.experimental import serialize_executable

from delegraph import PartitionModel
from delegraph.operators import Numerics
from delegraph_jax.compiling import compile_safely
from delegraph_jax.devices import name_of
from delegraph_jax.graphs import graphs_of
from delegraph_jax.traced import TracedGraphs


@dataclass(frozen=True, slots=True)
class Contents:
    """Properties of an executable that are known without loading it.

    Attributes:
        device: name of the device for which the executable is compiled, as in the option.
        numerics: official kernels whose rounding the executable has.
        shapes: shapes of the outputs.
        doubts: error text for each flag in the result after the outputs. A true flag means that
            values are wrong.
    """

    device: str
    numerics: Numerics
    shapes: Sequence[Sequence[int]]
    doubts: Sequence[str]


def compiled(model: PartitionModel, device: jax.Device, numerics: Numerics) -> bytes:
    """Return the partition *model*, compiled for a device with the rounding *numerics*.

    The bytes are a line with :class:`Contents`, then the executable. The executable's arguments are
    the inputs, and memory for the outputs, which it owns from then on.

    Raises:
        OperatorError: a node cannot be computed.
    """
    main, *called = graphs_of(model)
    doubts: list[str] = []
    function = partial(TracedGraphs([main, *called], numerics).checked, doubts)
    structs = [
        [jax.ShapeDtypeStruct(main.tensors[i].shape, main.tensors[i].dtype) for i in border]
        for border in (main.inputs, main.outputs)
    ]
    with jax.enable_x64(True), jax.default_device(device):
        donating = jax.jit(
            lambda inputs, memory: function(*inputs), donate_argnums=1, keep_unused=True
        )
        executable = compile_safely(donating.lower(*structs), device.platform)
    shapes = [struct.shape for struct in structs[1]]
    contents = Contents(name_of(device), numerics, shapes, doubts)
    payload: bytes = serialize_executable.serialize(executable)[0]
    return json.dumps(asdict(contents)).encode() + b"\n" + payload


def contents_of(content: bytes) -> Contents:
    """Return the description of the executable in *content*."""
    return Contents(**json.loads(content.partition(b"\n")[0]))


def loaded(content: bytes, inputs: int, outputs: int, device: jax.Device) -> Any:
    """Return the executable in *content* as a function of inputs and of memory for outputs.

    *content* must be trusted, since its machine code is run.

    *inputs* and *outputs* are the numbers of both. The *device* must be of the same kind as in the
    executable.
    """
    payload = content.partition(b"\n")[2]
    return serialize_executable.deserialize_and_load(
        payload,
        jax.tree.structure((([0] * inputs, [0] * outputs), {})),
        jax.tree.structure([0] * (outputs + 1)),
        backend=device.platform,
        execution_devices=[device],
    )
