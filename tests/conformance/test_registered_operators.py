"""The list of LiteRT's operators, against LiteRT itself, and the op table against the list."""

import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from delegraph.operators.op_table import OP_TABLE
from delegraph.runtime.op_resolver import OpResolver  # noqa: F401 - declares the kernels
from delegraph.schema.enums import BuiltinOperator
from delegraph.schema.options import OPTIONS_OF_OPERATOR
from delegraph.testing.one_op import one_op_model, tensor
from delegraph.testing.registered_operators import (
    BUILTIN_VERSIONS,
    CUSTOM_OPERATORS,
    REFERENCE_VERSIONS,
)

NEWEST = 20
RESOLVERS = {
    "BUILTIN_WITHOUT_DEFAULT_DELEGATES": BUILTIN_VERSIONS,
    "BUILTIN_REF": REFERENCE_VERSIONS,
}


def loads(op, version, resolver):
    """Tell whether the official interpreter knows a version of an operator."""
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
