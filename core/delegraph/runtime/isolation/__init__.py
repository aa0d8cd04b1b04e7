"""Delegates in separate processes: after a crash or a hang the host process goes on.

The host imports nothing of such a delegate. Its process is asked which nodes it takes, is given
partitions as ``.tflite`` files, and runs them on memory that both processes have.

Open first: ``delegate.py`` for what the host applies, ``kernel.py`` for what runs at an invoke;
``process.py`` for starting, awaiting and losing the process; ``served.py`` for what it runs;
``messages.py`` for what the two say to each other.
"""
