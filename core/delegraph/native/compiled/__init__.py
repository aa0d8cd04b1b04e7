"""Compiled external delegates in Delegraph's interpreter.

Open first: ``external_delegate.py``, which loads a library; ``context.py`` and
``context_functions.py``, which make the ``TfLiteContext`` for a delegate; ``external_kernel.py``,
which runs its nodes; ``tensors.py``, which has the ``TfLiteTensor`` structs.
"""
