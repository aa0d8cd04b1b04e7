"""Moves, pooling, reductions, resizing, positions: against Delegraph's own kernels.

Integers and moved floats are equal bit for bit; other floats are within 1e-5 of the largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import LEVELS, delegate, delegated, is_taken, levels, results
from delegraph import DelegateContext
from delegraph.errors import DelegraphError
from delegraph.schema import options as o
from delegraph.schema.enums import Padding, TensorType
from delegraph.testing import TensorDef, cases, constant, fed, graph_model, operator_case, tensor
from delegraph.testing.operator_case import Fed, OperatorCase
from delegraph.testing.outputs import outputs_of
from delegraph_numba_cpu.lowering.moves import moves_checks
from delegraph_numba_cpu.lowering.moves.moves import Loop, nest_of

MOVES = (
    "BATCH_TO_SPACE_ND", "BROADCAST_TO", "CONCATENATION", "DEPTH_TO_SPACE", "DYNAMIC_UPDATE_SLICE",
    "EXPAND_DIMS", "FILL", "GATHER", "MIRROR_PAD", "PACK", "PAD", "PADV2", "RESHAPE",
    "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "SLICE", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH",
    "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK", "ZEROS_LIKE",
)  # fmt: skip
COMPUTED = (
    "ARG_MAX", "ARG_MIN", "AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN", "REDUCE_MAX", "REDUCE_MIN",
    "REDUCE_PROD", "RESIZE_BILINEAR", "SUM",
)  # fmt: skip


def assert_same(found: Sequence[NDArray[Any]], expected: Sequence[NDArray[Any]], op: str) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        if ours.dtype.kind != "f" or op in (*MOVES, "MAX_POOL_2D"):
            np.testing.assert_array_equal(ours, theirs)
        else:
            largest = np.abs(theirs).max(initial=0)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * largest)


def check(case: OperatorCase, level: str) -> None:
    """Check that the case is taken and comes out as the core's kernels compute it."""
    expected, _ = results(case)
    found, taken = results(case, delegate(level, num_threads=2))
    assert taken
    assert_same(found, expected, case.op)


def is_extreme(case: OperatorCase) -> bool:
    """Whether floats have values that reductions and means do not promise to treat alike."""
    floats = [a for step in case.steps for a in step if a.dtype == np.float32]
    return any(not np.all(np.abs(a) < 1e18) for a in floats)  # NaN is not below either


@levels
@pytest.mark.parametrize("op", [*MOVES, *COMPUTED])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of extreme values in the core's kernels
def test_registered_cases_come_out_as_from_the_core(op: str, level: str) -> None:
    taken = 0
    for case in cases(op, count=4):
        try:
            expected, _ = results(case)
        except (DelegraphError, ValueError, RuntimeError):
            continue
        if op in COMPUTED and is_extreme(case):
            continue
        found, is_whole = results(case, delegate(level, num_threads=2))
        assert_same(found, expected, op)
        taken += is_whole
    assert taken


def numbers(shape: Sequence[int], type: str, seed: int = 0) -> NDArray[Any]:
    generator = np.random.default_rng([seed, *shape])
    if type == "FLOAT32":
        return generator.standard_normal(shape).astype(np.float32)
    dtype = np.dtype(type.lower())
    info = np.iinfo(dtype)
    values: NDArray[Any] = generator.integers(info.min, info.max, shape, dtype, endpoint=True)
    return values


def quantization(type: str) -> dict[str, Any]:
    return {"scale": 0.05, "zero_point": 3} if type in ("INT8", "UINT8") else {}


def x(shape: Sequence[int], type: str = "FLOAT32", seed: int = 0) -> Fed:
    return fed(numbers(shape, type, seed), type, **quantization(type))


def y(type: str = "FLOAT32") -> TensorDef:
    return tensor((), type, **quantization(type))


def known(values: Any) -> TensorDef:
    return constant(np.asarray(values, np.int32))


@levels
@pytest.mark.parametrize("type", ["INT8", "INT16", "FLOAT32", "INT64"])
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((37, 53), (1, 0)),
        ((3, 33, 65), (0, 2, 1)),
        ((33, 3, 65), (2, 1, 0)),
        ((2, 17, 16, 19), (0, 3, 1, 2)),
        ((2, 17, 16, 19), (0, 2, 1, 3)),
        ((1, 130, 70, 3), (0, 3, 1, 2)),
        ((2, 3, 4, 5, 6, 7), (5, 3, 1, 0, 2, 4)),
        ((128, 64, 16), (2, 1, 0)),
    ],
)
def test_axes_of_odd_lengths_are_transposed(
    shape: tuple[int, ...], order: tuple[int, ...], type: str, level: str
) -> None:
    check(operator_case("TRANSPOSE", [x(shape, type), known(order)], [y(type)]), level)


