"""Delegraph's delegates in the official interpreters, and in the official ``CompiledModel``.

Open first: ``delegate.py`` for the object that an interpreter gets, ``context.py`` for the context
that a delegate gets, ``kernel.py`` for its nodes, ``thunks.py`` for the functions that C calls,
``guard.py`` for the check of runtimes, ``applied_delegates.py`` for code that both front ends
share. The front ends are ``interpreter.py`` and ``compiled_model.py``; ``environment.py`` has the
accelerators for the latter.

:mod:`delegraph.native` has the same exports.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__, "compiled_model")
