"""Which of the official kernels integer results round like: the builtin or the reference ones.

Who chooses: users, by ``Interpreter(numerics=...)``, ``delegraph run --numerics`` or an
``OpResolverType`` (:func:`delegraph.runtime.op_resolver.numerics_of`). Who reads: a kernel, as
``context.numerics``, in its ``prepare``. Which operators differ, and by how much:
``docs/operators.md`` and :mod:`delegraph.testing.reference_numerics`.
"""

from __future__ import annotations

from typing import Literal

Numerics = Literal["builtin", "reference"]
"""``"builtin"``: the optimised kernels; ``"reference"``: those of ``BUILTIN_REF``."""
