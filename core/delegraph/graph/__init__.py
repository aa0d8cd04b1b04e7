"""The immutable, typed view of a model.

Open first: ``model.py`` for ``Model``, ``SubgraphSpec``, ``OperatorSpec`` and ``TensorSpec``;
``loader.py`` for how they are made of a file; ``dtypes.py`` for element types in NumPy;
``metadata.py`` for what the author says of inputs and outputs, labels included.
"""

from __future__ import annotations

from delegraph.graph.loader import load_model, parse_model

__all__ = ["load_model", "parse_model"]
