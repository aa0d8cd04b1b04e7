"""NumPy kernels, one file for each operator family; :mod:`delegraph.kernels.ops` lists them.

``docs/operators.md`` names the file of every operator. Most files carry the operator's name
(CONV_2D is ``conv.py``). Families are ``elementwise/`` (``binary.py`` for ADD, MUL, POW, ...,
``unary.py`` for EXP, SQRT, ..., ``activations.py`` for RELU, LOGISTIC, ...), ``reductions.py``
(SUM, MEAN, ...), ``pooling.py``, ``control_flow.py`` (IF, WHILE, ...), ``variables.py``,
``lookup/`` (hash tables, embeddings), ``recurrent/`` (LSTM, RNN, SVDF), ``stablehlo/``, ``signal/``
(TFLM's operators on sound) and ``custom/`` (other custom operators). What kernels check of a node
is in ``delegraph/operators/checks.py``, what they compute with in ``delegraph/arithmetic/``.
"""
