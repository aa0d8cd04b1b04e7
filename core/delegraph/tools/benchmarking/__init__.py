"""Measures the run time of a model, and which of two set-ups is faster.

Open first: ``benchmark.py``; ``run_control.py`` for the number of runs, ``timed_model.py`` for the
measured model, ``result.py`` for the figures, ``machine.py`` for the properties of the machine. To
compare set-ups: ``comparison.py``, ``interleaving.py`` for how they take turns, ``verdicts.py`` for
the statistics. In a comparison a block is a series of rounds, and in a round each set-up takes two
turns.
"""
