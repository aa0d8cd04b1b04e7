"""A small model: operators of one operand, one after the other."""

from __future__ import annotations

from delegraph import BuiltinOperator, TensorType
from delegraph.schema import write_model
from delegraph.schema.tables import Buffer, Model, Operator, SubGraph, Tensor, operator_code


def chain(*operators: str, size: int = 3, type: str = "FLOAT32") -> bytes:
    """Return a model of vectors in which each operator reads the previous one's result."""
    names = list(dict.fromkeys(operators))
    graph = SubGraph(
        tensors=tuple(
            Tensor(shape=(size,), type=TensorType[type], buffer=0, name=f"t{i}")
            for i in range(len(operators) + 1)
        ),
        inputs=(0,),
        outputs=(len(operators),),
        operators=tuple(
            Operator(opcode_index=names.index(name), inputs=(i,), outputs=(i + 1,))
            for i, name in enumerate(operators)
        ),
    )
    codes = tuple(operator_code(BuiltinOperator[name]) for name in names)
    return write_model(
        Model(version=3, operator_codes=codes, subgraphs=(graph,), buffers=(Buffer(),))
    )
