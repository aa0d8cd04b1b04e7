"""Where the planner puts tensors, against where the official interpreter puts them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from delegraph.memory.arena_planner import PlanNode, TensorKind
from delegraph.schema.enums import BuiltinOperator, TensorType
from delegraph.schema.options import (
    AddOptions,
    ConcatenationOptions,
    MulOptions,
    ReshapeOptions,
    SoftmaxOptions,
)
from delegraph.schema.tables import Buffer, Model, Operator, SubGraph, Tensor, operator_code
from delegraph.schema.writer import write_model
from support.planner_graphs import planned

INPLACE = {"ADD": 4 | 8, "MUL": 4 | 8, "RESHAPE": 4 | 1, "SOFTMAX": 4}
CODES = ["ADD", "MUL", "RESHAPE", "SOFTMAX", "CONCATENATION", "NEG", "RELU"]
OPTIONS = {
    "ADD": AddOptions(),
    "MUL": MulOptions(),
    "RESHAPE": ReshapeOptions(),
    "SOFTMAX": SoftmaxOptions(beta=1.0),
    "CONCATENATION": ConcatenationOptions(),
}


@dataclass
class FloatGraph:
    """One-dimensional float32 tensors; the graph that is written and the one that is planned."""

    lengths: list[int]
    constants: dict[int, np.ndarray] = field(default_factory=dict)
    ops: list[tuple[str, list[int], list[int]]] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    variables: tuple[int, ...] = ()

    @property
    def nodes(self):
        return [PlanNode(i, o, inplace=INPLACE.get(name, 0)) for name, i, o in self.ops]

    @property
    def num_tensors(self):
        return len(self.lengths)

    def tensor_bytes(self, index):
        return 4 * self.lengths[index]

    def tensor_kind(self, index):
        return TensorKind.OTHER if index in self.constants else TensorKind.ARENA_RW

    def add_tensor(self, length):
        self.lengths.append(length)
        return len(self.lengths) - 1

    def add_op(self, name, inputs, length):
        output = self.add_tensor(length)
        self.ops.append((name, inputs, [output]))
        return output

    def renumbered(self, rng):
        """Return the same graph with its tensors in another order."""
        new = rng.sample(range(self.num_tensors), self.num_tensors)
        return FloatGraph(
            [length for _, length in sorted(zip(new, self.lengths, strict=True))],
            {new[t]: constant for t, constant in self.constants.items()},
            [(name, [new[t] for t in i], [new[t] for t in o]) for name, i, o in self.ops],
            [new[t] for t in self.inputs],
            [new[t] for t in self.outputs],
        )

    def model(self):
        buffers = [Buffer(), *(Buffer(data=c.view(np.uint8)) for c in self.constants.values())]
        tensors = []
        for i, length in enumerate(self.lengths):
            constant = list(self.constants).index(i) + 1 if i in self.constants else 0
            type_ = TensorType.INT32 if constant else TensorType.FLOAT32
            tensors.append(Tensor(shape=(length,), type=type_, buffer=constant, name=f"t{i}"))
        operators = [
            Operator(
                opcode_index=CODES.index(name),
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                builtin_options=OPTIONS.get(name),
            )
            for name, inputs, outputs in self.ops
        ]
        subgraph = SubGraph(
            tensors=tuple(tensors),
            inputs=tuple(self.inputs),
            outputs=tuple(self.outputs),
            operators=tuple(operators),
        )
        codes = tuple(operator_code(BuiltinOperator[name]) for name in CODES)
        return write_model(
            Model(version=3, operator_codes=codes, subgraphs=(subgraph,), buffers=tuple(buffers))
        )


def any_float_graph(rng):
    """Return a graph with branches, views, in-place operators, unread tensors and many sizes."""
    graph = FloatGraph([rng.choice([1, 7, 16, 100]) for _ in range(rng.randrange(1, 3))])
    graph.inputs = list(range(len(graph.lengths)))
    made = list(graph.inputs)
    for _ in range(rng.randrange(1, 40)):
        source = rng.choice(made[-6:])
        length = graph.lengths[source]
        name = rng.choice(CODES)
        inputs = [source]
        if name in ("ADD", "MUL"):
            inputs.append(rng.choice([t for t in made if graph.lengths[t] == length]))
        elif name == "CONCATENATION":
            inputs.append(rng.choice([t for t in made if graph.lengths[t] < 2000 or t == made[0]]))
            length += graph.lengths[inputs[1]]
        elif name == "RESHAPE":
            shape = graph.add_tensor(1)
            graph.constants[shape] = np.array([length], np.int32)
            inputs.append(shape)
        made.append(graph.add_op(name, inputs, length))
    computed = made[len(graph.inputs) :]
    graph.outputs = sorted({computed[-1], *rng.sample(computed, min(2, len(computed)))})
    return graph.renumbered(rng)


def official_offsets(graph):
    """Return where the official interpreter has each arena tensor, from the lowest one."""
    interpreter = Interpreter(
        model_content=graph.model(),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    addresses = {
        tensor: interpreter.tensor(tensor)().__array_interface__["data"][0]
        for tensor in range(graph.num_tensors)
        if tensor not in graph.constants
    }
    return {tensor: address - min(addresses.values()) for tensor, address in addresses.items()}


def found_offsets(graph):
    planner = planned(graph)
    return {t: planner.address(t)[1] for t in range(graph.num_tensors) if t not in graph.constants}


@pytest.mark.parametrize("seed", range(150))
def test_offsets_are_the_official_ones(seed):
    graph = any_float_graph(random.Random(seed))
    assert found_offsets(graph) == official_offsets(graph)


def test_offsets_of_a_crowd_are_the_official_ones():
    rng = random.Random(1)
    graph = FloatGraph([64], inputs=[0])
    branches = []
    for _ in range(400):
        branch = graph.add_op("CONCATENATION", [0] * rng.randrange(1, 9), 0)
        graph.lengths[branch] = 64 * len(graph.ops[-1][1])
        branches.append(branch)
    rng.shuffle(branches)
    while len(branches) > 1:
        pair = [branches.pop(), branches.pop(rng.randrange(len(branches)))]
        branches.append(graph.add_op("CONCATENATION", pair, sum(graph.lengths[t] for t in pair)))
    graph.outputs = branches
    assert found_offsets(graph) == official_offsets(graph)
