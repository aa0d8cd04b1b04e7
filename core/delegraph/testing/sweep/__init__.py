"""The differential sweep: generated models on a delegate, the core and the official interpreter.

Open first: ``sweep_case.py`` for what one case is, ``generator.py`` for which models there are.
"""
