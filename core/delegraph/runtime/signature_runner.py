"""Calls a model by the input and output names of one of its signatures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delegraph.errors import ArgumentAttributeError, ArgumentError
from delegraph.graph.model import Model
from delegraph.runtime.details import signature_details, tensor_details
from delegraph.runtime.session import Session
from delegraph.runtime.subgraph import Subgraph
from delegraph.runtime.tensor_access import read_tensor


class HasSession(Protocol):
    """The part of ``Interpreter`` that a signature runner needs."""

    @property
    def session(self) -> Session:
        """The session with the model and its running subgraphs."""

    @property
    def _interpreter(self) -> object:
        """Wrapper that the official ``Interpreter`` has under this name."""


class SignatureRunner:
    """A callable that runs one signature; returned by ``Interpreter.get_signature_runner``.

    Source:
        SignatureRunner, tflite/python/interpreter.py.
    """

    def __init__(
        self, interpreter: HasSession | None = None, signature_key: str | None = None
    ) -> None:
        if not interpreter:
            raise ArgumentError("None interpreter provided.")
        if not signature_key:
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
        self._subgraph_index = found[0].subgraph_index
        self._subgraph = session.subgraphs[self._subgraph_index]
        # these attributes exist in the official class, and programs read them
        self._signature_key = signature_key
        self._signature_def = signature_details(found)[signature_key]
        self._inputs = self._signature_def["inputs"]
        self._outputs = self._signature_def["outputs"].items()

    def __repr__(self) -> str:
        return f"<SignatureRunner {self._signature_key!r} of {self._interpreter!r}>"

    def __call__(self, **kwargs: ArrayLike) -> dict[str, Any]:
        """Run the signature's subgraph on named inputs; return copies of the outputs by name.

        Inputs may have other shapes than declared; the subgraph is resized for them.

        Raises:
            ArgumentError: a name is missing or unknown, or a value has the wrong dtype.
            NodeError: a node failed.
            ArgumentAttributeError: a value is no array, but for example a list.
            StateError: another call of the interpreter runs.
            CallCancelledError: ``Interpreter.cancel`` was called meanwhile, or its ``Limits.time``
                is over.
        """
        session = self._interpreter.session
        name = f"signature {self._signature.key!r}"
        outputs: dict[str, Any] = session.calls.run(name, self._run, session, kwargs)
        return outputs

    def _run(self, session: Session, kwargs: Mapping[str, ArrayLike]) -> dict[str, Any]:
        signature, subgraph = self._signature, self._subgraph
        inputs, outputs = signature.inputs, signature.outputs
        state = session.bound_states.get(self._subgraph_index)
        if state is not None:
            inputs, outputs = (
                {name: index for name, index in side.items() if index not in state.indices}
                for side in (inputs, outputs)
            )
        if len(kwargs) != len(inputs):
            raise ArgumentError(
                "Invalid number of inputs provided for running a SignatureDef, expected "
                f"{len(inputs)} vs provided {len(kwargs)}{_listed(inputs)}"
            )
        for name in kwargs:
            if name not in inputs:
                raise ArgumentError(
                    f"Invalid Input name ({name}) for SignatureDef{_listed(inputs)}"
                )
            _require_array(name, kwargs[name])
        values = {inputs[name]: np.asarray(value) for name, value in kwargs.items()}
        for index, value in values.items():
            if value.shape != subgraph.tensors[index].shape:
                session.memory_limit.trust_shapes()
            session.resize_input(subgraph, index, value.shape)
        session.allocate(subgraph)
        for index, value in values.items():
            session.write(subgraph, index, value)
        run_subgraph(session, subgraph)
        return {
            name: read_tensor(subgraph.readable(index)) for name, index in sorted(outputs.items())
        }

    def bind_state(
        self, arrays: Mapping[str, NDArray[Any]] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Keep states, such as a KV cache, in arrays of the caller between calls.

        A state is an input and an output with one name. A call then neither takes nor returns
        states: it reads the arrays, and writes the new values into them. Nothing is copied if only
        the node that writes the output reads the input and can overwrite it. Otherwise the output
        is copied after the call. Runners of other signatures continue from this state if they get
        the same arrays. After a failed call, an array may hold a mixture of old and new values.

        >>> decode = interpreter.get_signature_runner("decode")  # doctest: +SKIP
        >>> cache = decode.bind_state()  # doctest: +SKIP
        >>> decode(tokens=tokens, input_pos=position)["logits"]  # doctest: +SKIP

        Args:
            arrays: an array for each name, such as the result of another ``bind_state``; an empty
                mapping ends the binding. None means new arrays of zeros for all states: for each
                name of an input and an output with equal type, shape and quantization.

        Returns:
            The arrays by name. Programs may read and write them between calls.

        Raises:
            ArgumentError: the signature has no state, or none of that name; or an array does not
                fit, or shares memory with another array.
            StateError: another call of the interpreter runs.
        """
        session = self._interpreter.session
        name = f"bind_state of signature {self._signature.key!r}"
        bound: dict[str, NDArray[Any]] = session.calls.run(name, self._bind, session, arrays)
        return bound

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states that :meth:`bind_state` can bind, sorted."""
        from delegraph.runtime.bound_state import is_bindable, state_names

        tensors, inputs = self._subgraph.tensors, self._signature.inputs
        names = state_names(self.get_input_details(), self.get_output_details())
        return tuple(name for name in names if is_bindable(tensors[inputs[name]]))

    @property
    def states_in_place(self) -> tuple[str, ...]:
        """Names of the bound states that the last call updated in place, without a copy."""
        state = self._interpreter.session.bound_states.get(self._subgraph_index)
        return () if state is None else state.in_place

    def _bind(
        self, session: Session, arrays: Mapping[str, NDArray[Any]] | None
    ) -> dict[str, NDArray[Any]]:
        from delegraph.runtime.bound_state import BoundState, new_array

        signature, subgraph = self._signature, self._subgraph
        known = self.state_names
        if arrays is None:
            if not known:
                raise ArgumentError(
                    f"signature {signature.key!r} has no state: no output has the name, type, "
                    "shape and quantization of an input"
                )
            arrays = {name: new_array(subgraph.tensors[signature.inputs[name]]) for name in known}
        for name in arrays:
            if name not in known:
                raise ArgumentError(
                    f"signature {signature.key!r} has no state {name!r}; it has: "
                    f"{', '.join(known) or 'none'}"
                )
        state = BoundState(subgraph, signature, arrays)
        if session.bound_states.pop(self._subgraph_index, None) is not None:
            subgraph.is_allocated = False  # so that the tensors get separate memory again
        if arrays:
            session.bound_states[self._subgraph_index] = state
        return dict(arrays)

    @property
    def _interpreter_wrapper(self) -> Any:
        """Wrapper that the official runner class has under this name."""
        return self._interpreter._interpreter

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Return the details of the inputs by name."""
        return self._details(dict(self._signature.inputs))

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """Return the details of the outputs by name."""
        return self._details(dict(self._signature.outputs))

    def _details(self, indices: dict[str, int]) -> dict[str, dict[str, Any]]:
        tensors = self._subgraph.tensors
        return {name: tensor_details(tensors[index]) for name, index in sorted(indices.items())}


