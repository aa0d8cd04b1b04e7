"""Cases of every operator that LiteRT registers, and TFLM's own, as data: a module a family.

>>> from delegraph.testing.operator_cases import cases
>>> case = next(cases("RELU"))
>>> case.op, case.version
('RELU', 1)
"""

from delegraph.testing.operator_cases import (  # noqa: F401 - registers makers of cases
    convolutions,
    dense,
    elementwise,
    joining,
    micro_signals,
    pairs,
    pools,
    quantizing,
    recurrent,
    reducing,
    selecting,
    shaping,
    signals,
    stateful,
    windows,
)
from delegraph.testing.operator_cases.registry import MAKERS, cases

__all__ = ["MAKERS", "cases"]
