from __future__ import annotations

import os
import subprocess
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


def test_no_descriptor_remains_open() -> None:
    before = os.dup(1)
    os.close(before)
    with printed_to_stderr():
        pass
    after = os.dup(1)
    os.close(after)
    assert after == before, "the system gives the lowest number that is free"


def test_an_error_undoes_it_as_well(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), printed_to_stderr():
        raise KeyboardInterrupt
    say("after")
    assert capfd.readouterr().out.split() == ["after"] * 2


WAITS = """
import ctypes, os, threading
from delegraph.plugins.standard_output import printed_to_stderr

c = ctypes.CDLL(None)
stdin = ctypes.c_void_p.in_dll(c, "stdin")
c.flockfile(stdin)  # as a thread has it that waits for a line
def exchange():
    with printed_to_stderr():
        print("meanwhile")
thread = threading.Thread(target=exchange)
thread.start()
thread.join()
print("after")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="C's streams have other names there")
def test_a_thread_that_waits_for_input_is_no_obstacle() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WAITS], capture_output=True, text=True, check=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("after\n", "meanwhile\n")
