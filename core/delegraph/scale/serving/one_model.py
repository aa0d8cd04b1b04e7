"""The model of a server that serves a single file, which is given on the command line."""

from __future__ import annotations

from typing import Any

from delegraph.scale.serving.refusals import Kind, Refusal
from delegraph.scale.serving.served_model import OUTCOMES, Engine, ServedModel


class OneModel:
    """The only model of a server.

    Args:
        name: name of the model in the protocol's paths.
        engine: engine that computes the requests.
    """

    def __init__(self, name: str, engine: Engine) -> None:
        self._model = ServedModel(name, "", engine)

    async def start(self) -> None:
        """Prepare the delegates, then accept requests.

        Raises:
            DelegraphError: the model or a delegate fails.
        """
        await self._model.engine.start()

    async def stop(self) -> None:
        """Stop after the requests that are being computed."""
        await self._model.engine.stop()

    def find(self, name: str, version: str = "") -> ServedModel:
        """Return the model.

        Raises:
            Refusal: the model has another name or version.
        """
        if name != self._model.name:
            raise Refusal(Kind.NOT_FOUND, f"no model {name!r}; models are {self._model.name}")
        if version not in ("", self._model.version):
            raise Refusal(Kind.NOT_FOUND, f"model {name!r} has no version {version!r}")
        return self._model

    def metadata(self, name: str, version: str = "") -> dict[str, Any]:
        """Return the protocol's metadata of the model.

        Raises:
            Refusal: the model has another name or version.
        """
        return self.find(name, version).metadata()

    async def is_ready(self) -> bool:
        """Whether the model is ready."""
        return await self._model.is_ready()

    def index(self, only_ready: bool = False) -> list[dict[str, str]]:
        """Return name, version and state of the model, which is always ready."""
        return [{"name": self._model.name, "version": self._model.version, "state": "READY"}]

    async def load(self, name: str) -> None:
        """Raise ``Refusal``: requests cannot load models."""
        raise Refusal(Kind.UNSUPPORTED, "models are not loaded by requests")

    async def unload(self, name: str) -> None:
        """Raise ``Refusal``: requests cannot unload models."""
        raise Refusal(Kind.UNSUPPORTED, "models are not unloaded by requests")

    def outcomes(self) -> dict[str, int]:
        """Return the number of requests by outcome."""
        return {outcome: self._model.metrics.outcomes[outcome] for outcome in OUTCOMES}
