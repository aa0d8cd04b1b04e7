"""Compiled loops, written with Numba; imported only to compile them: ``codegen/compiling.py``.

Which operator becomes which loops is in ``lowering/``, with a module for an operator or a family:
``lowering/rows/softmax.py`` lowers SOFTMAX to the loops of ``kernels/softmax.py``. Operators that
only move elements, such as GATHER, have no loops of their own: they use ``kernels/moves.py``.
"""
