"""Delegates in a running graph: applied, guarded, measured, stood in for.

Open first: ``requested_delegates.py`` for what users may name as a delegate; ``delegate_stack.py``
for how delegates are applied and taken off; ``runtime/delegated_plan.py`` for the plan they change;
``fallback.py`` and ``incidents.py`` for delegates that fail; ``original_nodes.py`` for the
kernels that stand in; ``measured_partitions.py`` for partitions that do not pay; ``placement.py``
for who runs what.
"""
