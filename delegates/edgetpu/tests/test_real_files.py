"""Our compiler beside the real one: files that it compiled, and the models they were made of."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import delegraph_edgetpu
from delegraph import Interpreter
from delegraph.graph import SubgraphSpec, load_model, parse_model
from delegraph_edgetpu.custom_options import CUSTOM_OP, read_custom_options, write_custom_options
from delegraph_edgetpu.devices import VARIABLE
from delegraph_edgetpu.executable import RealExecutable, parse
from delegraph_edgetpu.real_executables import read_real
from support.corpus import corpus_file, corpus_rows, needs_corpus

pytestmark = needs_corpus


def is_real(row: dict[str, Any]) -> bool:
    return CUSTOM_OP in row.get("custom", {})


def public_name(row: dict[str, Any]) -> str:
    return PurePosixPath(row["source"]["path"]).stem


def twins() -> Iterator[tuple[str, str]]:
    """Yield the real files whose uncompiled model is in the corpus too, with its name."""
    models = {public_name(row): row["name"] for row in corpus_rows() if not is_real(row)}
    for row in corpus_rows():
        twin = public_name(row).removesuffix("_edgetpu")
        if is_real(row) and twin in models:
            yield row["name"], models[twin]


REAL = [row["name"] for row in corpus_rows() if is_real(row)]
each_twin = pytest.mark.parametrize(("real", "model"), [pytest.param(*t, id=t[0]) for t in twins()])
each_real = pytest.mark.parametrize("real", REAL)


def real_file(name: str) -> SubgraphSpec:
    return load_model(corpus_file(name)).subgraphs[0]


@cache
def our_file(model: str) -> SubgraphSpec:
    (compiled,) = delegraph_edgetpu.compile(corpus_file(model))
    return parse_model(compiled.model).subgraphs[0]


def described(graph: SubgraphSpec, tensors: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Return name, type, shape, scales and zero points of tensors."""
    found = []
    for tensor in (graph.tensors[index] for index in tensors):
        quantized = tensor.quantization
        scales = [] if quantized is None else quantized.scales.tolist()
        zero_points = [] if quantized is None else quantized.zero_points.tolist()
        found.append((tensor.name, tensor.type.name, tensor.shape, scales, zero_points))
    return found


def outside(graph: SubgraphSpec) -> list[tuple[str, list[str]]]:
    """Return the operators that stay on the CPU, in order, with the names of their outputs."""
    return [
        (o.name, [graph.tensors[index].name for index in o.outputs])
        for o in graph.operators
        if o.name != CUSTOM_OP
    ]


def custom_options(graph: SubgraphSpec) -> bytes:
    (options,) = (o.custom_options for o in graph.operators if o.name == CUSTOM_OP)
    assert options is not None
    return bytes(options)


def test_corpus_has_real_files_with_and_without_their_models() -> None:
    assert len(REAL) >= 5
    assert len([*twins()]) >= 4


@pytest.mark.repetition(2)
@each_twin
def test_inputs_and_outputs_are_those_of_the_real_file(real: str, model: str) -> None:
    theirs, ours = real_file(real), our_file(model)
    assert described(ours, ours.inputs) == described(theirs, theirs.inputs)
    assert described(ours, ours.outputs) == described(theirs, theirs.outputs)


@each_twin
def test_operators_left_outside_are_those_of_the_real_file(real: str, model: str) -> None:
    assert outside(our_file(model)) == outside(real_file(real))


@each_twin
def test_one_custom_operator_makes_what_the_real_one_makes(real: str, model: str) -> None:
    made = []
    for graph in (our_file(model), real_file(real)):
        (node,) = (o for o in graph.operators if o.name == CUSTOM_OP)
        assert node.version == 1
        made.append(sorted(described(graph, node.outputs), key=str))
    assert made[0] == made[1]


@each_real
def test_real_executables_are_recognised(real: str) -> None:
    executable = read_custom_options(custom_options(real_file(real)))
    assert isinstance(parse(executable), RealExecutable)
    assert len(executable) % 4096 == 0


def test_custom_options_are_laid_out_as_in_newer_real_files() -> None:
    """Older ones lack the keys 6 and 7."""
    contents = [custom_options(real_file(real)) for real in REAL]
    newer = [c for c in contents if len(flexbuffers.GetRoot(c).AsMap) == 5]
    assert newer
    for content in newer:
        assert write_custom_options(read_custom_options(content)) == content


PAGE = Path(__file__).parents[3] / "docs" / "edge-tpu.md"


TABLES = {
    "test_data__mobilenet_v1_0.25_128_quant_edgetpu": 48_256,
    "test_data__keras_lstm_mnist_ptq_edgetpu": 28_864,
}
"""Bytes of real parameters that are no weights or biases, by file; 0 for the other files."""


@pytest.mark.repetition(2)
@each_twin
def test_weights_and_biases_have_the_bytes_of_the_real_file(real: str, model: str) -> None:
    found = read_real(as_real(read_custom_options(custom_options(real_file(real)))))
    (compiled,) = delegraph_edgetpu.compile(corpus_file(model))
    ours = compiled.memory.parameter_bytes
    assert found.cached_bytes + found.streamed_bytes == ours + TABLES.get(real, 0)
    (row,) = (row for row in corpus_rows() if row["name"] == real)
    name, repository = public_name(row).removesuffix("_edgetpu"), row["source"]["repo"]
    left, total = len(compiled.unmapped), len(compiled.mapped) + len(compiled.unmapped)
    streamed = f", and {found.streamed_bytes:,} streamed" if found.streamed_bytes else ""
    parameters = f"{found.cached_bytes:,}{streamed} | {ours:,}"
    line = f"| `{name}` | {repository} | {left} of {total} | {parameters} |"
    assert line in PAGE.read_text(encoding="utf-8").splitlines()


def as_real(content: bytes) -> RealExecutable:
    executable = parse(content)
    assert isinstance(executable, RealExecutable)
    return executable


CLASSIFIER = "test_data__mobilenet_v1_0.25_128_quant"


def test_three_segments_in_a_pipeline_answer_as_the_whole_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "3")
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (8, 1, 128, 128, 3), np.uint8)
    whole = Interpreter(str(corpus_file(CLASSIFIER)))
    whole.allocate_tensors()
    expected = [answered(whole, picture) for picture in pictures]
    segments = delegraph_edgetpu.compile(corpus_file(CLASSIFIER), segments=3)
    interpreters = [
        Interpreter(str(segment.write(tmp_path)), delegates={"edgetpu": {"device": f":{i}"}})
        for i, segment in enumerate(segments)
    ]
    with delegraph_edgetpu.PipelinedModelRunner(interpreters) as runner:
        for picture in pictures:
            runner.push([picture])
        for answer in expected:
            (result,) = runner.pop(timeout=60)
            np.testing.assert_array_equal(result, answer)


def answered(interpreter: Interpreter, picture: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], picture)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
