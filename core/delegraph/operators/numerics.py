"""The official kernels whose integer rounding is reproduced: builtin, reference or TFLM.

Users choose by ``Interpreter(numerics=...)``, ``delegraph run --numerics`` or an ``OpResolverType``
(:func:`delegraph.runtime.arguments.numerics_of`). A kernel reads the choice as
``context.numerics`` in its ``prepare``. ``docs/operators.md`` and
:mod:`delegraph.testing.reference_numerics` say which operators differ, and by how much.
"""

from __future__ import annotations

from typing import Literal

Numerics = Literal["builtin", "reference", "micro"]
"""Official kernels whose rounding is reproduced: optimised, ``BUILTIN_REF`` or TFLM.

TFLM's kernels differ from the reference kernels only in FULLY_CONNECTED, ABS, RELU6 and
UNIDIRECTIONAL_SEQUENCE_LSTM; only ``MicroInterpreter`` uses this choice.
"""
