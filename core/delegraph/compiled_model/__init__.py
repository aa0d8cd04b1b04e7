"""LiteRT 2's ``CompiledModel`` on Delegraph's runtime, with the official names and signatures.

``from delegraph.compiled_model import CompiledModel`` runs programs that are written for
``ai_edge_litert.compiled_model``. Open first: ``model.py`` for the class, ``buffered_subgraph.py``
for a run on tensor buffers, ``tensor_buffer.py`` and ``host_memory.py`` for buffers,
``environment.py``, ``options.py`` and ``vendor_options.py`` for arguments of its constructor.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
