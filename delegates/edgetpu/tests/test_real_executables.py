from __future__ import annotations

import ctypes.util
import random
from pathlib import Path

import numpy as np
import pytest

from compiled_models import addition, compiled, convolution, executable_of, random_inputs
from delegraph import (
    DelegateContext,
    DelegateParams,
    Interpreter,
    Node,
    Registration,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    load_delegate,
)
from delegraph.errors import DelegateError, NodeError
from delegraph.graph import load_model
from delegraph.testing import TensorDef, graph_model, tensor
from delegraph.testing.outputs import outputs_of
from delegraph_edgetpu import ExecutableError, edgetpu_custom_op, statistics
from delegraph_edgetpu.custom_options import CUSTOM_OP, read_custom_options, write_custom_options
from delegraph_edgetpu.description import describe_options
from delegraph_edgetpu.executable import RealExecutable, parse
from delegraph_edgetpu.real_executables import Layer, explain_refusal, read_real
from real_packages import EXECUTION_ONLY, executable, package, small_package
from support.corpus import CORPUS, corpus_file, needs_corpus


def real(content: bytes) -> RealExecutable:
    found = parse(content)
    assert isinstance(found, RealExecutable)
    return found


def real_model(model: bytes, content: bytes | None = None) -> bytes:
    """Return *model* as if the real compiler had compiled it."""
    return compiled(model, custom_options=write_custom_options(content or small_package()))


@pytest.fixture(autouse=True)
def _no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)


# -- reading -----------------------------------------------------------------------------------


def test_what_a_package_says_is_read() -> None:
    found = read_real(real(small_package(inputs=["a", "b"])))
    assert (found.compiler_version, found.runtime_version, found.chip) == ("cl/1234", 13, "beagle")
    assert (found.cached_bytes, found.streamed_bytes, found.bytes) == (3000, 40, 4096)
    first, second = found.parts
    assert (first.kind, second.kind) == ("EXECUTION_ONLY", "PARAMETER_CACHING")
    assert (first.instruction_bytes, first.scratch_bytes) == (100, 256)
    assert (first.caching_token, first.estimated_cycles) == (77, 4321)
    assert first.inputs[1] == Layer("b", "SIGNED_FIXED_POINT8", (1, 4, 6), 8, 0.5, 3)
    assert [layer.name for layer in first.outputs] == ["y"]
    assert second.inputs == ()


def test_a_kind_that_is_not_known_is_shown_as_its_number() -> None:
    (part,) = read_real(real(package(executable(9)))).parts
    assert part.kind == "9"


def test_damage_anywhere_is_an_error_or_harmless() -> None:
    content = small_package()
    rng = random.Random(0)
    damaged, raised = 0, 0
    for _ in range(2000):
        torn = bytearray(
            content[: rng.randrange(8, len(content))] if rng.random() < 0.3 else content
        )
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(torn))
            torn[at] = rng.randrange(256) if at not in range(4, 8) else torn[at]
        try:
            read_real(RealExecutable(bytes(torn)))
        except ExecutableError as error:
            raised += 1
            damaged += "(DWN1, " in str(error) and "is damaged: " in str(error)
    assert damaged == raised > 100


def test_parameters_longer_than_the_file_are_damage() -> None:
    content = small_package()
    length = (3000).to_bytes(4, "little")
    assert content.count(length) == 1
    torn = content.replace(length, (30000).to_bytes(4, "little"))
    with pytest.raises(ExecutableError, match=r"executable 1 in it: .*30000 bytes from byte"):
        read_real(real(torn))


def test_a_list_that_cannot_be_is_damage() -> None:
    with pytest.raises(ExecutableError, match="a list of 1025, expected at most 1024"):
        read_real(real(package(*[executable(EXECUTION_ONLY)] * 1025)))


# -- describing --------------------------------------------------------------------------------


def test_a_real_executable_is_described() -> None:
    facts = describe_options(write_custom_options(small_package()))
    assert facts["executable"] == "DWN1, 4,096 bytes, for a real Edge TPU (beagle)"
    assert facts["compiler"] == "cl/1234"
    assert facts["parameters"] == "3,000 bytes on the chip, 40 streamed at each inference"
    assert facts["inputs"] == "x SIGNED_FIXED_POINT8[1, 4, 6]"
    assert facts["estimated cycles"] == "8,642"
    assert "twin=MODEL.tflite" in facts["runs"]


def test_our_own_executable_is_described() -> None:
    content = executable_of(convolution(), parameter_bytes=5000, multiply_adds=12345)
    facts = describe_options(write_custom_options(content))
    assert facts["executable"] == "DGE1, 4,096 bytes, by delegraph-edgetpu"
    assert facts["parameters"] == "1,000 bytes on the chip, 4,000 streamed at each inference"
    assert facts["multiply-adds"] == "12,345"
    assert facts["operators"] == "1 CONV_2D"
    assert facts["inputs"] == "t0 INT8[1, 8, 8, 3]"


# -- refusing ----------------------------------------------------------------------------------


