from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import ArenaTooSmallError, ArgumentError, ModelError, NodeError, StateError
from delegraph.graph.loader import load_model, parse_model
from delegraph.micro.allocator import MicroAllocator
from delegraph.micro.estimate import estimate_arena
from delegraph.micro.interpreter import MicroInterpreter
from delegraph.micro.stage import MicroState
from delegraph.micro.targets import TARGET_32, TARGET_64
from delegraph.operators.registration import Registration
from delegraph.schema.options import CallOnceOptions, IfOptions, VarHandleOptions, WhileOptions
from delegraph.testing import constant, graph_model, subgraphs_model, tensor
from support.corpus import CORPUS, corpus_file, needs_corpus

SINES = graph_model([("SIN", "x", "s"), ("ADD", "s x", "y")], inputs="x", outputs="y")
MODELS = [
    "tflm__hello_world_int8",
    "tflm__micro_speech_quantized",
    "tflm__keyword_scrambled",
    "tflm__person_detect",
]


def allocated(model, size=8192, **options):
    interpreter = MicroInterpreter(model, bytearray(size), **options)
    interpreter.allocate_tensors()
    return interpreter


def golden_runs(name):
    """Yield the inputs and outputs of each invoke, in order."""
    with np.load(CORPUS / "golden" / f"{name}.npz") as archive:
        golden = dict(archive)
    for prefix in ("", "s1_", "s2_"):
        if f"{prefix}in_0" in golden:
            yield golden[f"{prefix}in_0"], golden[f"{prefix}out_0"]


def smallest_arena(model, **options):
    low, high = 0, 2**20
    while low < high:
        middle = (low + high) // 2
        try:
            allocated(model, middle, **options)
            high = middle
        except ArenaTooSmallError:
            low = middle + 1
    return high


# -- real models ----------------------------------------------------------------------------------


@pytest.mark.repetition(2)
@needs_corpus
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kernel_scratch", ["outside", "arena"])
def test_outputs_are_the_golden_ones_in_the_smallest_arena(name, kernel_scratch):
    model = load_model(corpus_file(name))
    size = smallest_arena(model, kernel_scratch=kernel_scratch)
    interpreter = allocated(model, size, kernel_scratch=kernel_scratch)
    for given, expected in golden_runs(name):
        interpreter.input(0).data[...] = given
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.output(0).data, expected)


@pytest.mark.repetition(2)
@needs_corpus
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", [TARGET_32, TARGET_64], ids=["32", "64"])
def test_the_smallest_arena_is_as_predicted(name, target):
    model = load_model(corpus_file(name))
    prediction = estimate_arena(model, target=target)
    smallest = smallest_arena(model, target=target)
    assert abs(smallest - prediction.total_bytes) <= prediction.uncertainty_bytes
    assert prediction.uncertainty_bytes < 0.05 * smallest


def array_bytes():
    """Return the bytes of all arrays allocated since tracing began."""
    gc.collect()
    arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    snapshot = tracemalloc.take_snapshot().filter_traces([arrays])
    return sum(trace.size for trace in snapshot.traces)


@needs_corpus
@pytest.mark.parametrize("name", MODELS)
def test_an_invoke_leaves_no_array_behind_and_the_arena_as_it_was(name):
    """Measured: array memory. Views and iterators come and go, and Python caches some of them."""
    interpreter = allocated(load_model(corpus_file(name)), 2**17)
    used = interpreter.arena_used_bytes, interpreter.outside_bytes
    interpreter.invoke()
    tracemalloc.start()
    try:
        kept = np.zeros(1000, np.uint8)  # shows that arrays are counted
        for _ in range(5):
            interpreter.invoke()
        assert array_bytes() == kept.nbytes
    finally:
        tracemalloc.stop()
    assert (interpreter.arena_used_bytes, interpreter.outside_bytes) == used


def test_the_interpreters_own_part_of_an_invoke_allocates_nothing():
    """With a kernel that allocates nothing, the peak is a frame's worth of Python objects."""

    def prepare(context, node):
        x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
        context.resize_tensor(y, x.shape)
        return lambda: np.negative(x.data, out=y.data)

    big = {name: tensor((100_000,)) for name in "xsty"}
    nodes = [("NEGATE", "x", "s"), ("NEGATE", "s", "t"), ("NEGATE", "t", "y")]
    model = graph_model(nodes, inputs="x", outputs="y", tensors=big)
    interpreter = allocated(model, 2**20, custom_ops={"NEGATE": Registration("NEGATE", prepare)})
    interpreter.input(0).data[...] = 3
    for _ in range(3):
        interpreter.invoke()
    tracemalloc.start()
    try:
        interpreter.invoke()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        interpreter.invoke()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - before < 4096  # one tensor has 400,000 bytes; objects of Python: 1,900 to 2,600
    assert interpreter.output(0).data[0] == -3


