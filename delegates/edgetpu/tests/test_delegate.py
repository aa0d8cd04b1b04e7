from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiled_models import (
    addition,
    compiled,
    compiled_records,
    convolution,
    executable_of,
    random_inputs,
)
from delegraph import Interpreter, TensorType, load_delegate
from delegraph.errors import NodeError, PluginError, PluginOptionError
from delegraph.schema import write_model
from delegraph.testing.outputs import outputs_of
from delegraph_edgetpu import statistics
from delegraph_edgetpu.custom_options import write_custom_options


def delegated(content: bytes, options: Any = None, **arguments: Any) -> Interpreter:
    delegate = load_delegate("edgetpu", options)
    return Interpreter(model_content=content, experimental_delegates=[delegate], **arguments)


def why_left(content: bytes) -> str:
    """Return the reason for which the delegate leaves the only node of a model."""
    interpreter = Interpreter(model_content=content)
    interpreter.modify_graph_with_delegate("edgetpu")
    (node,) = interpreter.placement.nodes
    assert node.delegate is None
    return str(node.rejections["edgetpu"])


def chained(first: bytes, second: bytes) -> bytes:
    """Return a model of two compiled models, the output of the first being input of the second."""
    records = [compiled_records(model) for model in (first, second)]
    graphs = [(record.subgraphs or ())[0] for record in records]
    behind = len(graphs[0].tensors or ()) - 1

    def moved(indices: tuple[int, ...] | None) -> tuple[int, ...]:
        return tuple(index + behind for index in indices or ())

    (one,), (other,) = (graph.operators or () for graph in graphs)
    graph = graphs[0].replace(
        tensors=(*(graphs[0].tensors or ()), *(graphs[1].tensors or ())[1:]),
        inputs=(*(graphs[0].inputs or ()), *moved(graphs[1].inputs)[1:]),
        outputs=moved(graphs[1].outputs),
        operators=(one, other.replace(inputs=moved(other.inputs), outputs=moved(other.outputs))),
    )
    return write_model(records[0].replace(subgraphs=(graph,)))


# -- claiming ----------------------------------------------------------------------------------


def test_it_takes_what_was_compiled_and_the_results_are_the_same() -> None:
    model = convolution()
    interpreter = delegated(compiled(model), {"device": ":0"})
    assert [node.delegate for node in interpreter.placement.nodes] == ["edgetpu"]
    inputs = random_inputs(model)
    np.testing.assert_array_equal(
        outputs_of(interpreter, inputs), outputs_of(Interpreter(model_content=model), inputs)
    )


def test_it_leaves_other_operators_with_a_reason() -> None:
    text = why_left(addition())
    assert "not compiled for the Edge TPU: 'delegraph edgetpu compile MODEL' compiles" in text


def test_it_leaves_a_version_that_does_not_exist() -> None:
    record = compiled_records(addition())
    (code,) = record.operator_codes or ()
    content = write_model(record.replace(operator_codes=(code.replace(version=2),)))
    interpreter = Interpreter(model_content=content)
    interpreter.modify_graph_with_delegate("edgetpu")
    assert str(interpreter.placement.nodes[0].rejections["edgetpu"]) == "version is 2; claimed is 1"


def test_it_leaves_a_damaged_executable_with_the_damage_as_the_reason() -> None:
    content = executable_of(addition())
    damaged = write_custom_options(content[:100] + b"\xff" + content[101:])
    delegate = load_delegate("edgetpu")
    interpreter = Interpreter(model_content=compiled(addition(), custom_options=damaged))
    interpreter.modify_graph_with_delegate(delegate)
    (rejection,) = delegate.rejections().values()
    assert rejection.constraint == "executable"
    assert "have the checksum" in str(rejection)


def test_it_leaves_tensors_of_other_types() -> None:
    record = compiled_records(addition())
    (graph,) = record.subgraphs or ()
    first, *others = graph.tensors or ()
    tensors = (first.replace(type=TensorType.FLOAT32), *others)
    content = write_model(record.replace(subgraphs=(graph.replace(tensors=tensors),)))
    assert why_left(content) == "input is FLOAT32; claimed are INT8, UINT8, INT16"


