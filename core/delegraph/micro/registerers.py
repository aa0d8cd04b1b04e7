"""Registerers of custom operators for one interpreter of the ``tflite-micro`` API."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from delegraph.errors import MicroRuntimeError, in_words
from delegraph.operators.custom_op import AnyCustomOp


class OpsResolver:
    """Argument with which a registerer is called."""

    def __init__(self) -> None:
        self.ops: dict[str, AnyCustomOp] = {}

    def add_custom(self, name: str, op: AnyCustomOp) -> None:
        """Make a custom operator known to the interpreter that is being made.

        Args:
            name: the custom code that models carry.
            op: a ``Registration``, or a function made one by ``delegraph.custom_op``.
        """
        self.ops[name] = op


def registered_ops(names: Sequence[str]) -> Mapping[str, AnyCustomOp]:
    """Return the operators that registerers add, by custom code.

    Args:
        names: ``"package.module:function"`` each.

    Raises:
        MicroRuntimeError: there is no such function, it raises, or it returns False.
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
