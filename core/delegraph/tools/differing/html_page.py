"""HTML page with the differences of two set-ups, as one file without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from html import escape

from delegraph.delegation.tolerance import Tolerance
from delegraph.quantities import plural
from delegraph.tools.differing.cause import Cause
from delegraph.tools.differing.difference import Difference, OutputDifference
from delegraph.tools.differing.difference_texts import (
    ONE_TIME,
    alone_texts,
    latency_columns,
    layer_figures,
    layers_run,
    number,
    output_facts,
    uncompared_layers,
    unequal_elements,
)
from delegraph.tools.differing.layer_difference import LayerDifference, LayersDifference
from delegraph.tools.differing.tolerances import Tolerances
from delegraph.tools.differing.verdict import Verdict
from delegraph.tools.page_origin import origin_text

_LONGEST_NAME = 60

_INFINITE = 1024  # exponent of a histogram
_MOST_BARS = 60
_WIDTH, _HEIGHT = 640, 150

_STYLE = """
:root { color-scheme: light dark; --text: #1c1e21; --dim: #5c6470; --line: #d5d9df;
  --page: #ffffff; --bar: #0072b2; --alone: #b34700; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e7eb; --dim: #9aa4b1; --line: #3a4049;
  --page: #16181c; --bar: #56b4e9; --alone: #e69f00; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  margin: 2rem auto; max-width: 72rem; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.35rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } h3 { font-size: 1rem; }
.dim, caption { color: var(--dim); } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line); } .number { text-align: right; }
svg { display: block; }
figure { margin: 1rem 0 0; }
figure svg { max-width: 100%; height: auto; overflow: visible; }
svg text { fill: var(--dim); font-size: 11px; }
.bar { fill: var(--bar); } .alone { fill: var(--alone); } .axis { stroke: var(--line); }
.off { color: var(--alone); font-weight: 600; }
.layers table { width: 100%; } .layers .name { min-width: 5rem; width: 100%; }
td.name { max-width: 0; overflow: hidden; text-overflow: ellipsis; }
.runner { min-width: 5.5rem; white-space: normal; }
td svg { height: 18px; width: 110px; } wbr { display: none; }
:target { outline: 2px solid var(--alone); }
a { color: inherit; } footer { margin-top: 2rem; font-size: .85rem; }
@media (max-width: 76rem) {
  .operator { min-width: 5.8rem; white-space: normal; } wbr { display: inline; }
  td svg { width: 5.5rem; }
}
@media (max-width: 40rem) {
  body { padding: 0 .6rem; }
  th, td { padding-right: .4rem; vertical-align: top; white-space: normal;
    overflow-wrap: break-word; }
  figure svg text { font-size: 18px; } table { font-size: .85rem; }
}
@media (max-width: 60rem) {
  .layers :is(table, tbody, tr) { display: block; }
  .layers thead { position: absolute; overflow: hidden; width: 1px; height: 1px;
    clip-path: inset(50%); }
  .layers tr { padding: .4rem 0; border-bottom: 1px solid var(--line); }
  .layers td { display: grid; grid-template-columns: 6.6rem minmax(0, 1fr); padding: 0; border: 0;
    text-align: left; white-space: normal; max-width: none; }
  .layers td:empty { display: none; }
  .layers td::before { content: attr(data-title); color: var(--dim); font-weight: normal; }
}
"""

_WAYS = (("drift", "drift dB"), ("same inputs", "same dB"))
"""Headings of the greatest difference and the SNR of a layer, for each way to compare it."""

_FIGURES = {"mean": "mean", "max": "max", "p999": "p99.9", "snr_db": "SNR dB", "cosine": "cosine"}


def difference_page(
    found: Difference,
    verdict: Verdict,
    layers: LayersDifference | None = None,
    cause: Cause | None = None,
    *,
    command: str = "",
    worst_first: bool = False,
) -> str:
    """HTML page: verdict, cause, set-ups, a histogram for each output, and the layers.

    Args:
        found: differences of the outputs.
        verdict: the verdict on them.
        layers: differences of all tensors; None leaves them out.
        cause: reason why outputs are beyond the tolerance; None if it was not searched.
        command: the command line that makes the page, for its footer.
        worst_first: whether the noisiest layer is first.
    """
    nodes = set() if layers is None else {layer.node for layer in layers.shown()}
    parts = [
        f"<h1>{_linked_verdict(verdict, nodes)}</h1>",
        *([] if cause is None else [f"<p>Cause: {_linked(cause.in_words(_shortened), nodes)}</p>"]),
        _setup("test", str(found.test), str(found.test_placement)),
        _setup("reference", str(found.reference), str(found.reference_placement)),
        f"<p class=dim>{_runs(found.runs)}</p>",
        *(f"<p class=dim>{escape(text)}</p>" for text in _tolerances(found.tolerance)),
        *(f"<p>{escape(note)}</p>" for note in found.notes),
        "<h2>Outputs</h2>",
        *(_output(output, found.runs) for output in found.outputs),
        *(f"<p>{escape(text)}</p>" for text in alone_texts(found)),
        _latency(found),
    ]
    if layers is not None:
        parts.append(_layers(layers, layers_run(layers, found), worst_first=worst_first))
    made = f"<code>{escape(command)}</code>" if command else ""
    parts.append(f"<footer class=dim>{escape(origin_text())} {made}</footer>")
    title = escape(f"{found.test} against {found.reference}")
    return (
        '<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content="width='
        f'device-width, initial-scale=1"><title>{title}</title><style>{_STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</html>\n"
    )


def _linked_verdict(verdict: Verdict, nodes: Set[int]) -> str:
    """Return the verdict as HTML; one that names a partition is as a whole a link to its node."""
    text = _linked(verdict.text, nodes)
    if "<a " in text or verdict.node not in nodes:
        return text
    return f'<a href="#node-{verdict.node}">{text}</a>'


def _linked(text: str, nodes: Set[int]) -> str:
    """Return *text* as HTML in which each name of a node links to its row, if *nodes* has it."""

    def link(match: re.Match[str]) -> str:
        is_shown = int(match[1]) in nodes
        return f'<a href="#node-{match[1]}">{match[0]}</a>' if is_shown else match[0]

    return re.sub(r"node (\d+) \(\w+\)", link, escape(text))


def _shortened(name: str) -> str:
    """Return the name of a tensor without its middle if it is long."""
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]}...{name[-half:]}"


def _setup(side: str, setup: str, placement: str) -> str:
    placed = f"<span class=dim>{escape(placement)}</span>"
    return f"<p>{side}: <b>{escape(setup)}</b><br>{placed}</p>"


def _runs(runs: tuple[str, ...]) -> str:
    fed = runs[0] if runs[0] == runs[-1] else f"{runs[0]} to {runs[-1]}"
    return escape(f"{plural(len(runs), 'run')}: {fed}")


def _tolerances(tolerance: Tolerances | None) -> Iterable[str]:
    """Yield a text for each given tolerance, with the output's name if it is for one output."""
    given = {"": tolerance} if isinstance(tolerance, Tolerance) else tolerance or {}
    for name, each in given.items():
        relative = f" + {each.relative:g} of the reference" if each.relative else ""
        yield f"tolerance{f' of {name}' if name else ''}: {each.absolute:g}{relative}"


