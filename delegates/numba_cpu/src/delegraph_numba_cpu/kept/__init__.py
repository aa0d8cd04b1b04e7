"""Kept programs: what was decided for a partition, in files that later processes map.

``program_file.py`` describes the file. ``writing.py`` and ``reading.py`` convert programs to and
from it, ``checks.py`` says which words a file may have, ``keys.py`` computes what a program depends
on, ``claims.py`` keeps which nodes are claimed, and ``store.py`` is what the delegate asks.
"""
