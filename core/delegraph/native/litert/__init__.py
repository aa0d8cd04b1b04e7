"""Delegraph's delegates in the official interpreters.

Open first: ``delegate.py`` for the object that an interpreter gets, ``context.py`` for the context
that a delegate sees, ``kernel.py`` for its nodes, ``thunks.py`` for the functions that C calls,
``guard.py`` for the check of runtimes.
"""
