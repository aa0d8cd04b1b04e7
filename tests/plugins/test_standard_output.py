from __future__ import annotations

import os
import sys

import pytest

from delegraph.plugins.standard_output import printed_to_stderr

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="descriptors are other there")


def say(text: str) -> None:
    print(text, flush=True)
    os.write(1, text.encode() + b"\n")


def test_what_is_printed_meanwhile_goes_to_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    print("before", end=" ")  # held back by Python; it belongs to standard output still
    with printed_to_stderr():
        say("meanwhile")
    say("after")
    out, err = capfd.readouterr()
    assert (out.split(), err.split()) == (["before", "after", "after"], ["meanwhile"] * 2)


def test_the_last_of_several_undoes_it_in_whatever_order(capfd: pytest.CaptureFixture[str]) -> None:
    first, second = printed_to_stderr(), printed_to_stderr()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    say("one")
    second.__exit__(None, None, None)
    say("none")
    out, err = capfd.readouterr()
    assert (out.split(), err.split()) == (["none"] * 2, ["one"] * 2)


def test_an_error_undoes_it_as_well(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), printed_to_stderr():
        raise KeyboardInterrupt
    say("after")
    assert capfd.readouterr().out.split() == ["after"] * 2
