"""Compiled external delegates in our interpreter.

Open first: ``external_delegate.py``, which loads a library; ``context.py`` and
``context_functions.py``, the ``TfLiteContext`` that it sees; ``external_kernel.py``, its nodes;
``tensors.py``, the ``TfLiteTensor`` structs.
"""
