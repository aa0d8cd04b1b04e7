"""Cases of every operator in LiteRT and TFLM, with one module for each operator family.

>>> from delegraph.testing.operator_cases import cases
>>> case = next(cases("RELU"))
>>> case.op, case.version
('RELU', 1)
"""

from delegraph.testing.operator_cases.registry import MAKERS, cases

__all__ = ["MAKERS", "cases"]