# -- arena ----------------------------------------------------------------------------------------


def test_every_tensor_is_in_the_callers_memory():
    arena = bytearray(8192)
    interpreter = MicroInterpreter(SINES, arena)
    interpreter.allocate_tensors()
    memory = np.frombuffer(arena, np.uint8)
    assert np.shares_memory(interpreter.input(0).data, memory)
    assert np.shares_memory(interpreter.output(0).data, memory)


def test_an_arena_too_small_says_what_is_missing_and_what_would_do():
    needed = estimate_arena(parse_model(SINES)).total_bytes
    with pytest.raises(ArenaTooSmallError, match=f"{needed} bytes are estimated") as raised:
        allocated(SINES, needed - 100)
    assert "missing)" in str(raised.value)
    assert raised.value.missing > 0


def test_after_a_failure_nothing_runs():
    interpreter = MicroInterpreter(SINES, bytearray(300))
    with pytest.raises(ArenaTooSmallError):
        interpreter.allocate_tensors()
    assert not interpreter.is_usable
    for call in (interpreter.invoke, interpreter.allocate_tensors):
        with pytest.raises(StateError, match=r"called after initialization failed: .*missing"):
            call()


def test_all_tensors_can_be_preserved():
    interpreter = allocated(SINES, 2**14, preserve_all_tensors=True)
    interpreter.input(0).data[...] = [0, 1, 2, 3]
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.tensor(1).data, np.sin([0, 1, 2, 3]), rtol=1e-6)
    with pytest.raises(ArgumentError, match="no tensor 9 in subgraph 0"):
        interpreter.tensor(9)


def test_tensors_inside_are_not_shown_when_they_share_memory():
    with pytest.raises(StateError, match="needs preserve_all_tensors=True"):
        allocated(SINES).tensor(1)


def test_two_interpreters_share_an_allocator_one_after_the_other():
    allocator = MicroAllocator.create(bytearray(2**14))
    first, second = MicroInterpreter(SINES, allocator), MicroInterpreter(SINES, allocator)
    for value, interpreter in ((1, first), (2, second)):
        interpreter.allocate_tensors()
        interpreter.input(0).data[...] = value
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.output(0).data, np.sin(value) + value, rtol=1e-6)
    assert first.output(0).data.ctypes.data == second.output(0).data.ctypes.data


# -- calls and states -----------------------------------------------------------------------------


def test_invoke_allocates_when_nobody_has():
    interpreter = MicroInterpreter(SINES, bytearray(8192))
    assert interpreter.state is MicroState.INIT
    interpreter.invoke()
    assert interpreter.state is MicroState.INVOKE


def test_tensors_are_allocated_once():
    with pytest.raises(StateError, match=r"allocate_tensors\(\) comes once"):
        allocated(SINES).allocate_tensors()


def test_ends_out_of_range_are_refused():
    interpreter = allocated(SINES)
    with pytest.raises(ArgumentError, match=r"Input index 1 out of range \(length is 1\)"):
        interpreter.input(1)
    with pytest.raises(ArgumentError, match=r"Output index -1 out of range \(length is 1\)"):
        interpreter.output(-1)
    assert (interpreter.inputs_size, interpreter.outputs_size) == (1, 1)
    with pytest.raises(StateError, match=r"allocate_tensors\(\) first"):
        MicroInterpreter(SINES, bytearray(8192)).input(0)


CALLS = {
    "allocate_persistent_buffer": (lambda c, n: c.allocate_persistent_buffer(8), "init prepare"),
    "request_scratch_buffer_in_arena": (
        lambda c, n: c.request_scratch_buffer_in_arena(8), "prepare"),
    "get_scratch_buffer": (lambda c, n: c.get_scratch_buffer(0), "invoke"),
    "allocate_temp_buffer": (
        lambda c, n: c.deallocate_temp_buffer(c.allocate_temp_buffer(8)), "prepare"),
    "scratch": (lambda c, n: c.scratch((2,), np.float32), "prepare"),
    "set_external_context": (lambda c, n: c.set_external_context("x"), "init prepare invoke"),
    "allocate_temp_input_tensor": (
        lambda c, n: c.deallocate_temp_tensor(c.allocate_temp_input_tensor(n, 0)),
        "init prepare invoke"),
}  # fmt: skip


