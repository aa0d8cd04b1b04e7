"""Differential sweep: compares generated models on a delegate, the core and LiteRT.

Open first: ``sweep_case.py`` for a single case, ``generator.py`` for how cases are generated.
"""
