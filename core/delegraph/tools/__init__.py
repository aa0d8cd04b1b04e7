"""Functions that measure, compare and explain models and return records; ``cli`` prints them.

Functions that measure or compare take a ``Setup`` (a model with runtime, delegates and threads) and
return a record.

Open first: ``setup.py``, ``benchmarking/`` for run times, ``explanation.py`` for the reasons of a
placement, ``placement_lock.py`` for placements stored in a file, ``memory_report.py`` for the
arena, ``model_summary.py`` for the content of a model, ``compiling.py`` for partitions compiled
ahead of time, ``whole_file.py`` for files written at once, ``requested_inputs.py``,
``given_inputs.py``, ``model_inputs.py`` and ``model_outputs.py`` for input and output values,
``recognition/`` for finding and drawing boxes, poses and masks among outputs, ``bootstrap.py`` for
intervals by resampling, ``plugin_check.py`` and ``plugin_survey.py`` for ``plugins doctor``,
``scaffold.py`` for ``delegraph new``.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
