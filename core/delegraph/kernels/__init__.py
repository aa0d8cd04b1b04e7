"""NumPy kernels, one file an operator family; :mod:`delegraph.kernels.ops` says which has which.

``docs/operators.md`` names the file of every operator. Most files carry the operator's name
(CONV_2D is ``conv.py``). Families are ``elementwise.py`` (ADD, MUL, POW, ...), ``unary.py`` (EXP,
SQRT, ...), ``activations.py`` (RELU, LOGISTIC, ...), ``comparison.py`` (LESS, ...),
``reductions.py`` (SUM, MEAN, ...), ``pooling.py``, ``control_flow.py`` (IF, WHILE, ...),
``variables.py``,
``recurrent/`` (LSTM, RNN, SVDF) and ``stablehlo/``. What kernels check of a node is in
``delegraph/operators/checks.py``, what they compute with in ``delegraph/arithmetic/``.
"""
