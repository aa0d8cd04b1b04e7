"""Registerers: functions that add custom operators to a ``tflite-micro`` API interpreter."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from delegraph.errors import MicroRuntimeError, in_words
from delegraph.operators.custom_op import AnyCustomOp


class OpsResolver:
    """Collects custom operators; a registerer is called with it and adds operators to it."""

    def __init__(self) -> None:
        self.ops: dict[str, AnyCustomOp] = {}

    def add_custom(self, name: str, op: AnyCustomOp) -> None:
        """Add a custom operator for the interpreter that is being created.

        Args:
            name: the operator's custom code in models.
            op: a ``Registration``, or a function decorated with ``delegraph.custom_op``.
        """
        self.ops[name] = op


def registered_ops(names: Sequence[str]) -> Mapping[str, AnyCustomOp]:
    """Return the operators that registerers add, by custom code.

    Args:
        names: name of each registerer, as ``"package.module:function"``.

    Raises:
        MicroRuntimeError: a function does not exist, raises an error, or returns False.
    """
    resolver = OpsResolver()
    for name in names:
        failure = f"TFLM could not register custom op via {name}"
        registerer = _registerer(name, failure)
        try:
            answer = registerer(resolver)
        except Exception as error:
            raise MicroRuntimeError(f"{failure}: {in_words(error)}") from error
        if answer is False:
            raise MicroRuntimeError(f"{failure}: it returned False")
    return resolver.ops


def _registerer(name: str, failure: str) -> Callable[[OpsResolver], Any]:
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise MicroRuntimeError(
            f"{failure}: {in_words(error)}; expected the name of a Python function, "
            "'package.module:function'"
        ) from error
    return cast("Callable[[OpsResolver], Any]", found)
