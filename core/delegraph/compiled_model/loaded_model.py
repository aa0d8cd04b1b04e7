"""The loaded model of a ``CompiledModel``: its interpreter, and its signatures.

Errors of loading begin with the official words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delegraph.compiled_model.buffered_subgraph import BufferedSubgraph
from delegraph.compiled_model.failures import Status, checked_c_int, checked_text, failure
from delegraph.compiled_model.host_memory import type_name
from delegraph.compiled_model.options import HardwareAccelerator, Options
from delegraph.errors import (
    ArgumentError,
    ArgumentTypeError,
    CompiledModelError,
    MalformedModelError,
    UnsupportedModelError,
)
from delegraph.graph.calls import called_subgraphs
from delegraph.graph.model import Signature
from delegraph.locks import Lock
from delegraph.runtime.interpreter import Interpreter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.session import Session

PLACEHOLDER = "<placeholder signature>"
"""Key of the only signature of a model that declares no signatures."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedSubgraph:
    """A signature: a subgraph with names for its inputs and outputs, in the graph's order."""

    key: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    subgraph: BufferedSubgraph

    def names(self) -> dict[str, list[str]]:
        """Return the names of inputs and outputs as lists."""
        return {"inputs": list(self.inputs), "outputs": list(self.outputs)}


class LoadedModel:
    """An interpreter and its signatures; calls from several threads wait for each other.

    Args:
        interpreter: the interpreter, which no other object may use.

    Attributes:
        interpreter: the interpreter.
        signatures: the signatures, in the model's order.
        lock: lock that every call acquires, after calls of other threads.
        calls: lock of the interpreter, which raises an error for a second call at the same time.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter
        self.lock = Lock()
        session = interpreter.session
        self.calls = session.calls
        called = _called(session)
        made: dict[int, BufferedSubgraph] = {}
        self.signatures: list[NamedSubgraph] = []
        for spec in session.model.signatures or [Signature(PLACEHOLDER, {}, {}, 0)]:
            index = spec.subgraph_index
            if index not in made:
                made[index] = BufferedSubgraph(
                    session, session.subgraph(index), is_called=index in called
                )
            subgraph = made[index]
            names = _names(subgraph.inputs, spec.inputs), _names(subgraph.outputs, spec.outputs)
            self.signatures.append(NamedSubgraph(spec.key, *names, subgraph))

    def call(self, name: str, work: Callable[..., Any], *args: Any) -> Any:
        """Wait for other threads' calls; return ``work(*args)``. *name* is used in errors.

        Raises:
            StateError: a kernel of the running call makes another call.
        """
        with self.lock:
            return self.calls.run(name, work, *args)

    def close(self) -> None:
        """Wait for the running call, then free delegates and memory."""
        with self.lock:
            self.interpreter.close()

    def at(self, index: Any, message: str = "") -> NamedSubgraph:
        """Return the signature at an index.

        Raises:
            ArgumentTypeError: *index* is no int.
            CompiledModelError: the signature does not exist.
        """
        signatures = self.signatures
        position = index if type(index) is int else checked_c_int("a signature index", index)
        if not 0 <= position < len(signatures):
            checked_c_int("a signature index", position)
            cause = f"Signature index is out of range of signature keys: {position}"
            cause = f"{cause}, and there are {len(signatures)}"
            raise failure(Status.INDEX_OUT_OF_RANGE, *filter(None, (message, cause)))
        return signatures[position]

    def index_of(self, key: str) -> int:
        """Return the index of the signature *key*; -1 if unknown."""
        return next((i for i, s in enumerate(self.signatures) if s.key == key), -1)

    def named(self, key: Any) -> NamedSubgraph:
        """Return the signature *key*; an empty *key* means the first signature.

        Raises:
            ArgumentTypeError: *key* is no text.
            CompiledModelError: the signature does not exist.
        """
        text = checked_text("a signature key", key)
        index = self.index_of(text) if text else 0
        if index < 0:
            known = ", ".join(repr(s.key) for s in self.signatures)
            raise failure(Status.NOT_FOUND, f"Signature not found: {text}; there are: {known}")
        return self.signatures[index]


def position_at(kind: str, tensors: Sequence[Tensor], index: Any) -> int:
    """Return *index* as a position in *tensors*; *kind* is ``"Input"`` or ``"Output"``, for errors.

    Raises:
        ArgumentTypeError: *index* is no int.
        CompiledModelError: there is no tensor at this position.
    """
    position = checked_c_int(f"an {kind.lower()} index", index)
    if not 0 <= position < len(tensors):
        cause = f"{kind} index out of range: {position}, and there are {len(tensors)}"
        raise failure(Status.INDEX_OUT_OF_RANGE, cause)
    return position


def position_of(kind: str, names: Sequence[str], name: Any) -> int:
    """Return the position of *name* in *names*; *kind* is ``"Input"`` or ``"Output"``.

    Raises:
        ArgumentTypeError: *name* is no text.
        CompiledModelError: no tensor has the name.
    """
    text = checked_text(f"an {kind.lower()} name", name)
    if text not in names:
        known = ", ".join(map(repr, names))
        raise failure(Status.NOT_FOUND, f"{kind} tensor not found: {text}; there are: {known}")
    return names.index(text)


def details(names: Sequence[str], tensors: Sequence[Tensor]) -> dict[str, Any]:
    """Return name, index, dtype and present shape of each of *tensors*, as a mapping by *names*."""
    return {
        name: {
            "name": tensor.name,
            "index": tensor.index,
            "dtype": type_name(tensor.type),
            "shape": list(tensor.shape),
        }
        for name, tensor in zip(names, tensors, strict=True)
    }


def _called(session: Session) -> frozenset[int]:
    """Return indices of the subgraphs that operators of *session*'s model call."""
    if len(session.subgraphs) == 1:
        return frozenset()
    return frozenset(
        index
        for subgraph in session.subgraphs
        for operator in subgraph.operators
        for index in called_subgraphs(operator.options)
    )


