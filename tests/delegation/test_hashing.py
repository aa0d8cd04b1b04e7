"""Hashes are those of ``hashlib``, which is imported for long content only."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from delegraph.delegation.hashing import SHORT, hex_digest


@pytest.mark.parametrize("size", [0, 1000, SHORT - 1, SHORT, SHORT + 1])
def test_digests_are_those_of_hashlib(size: int) -> None:
    content = bytes(range(251)) * (size // 251 + 1)
    whole = content[:size]
    assert hex_digest(whole[: size // 3], memoryview(whole)[size // 3 :]) == (
        hashlib.sha256(whole).hexdigest()
    )


@pytest.mark.parametrize(("size", "is_imported"), [(SHORT - 1, "False"), (SHORT, "True")])
def test_hashlib_is_imported_for_long_content_only(size: int, is_imported: str) -> None:
    code = (
        "import sys; from delegraph.delegation.hashing import hex_digest; "
        f"hex_digest(bytes({size})); print('_hashlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == is_imported
