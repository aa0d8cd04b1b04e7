"""Compiled loops, written with Numba; imported only to compile them: ``codegen/compiling.py``.

``lowering/`` decides which loops an operator needs, with a module for an operator or a family:
``lowering/rows/softmax.py`` lowers SOFTMAX to the loops of ``kernels/softmax.py``. Operators that
only move elements, such as GATHER, share the loops of ``kernels/moves.py``.
"""
