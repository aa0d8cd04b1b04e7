"""How far two set-ups' results differ, and where.

Open first: ``difference.py`` for ``diff``; ``metrics.py`` for what is said of two arrays,
``matching.py`` for which tensor of one model is which of the other, ``input_runs.py`` for what both
are fed.
"""
