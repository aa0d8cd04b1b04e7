"""Delegates in separate processes, so that the host survives their crashes and hangs.

The host imports no code of an isolated delegate. It asks the delegate's process which nodes it
claims, and sends it partitions as ``.tflite`` files. The process computes them on memory that both
processes share.

Open first: ``delegate.py`` for the delegate that the host applies; ``kernel.py`` for the kernel
that the host runs at an invoke; ``process.py`` for the life of the process; ``served.py`` for the
code that the process runs; ``messages.py`` for the messages between both.
"""
