"""Memory planners and arenas; each name is imported when it is first used.

A graph becomes records of when each tensor is in use (:func:`usage_records`), which every planner
takes; :func:`lower_bound` tells what no plan can do without, and :func:`verify_plan` whether a plan
is right, whichever planner made it.

Open first: ``arena_planner.py`` for the plan of an interpreter, TFLite's ``ArenaPlanner``;
``best_fit.py`` for the gap that a tensor gets in it; ``memory_management.py`` for the strategies of
TFLite's GPU delegate (``strategies/`` has one a file); ``best_planner.py`` for the smallest plan.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
