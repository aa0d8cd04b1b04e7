"""Calling a model by the names of one of its signatures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from delegraph.errors import ArgumentError
from delegraph.graph.model import Model
from delegraph.runtime.details import tensor_details
from delegraph.runtime.session import Session
from delegraph.runtime.tensor_access import read_tensor, write_tensor


class HasSession(Protocol):
    """An ``Interpreter``, as far as it matters here."""

    @property
    def session(self) -> Session:
        """The model and its running subgraphs."""


class SignatureRunner:
    """A callable for one signature. Made by ``Interpreter.get_signature_runner``.

    Source:
        SignatureRunner, tflite/python/interpreter.py.
    """

    def __init__(
        self, interpreter: HasSession | None = None, signature_key: str | None = None
    ) -> None:
        if interpreter is None:
            raise ArgumentError("None interpreter provided.")
        if signature_key is None:
            raise ArgumentError("None signature_key provided.")
        session = interpreter.session
        found = [s for s in session.model.signatures if s.key == signature_key]
        if not found:
            known = ", ".join(repr(s.key) for s in session.model.signatures) or "none"
            raise ArgumentError(
                f'Invalid signature_key provided: "{signature_key}". The model has: {known}'
            )
        self._signature = found[0]
        self._interpreter = interpreter
        self._subgraph = session.subgraphs[found[0].subgraph_index]

    def __call__(self, **kwargs: ArrayLike) -> dict[str, Any]:
        """Run the signature's subgraph on named inputs; return its outputs by name, as copies.

        Inputs may have other shapes than declared: the subgraph is resized for them.

        Raises:
            ArgumentError: a missing or unknown name, or a value of the wrong dtype.
            NodeError: a node failed.
            StateError: another call of the interpreter runs.
            CallCancelledError: ``Interpreter.cancel`` was called meanwhile, or its ``time_limit``
                is over.
        """
        session = self._interpreter.session
        name = f"signature {self._signature.key!r}"
        outputs: dict[str, Any] = session.calls.run(name, self._run, session, kwargs)
        return outputs

    def _run(self, session: Session, kwargs: Mapping[str, ArrayLike]) -> dict[str, Any]:
        signature, subgraph = self._signature, self._subgraph
        if len(kwargs) != len(signature.inputs):
            raise ArgumentError(
                "Invalid number of inputs provided for running a SignatureDef, expected "
                f"{len(signature.inputs)} vs provided {len(kwargs)}"
            )
        for name in kwargs:
            if name not in signature.inputs:
                known = ", ".join(sorted(signature.inputs))
                raise ArgumentError(f"Invalid Input name ({name}) for SignatureDef; has: {known}")
        values = {signature.inputs[name]: np.asarray(value) for name, value in kwargs.items()}
        for index, value in values.items():
            if value.shape != subgraph.tensors[index].shape:
                session.memory_limit.trust_shapes()
            session.resize_input(subgraph, index, value.shape)
        session.allocate(subgraph)
        for index, value in values.items():
            write_tensor(subgraph.tensors[index], value)
        subgraph.invoke()
        return {
            name: read_tensor(subgraph.readable(index))
            for name, index in sorted(signature.outputs.items())
        }

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Return the details of the inputs by name."""
        return self._details(dict(self._signature.inputs))

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """Return the details of the outputs by name."""
        return self._details(dict(self._signature.outputs))

    def _details(self, indices: dict[str, int]) -> dict[str, dict[str, Any]]:
        tensors = self._subgraph.tensors
        return {name: tensor_details(tensors[index]) for name, index in sorted(indices.items())}


def only_signature(model: Model) -> str:
    """Return the key of the only signature of a model.

    Raises:
        ArgumentError: it has none, or several.
    """
    if len(model.signatures) != 1:
        raise ArgumentError(
            f"SignatureDef signature_key is None and model has {len(model.signatures)} "
            "Signatures. None is only allowed when the model has 1 SignatureDef"
        )
    return model.signatures[0].key
