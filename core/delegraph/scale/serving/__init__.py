"""The server: its requests, batches, endpoints and engines.

A request arrives at ``endpoints/`` (REST: ``application.py``, gRPC: ``grpc_service.py``).
``parsing.py`` decodes it to the records of ``requests.py``, by ``json_protocol.py`` or
``grpc_protocol.py``; ``encodings.py`` decodes the tensors. ``served_model.py`` compares the request
with the model's signature (``tensors.py``) and passes it to one of ``engines/``: this process, or
replicas of Ray Serve. Both compute with ``batches.py``. ``refusals.py`` has the reasons for
rejected requests.
"""
