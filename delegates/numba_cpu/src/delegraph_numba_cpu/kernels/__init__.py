"""Compiled loops, written with Numba; imported only to compile them, see ``compiling``.

Which operator becomes which loops is in ``operators/``, with a file for an operator or a family:
``operators/softmax.py`` lowers SOFTMAX to the loops of ``softmax.py``. Operators that only move
elements, such as GATHER, have no loops of their own: they use ``moves.py``.
"""
