"""The immutable, typed view of a model.

Open first: ``model.py`` for ``Model``, ``SubgraphSpec``, ``OperatorSpec`` and ``TensorSpec``;
``loader.py`` for how they are made of a file; ``dtypes.py`` for element types in NumPy;
``metadata.py`` for what the author says of inputs and outputs, labels included.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
