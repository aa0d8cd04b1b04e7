"""Parts of an operator's interface: tensors, nodes, registrations, op table, custom operators.

Kernels, delegates and custom operators use them. Open first ``registration`` and ``tensor``:

- ``registration``: ``Registration``, ``Node``, and the context of kernels
- ``asynchronous``: evaluations that are started now and awaited later
- ``tensor``: a tensor while a model runs, and its data
- ``roles``: names of an operator's operands: input, weights, bias, axis
- ``checks``: functions that raise an error if a node lacks what is required
- ``evaluation``: computing one node without a graph, for tables
- ``numerics``: the choice between builtin and reference rounding
- ``memory_limit``: the number of bytes that tensors and kernels may take
- ``op_table``: the kernel of each operator, and the registration of kernels
- ``custom_op``: custom operators written as Python functions
- ``custom_options``, ``flexbuffer_options``: the options of custom operators
- ``lstm_node``, ``svdf_node``: positions of the many inputs of these nodes
- ``kept_array``: arrays that nodes keep from one invoke to the next
- ``resource_handle``: tensors that name a variable or a table
- ``subgraph_call``: copying tensors to another subgraph and back
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__, "custom_op", "flexbuffer_options")
