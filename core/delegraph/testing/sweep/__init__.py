"""Differential sweep: generated models on a delegate, the core and the official interpreter.

Open first: ``sweep_case.py`` for a single case, ``generator.py`` for how cases are generated.
"""
