"""Convolutions and matrix products of 8-bit integers, against Delegraph's own kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import LEVELS, assert_agrees, delegated, is_taken, rows_of, run
from delegraph import Interpreter
from delegraph.arithmetic import fixed_point_scaling
from delegraph.schema import options as o
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import Padding
from delegraph.testing import TensorDef, constant, graph_model, tensor
from delegraph_numba_cpu.bounds import Overrun, check_row
from delegraph_numba_cpu.instructions.conv_int8 import FRACTION, HEADER, UNCERTAIN
from delegraph_numba_cpu.instructions.memory import Row
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.lowering.convolution import conv_int8_constants
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import Product
from delegraph_numba_cpu.lowering.registry import Call
from support.convolutions import window

RANGES = {"INT8": (-128, 127), "UINT8": (0, 255)}
SAME, VALID = Padding.SAME, Padding.VALID
SCALE, WEIGHT_SCALE = 0.02, 0.005


class Layers:
    """A model being written: layers of one type, one behind the other.

    Args:
        shape: of the input.
        kind: ``"INT8"`` or ``"UINT8"``.
        per_channel: whether weights have a scale for each channel.
        zero_points: of the input and of every output.
        weight_zero_point: for uint8.
        seed: of all values.
    """

    def __init__(
        self,
        shape: Sequence[int],
        kind: str = "INT8",
        *,
        per_channel: bool = True,
        zero_points: tuple[int, int] = (3, 5),
        weight_zero_point: int = 119,
        seed: int = 0,
    ) -> None:
        self.kind, self.shape = kind, tuple(shape)
        self.per_channel = per_channel and kind == "INT8"
        self.weight_zero_point = weight_zero_point if kind == "UINT8" else 0
        self.zero_point = zero_points[1]
        self.rng = np.random.default_rng([seed, *shape])
        self.nodes: list[Any] = []
        self.last, self.scale = "x", SCALE
        self.tensors = {"x": tensor(shape, kind, scale=SCALE, zero_point=zero_points[0])}

    def _weights(self, shape: Sequence[int], axis: int) -> TensorDef:
        count = shape[axis] if self.per_channel else 1
        scales = WEIGHT_SCALE * self.rng.uniform(0.3, 1.0, count)
        low, high = RANGES[self.kind]
        values = self.rng.integers(max(low, -127), high, shape, endpoint=True)
        return constant(
            values, self.kind, scale=scales.tolist(), zero_point=self.weight_zero_point, axis=axis
        )

    def _add(
        self, op: str, weight: TensorDef, channels: int, options: Any, *, shape: Any = None
    ) -> Layers:
        number = len(self.nodes)
        w, b, y, s = (f"{letter}{number}" for letter in "wbys")
        assert weight.quantization is not None
        scales = np.float32(self.scale) * np.float32(weight.quantization.scale)
        bias = constant(self.rng.integers(-3000, 3000, channels).astype(np.int32), scale=scales)
        taps = weight.data.size // channels  # type: ignore[union-attr]  # constants have data
        mean = 127 - self.weight_zero_point if self.kind == "UINT8" else 0
        y_scale = self.scale * WEIGHT_SCALE * (math.sqrt(taps) * 40 + taps * abs(mean))
        self.tensors |= {w: weight, b: bias}
        self.tensors[y] = tensor(
            shape or (1, 1, 1, channels), self.kind, scale=y_scale, zero_point=self.zero_point
        )
        names = f"{self.last} {w} {b}"
        if shape is not None:
            self.tensors[s] = constant(np.array(shape, np.int32))
            names = f"{s} {w} {self.last} {b}"
        self.nodes.append((op, names, y, options))
        self.last, self.scale = y, y_scale
        return self

    def conv(
        self,
        channels: int,
        outputs: int,
        kernel: tuple[int, int] = (3, 3),
        stride: int = 1,
        dilation: int = 1,
        padding: Padding = SAME,
        groups: int = 1,
        **given: Any,
    ) -> Layers:
        options = o.Conv2DOptions(**window((stride,) * 2, (dilation,) * 2, padding, **given))
        weight = self._weights((outputs, *kernel, channels // groups), 0)
        return self._add("CONV_2D", weight, outputs, options)

    def depthwise(
        self,
        channels: int,
        kernel: tuple[int, int] = (3, 3),
        stride: int = 1,
        dilation: int = 1,
        padding: Padding = SAME,
        multiplier: int = 1,
        **given: Any,
    ) -> Layers:
        fields = window((stride,) * 2, (dilation,) * 2, padding, **given)
        options = o.DepthwiseConv2DOptions(depth_multiplier=multiplier, **fields)
        weight = self._weights((1, *kernel, channels * multiplier), 3)
        return self._add("DEPTHWISE_CONV_2D", weight, channels * multiplier, options)

    def dense(self, depth: int, outputs: int, **options: Any) -> Layers:
        weight = self._weights((outputs, depth), 0)
        return self._add("FULLY_CONNECTED", weight, outputs, o.FullyConnectedOptions(**options))

    def transposed(
        self,
        shape: tuple[int, int, int, int],
        kernel: tuple[int, int],
        stride: int,
        padding: Padding,
    ) -> Layers:
        weight = self._weights((shape[3], *kernel, self.shape[3]), 0)
        options = o.TransposeConvOptions(padding=padding, stride_h=stride, stride_w=stride)
        return self._add("TRANSPOSE_CONV", weight, shape[3], options, shape=shape)

    def model(self) -> bytes:
        return graph_model(self.nodes, inputs="x", outputs=self.last, tensors=self.tensors)

    def assert_agrees(self, level: str = "auto", threads: int = 1, *, exact: bool = True) -> None:
        """Check the results, bit for bit, or within 1 unit a layer."""
        model = self.model()
        low, high = RANGES[self.kind]
        x = self.rng.integers(low, high, self.shape, endpoint=True).astype(self.kind.lower())
        expected = run(Interpreter(model_content=model), x)
        interpreter = delegated(model, level, exact=exact, num_threads=threads)
        found = run(interpreter, x)
        assert is_taken(interpreter)
        assert len(interpreter.placement.nodes) == len(self.nodes)
        assert found.shape == expected.shape
        difference = np.abs(found.astype(int) - expected)
        assert difference.max(initial=0) <= (0 if exact else len(self.nodes))
        is_clamped = self.zero_point == high  # by an activation, all of it
        assert len(np.unique(expected)) > 3 or expected.size <= 64 or is_clamped


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=RANGES)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("outputs", [1, 5, 16, 17, 33, 64, 100])
@pytest.mark.parametrize("channels", [1, 3, 5, 17, 33, 64])
def test_any_numbers_of_channels(kind: str, level: str, channels: int, outputs: int) -> None:
    Layers((1, 6, 7, channels), kind).conv(channels, outputs, (1, 1)).assert_agrees(level)


@pytest.mark.parametrize(
    "geometry",
    [
        ((3, 3), 1, 1, SAME),
        ((3, 3), 2, 1, SAME),
        ((3, 3), 2, 1, VALID),
        ((3, 3), 1, 2, SAME),
        ((2, 5), 3, 1, SAME),
        ((1, 1), 2, 1, SAME),
        ((5, 1), 1, 3, VALID),
        ((7, 7), 1, 1, SAME),
    ],
    ids=str,
)
def test_any_windows(kind: str, level: str, geometry: Any) -> None:
    Layers((2, 13, 15, 6), kind).conv(6, 20, *geometry).assert_agrees(level)
    Layers((1, 13, 15, 43), kind).conv(43, 20, *geometry).assert_agrees(level)
    Layers((1, 13, 9, 12), kind).conv(12, 32, *geometry).assert_agrees(level)
    Layers((2, 13, 15, 21), kind).depthwise(21, *geometry).assert_agrees(level)
    Layers((2, 13, 15, 70), kind).depthwise(70, *geometry).assert_agrees(level)


@pytest.mark.parametrize("channels", [1, 5, 16, 31, 56, 64, 80, 128, 150])
def test_depthwise_of_any_number_of_channels(kind: str, level: str, channels: int) -> None:
    Layers((1, 5, 9, channels), kind).depthwise(channels).assert_agrees(level)


@pytest.mark.parametrize(
    "geometry", [(3, 1, 1), (5, 1, 1), (3, 2, 1), (5, 2, 1), (3, 1, 2)], ids=str
)
def test_depthwise_rows_of_any_length(kind: str, level: str, geometry: Any) -> None:
    kernel, stride, dilation = geometry
    for width in (3, 4, 6, 7, 8, 9, 17):
        layers = Layers((1, 6, width * stride, 82), kind)
        layers.depthwise(82, (kernel, kernel), stride, dilation).assert_agrees(level)


PLANES = [((3, 3), 1, SAME), ((5, 5), 1, SAME), ((3, 3), 2, SAME), ((6, 1), 1, VALID)]


@pytest.mark.parametrize("channels", [16, 32])
@pytest.mark.parametrize(("kernel", "dilation", "padding"), PLANES)
def test_depthwise_lines_in_planes(
    kind: str, level: str, channels: int, kernel: tuple[int, int], dilation: int, padding: Padding
) -> None:
    for width in (4, 8, 20):
        layers = Layers((2, 7, width, channels), kind)
        layers.depthwise(channels, kernel, 1, dilation, padding).assert_agrees(level)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ("windows", {"out_width": 9}),
        ("windows", {"stride_w": 2}),
        ("windows", {"width": 64}),
        ("taps", {"plane_columns": 1}),
        ("taps", {"plane_columns": 1 << 20}),
    ],
    ids=str,
)
def test_planes_of_another_size_are_refused(record: str, words: dict[str, int]) -> None:
    if supported_levels()[0].vector_bytes != 64:
        pytest.skip("the level packs no lines in planes")
    (row,) = rows_of(Layers((1, 9, 8, 16), "INT8").depthwise(16).model())
    check_row(row, 1, 64)
    memory = row.words[record].memory
    memory.records = tuple(each | words for each in memory.records)
    with pytest.raises(Overrun):
        check_row(row, 1, 64)


@pytest.mark.parametrize("multiplier", [2, 3, 16])
def test_depthwise_with_several_outputs_a_channel(kind: str, level: str, multiplier: int) -> None:
    layers = Layers((2, 6, 5, 7), kind).depthwise(7, multiplier=multiplier)
    layers.assert_agrees(level)


@pytest.mark.parametrize("activation", [Act.NONE, Act.RELU, Act.RELU6, Act.RELU_N1_TO_1])
@pytest.mark.parametrize("ends", [(0, 0), (1, 1), (0, 1), (1, 0)])
def test_zero_points_at_the_ends_of_the_range(
    kind: str, level: str, ends: tuple[int, int], activation: Act
) -> None:
    zero_points = (RANGES[kind][ends[0]], RANGES[kind][ends[1]])
    layers = Layers((1, 9, 9, 12), kind, zero_points=zero_points, per_channel=False)
    layers.conv(12, 72, act=activation).assert_agrees(level)
    layers = Layers((1, 9, 9, 72), kind, zero_points=zero_points)
    layers.depthwise(72, act=activation).assert_agrees(level)


@pytest.mark.parametrize("zero_point", [0, 1, 128, 255])
def test_zero_points_of_weights(level: str, zero_point: int) -> None:
    layers = Layers((1, 8, 8, 40), "UINT8", zero_points=(128, 128), weight_zero_point=zero_point)
    layers.conv(40, 24, (1, 2)).assert_agrees(level)
    layers = Layers((1, 8, 8, 40), "UINT8", zero_points=(128, 128), weight_zero_point=zero_point)
    layers.depthwise(40).assert_agrees(level)


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 15, 16, 24, 64])
@pytest.mark.parametrize(("depth", "outputs"), [(1, 1), (7, 10), (12, 32), (64, 64), (130, 200)])
def test_matrix_products(kind: str, level: str, rows: int, depth: int, outputs: int) -> None:
    Layers((rows, depth), kind).dense(depth, outputs).assert_agrees(level)


def test_matrix_products_keep_dimensions(kind: str) -> None:
    Layers((2, 3, 4, 9), kind).dense(9, 5, keep_num_dims=True).assert_agrees()


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding"),
    [
        ((1, 8, 10, 5), (3, 3), 2, SAME),
        ((2, 8, 10, 16), (4, 4), 2, SAME),
        ((1, 9, 11, 64), (3, 3), 2, VALID),
        ((1, 4, 5, 3), (2, 3), 1, SAME),
    ],
)
def test_transposed(
    kind: str,
    level: str,
    shape: tuple[int, int, int, int],
    kernel: tuple[int, int],
    stride: int,
    padding: Padding,
) -> None:
    layers = Layers((shape[0], -(-shape[1] // stride), -(-shape[2] // stride), 6), kind)
    if padding is VALID:
        layers = Layers((shape[0], 4, 5, 6), kind)
    layers.transposed(shape, kernel, stride, padding).assert_agrees(level)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("exact", [True, False])
def test_threads_share_the_work(kind: str, threads: int, exact: bool) -> None:
    layers = Layers((1, 60, 60, 32), kind).conv(32, 96)
    layers.assert_agrees(threads=threads, exact=exact)
    layers = Layers((1, 60, 60, 96), kind).depthwise(96)
    layers.assert_agrees(threads=threads, exact=exact)
    layers = Layers((1, 7, 7, 256), kind).conv(256, 400, (1, 1))
    layers.assert_agrees(threads=threads, exact=exact)


def test_inexact_results_are_within_a_unit(kind: str, level: str) -> None:
    Layers((1, 12, 12, 24), kind).conv(24, 100).assert_agrees(level, exact=False)
    Layers((1, 12, 12, 100), kind).depthwise(100).assert_agrees(level, exact=False)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_strips(kind: str, level: str, stride: int, dilation: int, threads: int) -> None:
    layers = Layers((2, 35, 33, 8), kind)
    layers.conv(8, 84, (1, 1), act=Act.RELU6)
    layers.depthwise(84, stride=stride, dilation=dilation if stride == 1 else 1)
    layers.conv(84, 22, (1, 1)).assert_agrees(level, threads)


def test_strips_that_begin_with_a_depthwise_convolution(kind: str, level: str) -> None:
    layers = Layers((2, 30, 21, 70), kind)
    layers.depthwise(70, (5, 5), act=Act.RELU).conv(70, 65, (1, 1)).assert_agrees(level)


def test_strips_that_begin_with_windows(kind: str, level: str) -> None:
    layers = Layers((1, 65, 61, 3), kind)
    layers.conv(3, 32, stride=2, act=Act.RELU6).depthwise(32).conv(32, 16, (1, 1))
    layers.assert_agrees(level)


def test_claims_leave_the_weights_unread(
    kind: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwanted(call: Call) -> Product:
        raise AssertionError(f"the check of {call.name} reads the weights")

    monkeypatch.setattr(conv_int8_constants, "product_of", unwanted)
    Layers((1, 6, 5, 8), kind).conv(8, 16).depthwise(16).assert_agrees(level)


@pytest.mark.parametrize("words", [{"together": 0}, {"first_step": 0}, {"rows": 1 << 31}], ids=str)
def test_strips_whose_loops_would_not_end_are_refused(words: dict[str, int]) -> None:
    layers = Layers((1, 35, 33, 8), "INT8").conv(8, 84, (1, 1)).depthwise(84).conv(84, 22, (1, 1))
    (row,) = (row for row in rows_of(layers.model()) if row.instruction.kernel == "strip")
    with pytest.raises(Overrun, match="'strip'"):
        check_row(Row(row.instruction, row.tiles, row.words | words), 1, 64)


@pytest.mark.parametrize(
    ("accumulator", "factors"),
    [
        (8578625, (8389034, 11214195)),
        (13474389, (8388744, 15299772)),
        (-8460441, (8388845, 12930570)),
        (-8967809, (8388757, 15877260)),
        (-8575529, (8388647, 16603767)),
        (-10160109, (8388630, 15853966)),
    ],
)
@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_multipliers_too_small_for_one_exact_product(
    level: str, op: str, accumulator: int, factors: tuple[int, int]
) -> None:
    """These accumulators become what float64 rounds to the next integer; the last two, if away."""
    channels = 70 if op == "CONV_2D" else 71
    in_scale, scale = (factor * 2.0**-23 for factor in factors)
    images = np.arange(-128, 128, dtype=np.int8).reshape(1, 16, 16, 1)
    options: Any = o.Conv2DOptions(padding=SAME, stride_h=1, stride_w=1)
    shape, axis = (channels, 1, 1, 1), 0
    if op != "CONV_2D":
        images = np.repeat(images, channels, axis=3)
        options = o.DepthwiseConv2DOptions(padding=SAME, stride_h=1, stride_w=1, depth_multiplier=1)
        shape, axis = (1, 1, 1, channels), 3
    bias = np.full(channels, accumulator - 5, np.int32)
    model = graph_model(
        [(op, "x w b", "y", options)],
        inputs="x",
        outputs="y",
        tensors={
            "x": tensor(images.shape, "INT8", scale=in_scale),
            "w": constant(np.ones(shape, np.int8), scale=[scale] * channels, axis=axis),
            "b": constant(bias, scale=[in_scale * scale] * channels),
            "y": tensor(
                (1, 16, 16, channels), "INT8", scale=2.0**17,
                zero_point=-128 if accumulator > 0 else 127,
            ),
        },
    )  # fmt: skip
    assert_agrees(model, images, level=level)


def test_multipliers_too_small_for_exact_arithmetic_are_refused() -> None:
    weight = constant(np.full((4, 1, 1, 9000), 127, np.int8), scale=[1e-10] * 4)
    bias = constant(np.zeros(4, np.int32), scale=[1e-10] * 4)
    model = graph_model(
        [("CONV_2D", "x w b", "y", o.Conv2DOptions(padding=SAME, stride_h=1, stride_w=1))],
        inputs="x",
        outputs="y",
        tensors={
            "x": tensor((1, 2, 2, 9000), "INT8", scale=1.0),
            "w": weight,
            "b": bias,
            "y": tensor((1, 2, 2, 4), "INT8", scale=0.01),
        },
    )
    assert delegated(model).placement.nodes[0].delegate is None


GROUPS = [(8, 8, 2), (12, 6, 3), (32, 32, 8), (40, 200, 2), (15, 60, 15), (128, 128, 32)]


@pytest.mark.parametrize(("channels", "outputs", "groups"), GROUPS)
def test_groups_of_channels(
    kind: str, level: str, channels: int, outputs: int, groups: int
) -> None:
    for kernel, stride, batch in (((3, 3), 2, 1), ((1, 1), 1, 1), ((2, 3), 1, 3)):
        layers = Layers((batch, 7, 9, channels), kind, per_channel=batch == 1)
        layers.conv(channels, outputs, kernel, stride, groups=groups).assert_agrees(level)


def test_neighbours_of_grouped_convolutions_are_not_taken_for_strips(kind: str) -> None:
    layers = Layers((1, 40, 40, 16), kind).conv(16, 32, (1, 1), groups=4)
    layers.depthwise(32).conv(32, 24, (1, 1), groups=2)
    layers.assert_agrees()


@pytest.mark.parametrize("exact", [True, False])
def test_threads_share_the_work_of_groups(kind: str, exact: bool) -> None:
    layers = Layers((1, 40, 40, 64), kind).conv(64, 128, groups=2)
    layers.assert_agrees(threads=3, exact=exact)


RESULTS = (-511.0, -129.5, -0.5, 0.5, 100.0, 511.0)


def header_fields(halves_away: bool) -> Callable[[str, str], NDArray[np.float64]]:
    """Function that returns a field of the headers of 4096 outputs, by its name and dtype."""
    multipliers = np.exp2(np.random.default_rng(0).uniform(-12, 0, 4096))
    scaling = fixed_point_scaling(multipliers, halves_away=halves_away)
    weight, bias = np.ones((4096, 1), np.int16), np.zeros(4096, np.int64)
    headers = Product(weight, bias, scaling, 5, -128, 127, 128, 3).headers(True)

    def field(name: str, dtype: str) -> NDArray[np.float64]:
        place = HEADER[name]
        width = 16 * np.dtype(dtype).itemsize
        found = headers[: 4096 // 16, place : place + width].copy().view(dtype)
        return found.astype(np.float64)

    return field


def test_offset_with_a_fraction_leads_to_more_than_the_exact_result_but_not_much() -> None:
    """By float32 rounded as instructions round it, for results up to 512."""
    field = header_fields(halves_away=False)
    factor = field("factor", "f8")
    for result in RESULTS:
        acc = np.rint(result / factor)
        exact = acc * factor + field("exact_offset", "f8") + field("zero", "i4")
        product_32 = acc.astype(np.float32).astype(np.float64) * field("scale", "f4")
        found = np.rint((product_32 + field("offset", "f4")).astype(np.float32))
        assert (found > exact * FRACTION).all()
        assert (found < exact * FRACTION + UNCERTAIN).all()


def test_offsets_of_headers_lead_to_more_and_to_less_than_exact_results() -> None:
    """By float32 rounded as instructions round it, for results up to 512."""
    field = header_fields(halves_away=True)
    factor, away = field("factor", "f8"), field("away", "f8")
    for result in RESULTS:
        acc = np.rint(result / factor)
        taken = np.where(acc < 0, away, 0.0)
        exact = acc * factor + field("exact_offset", "f8") - taken + field("zero", "i4")
        for name, sign in (("offset", 1), ("below", -1)):
            summand = (field(name, "f4") - taken.astype(np.float32)).astype(np.float32)
            product_32 = acc.astype(np.float32).astype(np.float64) * field("scale", "f4")
            found = (product_32 + summand).astype(np.float32)
            assert ((found - (exact - 0.5)) * sign > 0).all()
