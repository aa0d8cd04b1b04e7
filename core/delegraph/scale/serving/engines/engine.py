"""The interface of an engine that a server starts and stops."""

from __future__ import annotations

from typing import Protocol

from delegraph.scale.serving.served_model import Engine
from delegraph.scale.serving.tensors import ServedSignature


class StartedEngine(Engine, Protocol):
    """Interface of an engine that computes a model's requests, as the starting server uses it.

    Attributes:
        signature: inputs and outputs of the model.
    """

    signature: ServedSignature

    async def start(self) -> None:
        """Prepare the delegates, then accept requests.

        Raises:
            DelegraphError: the model or a delegate fails.
        """

    async def stop(self) -> None:
        """Stop after the requests that are being computed."""
