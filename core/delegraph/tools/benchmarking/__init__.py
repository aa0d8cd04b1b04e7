"""How long a model takes: run control, stages, statistics, memory, the machine.

Open first: ``benchmark.py``; ``run_control.py`` for how often a model runs, ``timed_model.py`` for
what is timed, ``result.py`` for the figures, ``machine.py`` for where they hold.
"""
