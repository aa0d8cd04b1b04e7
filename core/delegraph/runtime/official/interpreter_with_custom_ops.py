"""``InterpreterWithCustomOps``, the official class for custom operators in compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delegraph.runtime.interpreter import Interpreter
from delegraph.runtime.official.custom_op_registerers import Registerer


class InterpreterWithCustomOps(Interpreter):
    """An ``Interpreter`` whose custom operators are registered by C++ or Python functions.

    For operators written in Python, ``Interpreter(custom_ops=...)`` is simpler.

    Args:
        custom_op_registerers: names of C functions that this process has loaded, such as
            ``"TF_TestRegisterer"``, and Python functions. Each is called with the address of a
            ``MutableOpResolver``, a C++ object of the installed official runtime; C++ code must be
            compiled for that version. For Python functions, the address also has the method
            ``add_custom(name, op)``, for operators written in Python.
        **kwargs: other arguments of ``Interpreter``.

    Raises:
        ArgumentError: there is no C function of a name.
        ArgumentTypeError: a registerer is neither a name nor a function.
        UnsupportedRuntimeError: a registerer has a name, and no official runtime is installed.

    Source:
        InterpreterWithCustomOps, tflite/python/interpreter.py.
    """

    def __init__(
        self, custom_op_registerers: Sequence[Registerer] | None = None, **kwargs: Any
    ) -> None:
        self._custom_op_registerers = custom_op_registerers or []
        super().__init__(**kwargs)
