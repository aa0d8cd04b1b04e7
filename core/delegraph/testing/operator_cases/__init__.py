"""Cases of every operator that LiteRT registers, and TFLM's own, as data: a module a family.

>>> from delegraph.testing.operator_cases import cases
>>> case = next(cases("RELU"))
>>> case.op, case.version
('RELU', 1)
"""

from delegraph.testing.operator_cases.registry import MAKERS, cases

__all__ = ["MAKERS", "cases"]
