"""NumPy kernels, one file for each operator family; :mod:`delegraph.kernels.ops` lists them.

``docs/operators.md`` names the file of every operator. Most files carry the operator's name
(CONV_2D is ``conv.py``). Families are ``elementwise/`` (``binary.py`` for ADD, MUL, POW, ...,
``unary.py`` for EXP, SQRT, ..., ``activations.py`` for RELU, LOGISTIC, ...), ``reductions.py``
(SUM, MEAN, ...), ``pooling.py``, ``control_flow.py`` (IF, WHILE, ...), ``variables.py``,
``lookup/`` (hash tables, embeddings), ``recurrent/`` (LSTM, RNN, SVDF), ``stablehlo/``, ``signal/``
(TFLM's operators on sound) and ``custom/`` (other custom operators). The module
``delegraph/operators/checks.py`` has the kernels' checks of nodes, ``delegraph/arithmetic/`` their
arithmetic. A kernel's ``prepare`` checks a node and returns the node's evaluation: the function
that computes it at each invoke.
"""
