"""The server: its requests, batches, endpoints and engines.

A request arrives at ``endpoints/`` (REST: ``application.py``, gRPC: ``grpc_service.py``).
``parsing.py`` decodes it by ``json_protocol.py`` or ``grpc_protocol.py`` to the records of
``requests.py``, with tensors by ``encodings.py``. ``served_model.py`` compares it with the model's
signature (``tensors.py``) and passes it to one of ``engines/``: this process, or replicas of Ray
Serve. Both compute by ``batches.py``. ``refusals.py`` has the reasons for rejected requests.
"""
