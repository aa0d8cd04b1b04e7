"""The server of both endpoints, from start to stop."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import grpc
import uvicorn

from delegraph.errors import ArgumentError
from delegraph.scale.serving.endpoints.access_log import AccessLog
from delegraph.scale.serving.endpoints.addresses import Addresses
from delegraph.scale.serving.endpoints.application import Application
from delegraph.scale.serving.endpoints.connection import connection_class
from delegraph.scale.serving.endpoints.grpc_service import GrpcService
from delegraph.scale.serving.endpoints.page import page_files
from delegraph.scale.serving.limits import Limits
from delegraph.scale.serving.parsing import RequestReader
from delegraph.scale.serving.served_model import Models

SWITCH_INTERVAL = 1e-3
"""Seconds after which a computing thread lets the event loop run."""

_MESSAGE_ROOM = 2**16
"""Bytes of a gRPC message besides the tensors."""

_CALLS = 128
"""Largest number of simultaneous calls of a gRPC connection; its client delays further calls."""


class Server:
    """REST and gRPC endpoints for models, in the running event loop.

    Args:
        models: the served models.
        addresses: addresses and access control of the endpoints.
        limits: limits of the server.
        log: access log.
        grace: seconds that requests may still take when the server is told to stop.

    Raises:
        ArgumentError: an address cannot be used, or the certificate cannot be read.
    """

    def __init__(
        self, models: Models, addresses: Addresses, limits: Limits, log: AccessLog, grace: float
    ) -> None:
        self._addresses = addresses
        self._limits = limits
        self._grace = grace
        self._tls = addresses.tls_files()
        self._reader = RequestReader(limits)
        token = addresses.token
        application = Application(models, self._reader, limits, token, log, page_files(addresses))
        self._http = _Uvicorn(_config(application, addresses, limits, grace))
        self._service = GrpcService(models, self._reader, token, log)
        addresses.require_free()
        self._socket = addresses.http_socket()

    async def start(self) -> None:
        """Open both endpoints.

        Raises:
            ArgumentError: an address cannot be used.
        """
        _raise_file_limit(2 * self._limits.connections + 100)
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._grpc = grpc.aio.server(options=_options(self._limits))
        self._grpc.add_generic_rpc_handlers((self._service.handlers(),))
        try:
            if self._tls is None:
                self._grpc.add_insecure_port(self._addresses.grpc_target)
            else:
                credentials = grpc.ssl_server_credentials([self._tls])
                self._grpc.add_secure_port(self._addresses.grpc_target, credentials)
        except RuntimeError as error:
            raise ArgumentError(
                f"{self._addresses.grpc_name} cannot be used: {error}; name another one"
            ) from error
        await self._grpc.start()
        self._serving = asyncio.create_task(self._http.serve(sockets=[self._socket]))
        while not self._http.started and not self._serving.done():
            await asyncio.sleep(0.002)

    async def stop(self) -> None:
        """Reject further requests, answer the pending ones within the grace period, and close."""
        self._http.should_exit = True
        await asyncio.gather(self._serving, self._grpc.stop(self._grace))
        self._reader.close()
        self._addresses.remove_sockets()


class _Uvicorn(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing, so that the caller handles signals."""
        yield


def _config(
    application: Application, addresses: Addresses, limits: Limits, grace: float
) -> uvicorn.Config:
    # Errors of clients are not worth a log line.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        application,
        http=connection_class(limits),
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=grace,
        ssl_certfile=addresses.tls_cert,
        ssl_keyfile=addresses.tls_key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise ArgumentError(
            f"--tls-cert {addresses.tls_cert!r} and --tls-key {addresses.tls_key!r} cannot be "
            f"used: {error}"
        ) from error
    return config


def _options(limits: Limits) -> list[tuple[str, int]]:
    """Return names and values of the gRPC options that make a server keep to *limits*."""
    return [
        ("grpc.so_reuseport", 0),  # a used port is an error
        ("grpc.max_receive_message_length", limits.body + _MESSAGE_ROOM),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", _CALLS),
        ("grpc.max_metadata_size", limits.header),
        ("grpc.absolute_max_metadata_size", limits.header),
        ("grpc.max_allowed_incoming_connections", limits.connections),
        ("grpc.server_handshake_timeout_ms", round(1e3 * limits.header_seconds)),
        ("grpc.max_connection_idle_ms", round(1e3 * limits.idle_seconds)),
        ("grpc.http2.min_ping_interval_without_data_ms", 5000),
    ]


def _raise_file_limit(files: int) -> None:
    """Allow this process as many open files as its connections need, if the system permits."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = files if hard == resource.RLIM_INFINITY else min(files, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
