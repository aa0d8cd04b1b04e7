"""Custom operators written as Python functions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from delegraph import CustomOp, CustomOptions, Interpreter, Registration, TensorDescription
from delegraph.errors import ArgumentError, NodeError, OperatorError, UnresolvedOpError
from delegraph.operators.custom_op import (
    custom_op,
    register_custom_op,
    registered_custom_ops,
    unregister_custom_op,
)
from delegraph.operators.custom_options import options_as
from delegraph.testing import TensorDef, constant, graph_model, one_op_model, tensor
from delegraph.testing.outputs import outputs_of

X = np.float32([1, 2, 3])
VECTOR = tensor((3,))


@pytest.fixture(autouse=True)
def _known_operators_stay_the_same() -> Iterator[None]:
    before = set(registered_custom_ops())
    yield
    for name in set(registered_custom_ops()) - before:
        unregister_custom_op(name)


def run(
    op: str,
    *values: Any,
    inputs: list[TensorDef | None] | None = None,
    outputs: list[TensorDef] | None = None,
    options: Any = None,
    **arguments: Any,
) -> list[NDArray[Any]]:
    """Return the outputs of a model of one operator; *options* are written as a FlexBuffer."""
    raw = options if isinstance(options, bytes) else bytes(flexbuffers.Dumps(options or {}))
    model = one_op_model(op, inputs or [VECTOR], outputs or [tensor((3,))], custom_options=raw)
    return outputs_of(Interpreter(model_content=model, **arguments), values)


def test_the_name_of_a_builtin_operator_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="ADD nodes never call custom operator 'ADD'") as told:
        custom_op("ADD")(lambda x, y: x)
    assert told[0].filename == __file__


def test_three_lines_make_an_operator() -> None:
    @custom_op("Negate")
    def negate(x):
        return -x

    np.testing.assert_array_equal(run("Negate", X)[0], [-1, -2, -3])


def test_the_function_can_still_be_called_and_keeps_its_name_and_docstring() -> None:
    @custom_op("Scale")
    def scale(x, *, options):
        """Multiply."""
        return x * options["factor"]

    np.testing.assert_array_equal(scale(X, options={"factor": 2}), [2, 4, 6])
    assert (scale.__name__, scale.__doc__, scale.name) == ("scale", "Multiply.", "Scale")


def test_options_are_a_mapping() -> None:
    @custom_op("Scale")
    def scale(x, *, options):
        assert "offset" not in options
        return x * options["factor"] + options.get("offset", 10)

    np.testing.assert_array_equal(run("Scale", X, options={"factor": 2})[0], [12, 14, 16])
    with pytest.raises(NodeError, match="no option 'factor'; it gives: 'size'"):
        run("Scale", X, options={"size": 2})
    with pytest.raises(NodeError, match="no option 'factor'; it gives: none"):
        run("Scale", X, options=b"")


def test_options_may_be_a_vector() -> None:
    @custom_op("Polynomial")
    def polynomial(x, *, options):
        return sum(c * x**i for i, c in enumerate(options))

    np.testing.assert_array_equal(run("Polynomial", X, options=[2.0, 1.0])[0], X + 2)
    with pytest.raises(OperatorError, match=r"no option 2; it gives: 0, 1"):
        CustomOptions(bytes(flexbuffers.Dumps([2, 1])))[2]


def test_options_that_are_no_flexbuffer_are_raw_bytes() -> None:
    @custom_op("Offset")
    def offset(x, *, options):
        return x + np.frombuffer(options.raw, "<f4")

    @custom_op("OffsetToo")
    def offset_too(x, *, options: bytes):
        return x + np.frombuffer(options, "<f4")

    raw = np.float32([0.5]).tobytes()
    np.testing.assert_array_equal(run("Offset", X, options=raw)[0], X + 0.5)
    np.testing.assert_array_equal(run("OffsetToo", X, options=raw)[0], X + 0.5)
    with pytest.raises(OperatorError, match="custom options are"):
        CustomOptions(b"\xff" * 9)["factor"]
    with pytest.raises(OperatorError, match="are a int, expected a map or a vector"):
        CustomOptions(bytes(flexbuffers.Dumps(7))).get("factor")


@dataclass(frozen=True)
class ScaleOptions:
    factor: float
    steps: int = 1

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise ValueError(f"steps is {self.steps}, expected 0 or more")


def repeated(x: NDArray[Any], *, options: ScaleOptions) -> NDArray[Any]:
    return x * np.float32(options.factor) ** options.steps


def test_options_are_the_dataclass_that_they_are_annotated_with() -> None:
    custom_op("Repeated")(repeated)
    np.testing.assert_array_equal(
        run("Repeated", X, options={"factor": 3, "steps": 2})[0], [9, 18, 27]
    )
    np.testing.assert_array_equal(repeated(X, options=ScaleOptions(2.0)), [2, 4, 6])
    options = options_as(ScaleOptions, bytes(flexbuffers.Dumps({"factor": 3})))
    assert (options, type(options.factor)) == (ScaleOptions(3.0), float)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "gives no option 'factor', which is needed"),
        ({"factor": 1, "speed": 2}, "gives option 'speed', known are: factor, steps"),
        ({"factor": "fast"}, "option 'factor' is 'fast', expected float"),
        ({"factor": 1, "steps": 1.5}, r"option 'steps' is 1\.5, expected int"),
        ({"factor": 1, "steps": -1}, "steps is -1, expected 0 or more"),
        ([1, 2], "custom options are a list, expected a map"),
    ],
)
def test_options_that_do_not_fit_the_dataclass_stop_the_allocation(
    options: Any, message: str
) -> None:
    custom_op("Repeated")(repeated)
    with pytest.raises(NodeError, match=rf"\(Repeated\) failed to prepare: .*{message}"):
        run("Repeated", X, options=options)


def test_an_annotation_that_the_module_does_not_know_is_named() -> None:
    @custom_op("Lost")
    def lost(x, *, options: Missing):  # type: ignore[name-defined]  # noqa: F821 - that is the point
        return x

    with pytest.raises(NodeError, match="annotated 'Missing', which its module does not know"):
        run("Lost", X)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="there the function itself is refused")
def test_an_annotation_that_is_no_text_is_named_too() -> None:
    source = "def lost(x, *, options: Missing):\n    return x"
    names: dict[str, Any] = {}
    exec(compile(source, "lost.py", "exec", dont_inherit=True), names)
    custom_op("Lost")(names["lost"])
    with pytest.raises(NodeError, match="annotated 'Missing', which its module does not know"):
        run("Lost", X)


def test_without_a_shape_function_outputs_have_the_shape_they_get() -> None:
    @custom_op("Repeat")
    def repeat(x, *, options):
        return np.repeat(x, options["count"])

    assert run("Repeat", X, options={"count": 2})[0].shape == (6,)
    assert run("Repeat", X, options={"count": 0})[0].shape == (0,)


def test_the_shape_function_sizes_outputs_before_anything_runs() -> None:
    @custom_op("Repeat")
    def repeat(x, *, options):
        return np.repeat(x, options["count"])

    @repeat.shape
    def _(x, *, options):
        return (x.shape[0] * options["count"],)

    raw = bytes(flexbuffers.Dumps({"count": 3}))
    interpreter = Interpreter(
        model_content=one_op_model("Repeat", [VECTOR], [tensor((1,))], custom_options=raw)
    )
    for length in (2, 5):
        interpreter.resize_tensor_input(0, [length])
        interpreter.allocate_tensors()
        assert interpreter.get_output_details()[0]["shape"].tolist() == [3 * length]
        x = np.arange(length, dtype=np.float32)
        np.testing.assert_array_equal(outputs_of(interpreter, [x])[0], np.repeat(x, 3))


def test_the_shape_function_reads_constants_and_nothing_that_is_computed() -> None:
    seen: list[TensorDescription] = []

    @custom_op("Reshaped")
    def reshaped(x, shape):
        return x.reshape(shape)

    @reshaped.shape
    def _(x, shape):
        seen[:] = x, shape
        return shape.value

    target = constant(np.int32([3, 1]))
    assert run("Reshaped", X, inputs=[VECTOR, target], outputs=[tensor((3, 1))])[0].shape == (3, 1)
    x, shape = seen
    assert (x.shape, x.dtype, x.value) == ((3,), np.float32, None)
    assert (shape.shape, shape.dtype) == ((2,), np.int32)


def test_several_outputs_are_a_tuple_and_none_leaves_a_shape_open() -> None:
    @custom_op("Halves")
    def halves(x):
        return x[::2], x[x > 2]

    @halves.shape
    def _(x):
        return ((x.shape[0] + 1) // 2,), None

    even, large = run("Halves", X, outputs=[tensor((1,)), tensor((9,))])
    assert (even.tolist(), large.tolist()) == ([1, 3], [3])


def test_an_absent_input_is_none_and_string_tensors_are_bytes() -> None:
    @custom_op("Join")
    def join(words, separator=None):
        return np.array([(b"" if separator is None else separator[0]).join(words)], object)

    text, one = tensor((3,), "STRING"), tensor((1,), "STRING")
    words = np.array([b"a", b"b", b"c"], object)
    assert run("Join", words, inputs=[text, None], outputs=[one])[0].tolist() == [b"abc"]
    dash = constant(np.array([b"-"], object), "STRING")
    assert run("Join", words, inputs=[text, dash], outputs=[one])[0].tolist() == [b"a-b-c"]


def test_scales_and_zero_points_are_there_for_quantized_operators() -> None:
    @custom_op("Requantize")
    def requantize(x, *, inputs, outputs):
        (source,), (target,) = inputs, outputs
        real = (x.astype(np.float32) - source.zero_point) * source.scale
        return (np.round(real / target.scale) + target.zero_point).astype(target.dtype)

    x, y = tensor((3,), "INT8", scale=0.5, zero_point=1), tensor((3,), "UINT8", scale=0.25)
    result = run("Requantize", np.int8([1, 2, 3]), inputs=[x], outputs=[y])[0]
    np.testing.assert_array_equal(result, np.uint8([0, 2, 4]))


def test_inputs_are_read_only_but_variables_keep_what_is_written() -> None:
    @custom_op("Spoil")
    def spoil(x):
        x += 1
        return x

    @custom_op("Count")
    def count(x, total):
        total += x
        return total

    with pytest.raises(NodeError, match=r"\(Spoil\) failed .*read-only: write x = x \+ 1, not"):
        run("Spoil", X)
    model = one_op_model("Count", [VECTOR, tensor((3,), is_variable=True)], [tensor((3,))])
    interpreter = Interpreter(model_content=model)
    outputs_of(interpreter, [X])
    np.testing.assert_array_equal(outputs_of(interpreter, [X])[0], 2 * X)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.zeros(3), r"returned float64 \[3\], .*output tensor 1 't1' expects float32 \[3\]"),
        (np.zeros((3, 1), np.float32), r"returned float32 \[3, 1\], .* expects float32 \[3\]"),
        (1.5, r"returned float64 \[\], .* expects float32 \[3\]"),
        ((X, X), "returned 2 arrays, expected 1: one for"),
        (None, "returned None; does it end with 'return'"),
        ([1.0, 2.0, 3.0], r"returned list, .* expects .*; np.asarray\(..., 'float32'\) makes"),
    ],
)
def test_a_result_that_does_not_fit_is_refused_with_what_the_model_expects(
    result: Any, message: str
) -> None:
    @custom_op("Wrong")
    def wrong(x):
        return result

    @wrong.shape
    def _(x):
        return x.shape

    with pytest.raises(NodeError, match=rf"\(Wrong\) failed to invoke: the function {message}"):
        run("Wrong", X)


def test_an_open_shape_still_needs_the_dtype_and_the_count() -> None:
    @custom_op("Wrong")
    def wrong(x):
        return x.astype(np.int32)

    @custom_op("One")
    def one(x):
        return x

    with pytest.raises(NodeError, match=r"returned int32 \[3\], .* expects float32; .astype"):
        run("Wrong", X)
    with pytest.raises(NodeError, match=r"returned float32 \[3\], expected 2: one for"):
        run("One", X, outputs=[tensor((3,)), tensor((3,))])


def test_strings_must_be_bytes() -> None:
    @custom_op("Words")
    def words(x):
        return np.array(["a"], object)

    with pytest.raises(NodeError, match="returned 'a' as a string, expected bytes"):
        run("Words", X, outputs=[tensor((1,), "STRING")])


@pytest.mark.parametrize("shape", [7, "ab", (-1,), (1.5,)])
def test_a_shape_that_is_none_is_refused(shape: Any) -> None:
    @custom_op("Wrong")
    def wrong(x):
        return x

    wrong.shape(lambda x: shape)
    with pytest.raises(NodeError, match=r"failed to prepare: .*expected a tuple of lengths"):
        run("Wrong", X)


def test_a_node_with_other_inputs_than_the_function_takes_is_refused() -> None:
    @custom_op("Pair")
    def pair(a, b):
        return a + b

    with pytest.raises(NodeError, match=r"pair\(a, b\) does not .* keywords options, inputs and"):
        run("Pair", X)


def test_packed_integers_are_refused() -> None:
    @custom_op("Same")
    def same(x):
        return x

    packed = tensor((3,), "INT4")
    with pytest.raises(NodeError, match=r"INT4.* has no NumPy dtype"):
        run("Same", np.int8([1, 2, 3]), inputs=[packed], outputs=[tensor((3,), "INT4")])


def test_an_operator_stands_wherever_a_registration_does() -> None:
    @custom_op("Once")
    def once(x):
        return x + 1

    register_custom_op("Twice", once)
    np.testing.assert_array_equal(run("Twice", X)[0], X + 1)
    unregister_custom_op("Once")
    np.testing.assert_array_equal(run("Once", X, custom_ops={"Once": once})[0], X + 1)


def test_a_plain_function_is_told_what_makes_it_an_operator() -> None:
    said = (
        r"custom operator 'Once' is <.*>, expected a function with @delegraph.custom_op\('Once'\)"
    )
    with pytest.raises(ArgumentError, match=said):
        run("Once", X, custom_ops={"Once": print})
    with pytest.raises(
        ArgumentError, match=r'custom_ops is list, .* custom_ops=\{"Name": function'
    ):
        run("Once", X, custom_ops=[print])
    with pytest.raises(ArgumentError, match=said):
        register_custom_op("Once", print)  # type: ignore[arg-type]  # that is the point


def test_an_operator_taken_back_is_unknown_to_later_interpreters() -> None:
    @custom_op("Gone")
    def gone(x):
        return x

    kept = Interpreter(model_content=one_op_model("Gone", [VECTOR], [tensor((3,))]))
    unregister_custom_op("Gone")
    kept.allocate_tensors()
    with pytest.raises(UnresolvedOpError, match="Gone"):
        run("Gone", X)
    with pytest.raises(ArgumentError, match="no custom operator 'Gone' is registered"):
        unregister_custom_op("Gone")
    with pytest.raises(ArgumentError, match="needs a name"):
        custom_op("")(lambda x: x)


def test_operators_behind_an_open_shape_follow_it() -> None:
    @custom_op("Positive")
    def positive(x):
        return x[x > 0]

    @custom_op("Last")
    def last(x):
        return x[-1:]

    @last.shape
    def _(x):
        return (min(x.shape[0], 1),)

    model = graph_model(
        [("Positive", "x", "p"), ("Last", "p", "l"), ("SIN", "l", "y")], inputs="x", outputs="y"
    )
    interpreter = Interpreter(model_content=model)
    for values, expected in (([1, 2, -1, -1], [2]), ([-1, -1, -1, -1], []), ([3, 4, 5, 6], [6])):
        (result,) = outputs_of(interpreter, [np.float32(values)])
        np.testing.assert_allclose(result, np.sin(np.float32(expected)), rtol=1e-6)


def test_an_operator_is_a_registration_of_its_name() -> None:
    @custom_op("Named")
    def named(x):
        return x

    assert isinstance(named, CustomOp)
    assert isinstance(named.registration, Registration)
    assert named.registration.custom_name == "Named"


def test_the_decorator_needs_a_name() -> None:
    def scale(x):
        return x

    with pytest.raises(ArgumentError, match=r"write @custom_op\('scale'\)"):
        custom_op(scale)  # type: ignore[arg-type]


def test_what_is_no_function_is_refused_at_once() -> None:
    with pytest.raises(ArgumentError, match="custom operator 'Five' is a function, not 5"):
        custom_op("Five")(5)  # type: ignore[arg-type]
    assert "Five" not in registered_custom_ops()
    op = custom_op("Six")(np.negative)
    with pytest.raises(ArgumentError, match="shape of custom operator 'Six' is a function, not 5"):
        op.shape(5)  # type: ignore[type-var]


def test_it_prints_as_its_name_and_function() -> None:
    def twice(x):
        return x + x

    assert repr(CustomOp("Twice", twice)).startswith("<CustomOp 'Twice': ")
    assert repr(CustomOp("Twice", twice)).endswith(".twice>")


@pytest.mark.parametrize("written", ["Twic", "TWICE", "twice"])
def test_an_unknown_name_is_told_a_similar_one_that_is_registered(written: str) -> None:
    custom_op("Twice")(np.negative)
    with pytest.raises(UnresolvedOpError, match=r"did you mean 'Twice'\?"):
        run(written, X)
