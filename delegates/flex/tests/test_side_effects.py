"""What operators reach: the table, and the boundary that the delegate makes of it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, TensorType
from delegraph.errors import DelegateNodeError, UnresolvedOpError
from delegraph.schema import tables
from delegraph_flex import convert
from delegraph_flex.data_types import DataType
from delegraph_flex.executors import has_tensorflow
from delegraph_flex.numpy_executor.registry import OPERATORS
from delegraph_flex.side_effects import side_effects
from flex_models import FLOAT, flex_model, results

EXECUTORS = ["numpy", *(["tensorflow"] if has_tensorflow() else [])]
NEEDS_TENSORFLOW = pytest.mark.skipif(not has_tensorflow(), reason="TensorFlow is not installed")


def refusal(op: str, options: str, attrs: Any = None, **changes: Any) -> str:
    """Return the reason for which the delegate refuses an operator."""
    model = flex_model([(f"Flex{op}", "x", "y", attrs or {})], inputs="x", outputs="y", **changes)
    interpreter = Interpreter(model_content=model, delegates=[f"flex:{options}"])
    with pytest.raises(UnresolvedOpError):
        interpreter.allocate_tensors()
    return str(interpreter.placement.nodes[0].rejections["flex"])


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("op", "does"),
    [
        ("ReadFile", "reads or writes files"),
        ("CacheDatasetV2", "reads or writes files"),
        ("RestoreV2", "saves or restores checkpoints"),
        ("DebugIdentityV2", "writes tensors to files or to a debugger elsewhere"),
        ("RpcClient", "talks to other processes or machines"),
        ("RemoteCall", "talks to other processes or machines"),
        ("EagerPyFunc", "runs Python"),
        ("XlaCallModule", "compiles, or calls by name, machine code that the model chooses"),
        ("DatasetFromGraph", "runs a graph that comes as data"),
        ("IteratorFromStringHandleV2", "reaches what other models in the process hold"),
        ("ConfigureDistributedTPU", "chooses, sets up or feeds devices"),
        ("Abort", "ends the process"),
    ],
)
def test_an_operator_is_refused_for_what_it_reaches(op: str, does: str, executor: str) -> None:
    reason = refusal(op, f"executor={executor}")
    assert reason.startswith(f"{op} {does}")
    assert f"runs only when it is named: allow={op}" in reason


def test_an_attribute_decides_where_only_that_names_a_file() -> None:
    file = {"output_stream": b"file:///tmp/x"}
    assert refusal("PrintV2", "executor=numpy", file).startswith("PrintV2 writes to a file")
    text = {"x": tables.Tensor(shape=(), type=TensorType.STRING, has_rank=True)}
    nodes = [("FlexPrintV2", "x", "", {}), ("FlexStringLower", "x", "y", {})]
    model = flex_model(nodes, inputs="x", outputs="y", tensors={**text, "y": text["x"]})
    interpreter = Interpreter(model_content=model, delegates=["flex:executor=numpy"])
    assert results(interpreter, np.array(b"Word", object))[0].item() == b"word"
    sampler = refusal("FixedUnigramCandidateSampler", "executor=numpy", {"vocab_file": b"words"})
    assert sampler.startswith("FixedUnigramCandidateSampler reads a file")


def test_an_operator_that_is_named_is_the_executors_affair() -> None:
    reason = refusal("ReadFile", "executor=numpy,allow=ReadFile")
    assert "the numpy executor does not have ReadFile" in reason


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_operator_that_nobody_has_looked_at_is_refused(executor: str) -> None:
    reason = refusal("Double", f"executor={executor}")
    assert "the side effects of Double are unknown" in reason
    assert "allow=Double" in reason


@pytest.mark.parametrize("op", ["ParseTensor", "DeserializeSparse"])
def test_bytes_become_numbers_but_no_handles(op: str) -> None:
    handle = {"y": tables.Tensor(shape=(), type=TensorType.RESOURCE, has_rank=True)}
    reason = refusal(op, "executor=numpy", {"out_type": DataType.RESOURCE}, tensors=handle)
    assert f"{op} makes a handle of bytes" in reason
    assert "the numpy executor does not have" in refusal("DeserializeSparse", "executor=numpy")


def test_the_numpy_executor_has_only_operators_that_may_run() -> None:
    reached = {op: side_effects()[op] for op in OPERATORS}
    assert not [op for op, reach in reached.items() if reach.is_refused and reach.when is None]


def test_each_operator_is_in_the_table_once() -> None:
    lines = files("delegraph_flex").joinpath("side_effects.txt").read_text().splitlines()
    names = [name for line in lines if line.startswith(" ") for name in line.split()]
    assert len(names) == len(set(names)) == len(side_effects())


# -- where TensorFlow is installed -------------------------------------------------------------


def registry() -> Any:
    """Return the definitions of all operators in TensorFlow."""
    from tensorflow.core.framework.op_def_pb2 import OpList
    from tensorflow.python.client import pywrap_tf_session as session

    return OpList.FromString(session.TF_GetBuffer(session.TF_GetAllOpList())).op


@NEEDS_TENSORFLOW
def test_every_operator_of_the_registry_has_been_looked_at() -> None:
    loaded_by_tests = ("TFText>", "Sentencepiece")
    unknown = [
        definition.name
        for definition in registry()
        if definition.name not in side_effects() and not definition.name.startswith(loaded_by_tests)
    ]
    assert not unknown, "say in side_effects.txt what they reach"


@NEEDS_TENSORFLOW
def test_every_stateful_operator_is_classified_or_allowed_for_a_reason() -> None:
    stateful = {definition.name for definition in registry() if definition.is_stateful}
    assert not sorted(op for op in stateful if side_effects()[op].name == "pure")


@NEEDS_TENSORFLOW
@pytest.mark.parametrize(
    ("op", "attrs"), [("Digamma", FLOAT), ("Expm1", FLOAT), ("NextAfter", FLOAT)]
)
def test_tensorflow_runs_what_its_converter_would_not_write(op: str, attrs: Any) -> None:
    read = "x x" if op == "NextAfter" else "x"
    model = flex_model([(f"Flex{op}", read, "y", attrs)], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model, delegates=["flex:executor=tensorflow"])
    (y,) = results(interpreter, np.array([0.5, 1, 2, 3], np.float32))
    assert np.isfinite(y).all()


@NEEDS_TENSORFLOW
@pytest.mark.parametrize("place", ["branch", "function"])
def test_the_boundary_holds_in_branches_and_in_functions_of_datasets(
    place: str, tmp_path: Path
) -> None:
    tf = pytest.importorskip("tensorflow")
    file = tmp_path / "secret"
    file.write_text("words")

    def in_branch(name: Any) -> Any:
        return tf.cond(tf.strings.length(name) > 0, lambda: tf.io.read_file(name), lambda: name)

    def in_function(name: Any) -> Any:
        files = tf.data.Dataset.range(1).map(lambda _: tf.io.read_file(name))
        return files.reduce("", lambda before, text: before + text)

    body = {"branch": in_branch, "function": in_function}[place]
    model = convert(
        tf.function(body, input_signature=[tf.TensorSpec([], tf.string)]), allow_all=True
    )
    name = np.array(str(file).encode(), object)
    refusing = Interpreter(model_content=model, delegates=["flex:executor=tensorflow"])
    with pytest.raises((UnresolvedOpError, DelegateNodeError), match="ReadFile reads or writes"):
        results(refusing, name)
    options = ["flex:executor=tensorflow,allow=ReadFile"]
    allowing = Interpreter(model_content=model, delegates=options)
    assert results(allowing, name)[0].item() == b"words"
