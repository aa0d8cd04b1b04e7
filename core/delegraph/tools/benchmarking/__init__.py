"""Measures how long a model takes, and which of two set-ups is faster.

Open first: ``benchmark.py``; ``run_control.py`` for how often a model runs, ``timed_model.py`` for
what is timed, ``result.py`` for the figures, ``machine.py`` for where they hold;
``comparison.py`` for one against another, ``interleaving.py`` for how they take turns,
``verdicts.py`` for the statistics.
"""
