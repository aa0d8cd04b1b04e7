"""The page at ``/``: the served models, how to call them, and their response times.

The files in ``assets`` contain no secrets and no model names. Their script calls the same endpoints
as other clients, with the token that the user types if one is required.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from html import escape
from importlib.resources import files

from delegraph.scale.serving.endpoints.addresses import Addresses
from delegraph.scale.serving.endpoints.application import Answer

_KINDS = {"html": b"text/html", "css": b"text/css", "js": b"text/javascript"}

_HEADERS = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; "
    b"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-cache",
}
"""Headers that let a browser load and run nothing but these files."""


def page_files(addresses: Addresses) -> dict[str, Callable[[], Awaitable[Answer]]]:
    """Return the files of the page, by path.

    Args:
        addresses: addresses of the server; the page shows the port of gRPC.
    """
    found: dict[str, Callable[[], Awaitable[Answer]]] = {}
    for asset in files(__package__).joinpath("assets").iterdir():
        body = asset.read_bytes()
        if asset.name == "page.html":
            grpc = str(addresses.grpc_port)
            if addresses.unix_socket is not None:
                grpc = addresses.grpc_target
            body = body.replace(b"{{grpc}}", escape(grpc).encode())
        path = "/" if asset.name == "page.html" else f"/page/{asset.name}"
        kind = _KINDS[asset.name.rpartition(".")[2]] + b"; charset=utf-8"
        found[path] = partial(_answer, body, {b"content-type": kind, **_HEADERS})
    return found


async def _answer(body: bytes, headers: Mapping[bytes, bytes]) -> Answer:
    return Answer(body, headers=headers)
