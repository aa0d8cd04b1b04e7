"""Options of ``delegraph serve``: addresses, locks and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from delegraph.scale.serving.endpoints.addresses import Addresses
    from delegraph.scale.serving.limits import Limits

_PORT = click.IntRange(1, 65535)
_MIB = 2**20


def _size(name: str, default: int, text: str) -> Any:
    return click.option(
        name,
        type=click.IntRange(1),
        default=default,
        show_default=True,
        metavar="MIB",
        help=text,
    )


def _seconds(name: str, default: float, text: str) -> Any:
    return click.option(
        name,
        type=click.FloatRange(0, min_open=True),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help=text,
    )


def _number(name: str, default: int, text: str) -> Any:
    return click.option(name, type=click.IntRange(1), default=default, show_default=True, help=text)


ADDRESS_OPTIONS = (
    click.option(
        "--host",
        default="127.0.0.1",
        show_default=True,
        metavar="ADDRESS",
        help="Address; 0.0.0.0 is every network.",
    ),
    click.option("--http-port", type=_PORT, default=8080, show_default=True, help="Port of REST."),
    click.option("--grpc-port", type=_PORT, default=8081, show_default=True, help="Port of gRPC."),
    click.option(
        "--unix-socket",
        metavar="FILE",
        help="Unix sockets instead of ports: FILE, and FILE.grpc for gRPC.",
    ),
    click.option("--tls-cert", metavar="FILE", help="Certificate chain (PEM), for encryption."),
    click.option("--tls-key", metavar="FILE", help="Private key of the certificate (PEM)."),
    click.option(
        "--token-file",
        metavar="FILE",
        help="Bearer token of requests.  [default: DELEGRAPH_SERVE_TOKEN]",
    ),
)
"""Options for the addresses on which the server listens, and for access."""

LIMIT_OPTIONS = (
    _size("--max-body-size", 64, "Largest request, REST or gRPC."),
    _size("--max-decompressed-size", 64, "Largest request after decompression."),
    _number("--max-connections", 1000, "Open connections of REST, and of gRPC."),
    _number("--max-json-values", 10_000_000, "Values in a request's JSON."),
    _number("--max-json-depth", 32, "Levels of a request's JSON."),
    _seconds("--header-timeout", 10.0, "Longest time for a request's header."),
    _seconds("--body-timeout", 60.0, "Longest time for a request's body."),
    _seconds("--idle-timeout", 75.0, "Longest pause between two requests."),
)
"""Options for limits of requests."""


def taken_addresses(given: dict[str, Any]) -> Addresses:
    """Remove the address options from *given*, and return the addresses.

    Raises:
        ArgumentError: the token cannot be read, or options contradict each other.
    """
    from delegraph.scale.serving.endpoints.addresses import Addresses
    from delegraph.scale.serving.endpoints.token import read_token

    token = read_token(given.pop("token_file"))
    names = ("host", "http_port", "grpc_port", "unix_socket", "tls_cert", "tls_key")
    return Addresses(token=token, **{name: given.pop(name) for name in names})


def taken_limits(given: dict[str, Any]) -> Limits:
    """Remove the limit options from *given*, and return the limits."""
    from delegraph.scale.serving.limits import Limits

    return Limits(
        body=given.pop("max_body_size") * _MIB,
        decompressed=given.pop("max_decompressed_size") * _MIB,
        connections=given.pop("max_connections"),
        json_values=given.pop("max_json_values"),
        json_depth=given.pop("max_json_depth"),
        header_seconds=given.pop("header_timeout"),
        body_seconds=given.pop("body_timeout"),
        idle_seconds=given.pop("idle_timeout"),
    )
