"""Kept programs: lowered partitions, stored in files that later processes map into memory.

``program_file.py`` describes the file. ``writing.py`` and ``reading.py`` convert programs to and
from it. ``checks.py`` checks the words in a file. ``keys.py`` computes digests of everything that a
program depends on. ``claims.py`` stores which nodes are claimed. The delegate calls ``store.py``.
"""
