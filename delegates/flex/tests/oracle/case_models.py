"""Models of the operators' cases, for the converter: one model holds the cases of one operator."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import op_def_registry

import flex_cases
from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.node_def import Function, NodeDef
from flex_cases import Case

CASES_IN_A_MODEL = 12


def groups() -> dict[str, list[tuple[str, Case]]]:
    """Return the cases of each model, by its name."""
    by_op: dict[str, list[tuple[str, Case]]] = defaultdict(list)
    for name, case in flex_cases.all_cases():
        if not _is_for_oracle(case):
            continue
        module = name.partition(".")[0]
        by_op[f"{module}.{case.calls[-1].op}"].append((name, case))
    return {
        f"{op}.{start // CASES_IN_A_MODEL}": cases[start : start + CASES_IN_A_MODEL]
        for op, cases in sorted(by_op.items())
        for start in range(0, len(cases), CASES_IN_A_MODEL)
    }


def concrete_function(cases: list[tuple[str, Case]]) -> Any:
    """Return the function that computes all cases: inputs ``x0_0``, outputs ``y0_0`` and so on."""
    arrays = {
        f"x{i}_{j}": x for i, (_, case) in enumerate(cases) for j, x in enumerate(case.inputs)
    }

    def body(**tensors: Any) -> dict[str, Any]:
        results = {}
        for i, (_, case) in enumerate(cases):
            values = [tensors[f"x{i}_{j}"] for j in range(len(case.inputs))]
            for call in case.calls:
                values += _called(call, [values[k] for k in call.inputs])
            results.update({f"y{i}_{j}": values[k] for j, k in enumerate(case.outputs)})
        return results

    specs = {
        name: tf.TensorSpec(x.shape, int(DataType.of(flex_cases.type_of(x))), name)
        for name, x in arrays.items()
    }
    return tf.function(body, autograph=False).get_concrete_function(**specs)


def _is_for_oracle(case: Case) -> bool:
    """Whether TensorFlow 2.18.1's interpreter accepts a case's values as inputs and outputs.

    It calls bfloat16 float16, cannot be given a single string that is empty, and has none of the
    functions that cases call; written models have their own.
    """
    types = {flex_cases.type_of(array) for array in case.inputs}
    types.update(type for call in case.calls for type in call.output_types)
    has_empty_string = any(array.ndim == 0 and array.item() == b"" for array in case.inputs)
    has_functions = any(
        isinstance(value, Function) for call in case.calls for value in call.attrs.values()
    )
    return not (TensorType.BFLOAT16 in types or has_empty_string or has_functions)


def _called(call: flex_cases.Call, inputs: list[Any]) -> list[Any]:
    """Add an operator to the graph, and return its outputs."""
    serialised = NodeDef(call.op, call.attrs).serialise()
    attrs = node_def_pb2.NodeDef.FromString(serialised).attr
    known = {attr.name for attr in op_def_registry.get(call.op).attr}
    graph = tf.compat.v1.get_default_graph()
    operation = graph.create_op(
        call.op, inputs, attrs={name: value for name, value in attrs.items() if name in known}
    )
    return list(operation.outputs)
