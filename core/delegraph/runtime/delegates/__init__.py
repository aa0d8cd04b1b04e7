"""Delegates in a running graph: how they are applied, guarded, measured and replaced.

Open first: ``requested_delegates.py`` for what users may name as a delegate; ``delegate_stack.py``
for how delegates are applied and removed; ``runtime/delegated_plan.py`` for the plan they change;
``fallback.py`` and ``incidents.py`` for delegates that fail; ``original_nodes.py`` for the kernels
that replace a failed delegate; ``measured_partitions.py`` for partitions that save no time;
``placement.py`` for which delegate runs which node.
"""
