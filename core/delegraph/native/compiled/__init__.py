"""Compiled external delegates in Delegraph's interpreter.

Open first: ``external_delegate.py``, which loads a library; ``context.py`` and
``context_functions.py``, which make the ``TfLiteContext`` that a delegate sees;
``external_kernel.py``, which runs its nodes; and ``tensors.py`` has the ``TfLiteTensor`` structs.
"""