def test_without_a_twin_it_is_refused_with_what_to_do() -> None:
    interpreter = Interpreter(model_content=real_model(addition()))
    with pytest.raises(NodeError, match=r"DWN1, 4096 bytes, compiler cl/1234.*twin=MODEL\.tflite"):
        interpreter.allocate_tensors()


def test_the_delegate_leaves_it_with_that_reason() -> None:
    interpreter = Interpreter(model_content=real_model(addition()), delegates=["edgetpu"])
    (node,) = interpreter.placement.nodes
    assert "is code for a real Edge TPU" in str(node.rejections["edgetpu"])


def test_the_library_of_the_real_device_is_named_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "installed here" not in explain_refusal(real(small_package()))
    monkeypatch.setattr(
        ctypes.util, "find_library", lambda name: f"lib{name}.so.1" if name == "edgetpu" else None
    )
    text = explain_refusal(real(small_package()))
    assert "libedgetpu.so.1 is installed here" in text
    assert "experimental_delegates=[load_delegate('libedgetpu.so.1')]" in text
    assert "delegraph or of the official interpreter" in text


class RealDevice(SimpleDelegateInterface):
    """Delegate like that of a real device: it takes nodes of known shapes, and copies."""

    def name(self) -> str:
        return "real"

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool:
        return registration.name == CUSTOM_OP

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return _Copying()


class _Copying(SimpleDelegateKernelInterface):
    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        pass

    def prepare(self, context: DelegateContext, node: Node) -> None:
        pass

    def eval(self, context: DelegateContext, node: Node) -> None:
        np.copyto(context.tensors[node.outputs[0]].data, context.tensors[node.inputs[0]].data)


def test_where_that_library_is_installed_a_real_device_may_take_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: f"lib{name}.so.1")
    content, inputs = real_model(addition()), random_inputs(addition())
    interpreter = Interpreter(model_content=content, delegates=[RealDevice()])
    np.testing.assert_array_equal(outputs_of(interpreter, inputs), inputs[:1])
    interpreter.remove_all_delegates()
    with pytest.raises(NodeError, match=r"failed to invoke: its executable \(DWN1"):
        outputs_of(interpreter, inputs)


def test_a_damaged_real_executable_is_refused_as_damaged() -> None:
    content = bytearray(small_package())
    content[:4] = b"\xff\xff\xff\x7f"
    assert "(DWN1, 4096 bytes) is damaged: the package: " in explain_refusal(real(bytes(content)))


# -- twins -------------------------------------------------------------------------------------


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    path = tmp_path / "twin.tflite"
    path.write_bytes(addition())
    return path


def run_with(twin: Path, content: bytes, inputs: list[np.ndarray]) -> list[np.ndarray]:
    delegate = load_delegate("edgetpu", {"twin": str(twin)})
    return outputs_of(Interpreter(model_content=content, experimental_delegates=[delegate]), inputs)


def test_a_twin_runs_in_place_of_a_real_executable(twin: Path) -> None:
    inputs = random_inputs(addition())
    expected = outputs_of(Interpreter(model_content=addition()), inputs)
    np.testing.assert_array_equal(run_with(twin, real_model(addition()), inputs), expected)
    found = statistics()[0]
    assert (found.caching_token, found.loaded_bytes, found.streamed_bytes) == (77, 3000, 40)


def test_the_custom_operator_takes_a_twin_as_well(twin: Path) -> None:
    inputs = random_inputs(addition())
    op = edgetpu_custom_op(twin=str(twin))
    content = real_model(addition())
    found = outputs_of(Interpreter(model_content=content, custom_ops={CUSTOM_OP: op}), inputs)
    np.testing.assert_array_equal(found, outputs_of(Interpreter(model_content=addition()), inputs))


def test_a_twin_that_is_no_model_is_an_error_that_names_it(twin: Path) -> None:
    twin.write_bytes(b"no model at all")
    with pytest.raises(DelegateError, match=r"twin\.tflite: "):
        run_with(twin, real_model(addition()), random_inputs(addition()))


def chain(tensors: dict[str, TensorDef], *, inputs: str = "a", outputs: str = "c") -> bytes:
    return graph_model(
        [("RELU", "a", "b"), ("ABS", "b", "c")], inputs=inputs, outputs=outputs, tensors=tensors
    )


def assert_twin_runs_part(whole: Path, part: bytes) -> None:
    """Check that the part of a twin that was compiled is what runs."""
    inputs = random_inputs(part)
    expected = outputs_of(Interpreter(model_content=part), inputs)
    np.testing.assert_array_equal(run_with(whole, real_model(part), inputs), expected)


DIFFERENT = {name: tensor((1, 4), "INT8", scale=1.0 + i) for i, name in enumerate("abc")}
ALIKE = {name: tensor((1, 4), "INT8", scale=1.0, zero_point=-3) for name in "abc"}


@pytest.mark.parametrize("tensors", [DIFFERENT, ALIKE], ids=["by quantization", "by name"])
def test_a_twin_is_cut_where_the_compiled_part_ends(
    tmp_path: Path, tensors: dict[str, TensorDef]
) -> None:
    whole = tmp_path / "whole.tflite"
    whole.write_bytes(chain(tensors))
    part = graph_model([("RELU", "a", "b")], inputs="a", outputs="b", tensors=tensors)
    assert_twin_runs_part(whole, part)