BIG: dict[str, Callable[[str], OperatorCase]] = {
    "concatenation of channels": lambda t: operator_case(
        "CONCATENATION",
        [x((1, 61, 59, 33), t), x((1, 61, 59, 7), t, 1)],
        [y(t)],
        o.ConcatenationOptions(axis=3),
    ),
    "concatenation of rows": lambda t: operator_case(
        "CONCATENATION",
        [x((301, 333), t), x((77, 333), t, 1)],
        [y(t)],
        o.ConcatenationOptions(axis=0),
    ),
    "padding": lambda t: operator_case(
        "PAD", [x((1, 61, 59, 33), t), known([[0, 0], [1, 2], [3, 0], [0, 1]])], [y(t)]
    ),
    "mirrored padding": lambda t: operator_case(
        "MIRROR_PAD", [x((2, 61, 59, 17), t), known([[0, 0], [3, 2], [1, 5], [0, 0]])], [y(t)],
        o.MirrorPadOptions(),
    ),
    "steps backwards": lambda t: operator_case(
        "STRIDED_SLICE",
        [
            x((3, 61, 59, 33), t),
            known([2, 60, 0, 32]),
            known([0, 2, 59, 0]),
            known([-1, -2, 3, -1]),
        ],
        [y(t)],
        o.StridedSliceOptions(),
    ),
    "parts of a last axis": lambda t: operator_case(
        "SPLIT", [known(2), x((67, 61, 30), t)], [y(t), y(t), y(t)], o.SplitOptions(num_splits=3)
    ),
    "stacked last": lambda t: operator_case(
        "PACK", [x((67, 61, 31), t), x((67, 61, 31), t, 1)], [y(t)],
        o.PackOptions(values_count=2, axis=3),
    ),
    "blocks to depth": lambda t: operator_case(
        "SPACE_TO_DEPTH", [x((1, 66, 63, 19), t)], [y(t)], o.SpaceToDepthOptions(block_size=3)
    ),
    "depth to blocks": lambda t: operator_case(
        "DEPTH_TO_SPACE", [x((1, 66, 63, 36), t)], [y(t)], o.DepthToSpaceOptions(block_size=2)
    ),
    "phases of an image": lambda t: operator_case(
        "SPACE_TO_BATCH_ND",
        [x((2, 61, 59, 19), t), known([3, 2]), known([[1, 1], [0, 3]])],
        [y(t)],
    ),
    "an image of phases": lambda t: operator_case(
        "BATCH_TO_SPACE_ND",
        [x((12, 21, 31, 19), t), known([3, 2]), known([[2, 1], [1, 3]])],
        [y(t)],
    ),
    "repetition": lambda t: operator_case(
        "TILE", [x((3, 61, 5, 19), t), known([2, 3, 4, 1])], [y(t)]
    ),
    "nearest pixels": lambda t: operator_case(
        "RESIZE_NEAREST_NEIGHBOR",
        [x((2, 31, 33, 19), t), known([77, 65])],
        [y(t)],
        o.ResizeNearestNeighborOptions(half_pixel_centers=True),
    ),
}  # fmt: skip


@levels
@pytest.mark.parametrize("type", ["FLOAT32", "UINT8"])
@pytest.mark.parametrize("name", BIG)
def test_large_moves_are_split_into_tiles(name: str, type: str, level: str) -> None:
    check(BIG[name](type), level)


@levels
@pytest.mark.parametrize("type", ["FLOAT32", "INT8", "UINT8"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 33])
def test_runs_of_any_length_are_padded(channels: int, type: str, level: str) -> None:
    image, room = x((2, 3, 5, channels), type), known([[0, 0], [0, 0], [1, 2], [0, 0]])
    check(operator_case("PAD", [image, room], [y(type)]), level)
    value = constant(np.array(-77 if type == "INT8" else 77), type, **quantization(type))
    check(operator_case("PADV2", [image, room, value], [y(type)]), level)


