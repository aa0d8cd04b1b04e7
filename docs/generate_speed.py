"""Writes the generated part of ``speed.md`` and its pictures, from the results in ``speed.json``.

    python docs/generate_speed.py

``tests/benchmarks/networks.py --page`` measures, keeps the results and runs this. The names of
networks, and where they are published, are in ``speed_networks.json``. ``speed_pictures.py`` draws.
``tests/docs/test_speed.py`` makes all of it again and compares.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from speed_pictures import picture, roofs_picture
from speed_results import (
    BASE,
    FOLDER,
    LEVEL,
    LIMITED,
    ORDER,
    RESULTS,
    Entry,
    Names,
    counts,
    in_words,
    kind_of,
    names_of_networks,
    runtimes_of,
    slowest_first,
    threads_of,
)

PAGE, PICTURE = FOLDER / "speed.md", FOLDER / "pictures" / "speed.svg"
ROOFS = FOLDER / "pictures" / "roofs.svg"

BEGIN, END = "<!-- Written by docs/generate_speed.py -->", "<!-- to here -->"


# -- the page --------------------------------------------------------------------------------------


def part(kept: dict[str, Any]) -> str:
    """Return the generated part of docs/speed.md."""
    names = names_of_networks()
    entries: list[Entry] = kept["networks"]
    runtimes = runtimes_of(entries)
    lines = [_machine(kept, entries), "", _MEANS, "", *_summary(entries, runtimes), ""]
    lines += [f"![Ratio of each runtime's time to XNNPACK's, by network]({_link(PICTURE)})", ""]
    for threads in threads_of(entries):
        own = [entry for entry in entries if entry["threads"] == threads]
        lines += [f"### {in_words(threads).capitalize()}", ""]
        lines += [*_table(own, runtimes, names, _ratio), ""]
    if limited := [entry for entry in entries if LIMITED in _by_name(entry)]:
        lines += ["### AVX2 beside AVX2", "", _LIMITED, "", *_summary(limited, [LEVEL]), ""]
        lines += [*_level_table(limited, names), ""]
    own = [entry for entry in entries if entry["threads"] == min(threads_of(entries))]
    shown = [BASE, *runtimes]
    lines += ["### First answer and memory", "", _FIRST, "", *_table(own, shown, names, _start)]
    lines += ["", "### Exactness", "", _EXACT, "", *_table(own, shown, names, _difference)]
    if gains := list(_gains(entries, names)):
        lines += ["", "### What a second thread brings", "", _GAINS, "", *gains]
    if kept.get("under_load"):
        lines += ["", "### Beside a busy process", "", _LOADED, "", *_loaded(kept, names)]
    if kept.get("roofs"):
        lines += ["", "### How near the roof operators are", "", _REACHED, ""]
        lines += [f"![Share of the roof that operators reach, by family]({_link(ROOFS)})", ""]
        lines += ["The ten slowest operators of all networks:", "", *_slowest(kept, names)]
    shown_names = {entry["network"] for entry in entries} & names.keys()
    targets = sorted(f"[{names[each]['name']}]: {names[each]['source']}" for each in shown_names)
    return "\n".join([*lines, "", *targets])


_MEANS = (
    "*Mean* is the geometric mean of the ratios of all networks, *floats* and *integers* that of "
    "some; *least* and *most*\nare the extremes. *Slower* is the number of networks in which a "
    "runtime takes longer than XNNPACK.\nThe picture leaves out the core."
)
_GAINS = (
    "How many times as fast a network runs on two threads as on one: by the least times of the "
    "tables above."
)
_LIMITED = (
    "The level avx2 of numba_cpu beside XNNPACK limited to AVX2, as on an older processor: the "
    "processor's AVX-512 and VNNI\nare hidden from it while it chooses its kernels. Ratios are to "
    "this XNNPACK, and bold ones are above 1. The caches and\nthe clock are still those of a new "
    "processor."
)
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
    "process keeps a processor\nbusy. Each runtime has a process of its own, and they take turns. "
    "Compare within the table: it was measured at another\ntime than those above."
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
    """Yield the lines of the table of times measured beside a busy process."""
    yield "| network | threads | runtime | alone, 50 % | alone, 99 % | busy, 50 % | busy, 99 % |"
    yield "|---|---|---|---|---|---|---|"
    for entry in kept["under_load"]:
        found = {(row["runtime"], row["neighbour"]): row for row in entry["results"]}
        for runtime in dict.fromkeys(row["runtime"] for row in entry["results"]):
            rows = [found[runtime, is_busy]["milliseconds"] for is_busy in (False, True)]
            times = [f"{row[p]:.3g}" for row in rows for p in ("50", "99")]
            yield _line(_linked(entry["network"], names), entry["threads"], runtime, *times)


def _slowest(kept: dict[str, Any], names: Names) -> Iterator[str]:
    """Yield the lines of the table of the ten slowest operators."""
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
    """Return a paragraph with the processor and the versions."""
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
    for threads in threads_of(entries):
        for runtime in runtimes:
            found = {
                (entry["network"], entry["kind"]): result["ratio"]["value"]
                for entry in entries
                for result in entry["results"]
                if (entry["threads"], result["runtime"]) == (threads, runtime) and counts(result)
            }
            if found:
                floats = [value for (_, kind), value in found.items() if kind == "FLOAT32"]
                others = [value for (_, kind), value in found.items() if kind != "FLOAT32"]
                values = list(found.values())
                cells = (threads, runtime, len(values), *map(_mean, (values, floats, others)))
                ends = (_short(min(values)), _short(max(values)), sum(v > 1 for v in values))
                yield _line(*cells, *ends)


def _mean(values: Sequence[float]) -> str:
    """Return the geometric mean of ratios; an empty text if there are none."""
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
    for entry in slowest_first(entries):
        by_name = {result["runtime"]: result for result in entry["results"]}
        base = by_name.get(BASE)
        milliseconds = f"{base['milliseconds']:.3g}" if base and not base["error"] else ""
        cells = [cell(by_name[name]) if name in by_name else "" for name in runtimes]
        times = [milliseconds] if has_times else []
        yield _line(_linked(entry["network"], names), kind_of(entry), *times, *cells)


def _gains(entries: Sequence[Entry], names: Names) -> Iterator[str]:
    """Yield the lines of a table of what two threads gain; no line if there are no such times."""
    shown = (BASE, "numba_cpu")
    times = {
        (entry["network"], entry["threads"], result["runtime"]): result["milliseconds"]
        for entry in entries
        for result in entry["results"]
        if result["runtime"] in shown and not result["error"]
    }
    rows = []
    for entry in slowest_first([each for each in entries if each["threads"] == 1]):
        network = entry["network"]
        pairs = [[times.get((network, n, runtime)) for n in (1, 2)] for runtime in shown]
        if all(one and two for one, two in pairs):
            gains = [f"{one / two:.2f}" for one, two in pairs if one and two]
            rows.append(_line(_linked(network, names), kind_of(entry), *gains))
    if rows:
        yield _line("network", "type", *shown)
        yield _line(*["---"] * 4)
        yield from rows


def _level_table(entries: Sequence[Entry], names: Names) -> Iterator[str]:
    """Yield the lines of the table of the level avx2: a row for a network, slowest first."""
    threads = threads_of(entries)
    words = [in_words(number) for number in threads]
    yield _line("network", "type", *(f"{LIMITED} ms, {n}" for n in words), *words)
    yield _line(*["---"] * (2 + 2 * len(threads)))
    for entry in slowest_first([e for e in entries if e["threads"] == threads[0]], LEVEL):
        own = [e for e in entries if e["network"] == entry["network"]]
        found = {e["threads"]: _by_name(e) for e in own}
        times = [f"{found[n][LIMITED]['milliseconds']:.3g}" if n in found else "" for n in threads]
        ratios = [_ratio(found[n][LEVEL]) if n in found else "" for n in threads]
        yield _line(_linked(entry["network"], names), kind_of(entry), *times, *ratios)


def _by_name(entry: Entry) -> dict[str, Entry]:
    """Return the results of a network by their runtimes; those that failed are left out."""
    return {result["runtime"]: result for result in entry["results"] if not result["error"]}


def _linked(network: str, names: Names) -> str:
    """Return the name of a network, as a link whose target stands after the tables."""
    known = names.get(network)
    return network if known is None else f"[{known['name']}]"


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


# -- files -----------------------------------------------------------------------------------------


def page(text: str, kept: dict[str, Any]) -> str:
    """Return the text of the page with its generated part replaced."""
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
