"""Delegraph's delegates as targets of ``ai_edge_litert.aot``, LiteRT's ahead-of-time compilation.

Open first: ``backend.py``. The package needs ``pip install ai-edge-litert``.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
