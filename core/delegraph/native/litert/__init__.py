"""Our delegates in the official interpreters.

Open first: ``delegate.py``, the object that an interpreter is given; ``context.py``, what a
delegate sees there; ``kernel.py``, its nodes; ``thunks.py``, the functions that C calls;
``guard.py``, which runtimes are refused.
"""
