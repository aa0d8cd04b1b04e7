"""Batches: a predictor, jobs over processes, Ray and Beam, and a server.

Open first: ``predictor.py``; ``batching.py`` for how rows become calls, ``computing.py`` for bad
rows and rows that kill their process. For jobs ``job.py``; ``job_work.py`` is what runs in its
processes, ``job_folder.py`` what is done so far, ``opening.py`` and ``outputs.py`` the formats.
For clusters ``ray.py`` and ``beam.py``.
For many clients ``serve.py``.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
