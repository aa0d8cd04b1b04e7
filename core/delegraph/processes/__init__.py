"""Starts child processes, sends them requests, ends them, and describes their exit status.

``child.py`` starts a process and ends it with all that it has started; ``worker.py`` asks one
questions and starts it again after its death. ``messages.py`` has the answers, which are data and
never pickled; ``ending.py`` says how a process ended; ``parent.py`` runs first in the child.
"""
