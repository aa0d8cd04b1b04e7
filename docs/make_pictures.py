"""Makes the SVG pictures of README and of these pages: ``python docs/make_pictures.py``.

- ``hosts.svg``: a model's graph, cut by a delegate, and the hosts that run it so;
- ``badge-....svg``: what holds of the project, read from ``pyproject.toml`` and ``operators.md``;
- pictures of commands: what a terminal shows, drawn by Rich. Times that differ from run to run are
  replaced by an ellipsis.

All follow the reader's light or dark colours. ``tests/docs/test_pictures.py`` makes them again and
compares. Needs the example plugin.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from delegraph import Interpreter
from delegraph.graph import load_model

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
MODELS = "docs/demo/models"

COMMANDS = {
    "explain": f"delegraph explain {MODELS}/digits_float.tflite --delegate add_sub",
    "bisect": f"delegraph diff {MODELS}/sines.tflite --delegate-file docs/demo/wrong_sines.py "
    "--tolerance 1e-3 --bisect build/found",
    "inspect": f"delegraph inspect {MODELS}/digits_int8.tflite",
    "memory": f"delegraph memory {MODELS}/digits_int8.tflite --align 16",
    "micro": f"delegraph memory {MODELS}/digits_int8.tflite --micro",
}
"""Name of a picture, and the command whose output it shows."""

WIDTH = 100  # columns of the terminal
MILLISECONDS = re.compile(r"(?<=  )( *)\d+\.\d\d(?=\s*$)", re.MULTILINE)

COLOURS = {
    "light": "#ffffff #1f2937 #b91c1c #15803d #a16207 #1d4ed8 #7e22ce #0e7490 #6b7280",
    "dark": "#111827 #e5e7eb #fca5a5 #86efac #fde047 #93c5fd #d8b4fe #67e8f9 #9ca3af",
}
"""Of terminals: background, text, red, green, yellow, blue, magenta, cyan, grey."""


def theme(name: str) -> TerminalTheme:
    """Return the colours of a terminal as Rich takes them."""
    background, text, *others = [
        (int(c[1:3], 16), int(c[3:5], 16), int(c[5:7], 16)) for c in COLOURS[name].split()
    ]
    return TerminalTheme(background, text, [text, *others])


TERMINAL = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {terminal_width} {terminal_height}" role="img">
<title>TITLE</title>
<style>
.{unique_id}-matrix {{
  font: {char_height}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}}
.screen {{ fill: #ffffff; stroke: #d1d5db; stroke-width: 3px; }}
{styles}
@media (prefers-color-scheme: dark) {{
.screen {{ fill: #111827; stroke: #374151; }}
DARK
}}
</style>
<defs>
{lines}
</defs>
<rect class="screen" width="{terminal_width}" height="{terminal_height}" rx="8"/>
<g transform="translate(18, 16)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def terminal(name: str) -> str:
    """Picture of a command and its output, as a terminal shows them."""
    command = COMMANDS[name]
    run = subprocess.run(
        [sys.executable, "-m", "delegraph", *shlex.split(command)[1:]],
        cwd=ROOT,
        env={
            **os.environ,
            "COLUMNS": str(WIDTH),
            "DELEGRAPH_CONFIG": "",
            "DELEGRAPH_DEFAULT_DELEGATES": "",
            "FORCE_COLOR": "1",
            "PYTHONUTF8": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if run.returncode not in (0, 1):
        raise SystemExit(f"{command}\n{run.stdout}")
    plain = Text.from_ansi(run.stdout)
    times = [(m.start(), m.end()) for m in MILLISECONDS.finditer(plain.plain)]
    has_times = re.search(r"\bms *$", plain.plain, re.MULTILINE) is not None
    return drawn(name, command, plain, times if has_times else [])


def drawn(name: str, command: str, output: Text, times: list[tuple[int, int]]) -> str:
    """Draw a command and its output; *times* are the spans that an ellipsis replaces."""
    for start, end in reversed(times):
        output = output[:start] + Text("…".rjust(end - start)) + output[end:]
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(file=nowhere, record=True, width=WIDTH + 3, force_terminal=True)
        console.print(Text("$ ", "green") + Text(command, "bold"), soft_wrap=False)
        console.print(output)
        console.print()  # room below
        dark = console.export_svg(
            theme=theme("dark"), code_format="{styles}", unique_id=name, clear=False
        )
        styles = dark.strip().replace("{", "{{").replace("}", "}}")
        form = TERMINAL.replace("TITLE", escape(command)).replace("DARK", styles)
        return console.export_svg(theme=theme("light"), code_format=form, unique_id=name)


HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 340" role="img">
<title>A delegate takes two of a graph's five nodes; three hosts run the graph with it</title>"""

