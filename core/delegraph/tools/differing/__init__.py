"""How far two set-ups' results differ, and where.

Open first: ``difference.py`` for ``diff`` (outputs), ``layers.py`` for ``diff_layers`` (all that is
in between); ``metrics.py`` for what is said of two arrays, ``matching.py`` for which tensor of one
model is which of the other, ``input_runs.py`` for what both are fed, ``tapped_models.py`` for how
inner tensors are seen, ``layer_units.py`` for what gets the reference's values, ``cause.py`` for
what it says of outputs that differ.

For ``bisect``: ``faulty_nodes.py``. ``bisection.py`` searches, ``probes.py`` tries sets of nodes in
the process of ``delegraph.processes.worker``, where ``probe_work.py`` does the work;
``reproduction.py`` writes what shows a fault again.
"""
