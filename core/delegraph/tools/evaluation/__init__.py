"""Measures the accuracy of one or several set-ups on the same data.

Open first: ``task.py`` for tasks and samples, ``runner.py`` for the loop that runs every set-up on
every sample, ``journal.py`` for continuing an interrupted evaluation, ``answers.py`` for the
results; then a task: ``classification.py``, ``detection.py`` or ``custom.py``, the last of which
uses a user's metric from ``metric.py``.
"""