PALETTE = """\
<style>
svg { --page: #ffffff; --card: #f8fafc; --line: #cbd5e1; --ink: #1f2937; --soft: #64748b;
  --mine: #ccfbf1; --mine-line: #0d9488; --mine-ink: #115e59; --cut: #c2410c; }
@media (prefers-color-scheme: dark) { svg { --page: #111827; --card: #1f2937; --line: #475569;
  --ink: #e5e7eb; --soft: #94a3b8; --mine: #134e4a; --mine-line: #2dd4bf; --mine-ink: #ccfbf1;
  --cut: #fb923c; } }
text { fill: var(--ink);
  font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
.code { white-space: pre;
  font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.head { font-size: 16px; font-weight: 600; }
.soft { fill: var(--soft); }
.middle { font-weight: 600; text-anchor: middle; }
.page { fill: var(--page); }
.card { fill: var(--card); stroke: var(--line); }
.box { fill: var(--page); stroke: var(--soft); stroke-width: 1.5; }
.mine { fill: var(--mine); stroke: var(--mine-line); stroke-width: 2; }
.in-mine { fill: var(--mine-ink); }
.edge { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.crossing { stroke: var(--cut); stroke-width: 2.5; }
.tip { fill: var(--soft); }
.tip-crossing { fill: var(--cut); }
</style>
<defs>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9"
 markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" class="tip"/></marker>
<marker id="tip-crossing" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="11" markerHeight="11"
 markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" class="tip-crossing"/></marker>
</defs>
"""

PLACES = {
    None: (40, 176),
    0: (116, 116),
    1: (206, 116),
    2: (116, 236),
    3: (206, 236),
    4: (294, 176),
}
"""Middle of each node of sines.tflite, by its number; None is the model's input."""

HOSTS = (
    ("Delegraph's Interpreter", "the rest: numba_cpu or NumPy"),
    ("LiteRT's Interpreter", "the rest: XNNPACK"),
    ("LiteRT's CompiledModel", "the rest: XNNPACK"),
)

CODE = """\
class SinDelegate(...):
  def is_node_supported_by_…:
    name = registration.name
    return name == "SIN"

class SinKernel(...):
  def prepare_node(self, call):
    x = call.input(0)
    y = call.output()
    return lambda: np.sin(
      x.data, out=y.data)"""
"""What the middle shows: a delegate, shortened."""


def text(x: float, y: float, words: str, style: str = "") -> str:
    """Line of text; *style* names its classes."""
    return f'<text x="{x}" y="{y}" class="{style}">{escape(words, quote=False)}</text>'


def box(x: float, y: float, width: float, height: float, style: str, radius: int = 6) -> str:
    """Rectangle with its corner at (x, y)."""
    size = f'width="{width}" height="{height}" rx="{radius}"'
    return f'<rect x="{x}" y="{y}" {size} class="{style}"/>'


def node(middle: tuple[float, float], op: str, mine: bool, width: float = 58) -> str:
    """Box of a node with the operator's name, coloured if the delegate runs the node."""
    x, y = middle
    shape = box(x - width / 2, y - 17, width, 34, "mine" if mine else "box")
    return shape + text(x, y + 5, op, "middle in-mine" if mine else "middle")


def edge(start: tuple[float, float], end: tuple[float, float], crossing: bool) -> str:
    """Arrow between two nodes; *crossing* says whether it crosses a partition boundary."""
    (x0, y0), (x1, y1) = start, end
    kind = "crossing" if crossing else ""
    tip = "tip-crossing" if crossing else "tip"
    path = f"M{x0} {y0}C{(x0 + x1) / 2} {y0} {(x0 + x1) / 2} {y1} {x1} {y1}"
    return f'<path d="{path}" class="edge {kind}" marker-end="url(#{tip})"/>'


def graph(ops: dict[int, str], mine: set[int], edges: list[tuple[int | None, int]]) -> list[str]:
    """Nodes of sines.tflite and the tensors between them."""
    drawn = [
        edge(
            (PLACES[a][0] + (12 if a is None else 29), PLACES[a][1]),
            (PLACES[b][0] - 30, PLACES[b][1] + (8 if (a, b) == (None, 1) else 0)),
            a is not None and (a in mine) != (b in mine),
        )
        for a, b in edges
        if (a, b) != (None, 1)
    ]
    x, y = PLACES[1]
    drawn.append(  # x goes to the first ADD as well, below the first SIN
        f'<path d="M52 176C{x - 60} 176 {x - 50} {y + 60} {x - 8} {y + 19}" class="edge" '
        'marker-end="url(#tip)"/>'
    )
    drawn += [node(PLACES[i], op, i in mine) for i, op in ops.items()]
    x, y = PLACES[None]
    return [
        *drawn,
        f'<circle cx="{x}" cy="{y}" r="12" class="box"/>',
        text(x, y + 4, "x", "middle"),
    ]


