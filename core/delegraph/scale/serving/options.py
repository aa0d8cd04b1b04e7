"""Options of a server."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from delegraph.scale.serving.endpoints.addresses import Addresses
from delegraph.scale.serving.limits import Limits
from delegraph.scale.serving.model_files import OfferedModels


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of a server.

    Attributes:
        name: name of the model in the protocol's paths.
        offered: models to serve under their own names; the predictor's settings are used for each.
            None means only the predictor's model.
        max_latency: seconds that an idle model waits for more requests of a batch; >= 0.
        max_queued: largest number of requests that wait to be computed; further requests are
            refused. >= 1.
        replicas: number of processes that compute; >= 1. Several processes are replicas of Ray
            Serve.
        addresses: addresses and access control of the endpoints.
        limits: limits on the requests of clients.
        access_log: path of the access log, ``-`` for standard output; None for no log.
        grace: whole seconds that requests may still take when the server is told to stop.
        ray_address: address of a Ray cluster whose nodes compute. None means the value of
            ``RAY_ADDRESS``, or this machine.
    """

    name: str
    offered: OfferedModels | None = None
    max_latency: float = 0.005
    max_queued: int = 64
    replicas: int = 1
    addresses: Addresses = field(default_factory=Addresses)
    limits: Limits = field(default_factory=Limits)
    access_log: str | None = None
    grace: int = 30
    ray_address: str | None = None

    @property
    def needs_ray(self) -> bool:
        """Whether Ray Serve computes, instead of this process."""
        return self.replicas > 1 or bool(self.ray_address or os.environ.get("RAY_ADDRESS"))
