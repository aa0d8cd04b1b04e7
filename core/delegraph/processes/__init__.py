"""Child processes: starting, sending requests, terminating, and describing how they ended.

``child.py`` starts a process and ends it with all its child processes; ``worker.py`` sends it
requests and restarts it after its death. ``messages.py`` encodes answers, which are never pickled.
``ending.py`` describes how a process ended; ``parent.py`` is the code that runs first in the child.
"""
