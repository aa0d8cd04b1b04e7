"""How delegates take over parts of a graph: interfaces, partitioning, placement.

Open first: ``simple_delegate.py`` for the interface that most delegates implement,
``node_by_node.py`` for kernels that compute node by node, ``engine_delegate.py`` for engines that
take whole partitions, ``driver.py`` for the code that applies these delegates; ``delegate.py`` for
the low-level interface and the context that a delegate receives; ``rejections.py`` for why a node
was rejected; ``partitioner.py`` and ``graph_partition_helper.py`` for how partitions are formed and
chosen; ``placement.py`` for where each node runs; ``rules.py`` for users' placement rules;
``capabilities.py``, ``node_traits.py`` and ``tolerance.py`` for what a delegate claims;
``partition_model.py`` for a partition as a file, ``engine_operators.py`` for its operators in a
simple form; ``blob_cache.py`` and ``cache_files.py`` for files that a delegate stores;
``configuration.py`` for the user's configuration file.

Each name is loaded when it is first used, so that the configuration can be read without NumPy.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__, "dry_run")
