"""Report on the executors that can run each operator of a converted model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from delegraph.graph import parse_model
from delegraph_flex.custom_options import PREFIX
from delegraph_flex.numpy_executor.registry import OPERATORS
from delegraph_flex.side_effects import side_effects


@dataclass(frozen=True)
class OperatorUse:
    """One of TensorFlow's operators in a model.

    Attributes:
        name: TensorFlow's name of the operator.
        count: number of the operator's nodes in all subgraphs.
        numpy: whether the NumPy executor supports the operator.
        refused: side effect for which the delegate rejects the operator; empty if there is none.
    """

    name: str
    count: int
    numpy: bool
    refused: str

    def runs_by(self) -> str:
        """Text with the names of the executors that can run the operator."""
        if self.refused:
            return f"nothing, as it {self.refused}; allow={self.name} lets it run"
        return "numpy, tensorflow" if self.numpy else "tensorflow"


@dataclass(frozen=True)
class OperatorReport:
    """Operators of a model: the number of builtin operators, and the uses of TensorFlow operators.

    Attributes:
        builtin: number of builtin operators and of other custom operators.
        flex: uses of TensorFlow's operators, sorted by name.
    """

    builtin: int
    flex: tuple[OperatorUse, ...]


def operator_report(content: bytes) -> OperatorReport:
    """Return the report on the operators of a ``.tflite`` file, whose bytes are *content*.

    The report ignores that attributes may also cause a rejection; ``delegraph explain`` checks node
    by node.
    """
    names = Counter(
        operator.name
        for subgraph in parse_model(content).subgraphs
        for operator in subgraph.operators
    )
    flex = {name.removeprefix(PREFIX): n for name, n in names.items() if name.startswith(PREFIX)}
    uses = [OperatorUse(op, flex[op], op in OPERATORS, _refused(op)) for op in sorted(flex)]
    return OperatorReport(names.total() - sum(flex.values()), tuple(uses))


def _refused(op: str) -> str:
    reach = side_effects().get(op)
    if reach is None:
        return "is an operator that nobody has looked at"
    return reach.does if reach.is_refused and reach.when is None else ""