def _names(tensors: Sequence[Tensor], declared: Mapping[str, int]) -> tuple[str, ...]:
    by_tensor = {index: name for name, index in declared.items()}
    return tuple(by_tensor.get(tensor.index, tensor.name) for tensor in tensors)


def loaded_model(
    source: Mapping[str, Any], options: Options, additions: Mapping[str, Any]
) -> LoadedModel:
    """Return the model of *source*, with its delegates applied.

    Args:
        source: the argument ``model_path`` or ``model_content``, as the user gave it.
        options: options of the model.
        additions: other keyword-only arguments of ``Interpreter``.

    Raises:
        ArgumentTypeError: an argument has the wrong type, or a keyword is unknown.
        CompiledModelError: the file does not exist or is no model, or the accelerator does not
            exist.
        PlacementError: nodes have no delegate, and the CPU may not compute them.
    """
    arguments = options.interpreter_arguments()
    known = Interpreter.__init__.__kwdefaults__ or {}
    for name in additions:
        if name not in known:
            found = ", ".join(sorted(known))
            raise ArgumentTypeError(f"unexpected keyword argument {name!r}; there are: {found}")
    ((kind, given),) = source.items()
    is_file = kind == "model_path"
    place = "file" if is_file else "buffer"
    checked: Any = checked_text("model_path", given) if is_file else _checked_bytes(given)
    if not checked or (isinstance(checked, str) and "\0" in checked):
        raise CompiledModelError(f"Failed to load model from {place}: there is none")
    try:
        interpreter = Interpreter(**{kind: checked}, **arguments, **additions)
    except (MalformedModelError, UnsupportedModelError) as error:
        raise CompiledModelError(f"Failed to load model from {place}: {error}") from error
    except ArgumentError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise CompiledModelError(f"Failed to load model from {place}: {error}") from error
    if not int(options.hardware_accelerators) & HardwareAccelerator.CPU:
        from delegraph.delegation.rules import require_full  # lazy import: few leave out the CPU

        require_full(interpreter.placement)
    return LoadedModel(interpreter)


def _checked_bytes(given: Any) -> bytes:
    if not isinstance(given, bytes):
        raise ArgumentTypeError(f"model_data is bytes, not {type(given).__name__}")
    return given
