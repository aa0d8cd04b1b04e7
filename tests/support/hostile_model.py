"""A model whose texts try to leave the page's script and markup."""

from __future__ import annotations

from pathlib import Path

from delegraph.testing import graph_model

SCRIPT = "</script><script>window.hacked=1</script>"
COMMENT = "<!--<script>"
IMAGE = "<img/src=x/onerror=window.hacked=1>"
ATTRIBUTE = "\"><svg/onload='window.hacked=1'>"
STEERING = "a\u202eb\u2028c\x1b[2J\ud800"
TEMPLATE = "$policy${data}{{constructor}}`${window.hacked=1}`"
TEXTS = (SCRIPT, COMMENT, IMAGE, ATTRIBUTE, TEMPLATE)


def hostile_model(folder: Path) -> Path:
    """Write a model whose file, tensors and operators have hostile names."""
    path = folder / "<img src=x onerror=window.hacked=1>$policy.tflite"
    nodes = [
        ("ADD", f"{SCRIPT} {SCRIPT}", COMMENT),
        (IMAGE, COMMENT, IMAGE),
        (SCRIPT, IMAGE, ATTRIBUTE),
        ("SIN", ATTRIBUTE, TEMPLATE),
    ]
    path.write_bytes(graph_model(nodes, inputs=SCRIPT, outputs=TEMPLATE))
    return path
