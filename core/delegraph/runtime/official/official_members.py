"""Undocumented members of the official ``Interpreter`` that programs use.

Benchmarks, converters and the official tests call these names with an underscore. They are apart
from the rest, because nothing of Delegraph's own needs them.

Source:
    Interpreter, tflite/python/interpreter.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from delegraph.runtime.arguments import tensor_at
from delegraph.runtime.official.details import node_details, signature_details, tensor_details

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate
    from delegraph.graph.model import Model
    from delegraph.runtime.memory_views import MemoryViews
    from delegraph.runtime.official.custom_op_registerers import CustomOps
    from delegraph.runtime.official.interpreter_wrapper import InterpreterWrapper
    from delegraph.runtime.session import Session


def warn_of_kept_tensors() -> None:
    """Give the warning of ``experimental_preserve_all_tensors``, in the constructor's caller."""
    warnings.warn(
        "Warning: Enabling `experimental_preserve_all_tensors` with the BUILTIN or AUTO op resolver"
        " is for debugging: every intermediate tensor gets memory of its own, and each node that a "
        "delegate takes becomes a partition. BUILTIN_WITHOUT_DEFAULT_DELEGATES gives no warning.",
        stacklevel=3,
    )


class OfficialMembers:
    """Base class of ``Interpreter`` with the official class's undocumented members."""

    _views: MemoryViews
    _model_content: Any  # there only where the model was given as bytes
    _delegates: list[Delegate]
    _custom_op_registerers: Sequence[Any]  # see InterpreterWithCustomOps
    _experimental_compress_quantization_zero_points: bool

    if TYPE_CHECKING:

        @property
        def session(self) -> Session:
            """See ``Interpreter.session``."""

    def _keep(self, model_content: Any, compresses_zero_points: bool) -> None:
        """Keep arguments that programs read again."""
        if model_content:
            self._model_content = model_content
        self._experimental_compress_quantization_zero_points = compresses_zero_points

    def _all_custom_ops(self, model: Model, given: CustomOps) -> CustomOps:
        """Return the given custom operators and those of registerers."""
        if not hasattr(self, "_custom_op_registerers"):
            self._custom_op_registerers = []
        if not self._custom_op_registerers:
            return given
        from delegraph.runtime.official.custom_op_registerers import (
            registered_ops,  # here: few programs register any
        )

        return {**registered_ops(self._custom_op_registerers, model), **given}

    @cached_property
    def _interpreter(self) -> InterpreterWrapper:
        """The object whose methods the official class calls."""
        from delegraph.runtime.official.interpreter_wrapper import (
            InterpreterWrapper,  # here: nothing of Delegraph's own goes through it
        )

        return InterpreterWrapper(self.session, self._views)

    @property
    def _signature_defs(self) -> dict[str, dict[str, list[str]]]:
        """Input and output names of each signature."""
        return {
            key: {side: list(names) for side, names in sides.items()}
            for key, sides in self._get_full_signature_list().items()
        }

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The constructor's argument of this name, which has no effect on results."""
        return self._experimental_compress_quantization_zero_points

    def _safe_to_run(self) -> bool:
        """Return whether no view from ``tensor()`` is alive."""
        return not self._views

    def _ensure_safe(self) -> None:
        """Raise ``StateError`` while a view from ``tensor()`` is alive."""
        self._views.require_none()

    def _native_handle(self) -> int:
        """Return a number that identifies the interpreter, since no C++ object exists."""
        return self._interpreter.interpreter()

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> dict[str, Any]:
        """Return the details of a tensor of any subgraph."""
        subgraph = self.session.subgraph(int(subgraph_index))
        return tensor_details(tensor_at(subgraph.tensors, int(tensor_index)))

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return names and tensor indices of each signature."""
        return signature_details(self.session.model.signatures)

    def _get_op_details(self, op_index: int) -> dict[str, Any]:
        """Return index, op_name, inputs, outputs and dtypes of a node; delegate nodes included."""
        return node_details(self.session.subgraphs[0], op_index)

    def _get_ops_details(self) -> list[dict[str, Any]]:
        """Return the details of every node."""
        return [self._get_op_details(i) for i in range(len(self.session.subgraphs[0].plan.nodes))]

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled.

        Raises:
            ArgumentTypeError: always; a copy would share memory with this one.
        """
        from delegraph.runtime.official.interpreter_wrapper import not_copied

        raise not_copied(type(self).__name__)
