"""Writes the models of the facts: ``fact_models.json``, so that the wheel needs no Delegraph."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

import numpy as np
from flatbuffers import flexbuffers

from delegraph.schema import options as o
from delegraph.testing import constant, graph_model, one_op_model, subgraphs_model, tensor
from micro.wheel.facts import COPIED, MODELS


def models() -> Mapping[str, bytes]:
    """Return them by name."""
    row, four = tensor((1, 4)), tensor((4,))
    eight = tensor((1, 4), "INT8", scale=0.5, zero_point=3)
    weights = constant(np.arange(8, dtype=np.int8).reshape(2, 4), scale=0.25)
    scales = {"scale": [0.5, 0.25], "zero_point": [0, 0], "axis": 1}
    delay = bytes(flexbuffers.Dumps({"delay_length": 3}))
    samples = [tensor((2,), "INT16")], [tensor((2,), "INT16")]
    bits = constant(np.arange(4, dtype=np.float32))
    shape = constant(np.array([1, 4], np.int32))
    return {
        "add": one_op_model("ADD", [row, tensor((1, 4))], [tensor((1, 4))], o.AddOptions()),
        "twice": graph_model(
            [("NEG", "x", "s"), ("ABS", "s", "y")],
            inputs="x", outputs="y", tensors={n: tensor((1, 4)) for n in "xsy"},
        ),
        "int8": one_op_model(
            "FULLY_CONNECTED", [eight, weights],
            [tensor((1, 2), "INT8", scale=1.0, zero_point=-5)], o.FullyConnectedOptions(),
            version=4,
        ),
        "matrix": one_op_model("SIN", [tensor((2, 3))], [tensor((2, 3))]),
        "scalar": one_op_model("SIN", [tensor(())], [tensor(())]),
        "per_channel": one_op_model(
            "RESHAPE", [tensor((1, 2), "INT8", **scales), constant(np.array([1, 2], np.int32))],
            [tensor((1, 2), "INT8", **scales)],
        ),
        "unknown": one_op_model("NoSuchOperator", [four], [tensor((4,))], custom_options=b""),
        "gather": one_op_model("GATHER_ND", [bits, tensor((1, 1), "INT32")], [tensor((1,))],
                               o.GatherOptions()),
        "delay": one_op_model("SignalDelay", *samples, custom_options=delay),
        "counter": _counter(),
        **{
            f"copy_{kind}": one_op_model(
                "RESHAPE", [tensor((1, 4), kind.upper()), shape], [tensor((1, 4), kind.upper())]
            )
            for kind in COPIED
        },
    }  # fmt: skip


def _counter() -> bytes:
    """Return a model that adds its input to a variable."""
    handle, name = tensor((), "RESOURCE"), o.VarHandleOptions(container="", shared_name="count")
    one = {n: tensor((1,)) for n in ("x", "old", "y")}
    main = (
        [
            ("CALL_ONCE", "", "", o.CallOnceOptions(init_subgraph_index=1)),
            ("VAR_HANDLE", "", "h", name),
            ("READ_VARIABLE", "h", "old"),
            ("ADD", "old x", "y", o.AddOptions()),
            ("ASSIGN_VARIABLE", "h y", ""),
        ],
        "x", "y", {"h": handle, **one},
    )  # fmt: skip
    zero = {"h": handle, "zero": constant(np.zeros(1, np.float32))}
    start = ([("VAR_HANDLE", "", "h", name), ("ASSIGN_VARIABLE", "h zero", "")], "", "", zero)
    return subgraphs_model([main, start])


def write() -> None:
    """Write the file."""
    encoded = {name: base64.b64encode(data).decode() for name, data in models().items()}
    MODELS.write_text(json.dumps(encoded, indent=1) + "\n", encoding="utf-8")
