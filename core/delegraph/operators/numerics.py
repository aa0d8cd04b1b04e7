"""Choice of the official kernels whose integer rounding is followed: builtin, reference or TFLM.

Who chooses: users, by ``Interpreter(numerics=...)``, ``delegraph run --numerics`` or an
``OpResolverType`` (:func:`delegraph.runtime.op_resolver.numerics_of`). Who reads: a kernel, as
``context.numerics``, in its ``prepare``. Which operators differ, and by how much:
``docs/operators.md`` and :mod:`delegraph.testing.reference_numerics`.
"""

from __future__ import annotations

from typing import Literal

Numerics = Literal["builtin", "reference", "micro"]
"""The optimised kernels, those of ``BUILTIN_REF``, or those of TFLM.

TFLM's are the reference ones but for FULLY_CONNECTED, ABS, RELU6 and UNIDIRECTIONAL_SEQUENCE_LSTM;
only ``MicroInterpreter`` has them.
"""
