"""Addresses on which the server listens, and access control."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from delegraph.errors import ArgumentError
from delegraph.scale.serving.endpoints.token import Token


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses and access control of the endpoints.

    Attributes:
        host: address that both ports listen on; loopback by default.
        http_port: port of REST.
        grpc_port: port of gRPC.
        unix_socket: path of a Unix socket for REST, which replaces the ports; gRPC uses the same
            path followed by ``.grpc``. None means ports.
        tls_cert: path of the certificate chain, PEM; None means no encryption.
        tls_key: path of the certificate's private key, PEM.
        token: token that requests must have.
    """

    host: str = "127.0.0.1"
    http_port: int = 8080
    grpc_port: int = 8081
    unix_socket: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    token: Token = field(default_factory=lambda: Token(None))

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ArgumentError("--tls-cert and --tls-key belong together: give both")

    @property
    def is_private(self) -> bool:
        """Whether only programs on this machine can connect."""
        if self.unix_socket is not None or self.host == "localhost":
            return True
        with suppress(ValueError):
            return ip_address(self.host).is_loopback
        return False

    @property
    def http_url(self) -> str:
        """URL of REST."""
        if self.unix_socket is not None:
            return f"unix:{self.unix_socket}"
        host = "localhost" if self.host in ("127.0.0.1", "0.0.0.0", "::1", "::") else self.host
        scheme = "http" if self.tls_cert is None else "https"
        return f"{scheme}://{host}:{self.http_port}"

    @property
    def grpc_name(self) -> str:
        """Name of the endpoint of gRPC, for a message."""
        if self.unix_socket is not None:
            return f"gRPC on unix:{self.unix_socket}.grpc"
        return f"gRPC on port {self.grpc_port}"

    @property
    def grpc_target(self) -> str:
        """Address of gRPC in the syntax of the gRPC library."""
        if self.unix_socket is not None:
            return f"unix:{self.unix_socket}.grpc"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.grpc_port}"

    def http_socket(self) -> socket.socket:
        """Return a bound socket for REST.

        Raises:
            ArgumentError: the address cannot be used.
        """
        if self.unix_socket is not None:
            return _unix_socket(self.unix_socket)
        return _bound(self.host, self.http_port)

    def require_usable(self) -> None:
        """Check that both addresses can be used and the certificate can be read.

        Raises:
            ArgumentError: an address cannot be used, or a certificate cannot be read.
        """
        self.tls_files()
        self.require_free()
        self.http_socket().close()
        self.remove_sockets()

    def require_free(self) -> None:
        """Check that gRPC's address is free, and remove the socket file of an ended server.

        Raises:
            ArgumentError: the address cannot be used.
        """
        if self.unix_socket is not None:
            _unix_socket(f"{self.unix_socket}.grpc").close()
            Path(f"{self.unix_socket}.grpc").unlink()
        else:
            _bound(self.host, self.grpc_port).close()

    def tls_files(self) -> tuple[bytes, bytes] | None:
        """Return the content of the key and certificate files; None if encryption is off.

        Raises:
            ArgumentError: a file cannot be read.
        """
        if self.tls_cert is None or self.tls_key is None:
            return None
        try:
            return Path(self.tls_key).read_bytes(), Path(self.tls_cert).read_bytes()
        except OSError as error:
            raise ArgumentError(
                f"--tls-cert and --tls-key: {error.filename!r} cannot be read: {error.strerror}"
            ) from error

    def remove_sockets(self) -> None:
        """Remove the files of the Unix sockets."""
        for ending in ("", ".grpc") if self.unix_socket is not None else ():
            with suppress(OSError):
                Path(f"{self.unix_socket}{ending}").unlink()


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ArgumentError(f"--host {host!r} cannot be used: {error.strerror}") from error
    try:
        if os.name == "posix":  # on other systems, it lets two servers share a port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        found.close()
        raise ArgumentError(
            f"port {port} cannot be used: {error.strerror}; name another one"
        ) from error
    return found


def _unix_socket(path: str) -> socket.socket:
    """Return a socket bound to *path* that only this user may use; replace an old socket there."""
    if not hasattr(socket, "AF_UNIX"):
        raise ArgumentError("--unix-socket cannot be used: this system has none")
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.stat(path).st_mode) and not _is_answered(path):
                os.unlink(path)
        old = os.umask(0o177)
        try:
            found.bind(path)
        finally:
            os.umask(old)
    except OSError as error:
        found.close()
        raise ArgumentError(
            f"--unix-socket {path!r} cannot be used: {error.strerror or error}"
        ) from error
    return found


def _is_answered(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
        return True
