from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from delegraph.plugins import installed

BASH = shutil.which("bash")
FOLDER = Path(sys.executable).parent

COMPLETE = """\
eval "$(_DELEGRAPH_COMPLETE=bash_source delegraph)"
compopt() { FILES=1; }
COMP_WORDS=(delegraph "$@")
COMP_CWORD=$#
_delegraph_completion delegraph
printf '%s\\n' "${COMPREPLY[@]}" ${FILES:+files}
"""


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.skipif(not (FOLDER / "delegraph").exists(), reason="delegraph is not installed here")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["insp"], {"inspect"}),
        (["plugins", "d"], {"doctor"}),
        (["explain", "--partition-policy", ""], {"largest", "measured"}),
        (["run", "--sign"], {"--signature"}),
        (["run", "mod"], {"files"}),
        (["run", "m.tflite", "--delegate", "add"], {"add_sub"}),
        (["plugins", "info", "si"], {"sin"}),
        (["fle"], {"flex"}),
        (["nothing-starts-so"], {""}),
    ],
)
def test_bash_completes(words: list[str], expected: set[str]) -> None:
    plugins = installed()
    known = {offer.spec.name for offer in plugins.offers()} | set(plugins.commands())
    if not expected & {"add_sub", "sin", "flex"} <= known:
        pytest.skip(f"{expected} is not installed")
    done = subprocess.run(
        [str(BASH), "--norc", "-c", COMPLETE, "bash", *words],
        env=os.environ | {"PATH": f"{FOLDER}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert expected <= set(done.stdout.split("\n"))