def hosts() -> str:
    """Picture of a graph partitioned by the delegate ``sin``, and of three hosts that run it."""
    path = ROOT / MODELS / "sines.tflite"
    with Interpreter(path, delegates=["sin"]) as interpreter:
        nodes = interpreter.placement.nodes
    ops = {n.index: n.op for n in nodes}
    mine = {n.index for n in nodes if n.delegate == "sin"}
    operators = load_model(path).subgraphs[0].operators
    made_by = {tensor: i for i, one in enumerate(operators) for tensor in one.outputs}
    edges = [
        (made_by.get(tensor), i)
        for i, one in enumerate(operators)
        for tensor in one.inputs
        if tensor in made_by or tensor == 0
    ]
    parts = [
        box(0, 0, 960, 340, "page", 10),
        *(box(x, 56, w, 264, "card", 10) for x, w in ((16, 322), (364, 262), (652, 292))),
        text(16, 36, "A model's graph, cut", "head"),
        text(364, 36, "by your delegate, in Python", "head"),
        text(652, 36, "runs in three hosts", "head"),
        *graph(ops, mine, edges),
        text(32, 304, "orange: tensors that cross the cut", "soft"),
        *(text(378, 86 + 19 * i, line, "code") for i, line in enumerate(CODE.split("\n"))),
        *(f'<path d="M{x + 2} 188h22" class="edge" marker-end="url(#tip)"/>' for x in (338, 626)),
    ]
    for i, (name, rest) in enumerate(HOSTS):
        y = 64 + 84 * i
        parts += [text(668, y + 17, name)]
        parts += [node((693 + 53 * j, y + 41), op, j in mine, 48) for j, op in ops.items()]
        parts += [text(668, y + 75, rest, "soft")]
    return "\n".join([HEAD, PALETTE, *parts, "</svg>"]) + "\n"


BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img">
<title>{label}: {value}</title>
<style>
.label {{ fill: #475569; }} .value {{ fill: #0f766e; }}
@media (prefers-color-scheme: dark) {{ .label {{ fill: #334155; }} .value {{ fill: #115e59; }} }}
text {{ font: 11px Verdana, "DejaVu Sans", sans-serif; fill: #ffffff; text-anchor: middle; }}
</style>
<rect class="label" width="{width}" height="20" rx="3"/>
<path class="value" d="M{left} 0H{edge}a3 3 0 0 1 3 3V17a3 3 0 0 1-3 3H{left}z"/>
<text x="{label_middle}" y="14">{label}</text>
<text x="{value_middle}" y="14">{value}</text>
</svg>
"""


def badge(label: str, value: str) -> str:
    """Small picture with a label and a value."""
    left, right = (round(7.2 * len(words)) + 14 for words in (label, value))
    return BADGE.format(
        label=label,
        value=value,
        left=left,
        width=left + right,
        edge=left + right - 3,
        label_middle=left / 2,
        value_middle=left + right / 2,
    )


def badges() -> dict[str, tuple[str, str]]:
    """Label and value of each badge, by the picture's name."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pythons = re.findall(r"Python :: (3\.\d+)", " ".join(settings["project"]["classifiers"]))
    operators = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    counts = re.search(r"Builtin operators: (\d+ of \d+)", operators)
    assert counts is not None
    return {
        "python": ("Python", f"{pythons[0]} to {pythons[-1]}"),
        "licence": ("licence", settings["project"]["license"].split(" AND ")[0]),
        "operators": ("builtin operators", counts[1]),
        "types": ("types", "mypy strict" if settings["tool"]["mypy"]["strict"] else "some"),
    }


PICTURES: dict[str, Callable[[], str]] = {
    "hosts.svg": hosts,
    **{f"badge-{name}.svg": partial(badge, *words) for name, words in badges().items()},
    **{f"{name}.svg": partial(terminal, name) for name in COMMANDS},
}
"""File of each picture, and the function that draws it."""


def main() -> None:
    """Write all pictures."""
    for name, draw in PICTURES.items():
        FOLDER.joinpath(name).write_text(draw(), encoding="utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
