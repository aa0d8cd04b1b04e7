"""The official class of this name: an interpreter with custom operators of compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delegraph.runtime.interpreter import Interpreter
from delegraph.runtime.official.custom_op_registerers import Registerer


class InterpreterWithCustomOps(Interpreter):
    """An ``Interpreter`` whose custom operators come from registerers of C++ or Python.

    ``Interpreter(custom_ops=...)`` is the simple way for operators written in Python.

    Args:
        custom_op_registerers: names of C functions that this process has loaded, such as
            ``"TF_TestRegisterer"``, and functions of Python. Each gets the address of a C++
            ``MutableOpResolver``, which is one of the official runtime installed here: code that
            fills it was compiled for that version. The argument of a Python function has the method
            ``add_custom(name, op)`` as well, for operators of Python.
        **kwargs: as of ``Interpreter``.

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
