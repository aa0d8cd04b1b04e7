"""Measures how much, and where, the results of two set-ups differ.

The two set-ups are the test and the reference, whose results count as right. Open first:
``difference.py`` for ``diff`` (outputs), ``layers.py`` for ``diff_layers`` (all tensors between).
``metrics.py`` compares two arrays, ``figures.py`` has the figures of that; ``matching.py`` pairs
the tensors of two models; ``tolerances.py`` finds elements beyond a tolerance; ``input_runs.py``
makes the input values. ``tapped_models.py`` makes inner tensors readable, ``layer_units.py`` and
``unit_group.py`` compute parts of a model on the reference's values, and ``cause.py`` explains
outputs that differ.

For ``bisect``: ``faulty_nodes.py``. ``bisection.py`` searches; ``probes.py`` tests sets of nodes in
a separate process, where ``probe_work.py`` does the work; ``reproduction.py`` writes files that
reproduce a fault.
"""
