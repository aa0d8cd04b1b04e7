"""Creates the interpreter of a ``CompiledModel``; errors begin with the official words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delegraph.compiled_model.failures import checked_text
from delegraph.compiled_model.options import HardwareAccelerator, Options
from delegraph.errors import (
    ArgumentError,
    ArgumentTypeError,
    CompiledModelError,
    MalformedModelError,
    UnsupportedModelError,
)
from delegraph.runtime.interpreter import Interpreter


def loaded(
    source: Mapping[str, Any], options: Options, additions: Mapping[str, Any]
) -> Interpreter:
    """Return the interpreter of a model, with its delegates applied.

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
    return interpreter


def _checked_bytes(given: Any) -> bytes:
    if not isinstance(given, bytes):
        raise ArgumentTypeError(f"model_data is bytes, not {type(given).__name__}")
    return given