@pytest.mark.parametrize("type", ["FLOAT32", "UINT32", "UINT8"])
def test_only_bytes_are_padded_with_their_zero_point(type: str) -> None:
    zero_point = 7 if type == "UINT8" else -128
    image = fed(numbers((1, 3, 2), type), scale=0.5, zero_point=zero_point)
    batches = tensor((), type, scale=0.5, zero_point=zero_point)
    inputs = [image, known([2]), known([[1, 0]])]
    check(operator_case("SPACE_TO_BATCH_ND", inputs, [batches]), LEVELS[0])


@levels
def test_bytes_of_other_scales_are_joined_in_the_scale_of_the_output(level: str) -> None:
    scales = ((0.05, 3), (0.02, 200), (0.11, 0))
    inputs = [
        fed(numbers((2, 31, 33, 5), "UINT8", i), scale=scale, zero_point=zero)
        for i, (scale, zero) in enumerate(scales)
    ]
    case = operator_case("CONCATENATION", inputs, [y("UINT8")], o.ConcatenationOptions(axis=3))
    check(case, level)


TYPES = ("FLOAT32", "INT8", "UINT8")


@levels
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("op", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@pytest.mark.parametrize(
    ("shape", "window", "stride", "padding"),
    [
        ((2, 57, 55, 67), 3, 2, Padding.SAME),
        ((1, 33, 31, 131), 2, 2, Padding.VALID),
        ((1, 9, 9, 300), 9, 1, Padding.VALID),
        ((1, 91, 90, 3), 90, 1, Padding.VALID),
    ],
)
def test_windows_of_any_size_are_pooled(
    shape: tuple[int, ...], window: int, stride: int, padding: Padding, op: str, type: str,
    level: str,
) -> None:  # fmt: skip
    options = o.Pool2DOptions(
        padding=padding, stride_w=stride, stride_h=stride, filter_width=window, filter_height=window
    )
    check(operator_case(op, [x(shape, type)], [y(type)], options), level)


@levels
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("op", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"])
@pytest.mark.parametrize(
    ("axes", "keep"),
    [([1, 2], True), ([1, 2], False), ([3], False), ([0], True), ([0, 2], False), ([1, 3], True)],
)
def test_any_axes_are_reduced(axes: list[int], keep: bool, op: str, type: str, level: str) -> None:
    options = o.ReducerOptions(keep_dims=keep)
    check(operator_case(op, [x((3, 31, 29, 83), type), known(axes)], [y(type)], options), level)


@levels
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("options", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
@pytest.mark.parametrize(
    ("shape", "size"),
    [((2, 17, 19, 21), (65, 33)), ((1, 64, 66, 3), (31, 65)), ((1, 9, 7, 130), (18, 14))],
)
def test_pixels_are_mixed_between_corners_or_centres(
    shape: tuple[int, ...], size: tuple[int, int], options: dict[str, bool], type: str, level: str
) -> None:
    case = operator_case(
        "RESIZE_BILINEAR",
        [x(shape, type), known(size)],
        [y(type)],
        o.ResizeBilinearOptions(**options),
        version=3,
    )
    check(case, level)


@levels
@pytest.mark.parametrize("type", [*TYPES, "INT32"])
@pytest.mark.parametrize(
    ("op", "table"), [("ARG_MAX", o.ArgMaxOptions), ("ARG_MIN", o.ArgMinOptions)]
)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((4, 37, 31, 21), 0), ((4, 37, 31, 21), 1), ((4, 37, 31, 21), 3), ((67, 1003), 1)],
)
def test_the_first_of_equal_elements_has_the_position(
    shape: tuple[int, ...], axis: int, op: str, table: Any, type: str, level: str
) -> None:
    values = numbers(shape, type)
    few = np.clip(values, -3, 3).round().astype(values.dtype) if type == "FLOAT32" else values % 5
    given = fed(few.astype(values.dtype), type, **quantization(type))
    for index in (TensorType.INT32, TensorType.INT64):
        options = table(output_type=index)
        check(operator_case(op, [given, known(axis)], [tensor((), index.name)], options), level)


@levels
@pytest.mark.parametrize(("shape", "axes"), [((5, 40), [1]), ((5, 8, 6), [1]), ((3, 7, 9), [1, 2])])
def test_floats_are_multiplied_in_order(
    shape: tuple[int, ...], axes: list[int], level: str
) -> None:
    values = np.random.default_rng(3).choice(np.float32([1e30, 1e-30, 2, -3, 0]), shape)
    case = operator_case("REDUCE_PROD", [fed(values), known(axes)], [y()], o.ReducerOptions())
    (expected,), _ = results(case)
    (found,), taken = results(case, delegate(level, num_threads=2))
    assert taken
    np.testing.assert_array_equal(found, expected)


@levels
@pytest.mark.parametrize("keep", [True, False])
def test_a_mean_is_the_cores_bit_for_bit_where_the_last_axis_stays(keep: bool, level: str) -> None:
    options = o.ReducerOptions(keep_dims=keep)
    case = operator_case("MEAN", [x((2, 9, 11, 37)), known([1, 2])], [y()], options)
    (expected,), _ = results(case)
    (found,), _ = results(case, delegate(level, num_threads=2))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("keep", [True, False])
def test_means_of_scales_too_far_apart_are_left_to_the_core(keep: bool) -> None:
    options, y_far = o.ReducerOptions(keep_dims=keep), tensor((), "INT8", scale=3e-31)
    given = fed(np.arange(-30, 30, dtype=np.int8).reshape(1, 4, 5, 3), scale=1.0)
    case = operator_case("MEAN", [given, known([1, 2])], [y_far], options, version=2)
    (expected,), _ = results(case)
    (found,), taken = results(case, delegate())
    assert not taken
    np.testing.assert_array_equal(found, expected)


def test_parameters_made_of_constants_are_left_to_the_core() -> None:
    model = graph_model(
        [("RESHAPE", "c s", "axis"), ("SPLIT", "axis x", "a b", o.SplitOptions(num_splits=2))],
        inputs="x",
        outputs="a b",
        tensors={
            "c": constant(np.int32(1)), "s": constant(np.int32([1])), "x": tensor((3, 4)),
            "axis": tensor((1,), "INT32"), "a": tensor((3, 2)), "b": tensor((3, 2)),
        },
    )  # fmt: skip
    interpreter = delegated(model)
    given = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(np.concatenate(outputs_of(interpreter, [given]), 1), given)
    assert [node.delegate for node in interpreter.placement.nodes] == [None, "numba_cpu"]


def test_tensors_made_of_shapes_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[Sequence[int]] = []
    search = moves_checks.computed_from_shapes

    def counted(context: DelegateContext, plan: Sequence[int]) -> frozenset[int]:
        searches.append(plan)
        return search(context, plan)

    monkeypatch.setattr(moves_checks, "computed_from_shapes", counted)
    names = [f"t{i}" for i in range(9)]
    model = graph_model(
        [("RESHAPE", f"{a} s", b) for a, b in pairwise(names)],
        inputs="t0",
        outputs="t8",
        tensors={"s": constant(np.int32([4])), **dict.fromkeys(names, tensor((4,), "INT32"))},
    )
    interpreter = delegated(model)
    interpreter.allocate_tensors()
    assert is_taken(interpreter)
    assert searches == [tuple(range(8))]


def test_products_have_no_outputs_after_a_resize() -> None:
    operands = [x((3, 4)), x((7, 4)), x((7,))]
    case = operator_case("FULLY_CONNECTED", operands, [y()], o.FullyConnectedOptions())
    none = (numbers((3, 4), "FLOAT32"), *(np.zeros(n, np.float32) for n in ((0, 4), (0,))))
    check(OperatorCase(case.op, case.records, (*case.steps, none, *case.steps)), "auto")


@levels
def test_moves_follow_a_new_shape_of_their_input(level: str) -> None:
    case = operator_case("TRANSPOSE", [x((4, 5, 6)), known([2, 0, 1])], [y()])
    longer = (numbers((9, 33, 40), "FLOAT32"),)
    check(OperatorCase(case.op, case.records, (*case.steps, longer, *case.steps)), level)


def test_loops_that_follow_one_another_are_merged() -> None:
    assert nest_of((2, 3, 4), (96, 32, 8), (48, 16, 4), 4)[0] == [Loop(24, 8, 4)]


def test_a_row_of_a_few_bytes_is_moved_as_one_element() -> None:
    assert nest_of((5, 4), (8, 1), (16, 1), 1) == ([Loop(5, 8, 16)], 4)


def test_nests_walk_through_every_element_once() -> None:
    source = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).transpose(3, 0, 2, 1)
    target = np.empty(source.shape, source.dtype)
    loops, unit = nest_of(source.shape, source.strides, target.strides, 8)
    assert unit == 8
    assert math.prod(loop.steps for loop in loops) == source.size
    offsets = {0}
    for loop in loops:
        offsets = {a + k * loop.target for a in offsets for k in range(loop.steps)}
    assert offsets == set(range(0, target.nbytes, 8))
