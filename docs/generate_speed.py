"""Writes the generated part of ``speed.md`` and its pictures, from the results in ``speed.json``.

    python docs/generate_speed.py

``tests/benchmarks/networks.py --page`` measures, keeps the results and runs this. The names of
networks, and where they are published, are in ``speed_networks.json``. Pictures follow the
reader's light or dark colours. ``tests/docs/test_speed.py`` makes both again and compares.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RESULTS, NAMES = FOLDER / "speed.json", FOLDER / "speed_networks.json"
PAGE, PICTURE = FOLDER / "speed.md", FOLDER / "pictures" / "speed.svg"
ROOFS = FOLDER / "pictures" / "roofs.svg"

BEGIN, END = "<!-- Written by docs/generate_speed.py -->", "<!-- to here -->"

BASE = "XNNPACK"
ORDER = ("numba_cpu", "OpenVINO", "ONNX Runtime", "TFLite builtin", "core")
"""The runtimes that are compared with XNNPACK; levels of numba_cpu follow it."""

Entry = dict[str, Any]
"""A network with a number of threads and the results of all runtimes."""

Names = dict[str, dict[str, str]]
"""Mapping from each network to its name and where it is published."""


# -- the page --------------------------------------------------------------------------------------


def part(kept: dict[str, Any]) -> str:
    """Return the generated part of the page."""
    names = json.loads(NAMES.read_text(encoding="utf-8"))
    entries: list[Entry] = kept["networks"]
    runtimes = _runtimes(entries)
    lines = [_machine(kept, entries), "", *_summary(entries, runtimes), ""]
    lines += [f"![Ratio of each runtime's time to XNNPACK's, by network]({_link(PICTURE)})", ""]
    for threads in _threads(entries):
        own = [entry for entry in entries if entry["threads"] == threads]
        lines += [f"### {_in_words(threads).capitalize()}", ""]
        lines += [*_table(own, runtimes, names, _ratio), ""]
    own = [entry for entry in entries if entry["threads"] == min(_threads(entries))]
    shown = [BASE, *runtimes]
    lines += ["### First answer and memory", "", _FIRST, "", *_table(own, shown, names, _start)]
    lines += ["", "### Exactness", "", _EXACT, "", *_table(own, shown, names, _difference)]
    if kept.get("under_load"):
        lines += ["", "### Beside a busy process", "", _LOADED, "", *_loaded(kept, names)]
    if kept.get("roofs"):
        lines += ["", "### How near the roof operators are", "", _REACHED, ""]
        lines += [f"![Share of the roof that operators reach, by family]({_link(ROOFS)})", ""]
        lines += ["The ten slowest operators of all networks:", "", *_slowest(kept, names)]
    return "\n".join(lines)


_FIRST = (
    "Whole processes with one thread: seconds from the start to the first answer, and the most MiB "
    "in memory until\nthen. They start for the second time, so numba_cpu finds its kept programs."
)
_EXACT = (
    "Largest difference to the outputs of TFLite's builtin kernels, on random inputs: in units for "
    "integers, as a\nshare of the largest value for floats."
)


_LOADED = (
    "Milliseconds of single runs, the median and the 99th percentile: alone, and while another "
    "process keeps a processor\nbusy. Each runtime has a process of its own, and they take turns."
)
_REACHED = (
    "The roof is the least time in which the processor could do the work, by its measured peak and "
    "the measured rates of\nits caches and memory ([more](numba-kernels.md#measuring)). A dot is "
    "an operator of a network, with one thread; its\narea is its share of the network's time. "
    "A line is the mean by these shares.\nOperators below 0.5 % of the time are left out."
)


def _link(picture: Path) -> str:
    return picture.relative_to(FOLDER).as_posix()


MOVES = {"TRANSPOSE", "RESHAPE", "SQUEEZE", "EXPAND_DIMS"}
"""Operators that are not named among others of a fused operator."""


def _loaded(kept: dict[str, Any], names: Names) -> Iterator[str]:
    """Yield the table of times beside a busy process."""
    yield "| network | threads | runtime | alone, 50 % | alone, 99 % | busy, 50 % | busy, 99 % |"
    yield "|---|---|---|---|---|---|---|"
    for entry in kept["under_load"]:
        found = {(row["runtime"], row["neighbour"]): row for row in entry["results"]}
        for runtime in dict.fromkeys(row["runtime"] for row in entry["results"]):
            rows = [found[runtime, is_busy]["milliseconds"] for is_busy in (False, True)]
            times = [f"{row[p]:.3g}" for row in rows for p in ("50", "99")]
            yield _line(_linked(entry["network"], names), entry["threads"], runtime, *times)


def _slowest(kept: dict[str, Any], names: Names) -> Iterator[str]:
    """Yield the table of the ten slowest operators."""
    yield "| network | operators | output | ms | share | of the roof | bound by |"
    yield "|---|---|---|---|---|---|---|"
    rows = [(e["network"], each) for e in kept["roofs"] for each in e["operators"]]
    for network, each in sorted(rows, key=lambda row: -row[1]["milliseconds"])[:10]:
        names_of = each["operators"].split("+")
        operators = " + ".join([name for name in names_of if name not in MOVES] or names_of)
        operators += "" if each["delegate"] else " (core)"
        time, share, reached = each["milliseconds"], each["share"], each["of_roof"]
        cells = (operators, each["shape"], time, f"{share:.0%}", f"{reached:.0%}", each["bound"])
        yield _line(_linked(network, names), *cells)


def _machine(kept: dict[str, Any], entries: Sequence[Entry]) -> str:
    """Return the processor and the versions, in a paragraph."""
    chip = kept["machine"]["processor"]
    versions = {r["runtime"]: r["version"] for e in entries for r in e["results"] if not r["error"]}
    names = {BASE: "LiteRT", "core": "Delegraph"}
    told = [f"{names.get(n, n)} {versions[n]}" for n in (*names, *ORDER[1:3]) if n in versions]
    dates = sorted({entry["date"] for entry in entries})
    return (
        f"{chip['name']}, {chip['usable_cores']} cores, {chip['memory'] >> 30} GiB; "
        f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}.\n"
        f"Python {kept['machine']['python']}, {', '.join(told)}. numba_cpu uses the level "
        f"{kept['levels']['numba_cpu']} here."
    )


def _summary(entries: Sequence[Entry], runtimes: Sequence[str]) -> Iterator[str]:
    yield "| threads | runtime | networks | mean | floats | integers | least | most | slower |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for threads in _threads(entries):
        for runtime in runtimes:
            found = {
                (entry["network"], entry["kind"]): result["ratio"]["value"]
                for entry in entries
                for result in entry["results"]
                if (entry["threads"], result["runtime"]) == (threads, runtime) and _counts(result)
            }
            if found:
                floats = [value for (_, kind), value in found.items() if kind == "FLOAT32"]
                others = [value for (_, kind), value in found.items() if kind != "FLOAT32"]
                values = list(found.values())
                cells = (threads, runtime, len(values), *map(_mean, (values, floats, others)))
                ends = (_short(min(values)), _short(max(values)), sum(v > 1 for v in values))
                yield _line(*cells, *ends)


def _counts(result: Entry) -> bool:
    """Return whether a result has a ratio, and not that of the core in place of a delegate."""
    return result["ratio"] is not None and result["taken"] != 0


def _mean(values: Sequence[float]) -> str:
    """Return the geometric mean of ratios; empty without any."""
    return _short(math.exp(sum(map(math.log, values)) / len(values))) if values else ""


def _table(
    entries: Sequence[Entry],
    runtimes: Sequence[str],
    names: Names,
    cell: Callable[[Entry], str],
) -> Iterator[str]:
    """Yield the lines of a table with a row for each network, the slowest of numba_cpu first."""
    has_times = cell is _ratio
    yield _line("network", "type", *(["XNNPACK ms"] if has_times else []), *runtimes)
    yield _line(*["---"] * (2 + has_times + len(runtimes)))
    for entry in sorted(entries, key=lambda entry: (-_order(entry), entry["network"])):
        by_name = {result["runtime"]: result for result in entry["results"]}
        base = by_name.get(BASE)
        milliseconds = f"{base['milliseconds']:.3g}" if base and not base["error"] else ""
        cells = [cell(by_name[name]) if name in by_name else "" for name in runtimes]
        times = [milliseconds] if has_times else []
        yield _line(_linked(entry["network"], names), _kind(entry), *times, *cells)


def _linked(network: str, names: Names) -> str:
    known = names.get(network)
    return network if known is None else f"[{known['name']}]({known['source']})"


def _kind(entry: Entry) -> str:
    return str(entry["kind"]).lower()


def _order(entry: Entry) -> float:
    """Return the ratio of numba_cpu; 0 without one."""
    found = (r["ratio"] for r in entry["results"] if r["runtime"] == "numba_cpu")
    ratio = next(found, None)
    return 0.0 if ratio is None else float(ratio["value"])


def _ratio(result: Entry) -> str:
    ratio = result["ratio"]
    if ratio is None:
        return _no_result(result)
    if result["taken"] == 0:
        return "takes no node"
    value = _short(ratio["value"])
    is_loss = result["runtime"].startswith("numba_cpu") and ratio["value"] > 1
    shown = f"**{value}**" if is_loss else value
    taken = "" if result["taken"] is None or result["taken"] == 1 else f" ({result['taken']:.0%})"
    return f"{shown} [{_short(ratio['low'])}-{_short(ratio['high'])}]{taken}"


def _start(result: Entry) -> str:
    if result["error"]:
        return ""
    memory = "" if result["memory"] is None else f", {result['memory'] >> 20} MiB"
    return f"{result['first_answer']:.2f} s{memory}"


def _difference(result: Entry) -> str:
    if result["error"]:
        return ""
    difference = result["difference"]
    if difference is None:
        return "other shapes"
    return "equal" if difference == 0 else f"{difference:.2g}"


def _no_result(result: Entry) -> str:
    return "not converted" if result["error"].startswith("tf2onnx") else "failed"


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.3g}"


def _threads(entries: Sequence[Entry]) -> list[int]:
    return sorted({entry["threads"] for entry in entries})


def _in_words(threads: int) -> str:
    words = {1: "one", 2: "two", 4: "four", 8: "eight"}
    return f"{words.get(threads, threads)} thread{'s' * (threads != 1)}"


def _runtimes(entries: Sequence[Entry]) -> list[str]:
    """Return the runtimes beside XNNPACK that have results, in a fixed order."""
    found = {result["runtime"] for entry in entries for result in entry["results"]} - {BASE}
    return sorted(found, key=lambda name: (ORDER.index(name.split(" avx")[0]), name))


# -- the picture -----------------------------------------------------------------------------------

DRAWN = {"numba_cpu": "mine", "OpenVINO": "vino", "ONNX Runtime": "onnx", "TFLite builtin": "plain"}
"""The runtimes in the picture, and the classes of their dots; the core is far to the right."""

LEFT, WIDE, STEP, LEAST, MOST = 370, 600, 18, 0.2, 8.0

STYLE = """\
<style>
svg { --page: #ffffff; --line: #cbd5e1; --ink: #1f2937; --soft: #64748b;
  --mine: #0d9488; --vino: #7e22ce; --onnx: #c2410c; --plain: #94a3b8; }
@media (prefers-color-scheme: dark) { svg { --page: #111827; --line: #475569; --ink: #e5e7eb;
  --soft: #94a3b8; --mine: #2dd4bf; --vino: #d8b4fe; --onnx: #fb923c; --plain: #64748b; } }
text { fill: var(--ink);
  font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
.head { font-size: 14px; font-weight: 600; }
.page { fill: var(--page); }
.end { text-anchor: end; }
.middle { text-anchor: middle; fill: var(--soft); }
.line { stroke: var(--line); }
.one { stroke: var(--ink); }
.mine { fill: var(--mine); stroke: var(--mine); }
.vino { fill: var(--vino); stroke: var(--vino); }
.onnx { fill: var(--onnx); stroke: var(--onnx); }
.plain { fill: var(--plain); stroke: var(--plain); }
.dot { fill-opacity: 0.35; stroke-opacity: 0.8; }
</style>"""


def picture(kept: dict[str, Any]) -> str:
    """Return the dot plot of the ratios, a panel for each number of threads, sorted."""
    names = json.loads(NAMES.read_text(encoding="utf-8"))
    parts, top = [_legend(kept["networks"])], 40
    for threads in _threads(kept["networks"]):
        own = [entry for entry in kept["networks"] if entry["threads"] == threads]
        number = _in_words(threads).capitalize()
        title = f"{number}: time divided by that of XNNPACK; left of 1 is faster"
        parts.append(f'<text class="head" x="12" y="{top + 22}">{title}</text>')
        parts += _panel(sorted(own, key=lambda e: (-_order(e), e["network"])), top + 34, names)
        top += 34 + STEP * len(own) + 34
    return _drawn("Ratio of the time of each runtime to XNNPACK's, for each network", parts, top)


def _drawn(about: str, parts: Sequence[str], height: int) -> str:
    """Return a picture of *parts*, with the title *about*."""
    size = f'viewBox="0 0 {LEFT + WIDE + 30} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<title>{about}</title>'
    page = f'<rect class="page" width="100%" height="{height}"/>'
    return "\n".join([head, STYLE, page, *parts, "</svg>"]) + "\n"


def _legend(entries: Sequence[Entry]) -> str:
    found, parts, x = _runtimes(entries), [], LEFT
    for name in (name for name in DRAWN if name in found):
        parts.append(f'<circle class="{DRAWN[name]}" cx="{x}" cy="20" r="4.5"/>')
        parts.append(f'<text x="{x + 10}" y="24">{name}</text>')
        x += 140
    return "\n".join(parts)


def _panel(entries: Sequence[Entry], top: int, names: Names) -> Iterator[str]:
    bottom = top + STEP * len(entries)
    for mark in (0.25, 0.5, 1, 2, 4, 8):
        kind, x = "one" if mark == 1 else "line", _x(mark)
        yield f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'
        yield f'<text class="middle" x="{x}" y="{bottom + 16}">{mark:g}</text>'
    for number, entry in enumerate(entries):
        y = top + STEP * number + STEP // 2
        network = str(entry["network"])
        name = names.get(network, {}).get("name", network)
        kind = f"{escape(name)}, {_kind(entry)}"
        yield f'<text class="end" x="{LEFT - 12}" y="{y + 4}">{kind}</text>'
        by_name = {r["runtime"]: r["ratio"] for r in entry["results"] if _counts(r)}
        for runtime in reversed([name for name in DRAWN if name in by_name]):
            ratio, kind = by_name[runtime], DRAWN[runtime]
            low, high = _x(ratio["low"]), _x(ratio["high"])
            yield f'<line class="{kind}" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>'
            yield f'<circle class="{kind}" cx="{_x(ratio["value"])}" cy="{y}" r="4.5"/>'


def _x(ratio: float) -> float:
    """Return the place of a ratio on the logarithmic axis; what is beyond its ends is at them."""
    bounded = min(MOST, max(LEAST, ratio))
    return round(LEFT + WIDE * math.log(bounded / LEAST) / math.log(MOST / LEAST), 1)


# -- the picture of roofs --------------------------------------------------------------------------

FAMILIES = (
    ("convolutions in one", {"CONV_2D", "DEPTHWISE_CONV_2D"}),
    ("CONV_2D", {"CONV_2D"}),
    ("DEPTHWISE_CONV_2D", {"DEPTHWISE_CONV_2D"}),
    ("TRANSPOSE_CONV", {"TRANSPOSE_CONV"}),
    ("FULLY_CONNECTED", {"FULLY_CONNECTED"}),
    ("attention", {"BATCH_MATMUL", "SOFTMAX"}),
    ("BATCH_MATMUL", {"BATCH_MATMUL"}),
    ("others", set[str]()),
)
"""Families: an operator, fused or not, is in the first whose names it has."""

ROW, FULL = 40, 1.0


def roofs_picture(kept: dict[str, Any]) -> str:
    """Return the picture of the share of the roof that operators reach, by family and type."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in kept.get("roofs", ()):
        kind = "float32" if entry["kind"] == "FLOAT32" else "integers"
        for each in entry["operators"]:
            if each["delegate"]:
                found.setdefault((_family(each["operators"]), kind), []).append(each)
    order = [(name, kind) for name, _ in FAMILIES for kind in ("float32", "integers")]
    rows = [key for key in order if key in found]
    top, bottom = 40, 40 + ROW * len(rows)
    title = "Share of the roof that operators reach, one thread"
    parts = [f'<text class="head" x="12" y="24">{title}</text>']
    for mark in (0, 0.2, 0.4, 0.6, 0.8, 1):
        x = _roof_x(mark)
        kind = "one" if mark == FULL else "line"
        parts.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>')
        parts.append(f'<text class="middle" x="{x}" y="{bottom + 16}">{mark:.0%}</text>')
    for number, key in enumerate(rows):
        parts += _roof_row(key, found[key], top + ROW * number + ROW // 2)
    return _drawn(title, parts, bottom + 30)


def _roof_row(key: tuple[str, str], operators: Sequence[Entry], y: int) -> Iterator[str]:
    kind = "mine" if key[1] == "float32" else "onnx"
    yield f'<text class="end" x="{LEFT - 12}" y="{y + 4}">{", ".join(key)}</text>'
    for each in sorted(operators, key=lambda each: -each["share"]):
        radius = round(1 + 16 * math.sqrt(each["share"]), 1)
        yield f'<circle class="{kind} dot" cx="{_roof_x(each["of_roof"])}" cy="{y}" r="{radius}"/>'
    shares = sum(each["share"] for each in operators)
    mean = sum(each["share"] * min(each["of_roof"], FULL) for each in operators) / shares
    x = _roof_x(mean)
    yield f'<line class="one" x1="{x}" x2="{x}" y1="{y - 16}" y2="{y + 16}"/>'


def _family(operators: str) -> str:
    names = set(operators.split("+"))
    return next(family for family, wanted in FAMILIES if wanted <= names)


def _roof_x(share: float) -> float:
    """Return the place of a share of the roof; what is above it is at it."""
    return round(LEFT + WIDE * min(share, FULL), 1)


# -- files -----------------------------------------------------------------------------------------


def page(text: str, kept: dict[str, Any]) -> str:
    """Return the text of the page with the generated part made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{part(kept)}\n{END}{after}"


def main() -> None:
    """Write the page and the pictures."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), kept), encoding="utf-8")
    PICTURE.write_text(picture(kept), encoding="utf-8")
    if kept.get("roofs"):
        ROOFS.write_text(roofs_picture(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
