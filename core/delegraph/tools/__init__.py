"""Functions that measure, compare and explain models and return records; ``cli`` prints them.

Functions that measure or compare take a ``Setup`` (a model with runtime, delegates and threads) and
return a record.

Open first: ``setup.py``, ``benchmarking/`` for how long a model takes,
``explanation.py`` for why nodes run where they do,
``placement_lock.py`` for placements kept in a file, ``memory_report.py`` for the arena,
``model_summary.py`` for what a model holds,
``compiling.py`` for partitions compiled ahead of time, ``whole_file.py`` for files written at once,
``requested_inputs.py``, ``given_inputs.py``, ``model_inputs.py`` and ``model_outputs.py`` for
values given and printed,
``recognition/`` for boxes, poses and masks among outputs, and for drawing them,
``bootstrap.py`` for intervals by resampling,
``plugin_check.py`` and ``plugin_survey.py`` for ``plugins doctor``, ``scaffold.py`` for
``delegraph new``.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