def calling(call, stage):
    """Return a copying operator that makes *call* at *stage*."""

    def init(context, node):
        if stage == "init":
            call(context, node)

    def prepare(context, node):
        x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
        context.request_scratch_buffer_in_arena(16)
        if stage == "prepare":
            call(context, node)

        def evaluate():
            if stage == "invoke":
                call(context, node)
            np.copyto(y.data, x.data)

        return evaluate

    return {"COPY": Registration("COPY", prepare, init=init)}


@pytest.mark.parametrize("stage", ["init", "prepare", "invoke"])
@pytest.mark.parametrize("name", CALLS)
def test_a_kernels_call_in_the_wrong_state_says_which_state_is_right(name, stage):
    call, allowed = CALLS[name]
    model = graph_model([("COPY", "x", "y")], inputs="x", outputs="y")
    interpreter = MicroInterpreter(model, bytearray(8192), custom_ops=calling(call, stage))
    if stage in allowed.split():
        interpreter.invoke()
        return
    now = {"init": "kInit", "prepare": "kPrepare", "invoke": "kInvoke"}
    right = " or ".join(now[s] for s in allowed.split())
    with pytest.raises(NodeError, match=rf"{name}\(\) in state {now[stage]}; .* in {right}$"):
        interpreter.invoke()


def test_temporary_memory_left_behind_is_an_error():
    call = calling(lambda c, n: c.allocate_temp_buffer(8), "prepare")
    model = graph_model([("COPY", "x", "y")], inputs="x", outputs="y")
    with pytest.raises(NodeError, match=r"COPY\) failed to prepare: temporary memory is in use"):
        allocated(model, custom_ops=call)


def test_absent_tensors_have_no_temporary_ones():
    found = []
    call = calling(lambda c, n: found.extend([
        c.allocate_temp_input_tensor(n, 1), c.allocate_temp_output_tensor(n, 7),
        c.allocate_temp_intermediate_tensor(n, 0)]), "prepare")  # fmt: skip
    allocated(graph_model([("COPY", "x", "y")], inputs="x", outputs="y"), custom_ops=call)
    assert found == [None] * 3


def test_scratch_buffers_are_in_the_arena_and_apart_from_the_nodes_tensors():
    seen = []
    call = calling(lambda c, n: seen.append(c.get_scratch_buffer(0)), "invoke")
    interpreter = MicroInterpreter(
        graph_model([("COPY", "x", "y")], inputs="x", outputs="y"), arena := bytearray(8192),
        custom_ops=call)  # fmt: skip
    interpreter.invoke()
    assert seen[0].size == 16
    assert np.shares_memory(seen[0], np.frombuffer(arena, np.uint8))
    assert not np.shares_memory(seen[0], interpreter.output(0).data)


def test_an_external_context_reaches_kernels_once():
    seen = []
    call = calling(lambda c, n: seen.append(c.external_context), "invoke")
    model = graph_model([("COPY", "x", "y")], inputs="x", outputs="y")
    interpreter = allocated(model, custom_ops=call)
    with pytest.raises(ArgumentError, match="external context is None"):
        interpreter.set_external_context(None)
    interpreter.set_external_context("board")
    with pytest.raises(StateError, match="cannot be replaced"):
        interpreter.set_external_context("another")
    interpreter.invoke()
    assert seen == ["board"]


# -- what models may do ---------------------------------------------------------------------------


def test_a_variable_begins_at_zero_and_again_after_a_reset():
    handle = ("VAR_HANDLE", "", "h", VarHandleOptions(container="", shared_name="v"))
    nodes = [handle, ("READ_VARIABLE", "h", "y"), ("ASSIGN_VARIABLE", "h x", "")]
    for zero, given in (
        (7, {"type": "INT8", "scale": 0.5, "zero_point": 7}),
        (0, {"type": "INT16", "scale": 0.5}),
        (0, {}),
    ):
        tensors = {"h": tensor((), "RESOURCE"), **{n: tensor((3,), **given) for n in "xy"}}
        interpreter = allocated(subgraphs_model([(nodes, "x", "y", tensors)]))
        x = np.arange(1, 4, dtype=interpreter.input(0).dtype)
        for is_reset, expected in ((False, [zero] * 3), (False, [1, 2, 3]), (True, [zero] * 3)):
            if is_reset:
                interpreter.reset_variables()
            interpreter.input(0).data[...] = x
            interpreter.invoke()
            assert interpreter.output(0).data.tolist() == expected


