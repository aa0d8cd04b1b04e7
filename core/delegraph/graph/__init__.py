"""The immutable, typed content of a model file.

Open first: ``model.py`` for ``Model``, ``SubgraphSpec``, ``OperatorSpec`` and ``TensorSpec``;
``loader.py`` for how these are created from a file; ``model_files.py`` for mapping the file, and
``external_buffers.py`` for constants in other files; ``dtypes.py`` for element types in NumPy;
``macs.py`` for numbers of multiply-accumulates; ``metadata.py`` for the author's description of
inputs and outputs, including labels.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
