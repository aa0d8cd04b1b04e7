"""Measuring, comparing and explaining, as functions that return records; ``cli`` prints them.

Open first: ``explanation.py`` for why nodes run where they do, ``placement_lock.py`` for placements
kept in a file, ``memory_report.py`` for the arena, ``model_summary.py`` for what a model holds,
``given_inputs.py``, ``model_inputs.py`` and ``model_outputs.py`` for values given and printed,
``recognition.py`` for boxes, poses and masks among outputs, ``drawing.py`` for pictures of them,
``plugin_check.py`` and ``plugin_survey.py`` for ``plugins doctor``, ``scaffold.py`` for
``delegraph new``.
"""