def test_no_tensor_of_the_twin_is_taken_twice(tmp_path: Path) -> None:
    tensors = {**ALIKE, "x": ALIKE["a"], "z": ALIKE["a"], "d": tensor((1, 4), "INT8", scale=2.0)}
    whole = tmp_path / "whole.tflite"
    nodes = [("RELU", "a", "b"), ("ABS", "b", "c"), ("RELU", "c", "d")]
    whole.write_bytes(graph_model(nodes, inputs="a", outputs="d", tensors=tensors))
    part = [("RELU", "a", "b"), ("ABS", "b", "z")]
    assert_twin_runs_part(whole, graph_model(part, inputs="a", outputs="b z", tensors=tensors))


def test_tensors_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    same = {name: tensor((1, 4), "INT8", scale=1.0) for name in "abcdef"}
    whole = tmp_path / "whole.tflite"
    whole.write_bytes(chain(same, outputs="b c"))
    part = graph_model([("RELU", "d", "e")], inputs="d", outputs="e", tensors=same)
    with pytest.raises(DelegateError, match=r"output 0 .*'e'.* could be 2 tensors .*'b', 'c'"):
        run_with(whole, real_model(part), random_inputs(part))


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (addition("UINT8"), r"input 0 of the compiled model, 't0', is INT8\[1, 4, 6\].*is UINT8"),
        (addition(shape=(1, 4, 7)), r"input 0 of the twin, 't0', is INT8\[1, 4, 7\]"),
        (convolution(), "has 1 inputs, the compiled model 2"),
    ],
)
def test_a_model_that_is_not_the_twin_is_refused(twin: Path, other: bytes, text: str) -> None:
    twin.write_bytes(other)
    with pytest.raises(DelegateError, match=text):
        run_with(twin, real_model(addition()), random_inputs(addition()))


@pytest.mark.parametrize(
    ("change", "text"),
    [({"scale": 0.3}, "scale 0.25, zero point 1.*scale 0.3"), ({"zero_point": 2}, "zero point 2")],
)
def test_other_quantization_of_the_output_is_not_the_twin(
    tmp_path: Path, change: dict[str, float], text: str
) -> None:
    from delegraph.schema.options import AddOptions
    from delegraph.testing import one_op_model

    x = tensor((1, 4, 6), "INT8", scale=0.1, zero_point=3)
    y = tensor((1, 4, 6), "INT8", scale=0.2, zero_point=5)
    quantization = {"scale": 0.25, "zero_point": 1, **change}
    z = tensor((1, 4, 6), "INT8", **quantization)  # type: ignore[arg-type]  # numbers, both
    path = tmp_path / "other.tflite"
    path.write_bytes(one_op_model("ADD", [x, y], [z], AddOptions(), version=2))
    with pytest.raises(DelegateError, match=rf"is not the twin, .*: output 0.*{text}"):
        run_with(path, real_model(addition()), random_inputs(addition()))


# -- real files --------------------------------------------------------------------------------


REAL = sorted(path.stem for path in (CORPUS / "models").glob("*_edgetpu.tflite"))


@needs_corpus
@pytest.mark.parametrize("name", REAL)
def test_what_a_real_file_says_agrees_with_the_model_around_it(name: str) -> None:
    (subgraph,) = load_model(corpus_file(name)).subgraphs
    operator = next(each for each in subgraph.operators if each.name == CUSTOM_OP)
    assert operator.custom_options is not None
    found = read_real(real(read_custom_options(operator.custom_options.tobytes())))
    assert found.cached_bytes + found.streamed_bytes > 0
    part = next(part for part in found.parts if part.kind == "EXECUTION_ONLY")
    inputs = [subgraph.tensors[i] for i in operator.inputs]
    assert [layer.name for layer in part.inputs] == [tensor.name for tensor in inputs]
    for layer, spec in zip(part.inputs, inputs, strict=True):
        assert np.prod(layer.shape) == np.prod(spec.shape)
        assert spec.quantization is not None
        assert layer.scale == pytest.approx(spec.quantization.scale, rel=1e-6)
    names = [subgraph.tensors[i].name for i in operator.outputs]
    assert [layer.name for layer in part.outputs][: len(names)] == names


@needs_corpus
@pytest.mark.parametrize("name", [name for name in REAL if corpus_file(name[:-8]).is_file()])
def test_a_real_file_runs_by_its_twin(name: str) -> None:
    twin = corpus_file(name.removesuffix("_edgetpu"))
    plain = Interpreter(str(twin))
    inputs = random_inputs(twin.read_bytes())
    delegate = load_delegate("edgetpu", {"twin": str(twin)})
    interpreter = Interpreter(str(corpus_file(name)), experimental_delegates=[delegate])
    for _ in range(2):  # one of them has a state
        for found, expected in zip(
            outputs_of(interpreter, inputs), outputs_of(plain, inputs), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
