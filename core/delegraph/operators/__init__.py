"""What an operator is: tensors, nodes, registrations, the op table, custom operators.

Open first: :mod:`~delegraph.operators.registration` for ``Registration``, ``Node`` and the context
that kernels work in; :mod:`~delegraph.operators.tensor` for ``Tensor``;
:mod:`~delegraph.operators.op_table` for how a kernel is registered;
:mod:`~delegraph.operators.custom_op` for operators written by users;
:mod:`~delegraph.operators.checks` for what kernels check of a node.
"""