def _output(output: OutputDifference, runs: tuple[str, ...]) -> str:
    kind = output.dtype
    if output.reference_dtype != kind:
        kind += f" / {output.reference_dtype}"
    text = f"<h3>{escape(output.name)}</h3>"
    text += f"<p>{escape(kind)}; {unequal_elements(output)} elements differ</p>"
    compared = output.compared()
    if compared and not output.are_strings:
        names = ["mean", "max", "p999"] if output.are_labels else list(_FIGURES)
        figures = {_FIGURES[name]: f"{output.shown(name):.4g}" for name in names}
        ulp = [d.max_units for d in output.runs if d.unit == "ulp" and d.max_units is not None]
        figures |= {"ULP": number(max(ulp))} if ulp else {}
        text += _table(list(figures), [list(figures.values())], left=0)
    text += "".join(f"<p>{escape(fact)}</p>" for fact in output_facts(output, runs))
    counts = {} if output.are_strings else histogram_of(output)
    return text + (_histogram(counts) if counts and compared else "")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table whose first *left* columns are words, and all others numbers."""
    kinds = [*[""] * left, *[" class=number"] * (len(heads) - left)]

    def line(tag: str, cells: Sequence[str]) -> str:
        pairs = zip(kinds, cells, strict=True)
        return f"<tr>{''.join(f'<{tag}{kind}>{escape(cell)}</{tag}>' for kind, cell in pairs)}</tr>"

    text = line("th", heads) + "".join(line("td", row) for row in rows)
    return f"<div class=wide><table>{text}</table></div>"


def _latency(found: Difference) -> str:
    note = f"<p class=dim>{escape(ONE_TIME)}</p>" if len(found.runs) == 1 else ""
    return f"<h2>Latency</h2>{_table(*latency_columns(found))}{note}"


def histogram_of(output: OutputDifference) -> dict[int, int]:
    """Return how many elements of an output differ by about ``2 ** exponent``, over all runs.

    The keys are the exponents.
    """
    total: dict[int, int] = {}
    for difference in output.runs:
        for exponent, count in difference.histogram.items():
            total[exponent] = total.get(exponent, 0) + count
    return total


def _histogram(counts: Mapping[int, int]) -> str:
    """Return a drawing of *counts* with a bar for each exponent, as high as its count."""
    ends = low, high = _ends([counts])
    bottom = _HEIGHT - 20
    labels = _labels(low, high, has_infinite=_INFINITE in counts)
    axis = f'<path class=axis d="M0 {bottom}H{_WIDTH}"/>'
    most = plural(max(counts.values()), "element")
    top = f'<text x="0" y="12">{most} at the highest bar</text>'
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role=img '
        f'aria-label="histogram of the absolute differences">{top}'
        f"{_bars(counts, ends, _WIDTH, (20, bottom))}{axis}{labels}</svg>"
        "<figcaption class=dim>absolute differences of the elements that differ; each bar is a "
        "factor of two</figcaption></figure>"
    )


def _strip(counts: Mapping[int, int], ends: tuple[int, int]) -> str:
    """Return a small histogram of *counts* without labels, from exponent *ends[0]* to *ends[1]*."""
    bars = _bars(counts, ends, 220, (0, 18))
    return f'<svg viewBox="0 0 220 18">{bars}</svg>'


def _bars(
    counts: Mapping[int, int], ends: tuple[int, int], width: int, rows: tuple[int, int]
) -> str:
    """Return the bars of a histogram as SVG.

    Args:
        counts: number of elements by exponent.
        ends: the smallest and the greatest exponent of the scale; smaller exponents are drawn at
            its left end, infinities at its right end.
        width: width of the drawing.
        rows: y coordinates of top and bottom of the highest bar.
    """
    low, high = ends
    shown: dict[int, int] = {}
    for exponent, count in counts.items():
        place = min(max(exponent, low), high)
        shown[place] = shown.get(place, 0) + count
    most, step, bars = max(shown.values(), default=1), width / (high - low + 1), []
    for place, count in sorted(shown.items()):
        height = max(1.5, (rows[1] - rows[0]) * count / most)
        is_infinite = place == high and _INFINITE in counts
        words = "infinite" if is_infinite else f"{_edge(place)} to {_edge(place + 1)}"
        bars.append(
            f'<rect class={"alone" if is_infinite else "bar"} x="{(place - low) * step:.1f}" '
            f'y="{rows[1] - height:.1f}" width="{max(1.0, step - 1):.1f}" height="{height:.1f}">'
            f"<title>{words}: {count}</title></rect>"
        )
    return "".join(bars)


def _labels(low: int, high: int, *, has_infinite: bool) -> str:
    step = _WIDTH / (high - low + 1)
    every = max(1, round(90 / step))
    return "".join(
        f'<text x="{(exponent - low) * step:.1f}" y="{_HEIGHT - 5}">{_edge(exponent)}</text>'
        for exponent in range(low, high + 1 - has_infinite, every)
        if (exponent - low) * step < _WIDTH - 70
    ) + (f'<text x="{_WIDTH - 40}" y="{_HEIGHT - 5}">infinite</text>' if has_infinite else "")


def _edge(exponent: int) -> str:
    return f"{2.0**exponent:.2g}" if exponent < _INFINITE else "infinite"


def _ends(histograms: Iterable[Mapping[int, int]]) -> tuple[int, int]:
    """Return the smallest and greatest exponent to draw.

    If there are infinite differences, the greatest exponent is one more, and stands for them.

    Args:
        histograms: numbers of elements by exponent.
    """
    found = {exponent for counts in histograms for exponent in counts}
    finite = found - {_INFINITE} or {0}
    high = max(finite)
    return max(min(finite), high - _MOST_BARS), high + (_INFINITE in found)


def _layers(layers: LayersDifference, run: str, *, worst_first: bool) -> str:
    shown = layers.shown(worst_first=worst_first)
    ways = _WAYS[: 1 + layers.same_inputs_say_more]
    rows = [(layer, [layer.drift, layer.same_inputs][: len(ways)]) for layer in shown]
    counts = [histogram_of(each) for _, found in rows for each in found if each is not None]
    ends = _ends(counts)
    texts = [run, *layers.notes]
    notes = "".join(f"<p>{escape(text)}</p>" for text in texts if text)
    more = "".join(f"<p class=dim>{escape(text)}</p>" for text in uncompared_layers(layers))
    drawn = "All compared tensors are equal."
    if any(counts):
        has_infinite = any(_INFINITE in each for each in counts)
        right = "infinite" if has_infinite else _edge(ends[1] + 1)
        drawn = (
            "The figures are the greatest differences, coloured beyond the numerics profile, with "
            "histograms of the absolute differences, all on one scale: "
            f"{_edge(ends[0])} at the left end, {right} at the right."
        )
    heads = "".join(
        f"<th class=number>{far}</th><th class=number>{db}</th><th></th>" for far, db in ways
    )
    first = {layer.node: layer for layer in reversed(shown)}
    body = "".join(
        _row(layer, layers.host, found, ends, is_target=layer is first[layer.node])
        for layer, found in rows
    )
    return (
        f"<h2>Layers</h2>{notes}<p class=dim>{drawn} {escape(layer_figures(layers))}</p>"
        "<div class='wide layers'><table><thead><tr><th class=number>node</th><th>operator</th>"
        f"{heads}<th class=name>name</th><th>runs on</th></tr></thead><tbody>{body}</tbody></table>"
        f"</div>{more}"
    )


def _row(
    layer: LayerDifference,
    host: str,
    found: Sequence[OutputDifference | None],
    ends: tuple[int, int],
    *,
    is_target: bool,
) -> str:
    """Return the table row of a layer, with figures and a histogram for each way in *found*.

    Args:
        layer: the layer.
        host: name of the runtime that runs it if no delegate does.
        found: its differences.
        ends: the smallest and the greatest exponent of the histograms.
        is_target: whether links to the node lead to this row.
    """
    cells = [
        _cell("node", "number", str(layer.node)),
        _cell("operator", "operator", f"<span>{_breakable(layer.op)}</span>"),
    ]
    for (far, db), difference in zip(_WAYS, found, strict=False):
        metrics = {} if difference is None else difference.compared()
        most = f"{metrics['max'].max:.4g}" if metrics else ""
        kind = "number off" if difference is not None and difference.outside else "number"
        has_snr = difference is not None and metrics and not difference.are_labels
        snr = number(difference.signal()["snr_db"].min) if difference and has_snr else ""
        counts = {} if difference is None else histogram_of(difference)
        strip = _strip(counts, ends) if counts else ""
        cells += [_cell(far, kind, most), _cell(db, "number", snr), _cell("histogram", "", strip)]
    name = escape(layer.name)
    cells.append(_cell("name", "name", f'<span title="{name}">{name}</span>'))
    cells.append(_cell("runs on", "runner", escape(layer.delegate or host)))
    anchor = f' id="node-{layer.node}"' if is_target else ""
    return f"<tr{anchor}>{''.join(cells)}</tr>"


def _cell(title: str, kind: str, content: str) -> str:
    """Return a cell of the layers as HTML; narrow windows show its *title* before *content*."""
    label = f' data-title="{title}"' if content else ""
    return f'<td class="{kind}"{label}>{content}</td>'


def _breakable(op: str) -> str:
    """Return an operator's name as HTML that may break after its underscores."""
    return escape(op).replace("_", "_<wbr>")