def test_variables_are_in_the_tail_and_start_at_their_zero_point():
    tensors = {name: tensor((4,), "INT8", scale=0.5, zero_point=-7) for name in "xy"}
    tensors["v"] = tensor((4,), "INT8", scale=0.5, zero_point=-7, is_variable=True)
    model = graph_model([("ADD", "x v", "y")], inputs="x", outputs="y", tensors=tensors)
    interpreter = allocated(model)
    interpreter.input(0).data[...] = 9
    interpreter.invoke()
    assert interpreter.output(0).data.tolist() == [9] * 4  # adds zero


def test_a_shape_known_only_while_running_must_be_the_declared_one():
    shape = {"s": tensor((2,), "INT32"), "y": tensor((2, 2))}
    model = graph_model([("RESHAPE", "x s", "y")], inputs="x s", outputs="y", tensors=shape)
    interpreter = allocated(model)
    interpreter.input(0).data[...] = [1, 2, 3, 4]
    interpreter.input(1).data[...] = [2, 2]
    interpreter.invoke()
    assert interpreter.output(0).data.tolist() == [[1, 2], [3, 4]]
    interpreter.input(1).data[...] = [4, 1]
    with pytest.raises(NodeError, match=r"works out as \[4, 1\]; a micro interpreter keeps"):
        interpreter.invoke()


def test_an_output_without_elements_is_refused():
    tensors = {"k": constant(np.zeros((0, 4), np.float32)), "y": tensor((0, 4))}
    model = graph_model([("SIN", "k", "y")], inputs="x", outputs="y", tensors=tensors)
    with pytest.raises(NodeError, match="dynamic tensors are not supported"):
        allocated(model)


def test_declared_shapes_are_kept():
    model = graph_model([("SIN", "x", "y")], inputs="x", outputs="y", tensors={"y": tensor((3,))})
    with pytest.raises(NodeError, match=r"works out as \[4\]; a micro interpreter keeps declared"):
        allocated(model)


FLAG = {"c": tensor((1,), "BOOL")}
TWO_SINES = ([("SIN", "a", "t"), ("SIN", "t", "b")], "a", "b", {})


def test_branches_run_in_the_same_arena():
    either = IfOptions(then_subgraph_index=1, else_subgraph_index=2)
    model = subgraphs_model(
        [([("IF", "c x", "y", either)], "c x", "y", FLAG),
         TWO_SINES, ([("COS", "a", "b")], "a", "b", {})]
    )  # fmt: skip
    interpreter = allocated(model)
    for flag, expected in ((True, np.sin(np.sin(1))), (False, np.cos(1))):
        interpreter.input(0).data[...] = flag
        interpreter.input(1).data[...] = 1
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.output(0).data, [expected] * 4, rtol=1e-6)


def test_loops_give_what_the_interpreter_gives():
    limit = constant(np.full(1, 40, np.float32))
    one = {name: tensor((1,)) for name in ("x", "y", "a", "b", "t", "d")}
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    model = subgraphs_model(
        [([("WHILE", "x", "y", options)], "x", "y", one),
         ([("LESS", "a k", "c")], "a", "c", {**one, **FLAG, "k": limit}),
         ([("ADD", "a a", "t"), ("ADD", "t a", "b")], "a", "b", one)]
    )  # fmt: skip
    micro, full = allocated(model), Interpreter(model_content=model)
    full.allocate_tensors()
    start = np.array([0.7], np.float32)
    full.set_tensor(full.get_input_details()[0]["index"], start)
    full.invoke()
    micro.input(0).data[...] = start
    micro.invoke()
    expected = full.get_tensor(full.get_output_details()[0]["index"])
    np.testing.assert_array_equal(micro.output(0).data, expected)
    assert expected[0] == pytest.approx(0.7 * 3**4)


