"""The server: what a request holds, its batches, its endpoints and its engines.

A request comes by ``endpoints/`` (REST: ``application.py``, gRPC: ``grpc_service.py``).
``parsing.py`` decodes it by ``json_protocol.py`` or ``grpc_protocol.py`` into ``requests.py``, with
tensors of ``encodings.py``. ``served_model.py`` compares it with the model's signature
(``tensors.py``) and asks one of ``engines/``: this process, or replicas of Ray Serve. Both compute
by ``batches.py``. Why a request gets no answer says ``refusals.py``.
"""
