"""The list of LiteRT's operators, against LiteRT itself, and the op table against the list."""

import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from delegraph.operators.op_table import OP_TABLE
from delegraph.runtime.op_resolver import OpResolver  # noqa: F401 - declares the kernels
from delegraph.schema.enums import BuiltinOperator
from delegraph.schema.options import OPTIONS_OF_OPERATOR
from delegraph.testing.one_op import one_op_model, tensor
from delegraph.testing.registered_operators import BUILTIN_VERSIONS, CUSTOM_OPERATORS

NEWEST = 20
REFERENCE_VERSIONS = {
    **BUILTIN_VERSIONS,
    "ABS": (1, 3),
    "ADD": (1, 5),
    "ARG_MAX": (1, 2),
    "ARG_MIN": (1, 2),
    "CEIL": None,
    "COS": (1, 1),
    "DEPTHWISE_CONV_2D": (1, 6),
    "DEPTH_TO_SPACE": (1, 1),
    "ELU": None,
    "GELU": (1, 2),
    "HASHTABLE": None,
    "HASHTABLE_FIND": None,
    "HASHTABLE_IMPORT": None,
    "HASHTABLE_SIZE": None,
    "MUL": (1, 7),
    "RANGE": (1, 1),
    "ROUND": None,
    "SEGMENT_SUM": None,
    "SIN": (1, 1),
    "SOFTMAX": (1, 3),
    "SQUEEZE": (1, 1),
    "STABLEHLO_AND": None,
    "STABLEHLO_CASE": None,
    "STABLEHLO_SHIFT_LEFT": None,
    "STRIDED_SLICE": (1, 4),
    "TILE": (1, 2),
    "TRANSPOSE": (1, 8),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (1, 3),
}
"""Mapping from each builtin operator to the reference kernel's versions; None if it has none."""

RESOLVERS = {
    "BUILTIN_WITHOUT_DEFAULT_DELEGATES": BUILTIN_VERSIONS,
    "BUILTIN_REF": REFERENCE_VERSIONS,
}


def loads(op, version, resolver):
    """Whether the official interpreter knows a version of an operator."""
    options = OPTIONS_OF_OPERATOR.get(BuiltinOperator.__members__.get(op))
    given = None if options is None else options()
    model = one_op_model(op, [tensor((1,))], [tensor((1,))], given, version=version)
    try:
        Interpreter(model_content=model, experimental_op_resolver_type=OpResolverType[resolver])
    except (ValueError, RuntimeError) as error:
        return "Didn't find op" not in str(error)
    return True


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_the_official_interpreter_loads_the_listed_versions_and_no_other(resolver):
    apart = {}
    for op in BuiltinOperator:
        listed = RESOLVERS[resolver].get(op.name)
        first, last = (1, 0) if listed is None else listed
        if op.name in ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"):
            continue
        tried = {v: loads(op.name, v, resolver) for v in {1, first, last, last + 1, NEWEST} - {0}}
        wrong = [v for v, known in tried.items() if known != (first <= v <= last)]
        if wrong:
            apart[op.name] = wrong
    assert apart == {}


@pytest.mark.parametrize("name", [*CUSTOM_OPERATORS, "NoSuchOperator"])
def test_the_official_interpreter_has_the_listed_custom_operators(name):
    model = one_op_model(name, [tensor((1,))], [], custom_options=b"\0\1\1")
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=resolver)
    with pytest.raises(RuntimeError) as refusal:
        interpreter.allocate_tensors()
    assert ("unresolved custom op" in str(refusal.value)) == (name not in CUSTOM_OPERATORS)


def test_the_op_table_has_the_versions_of_the_official_kernels():
    ours = {op: OP_TABLE[op].versions for op in BUILTIN_VERSIONS if op in OP_TABLE}
    assert ours == BUILTIN_VERSIONS