def test_a_subgraph_called_in_a_circle_is_refused():
    there, back = (CallOnceOptions(init_subgraph_index=i) for i in (1, 0))
    model = subgraphs_model(
        [([("CALL_ONCE", "", "", there)], "", "", {}), ([("CALL_ONCE", "", "", back)], "", "", {})]
    )
    with pytest.raises(ModelError, match="calls itself"):
        allocated(model)


def test_values_a_condition_does_not_read_outlast_it():
    """The condition's output may have the place of an input that it never reads."""
    one = {name: tensor(()) for name in ("x", "y", "p", "q", "b")}
    count = {name: tensor((), "INT32") for name in ("i", "j", "m", "o")}
    numbers = {
        "two": constant(np.int32(2)),
        "k": constant(np.int32(1)),
        "g": constant(np.float32(2)),
    }
    everything = {**one, **count, **numbers, "c": tensor((), "BOOL")}
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    model = subgraphs_model(
        [([("WHILE", "i x", "j y", options)], "i x", "j y", everything),
         ([("LESS", "m two", "c")], "m p", "c", everything),
         ([("ADD", "m k", "o"), ("MUL", "p g", "q")], "m p", "o q", everything)]
    )  # fmt: skip
    interpreter = allocated(model)
    interpreter.input(0).data[...] = 0
    interpreter.input(1).data[...] = 0.3
    interpreter.invoke()
    assert interpreter.output(0).data == 2
    assert interpreter.output(1).data == np.float32(0.3) * 4
    assert interpreter.outside_bytes >= 4 * 4


def test_declared_types_are_kept():
    tensors = {"x": tensor((4,), "UINT8", scale=1.0), "s": tensor((4,), scale=1.0)}
    tensors["y"] = tensor((4,), "UINT8", scale=1.0)
    nodes = [("ADD", "x x", "s"), ("ADD", "s x", "y")]
    with pytest.raises(NodeError, match="is declared as FLOAT32; a micro interpreter keeps"):
        allocated(graph_model(nodes, inputs="x", outputs="y", tensors=tensors))


# -- values known while preparing ------------------------------------------------------------------


def test_outputs_that_are_known_while_preparing_are_written_at_each_invoke():
    """SHAPE is computed once; its place in the arena is another tensor's after it was read."""
    nodes = [("SHAPE", "x", "s"), ("CAST", "s", "f"), ("NEG", "f", "g"), ("NEG", "g", "y")]
    floats = {name: tensor((2,)) for name in "fgy"}
    tensors = {"x": tensor((3, 5)), "s": tensor((2,), "INT32"), **floats}
    model = graph_model(nodes, inputs="x", outputs="y", tensors=tensors)
    interpreter = allocated(model)
    for _ in range(2):
        interpreter.invoke()
        assert interpreter.output(0).data.tolist() == [3, 5]


def test_only_a_micro_interpreter_rounds_like_tflm():
    with pytest.raises(ArgumentError, match="numerics"):
        Interpreter(model_content=SINES, numerics="micro")
    assert MicroInterpreter(SINES, bytearray(4096), numerics="reference").state is MicroState.INIT


# -- limits of untrusted models --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["table_limit", "depth_limit"])
@pytest.mark.parametrize("limit", [-1, 1.5, "9"])
def test_limits_are_counts(name, limit):
    with pytest.raises(ArgumentError, match=f"{name} is"):
        MicroInterpreter(SINES, bytearray(4096), **{name: limit})


def test_a_model_of_too_many_tables_is_refused(tmp_path):
    path = tmp_path / "sines.tflite"
    path.write_bytes(SINES)
    for model in (SINES, path):
        with pytest.raises(ModelError, match="more tables than the limit of 5"):
            MicroInterpreter(model, bytearray(4096), table_limit=5)
        MicroInterpreter(model, bytearray(4096), table_limit=50)


def test_calls_too_deep_are_refused():
    once = ("CALL_ONCE", "", "", CallOnceOptions(init_subgraph_index=1))
    main = ([once, ("SIN", "x", "y")], "x", "y", {})
    model = subgraphs_model([main, ([("SIN", "x", "y")], "", "", {"x": constant(np.ones(4))})])
    with pytest.raises(ModelError, match="deep"):
        MicroInterpreter(model, bytearray(4096), depth_limit=0)
    MicroInterpreter(model, bytearray(4096), depth_limit=1)
