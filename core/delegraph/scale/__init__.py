"""Batches of rows: a predictor, jobs over processes, Ray and Beam, and a server.

A row is one sample: one value of each input. A piece is a number of consecutive rows of a job. Open
``predictor.py`` first. ``batching.py`` turns rows into calls of the model; ``computing.py`` handles
bad rows and rows that kill their process. ``job.py`` runs jobs: ``job_work.py`` is the work of its
processes, ``job_folder.py`` stores finished pieces, ``opening.py`` and ``outputs.py`` read and
write files. ``ray.py`` and ``beam.py`` run models on clusters. ``serve.py`` serves a model to many
clients.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