def run_subgraph(session: Session, subgraph: Subgraph) -> None:
    """Run an allocated subgraph once; bound states are read from their arrays, and stored there.

    Raises:
        NodeError: a node failed.
    """
    state = session.bound_states.get(subgraph.spec.index)
    if state is None:
        subgraph.invoke()
        return
    state.put(subgraph, partial(session.write, subgraph))
    subgraph.invoke()
    state.take(subgraph)


def _require_array(name: str, value: object) -> None:
    """Raise an error if *value* of input *name* is no array, since its dtype would be a guess.

    Raises:
        ArgumentAttributeError: the value is a list, a Python number or the like.
    """
    if not hasattr(value, "shape"):
        kind = type(value).__name__
        raise ArgumentAttributeError(
            f"{kind!r} object has no attribute 'shape': input {name!r} takes an array, such as "
            "np.array(value, np.float32)"
        )


def _listed(inputs: Iterable[str]) -> str:
    """End of an error about inputs, with the names of those that the signature takes."""
    return f"; the inputs are: {', '.join(sorted(inputs)) or 'none'}"


def only_signature(model: Model) -> str:
    """Return the key of the only signature of a model.

    Raises:
        ArgumentError: the model has no signature, or several.
    """
    if len(model.signatures) != 1:
        keys = ", ".join(repr(signature.key) for signature in model.signatures)
        advice = f"It has: {keys}" if keys else "Call set_tensor(), invoke() and get_tensor()"
        raise ArgumentError(
            f"SignatureDef signature_key is None and model has {len(model.signatures)} "
            f"Signatures. None is only allowed when the model has 1 SignatureDef. {advice}"
        )
    return model.signatures[0].key
