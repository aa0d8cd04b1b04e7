"""Which addresses only programs of this machine can reach."""

from __future__ import annotations

import pytest

from delegraph.scale.serving.endpoints.addresses import Addresses


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_loopback_is_private(host: str) -> None:
    assert Addresses(host).is_private


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "example.org", ""])
def test_other_addresses_are_not(host: str) -> None:
    assert not Addresses(host).is_private


def test_a_unix_socket_is_private() -> None:
    assert Addresses("0.0.0.0", unix_socket="/run/delegraph").is_private
