"""Options of ``delegraph serve``: addresses, locks and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.options.kinds import number_option, seconds_option

if TYPE_CHECKING:
    from delegraph.scale.serving.endpoints.addresses import Addresses
    from delegraph.scale.serving.limits import Limits

_PORT = click.IntRange(1, 65535)
_MIB = 2**20


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
    number_option("--max-body-size", "Largest request, REST or gRPC.", default=64, metavar="MIB"),
    number_option(
        "--max-decompressed-size",
        "Largest request after decompression.",
        default=64,
        metavar="MIB",
    ),
    number_option("--max-connections", "Open connections of REST, and of gRPC.", default=1000),
    number_option("--max-json-values", "Values in a request's JSON.", default=10_000_000),
    number_option("--max-json-depth", "Levels of a request's JSON.", default=32),
    seconds_option("--header-timeout", "Longest time for a request's header.", default=10.0),
    seconds_option("--body-timeout", "Longest time for a request's body.", default=60.0),
    seconds_option("--idle-timeout", "Longest pause between two requests.", default=75.0),
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
