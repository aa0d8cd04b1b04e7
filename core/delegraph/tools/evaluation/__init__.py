"""Measures the accuracy of one or several set-ups on the same data.

Open first: ``task.py`` for what a task and a sample are, ``runner.py`` for the loop that runs every
set-up on every sample, ``journal.py`` for how an interrupted evaluation continues, ``answers.py``
for the results; then a task: ``classification.py``, ``detection.py`` or ``custom.py``, the last
with a ``metric.py`` of the user's own.
"""
