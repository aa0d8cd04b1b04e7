"""Parts of an operator's interface: tensors, nodes, registrations, op table, custom operators.

Kernels, delegates and custom operators use them. Open first ``registration`` and ``tensor``:

- ``registration``: ``Registration``, ``Node``, and the context that kernels work in
- ``asynchronous``: evaluations that are started now and awaited later
- ``tensor``: a tensor while a model runs, and its data
- ``roles``: what each operand of an operator is called: input, weights, bias, axis
- ``checks``: what is required of a node, as functions that raise
- ``evaluation``: one node computed apart from any graph, to tabulate it
- ``numerics``: the choice between builtin and reference rounding
- ``memory_limit``: the bytes that tensors, and kernels beside them, may take
- ``op_table``: which kernel each operator has, and how one is registered; tables like it
- ``custom_op``: custom operators written as Python functions
- ``custom_options``, ``flexbuffer_options``: the options of custom operators
- ``lstm_node``, ``svdf_node``: where nodes of many inputs keep each tensor
- ``kept_array``: arrays that nodes keep from one invoke to the next
- ``resource_handle``: tensors that name a variable or a table
- ``subgraph_call``: handing tensors to another subgraph and back
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__, "custom_op", "flexbuffer_options")
