"""The token comes from a file or the environment, and is compared whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.errors import ArgumentError
from delegraph.scale.serving.endpoints.token import VARIABLE, read_token
from delegraph.scale.serving.refusals import Refusal


def test_a_token_of_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not read_token(None).is_needed
    read_token(None).require(None)
    monkeypatch.setenv(VARIABLE, "other")
    path = tmp_path / "token"
    path.write_text("s3cret\n")
    for token, word in ((read_token(str(path)), b"s3cret"), (read_token(None), b"other")):
        token.require(b"Bearer " + word)
        for wrong in (None, b"", word, b"Bearer", b"Bearer " + word + b" ", b"bearer " + word):
            with pytest.raises(Refusal, match=r"^unauthorized$"):
                token.require(wrong)


@pytest.mark.parametrize("content", [b"", b" \n", b"two words", b"\xff\xfe", "ö".encode()])
def test_files_without_a_token(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match=r"--token-file .*token'"):
        read_token(str(path))
    with pytest.raises(ArgumentError, match="cannot be read"):
        read_token(str(tmp_path / "missing"))