def test_nodes_in_one_partition_pass_results_on() -> None:
    content = chained(addition(), addition())
    inputs = random_inputs(content)
    for seed in range(3):
        inputs = random_inputs(content, seed)
        interpreter = delegated(content)
        found = outputs_of(interpreter, inputs)
        assert {node.partition for node in interpreter.placement.nodes} == {0}
        np.testing.assert_array_equal(found, outputs_of(Interpreter(model_content=content), inputs))


def test_taken_off_the_registered_operator_goes_on() -> None:
    model = convolution()
    inputs = random_inputs(model)
    interpreter = delegated(compiled(model), {"device": ":1"})
    expected = outputs_of(interpreter, inputs)
    interpreter.remove_all_delegates()
    np.testing.assert_array_equal(outputs_of(interpreter, inputs), expected)
    assert [each.inferences for each in statistics()] == [1, 1]


def test_a_resize_is_refused() -> None:
    interpreter = delegated(compiled(convolution()))
    interpreter.resize_tensor_input(0, [2, 8, 8, 3])
    with pytest.raises(NodeError, match=r"compiled as \[1, 8, 8, 3\]"):
        interpreter.allocate_tensors()


def test_it_says_where_it_runs() -> None:
    assert load_delegate("edgetpu", {"device": "pci"}).note() == "simulated device :1"
    pytest.importorskip("delegraph_numba_cpu")
    delegate = load_delegate("edgetpu", {"via": "numba_cpu"})
    assert delegate.note() == "simulated device :0, by numba_cpu"


# -- options -----------------------------------------------------------------------------------


def test_an_unknown_device_is_an_error_that_lists_the_devices() -> None:
    with pytest.raises(PluginOptionError, match=r"no Edge TPU ':9'.*':0' or 'usb:0', ':1'"):
        load_delegate("edgetpu", {"device": ":9"})


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(PluginOptionError, match="no option 'performance'; valid options: device"):
        load_delegate("edgetpu", {"performance": "max"})


@pytest.mark.parametrize(
    ("via", "text"),
    [
        ("nothing", "nothing"),
        ("edgetpu", "name another delegate"),
        ("edgetpu:device=:1", "another"),
    ],
)
def test_via_names_another_delegate_that_is_installed(via: str, text: str) -> None:
    with pytest.raises(PluginError, match=text):
        load_delegate("edgetpu", {"via": via})


def test_options_of_the_other_delegate_are_checked() -> None:
    pytest.importorskip("delegraph_numba_cpu")
    with pytest.raises(PluginError, match="no option 'speed'"):
        load_delegate("edgetpu", {"via": "numba_cpu:speed=1"})


def test_a_twin_that_is_not_there_is_an_error() -> None:
    with pytest.raises(PluginOptionError, match=r"there is no file 'nowhere\.tflite', for the opt"):
        load_delegate("edgetpu", {"twin": "nowhere.tflite"})


def test_executables_are_released_with_their_partition() -> None:
    interpreter = delegated(chained(addition(), addition()))
    steps = interpreter.session.subgraphs[0].plan.steps()
    (kernel,) = [node.user_data for node, _ in steps if node.delegate is not None]
    interpreter.allocate_tensors()
    nodes = list(kernel.compiled_nodes.values())
    assert all(each.interpreter is not None for each in nodes)
    interpreter.close()
    assert len(nodes) == 2
    assert all(each.interpreter is None for each in nodes)


def test_the_other_delegate_computes() -> None:
    pytest.importorskip("delegraph_numba_cpu")
    interpreter = delegated(compiled(convolution()), {"via": "numba_cpu"})
    outputs_of(interpreter, random_inputs(convolution()))
    kernel = next(
        node.user_data
        for node, _ in interpreter.session.subgraphs[0].plan.steps()
        if node.delegate is not None
    )
    (compiled_node,) = kernel.compiled_nodes.values()
    placement = compiled_node.interpreter.placement
    assert [node.delegate for node in placement.nodes] == ["numba_cpu"]


def test_the_other_delegates_tolerance_is_its_own() -> None:
    pytest.importorskip("delegraph_numba_cpu")
    exact, close = (
        load_delegate("edgetpu", {"via": f"numba_cpu:exact={exact}"}).capabilities().tolerance
        for exact in ("true", "false")
    )
    assert exact["INT8"].absolute == 0
    assert close["INT8"].absolute == 1
    assert load_delegate("edgetpu").capabilities().tolerance["INT8"].absolute == 0
