"""Memory planners and arenas; each name is imported when it is first used.

Every planner gets records of tensors' sizes and lifetimes, which :func:`usage_records` makes from a
graph. :func:`lower_bound` is the number of bytes that every plan needs. :func:`verify_plan` checks
the plan of any planner.

Open first: ``arena_planner.py`` for the plan of an interpreter, TFLite's ``ArenaPlanner``;
``best_fit.py`` for choosing a gap in the arena for a tensor; ``memory_management.py`` for the
strategies of TFLite's GPU delegate (each in a module of ``strategies/``); ``best_planner.py`` for
the smallest plan.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
