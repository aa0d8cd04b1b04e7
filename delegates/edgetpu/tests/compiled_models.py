"""Compiled models made by hand, without the compiler: what runs them is tested on its own."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import BuiltinOperator, Interpreter
from delegraph.schema import read_model, tables, write_model
from delegraph.schema.options import AddOptions, Conv2DOptions
from delegraph.testing import constant, one_op_model, tensor
from delegraph_edgetpu.custom_options import CUSTOM_OP, write_custom_options
from delegraph_edgetpu.executable import Executable

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"


@functools.cache
def convolution(seed: int = 0, size: int = 8) -> bytes:
    """Return a model of one quantised convolution, ``[1, size, size, 3]`` to 5 channels."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-127, 128, (5, 3, 3, 3)).astype(np.int8)
    scales = rng.uniform(0.01, 0.02, 5).tolist()
    bias = rng.integers(-1000, 1000, 5).astype(np.int32)
    return one_op_model(
        "CONV_2D",
        [
            tensor((1, size, size, 3), "INT8", scale=0.05, zero_point=3),
            constant(weights, scale=scales, zero_point=[0] * 5, axis=0),
            constant(bias, scale=[0.05 * s for s in scales], zero_point=[0] * 5, axis=0),
        ],
        [tensor((1, size, size, 5), "INT8", scale=0.5, zero_point=-7)],
        Conv2DOptions(stride_h=1, stride_w=1),
        version=3,
    )


@functools.cache
def addition(type: str = "INT8", shape: tuple[int, ...] = (1, 4, 6)) -> bytes:
    """Return a model that adds two tensors."""
    x = tensor(shape, type, scale=0.1, zero_point=3)
    y = tensor(shape, type, scale=0.2, zero_point=5)
    z = tensor(shape, type, scale=0.25, zero_point=1)
    return one_op_model("ADD", [x, y], [z], AddOptions(), version=2)


def executable_of(model: bytes, **fields: Any) -> bytes:
    """Return the executable of a model; *fields* replace those of ``Executable``."""
    given: dict[str, Any] = {
        "caching_token": 1,
        "parameter_bytes": 1000,
        "runtime_version": 14,
        "cached_bytes": 1000,
        **fields,
    }
    return Executable(model, **given).pack()


def compiled(model: bytes, *, custom_options: bytes | None = None, **fields: Any) -> bytes:
    """Return the file of :func:`compiled_records`."""
    return write_model(compiled_records(model, custom_options=custom_options, **fields))


def compiled_records(
    model: bytes, *, custom_options: bytes | None = None, **fields: Any
) -> tables.Model:
    """Return a model whose only operator runs *model*; variables of *model* are variables of both.

    Args:
        model: of one subgraph.
        custom_options: instead of those with the executable of *model*.
        fields: of the executable, see :func:`executable_of`.
    """
    if custom_options is None:
        custom_options = write_custom_options(executable_of(model, **fields))
    inner = (read_model(np.frombuffer(model, np.uint8)).subgraphs or ())[0]
    tensors = inner.tensors or ()
    inputs, outputs = inner.inputs or (), inner.outputs or ()
    variables = [i for i, t in enumerate(tensors) if t.is_variable]
    outside = [*inputs, *variables, *outputs]
    first_output = len(inputs) + len(variables)
    operator = tables.Operator(
        inputs=tuple(range(first_output)),
        outputs=tuple(range(first_output, len(outside))),
        custom_options=np.frombuffer(custom_options, np.uint8),
    )
    subgraph = tables.SubGraph(
        tensors=tuple(tensors[i].replace(buffer=0) for i in outside),
        inputs=tuple(range(len(inputs))),
        outputs=tuple(range(first_output, len(outside))),
        operators=(operator,),
        name="main",
    )
    return tables.Model(
        version=3,
        operator_codes=(tables.operator_code(BuiltinOperator.CUSTOM, custom_code=CUSTOM_OP),),
        subgraphs=(subgraph,),
        buffers=(tables.Buffer(),),
    )


def random_inputs(model: bytes, seed: int = 0) -> list[NDArray[Any]]:
    """Return an array for each input of a model of integers."""
    rng = np.random.default_rng(seed)
    return [
        rng.integers(np.iinfo(d["dtype"]).min, np.iinfo(d["dtype"]).max + 1, d["shape"]).astype(
            d["dtype"]
        )
        for d in Interpreter(model_content=model).get_input_details()
    ]
