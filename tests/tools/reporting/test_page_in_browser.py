"""The page in Chromium: what is there to be seen, pointer and keys, colours, paper.

At the end of every test, the console must be silent and nothing asked for from the network.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from delegraph.testing import graph_model, subgraphs_model
from delegraph.tools import (
    RunControl,
    Setup,
    benchmark,
    compare,
    diff,
    diff_layers,
    op_profile,
    report,
)
from delegraph.tools.benchmarking.verdicts import Ratio, Verdict
from delegraph.tools.differing.numerics_profile import rounding
from delegraph.tools.differing.verdict import verdict_of
from delegraph.tools.model_summary import summarize_model
from delegraph.tools.reporting.page import page as html_page
from support.by_name import doubling_while
from support.faulty_delegate import Faulty, off_by
from support.half_weights import half_weights
from support.hostile_model import TEXTS, hostile_model

Open = Callable[..., Any]


def wait_until(page: Any, condition: str) -> None:
    """Wait until a condition holds; a page's policy may forbid ``wait_for_function``.

    Args:
        page: the page.
        condition: an expression in JavaScript.
    """
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(condition)


@pytest.fixture
def sines_page(opened: Open, sines: Path) -> Any:
    return opened(report(Setup(str(sines), delegates=("sin",))))


@pytest.fixture
def opened_model(opened: Open, tmp_path: Path) -> Open:
    """Open the report of a model with delegates; *layers* are compared if that is asked for."""

    def open_model(content: bytes, *delegates: str, layers: bool = False) -> Any:
        path = tmp_path / "model.tflite"
        path.write_bytes(content)
        setup = Setup(str(path), delegates=delegates or None)
        return opened(report(setup, layers=diff_layers(setup, runs=1) if layers else None))

    return open_model


@pytest.fixture
def wrong(sines: Path) -> Setup:
    """A set-up whose node 2, MUL, is off."""
    return Setup(str(sines), delegates=(Faulty("MUL", fault=off_by(0.5)),))


def heats(page: Any) -> list[int]:
    """Return the heat of each node's colour."""
    heat = "element => parseInt(element.style.getPropertyValue('--heat'))"
    return [node.evaluate(heat) for node in page.locator(".node").all()]


def test_every_node_is_there_in_the_colour_of_its_delegate(sines_page: Any) -> None:
    page = sines_page
    assert page.locator(".node").count() == 5
    assert page.locator(".node.d0 .op").all_text_contents() == ["SIN", "SIN"]
    assert page.locator(".node.host .op").all_text_contents() == ["ADD", "MUL", "ADD"]
    assert page.locator(".edges path").count() == 8
    assert page.locator(".edges .crossing").count() == 4
    assert "sin 2 nodes" in page.locator(".legend").inner_text()


def test_only_partitions_that_were_asked_for_have_numbers_beside_the_default_delegate(
    opened: Open, sines: Path
) -> None:
    found = report(Setup(str(sines), delegates=("sin", "add_sub"))).to_json()
    data = found | {"default_delegate": "add_sub"}
    text = html_page("sines", data)
    page = opened(SimpleNamespace(save=lambda path: path.write_text(text, encoding="utf-8")))
    assert page.locator(".node .part").all_text_contents() == ["P0", "P1"]
    assert page.locator(".edges .crossing").count() == 4
    cells = page.locator("#partitions tbody td:first-child").all_inner_texts()
    assert cells == ["P0", "-", "P1", "-"]
    assert "add_sub 2 nodes" in page.locator(".legend").inner_text()


def test_reasons_and_partitions_are_whole_on_a_phone(sines_page: Any) -> None:
    page = sines_page
    page.set_viewport_size({"width": 360, "height": 700})
    cell = page.locator('#left td[data-title="reason"] span').first
    box, titles = cell.bounding_box(), page.locator("#left thead").first.bounding_box()
    assert 0 < box["x"] < box["x"] + box["width"] <= 360
    assert titles["width"] <= 1
    for section in ("left", "partitions"):
        shown = page.locator(f"#{section} .scroll")
        assert shown.evaluate("e => e.scrollWidth - e.clientWidth") == 0


def test_cards_lack_only_empty_cells(opened: Open, sines: Path) -> None:
    beside = Setup(str(sines), delegates=("none",))
    page = opened(report(Setup(str(sines), delegates=("sin",)), beside=beside))
    page.set_viewport_size({"width": 360, "height": 700})
    cells = page.locator("#beside tbody tr").first.locator("td:visible")
    titles = cells.evaluate_all("cells => cells.map((cell) => cell.dataset.title)")
    assert titles == ["node", "operator", "runs here on", "there on", "why not there"]


def test_nodes_of_a_graph_seen_from_afar_have_brief_texts(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "long.tflite"
    names = ["input_of_the_whole_network", *(f"t{i}" for i in range(90))]
    nodes = [("NEG", names[i], names[i + 1]) for i in range(90)]
    path.write_bytes(graph_model(nodes, inputs=names[0], outputs=names[-1]))
    setup = Setup(str(path), delegates=())
    page = opened(report(setup, beside=setup))
    texts = page.locator("#beside svg.far").first.locator(".brief:visible").all_text_contents()
    assert texts == [f"{i} NEG" for i in range(90)]
    assert page.locator("#beside svg.far .op:visible").count() == 0


def test_a_click_shows_what_there_is_to_say_of_a_node(sines_page: Any) -> None:
    page = sines_page
    page.get_by_role("button", name="node 2, MUL").click()
    text = page.locator(".panel").inner_text()
    assert "runs on\nDelegraph" in text
    assert "Not sin: op: is MUL" in text
    assert "fused_activation_function\nNONE" in text
    assert "float32" in text
    page.locator(".graph").click(position={"x": 3, "y": 3})
    assert "Select a node" in page.locator(".panel").inner_text()


def test_links_lead_from_node_to_node(sines_page: Any) -> None:
    page = sines_page
    page.get_by_role("button", name="node 2, MUL").click()
    page.locator(".panel").get_by_role("button", name="to 3 SIN").click()
    assert page.locator(".panel h3").inner_text() == "SIN"
    assert page.locator(".vertex.selected").get_attribute("aria-label").startswith("node 3, SIN")


def test_an_address_opens_the_page_at_a_node(opened_model: Open) -> None:
    graphs = [([("NEG", "a", "b")], "a", "b", {}), ([("ABS", "c", "d")], "c", "d", {})]
    page = opened_model(subgraphs_model(graphs))
    page.evaluate("location.hash = '#node-1.0'")
    wait_until(page, "document.querySelector('.panel h3')?.textContent === 'ABS'")
    address = page.locator(".panel").get_by_title("Link to this node").get_attribute("href")
    assert page.url.endswith(f"report.html{address}")
    page.reload()
    assert page.locator(".panel h3").inner_text() == "ABS"
    for nowhere in ("#node-9", "#node-7.0", "#node-x"):
        page.goto(page.url.split("#")[0] + nowhere)
    assert page.locator(".panel h3").inner_text() == "ABS"


def test_two_placements_stand_side_by_side(opened: Open, sines: Path) -> None:
    setup = Setup(str(sines), delegates=("sin",))
    page = opened(report(setup, beside=Setup(str(sines), delegates=("add_sub",))))
    sides = page.locator("#beside .pair > div")
    assert sides.nth(0).locator(".node.d0 .op").all_text_contents() == ["SIN", "SIN"]
    assert sides.nth(1).locator(".node.d1 .op").all_text_contents() == ["ADD", "ADD"]
    assert sides.nth(1).locator(".node.match .index").all_text_contents() == ["0", "1", "3", "4"]
    rows = page.locator("#beside tbody tr")
    assert rows.nth(0).locator("td").all_inner_texts() == [
        *("0", "SIN", "sin, partition 0", "Delegraph", ""),
        "add_sub: op: is SIN, needs ADD or SUB; sin: not applied",
    ]
    assert "4 nodes of 5 run on something else" in page.locator("#beside").inner_text()
    before = sides.nth(1).locator("svg > g").get_attribute("transform")
    sides.nth(0).locator(".graph").hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    after = "document.querySelectorAll('#beside svg > g')[1].getAttribute('transform')"
    wait_until(page, f"{after} !== {before!r}")


def test_a_delegate_that_one_side_lacks_is_not_applied_there(opened: Open, sines: Path) -> None:
    setup, core = (Setup(str(sines), delegates=(name,)) for name in ("sin", "none"))
    row = opened(report(setup, beside=core)).locator("#beside tbody tr").first
    assert row.locator("td").all_inner_texts()[-2:] == ["", "sin: not applied"]


def test_equal_placements_are_called_equal(opened: Open, sines: Path) -> None:
    setup = Setup(str(sines), delegates=("sin",))
    page = opened(report(setup, beside=setup))
    assert "Every node runs on the same in both." in page.locator("#beside").inner_text()


def test_a_long_table_shows_all_of_its_rows_when_asked(opened_model: Open) -> None:
    page = opened_model(subgraphs_model([(alternating(300), "x0", "x300", {})]), "sin")
    rows = page.locator("#partitions tbody tr")
    assert rows.count() == 200
    page.get_by_role("button", name="Show all 300 rows").click()
    assert rows.count() == 300


def test_many_nodes_become_elements_after_the_first_picture(opened_model: Open) -> None:
    """The first picture has one outline for all nodes of a colour, and comes sooner."""
    page = opened_model(subgraphs_model([(alternating(1001), "x0", "x1001", {})]), "sin")
    page.wait_for_selector(".vertex")
    assert page.locator(".vertex.node").count() == 1001
    assert page.locator(".outlines").count() == 0
    assert page.locator(".vertex[tabindex='0']").count() == 1
    page.evaluate("location.hash = '#node-700'")
    page.wait_for_selector(".vertex.selected")
    assert page.locator(".vertex.selected").get_attribute("aria-label").startswith("node 700")


def test_nodes_get_their_texts_when_they_can_be_read(opened_model: Open) -> None:
    page = opened_model(subgraphs_model([(alternating(300), "x0", "x300", {})]), "sin")
    assert (page.locator(".node").count(), page.locator(".node .op").count()) == (300, 0)
    page.get_by_role("searchbox").fill("x150")
    assert 0 < page.locator(".node .op").count() < 300
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".node .op").count() == 300


def alternating(count: int) -> list[tuple[str, str, str]]:
    """Return a chain of SIN and NEG, which alternate."""
    return [(("SIN", "NEG")[i % 2], f"x{i}", f"x{i + 1}") for i in range(count)]


def test_edges_of_a_large_graph_are_joined_until_they_can_be_seen(opened_model: Open) -> None:
    nodes = [("ADD", f"t{i} t0", f"t{i + 1}") for i in range(600)]
    page = opened_model(graph_model(nodes, inputs="t0", outputs="t600"))
    edges = page.locator(".edges path")
    assert edges.count() == 2
    page.get_by_role("button", name="node 0, ADD").focus()
    page.keyboard.press("Enter")
    assert page.locator(".edges .on").count() == 2
    for _ in range(9):
        page.get_by_role("button", name="Zoom in").click()
    assert edges.count() == 1200
    assert page.locator(".edges .on").count() == 2


def test_search_finds_operators_tensors_and_reasons(sines_page: Any) -> None:
    page = sines_page
    box = page.get_by_role("searchbox")
    for text, count in (("mul", 1), ("sin", 5), ("partition 1", 1), ("op: is add", 2), ("zz", 0)):
        box.fill(text)
        assert page.locator(".vertex.match").count() == count, text
        assert page.locator(".status").inner_text() == f"{count} of 7"
    box.fill("")
    assert page.locator(".graph.searching").count() == 0


def test_keys_go_through_the_graph(sines_page: Any) -> None:
    page = sines_page
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("mul")
    page.keyboard.press("Enter")
    assert page.locator(".panel h3").inner_text() == "MUL"
    page.keyboard.press("Escape")
    assert page.get_by_role("searchbox").input_value() == ""

    def focused() -> str:
        label: str = page.evaluate("document.activeElement.getAttribute('aria-label')")
        return label

    assert focused().startswith("node 2, MUL")
    assert "Select a node" in page.locator(".panel").inner_text()
    page.keyboard.press("ArrowDown")
    assert focused().startswith("node 3, SIN")
    page.keyboard.press("Enter")
    assert page.locator(".panel h3").inner_text() == "SIN"
    page.keyboard.press("ArrowUp")
    assert focused().startswith("node 2, MUL")
    page.keyboard.press("ArrowLeft")
    assert focused().startswith("node 1, ADD")
    page.keyboard.press("End")
    assert focused().startswith("output: y")


def test_one_node_is_in_the_order_of_the_tab_key(sines_page: Any) -> None:
    page = sines_page
    assert page.locator(".vertex[tabindex='0']").count() == 1
    page.keyboard.press("End")
    seen = []
    page.locator("#search").focus()
    for _ in range(4):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert seen == ["Zoom out", "Zoom in", "Show all", "node 0, SIN, sin, partition 0"]


def test_another_subgraph_can_be_chosen(opened_model: Open) -> None:
    graphs = [([("NEG", "a", "b")], "a", "b", {}), ([("ABS", "c", "d")], "c", "d", {})]
    page = opened_model(subgraphs_model(graphs, names=["main", "other"]))
    assert page.locator(".node .op").all_text_contents() == ["NEG"]
    page.get_by_label("Subgraph").select_option("1")
    assert page.locator(".node .op").all_text_contents() == ["ABS"]


def test_a_partition_shows_its_nodes(sines_page: Any) -> None:
    page = sines_page
    rows = page.locator("#partitions tbody tr")
    assert rows.count() == 4
    rows.nth(1).get_by_role("button").click()
    assert page.locator(".vertex.match .op").all_text_contents() == ["ADD", "MUL"]


def test_headings_sort(sines_page: Any) -> None:
    page = sines_page
    heading = page.locator("#partitions th", has_text="count")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    counts = page.locator("#partitions tbody td:nth-child(3)").all_inner_texts()
    assert counts == ["2", "1", "1", "1"]


def test_names_of_a_hostile_model_are_text(opened: Open, tmp_path: Path) -> None:
    page = opened(report(Setup(str(hostile_model(tmp_path)))))
    for node in page.locator(".node").all():
        node.click()
    page.get_by_role("searchbox").fill("<img")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, iframe, svg[onload]").count() == 0
    page.locator(".output").click()
    assert page.locator(".panel .name").inner_text() == TEXTS[-1]


def test_a_script_that_is_not_the_pages_own_does_not_run(
    opened: Open, sines: Path, tmp_path: Path, browser: Any
) -> None:
    """Were a text to become markup by some mistake, the policy would still stop it."""
    path = tmp_path / "changed.html"
    html = report(Setup(str(sines))).html()
    path.write_text(html.replace("</body>", "<script>window.hacked = 1</script></body>"))
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.locator(".node").count() == 5
    assert page.evaluate("window.hacked") is None
    page.close()


def test_it_is_dark_where_the_reader_wants_that_and_light_on_paper(
    opened: Open, sines: Path
) -> None:
    def colours(page: Any) -> list[str]:
        style = "const s = getComputedStyle(document.body);"
        found: list[str] = page.evaluate(f"(() => {{ {style} return [s.color, s.background]; }})()")
        return found

    page = opened(report(Setup(str(sines))), color_scheme="dark")
    dark = colours(page)
    page.emulate_media(color_scheme="light")
    light = colours(page)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    page.emulate_media(color_scheme="dark", media="print")
    assert colours(page)[0] == light[0]
    assert colours(page)[1].startswith("rgb(255, 255, 255)")
    assert not page.locator(".tools").is_visible()
    assert page.pdf().startswith(b"%PDF")


def test_it_fits_a_narrow_window(opened: Open, sines: Path, tmp_path: Path) -> None:
    model = tmp_path / f"{'long_name_' * 8}.tflite"
    shutil.copyfile(sines, model)
    setup = Setup(str(model), delegates=("sin",))
    page = opened(report(setup, layers=diff_layers(setup, runs=1)))
    page.set_viewport_size({"width": 375, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_parts_are_there_where_they_were_measured(opened: Open, sines: Path) -> None:
    def parts(page: Any) -> list[str]:
        titles: list[str] = page.locator("h2").all_inner_texts()
        return titles

    setup = Setup(str(sines), delegates=("sin",))
    assert parts(opened(report(setup))) == ["Graph", "Partitions", "Why not"]
    page = opened(measured(setup))
    assert parts(page) == ["Graph", "Partitions", "Why not", "Time", "Memory", "Differences"]
    assert page.locator("nav a").all_inner_texts() == parts(page)
    assert not re.search(r"\[object|undefined|NaN", page.locator("body").inner_text())


def measured(setup: Setup) -> Any:
    control = RunControl(runs=5, min_seconds=0, warmup_runs=1, warmup_seconds=0)
    return report(
        setup,
        memory=True,
        benchmark=benchmark(setup, control=control),
        profile=op_profile(setup, control=control),
        layers=diff_layers(setup, runs=1),
    )


def test_charts_show_runs_and_tensors_and_their_planner(opened: Open, sines: Path) -> None:
    page = opened(measured(Setup(str(sines), delegates=("sin",))))
    assert page.locator("#time .dot").count() == 5
    runs, core = page.locator("#memory .plans").all()
    titles = page.locator("#memory .plans h3").all_inner_texts()
    assert titles == ["As it runs, without the memory inside partitions", "Core alone"]
    assert (runs.locator(".box").count(), core.locator(".box").count()) == (6, 6)
    told = page.locator("#memory > p").inner_text()
    assert "+ memory of sin inside the partitions, not counted" in told
    assert "Most is in use at step " in runs.inner_text()
    assert "delegraph and tflite compute in place and keep the model's inputs" in runs.inner_text()
    tall = page.locator("#memory .box rect").first.get_attribute("y")
    runs.get_by_label("Plan of").select_option("naive")
    assert page.locator("#memory .box rect").first.get_attribute("y") != tall
    page.set_viewport_size({"width": 500, "height": 800})
    wait_until(page, "document.querySelector('#memory .chart').viewBox.baseVal.width < 500")


def test_the_page_counts_the_arenas_of_all_subgraphs(opened: Open, tmp_path: Path) -> None:
    model = tmp_path / "loop.tflite"
    model.write_bytes(doubling_while())
    setup = Setup(str(model), delegates=(), use_default_delegates=False)
    page = opened(report(setup, memory=True))
    rows = page.locator("#memory table", has_text="in the arenas of all subgraphs").locator("tr")
    assert rows.count() == 1 + 3
    assert "Subgraph 0, which has the largest arena" in page.locator("#memory h3").inner_text()


def test_each_operator_has_its_time(opened: Open, sines: Path) -> None:
    page = opened(measured(Setup(str(sines), delegates=("sin",))))
    rows = page.locator("#time table", has_text="Nodes of").locator("tbody tr")
    assert rows.count() == 5
    row = rows.filter(has_text="MUL")
    row.get_by_role("button").click()
    share = row.locator("td").nth(2).inner_text()
    assert page.locator(".panel h3").inner_text() == "MUL"
    assert "time\n" in page.locator(".panel").inner_text()
    assert share.endswith(" %")
    assert f"{share} of subgraph 0" in page.locator(".panel").inner_text()
    assert re.search(
        r"timed: median \S+ .s, \S+ .?s of it outside", page.locator("#time").inner_text()
    )
    page.get_by_label("Colour").select_option("time")
    assert page.locator(".node.unmeasured").count() == 0
    legend = page.locator("#graph .legend")
    times = r"^time: \S+ [µm]?s a run\s+\S+ [µm]?s a run by the square root"
    assert re.search(times, legend.inner_text())
    found = heats(page)
    assert (min(found) >= 15, max(found)) == (True, 100)
    page.get_by_label("Colour").select_option("who runs it")
    assert "sin 2 nodes" in legend.inner_text()


def test_verdicts_are_those_of_the_comparison(opened: Open, sines: Path) -> None:
    setup = Setup(str(sines))
    others = [Setup(str(sines), delegates=("sin",)), Setup(str(sines), delegates=("unknown",))]
    found = compare(setup, others, blocks=5, seconds=0.05, processes=False)
    page = opened(report(setup, comparison=found))
    rows = page.locator("#verdicts tbody tr")
    assert rows.nth(0).locator("td").last.inner_text() == found.words_on(found.others[0])
    assert "no installed plugin provides" in rows.nth(1).inner_text()
    assert page.locator("#verdicts circle").count() == 2  # the control, and the one that ran


def test_verdicts_have_the_cautions_and_say_why_they_are_noisy(opened: Open, sines: Path) -> None:
    setup = Setup(str(sines))
    found = compare(setup, [setup], blocks=5, seconds=0.05, processes=False)
    other = found.others[0]
    noisy = Verdict("too noisy", Ratio(0.72, 0.56, 0.82), 0.43, 0.8, 0.2)
    told = replace(
        found, others=(replace(other, verdict=noisy),), cautions=("threads differ: all on 2",)
    )
    text = opened(report(setup, comparison=told)).locator("#verdicts").inner_text()
    assert "caution: threads differ: all on 2" in text
    assert f"caution: {other.name}: {noisy.warning}" in text
    assert "needs the whole interval beyond the noise floor, 43.0 % from 1" in text


def test_the_head_has_what_inspect_says(opened: Open) -> None:
    digits = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"
    setup = Setup(str(digits))
    text = " ".join(opened(report(setup)).locator("header").inner_text().split())
    assert re.search("input image int8 1.8.8.1 output digit int8 1.10", text)
    assert summarize_model(setup.loaded_model()).quantization in text
    assert re.search(r"parameters \d+\.\d k MACs \d", text)


def test_unknown_arithmetic_of_refused_nodes_is_a_question_mark(opened: Open, sines: Path) -> None:
    told = report(Setup(str(sines), delegates=("sin",)))
    told.data["refusals"][0] |= {"macs": 0, "macs_are_least": True}
    assert opened(told).locator('#left td[data-title="MACs"]').inner_text() == "?"


def test_differences_have_the_verdict_and_the_place_of_the_greatest(
    opened: Open, wrong: Setup
) -> None:
    layers, found = diff_layers(wrong, runs=2, tolerance=rounding), diff(wrong, runs=2)
    page = opened(report(wrong, layers=layers, difference=found))
    text = page.locator("#differences").inner_text()
    assert verdict_of(found, layers).text in text
    assert "greatest difference at [0]: " in text
    assert page.locator("#differences circle.drift").count() == 5
    page.get_by_label("Colour").select_option("difference")
    assert [number for number, value in enumerate(heats(page)) if value] == [2]


def test_a_phone_shows_the_figures_of_layers_and_operators(opened: Open, wrong: Setup) -> None:
    page = opened(measured(wrong))
    page.set_viewport_size({"width": 360, "height": 800})
    right = "e => Math.max(...e.map(x => x.getBoundingClientRect().right))"
    for cells in ("#differences td:nth-child(4)", "#time td.share"):
        assert page.locator(cells).evaluate_all(right) <= 360


def test_what_is_off_has_a_colour_and_a_row(opened: Open, wrong: Setup) -> None:
    page = opened(report(wrong, layers=diff_layers(wrong, runs=1)))
    first = page.locator("#differences tbody tr").first
    assert first.locator("td").nth(1).inner_text() == "MUL"
    first.get_by_role("button").click()
    assert "difference\nnoise " in page.locator(".panel").inner_text()
    page.get_by_label("Colour").select_option("difference")
    assert heats(page)[2] > 20
    assert heats(page)[0] == 0
    told = page.locator("#graph .legend").inner_text()
    assert told.startswith("difference: noise 0")
    assert "pale: not measured" in told


def test_a_long_name_in_a_table_loses_its_middle(opened_model: Open) -> None:
    name = f"first/{'middle/' * 20}last"
    page = opened_model(graph_model([("NEG", "x", name)], inputs="x", outputs=name), layers=True)
    shown = page.locator("#differences td [title]")
    assert shown.inner_text() == "first/middle/middle/…/middle/middle/last"
    assert shown.get_attribute("title") == name


def test_shortened_names_that_differ_in_the_middle_stay_different(opened_model: Open) -> None:
    middles = ("one", "two")
    first, second = (f"{'a' * 40}{middle}{'z' * 30}" for middle in middles)
    nodes = [("NEG", "x", first), ("NEG", first, second)]
    page = opened_model(graph_model(nodes, inputs="x", outputs=f"{first} {second}"), layers=True)
    texts = page.locator("#differences td [title]").all_inner_texts()
    assert len(set(texts)) == 2
    assert not any(text.endswith("(2)") for text in texts)
    ends = page.locator(".vertex.output .op").all_text_contents()
    assert len(set(ends)) == 2
    assert max(map(len, ends)) <= 24


def test_nodes_that_widen_constants_are_folded_into_their_readers(opened_model: Open) -> None:
    page = opened_model(half_weights(), "none")
    assert page.locator(".node .op").all_text_contents() == ["MUL", "MUL", "SIN"]
    assert "Delegraph 3 nodes" in page.locator("#graph .legend").inner_text()
    head = " ".join(page.locator("header").inner_text().split())
    assert "nodes 3; 2 constants, computed once" in head
    page.evaluate("location.hash = '#node-2'")
    wait_until(page, "document.querySelector('.panel h3').textContent === 'MUL'")
    assert "made once by node 2, DEQUANTIZE, of " in page.locator(".panel").inner_text()


def test_every_column_of_the_differences_is_in_sight(opened: Open, wrong: Setup) -> None:
    page = opened(report(wrong, layers=diff_layers(wrong, runs=1)))
    page.set_viewport_size({"width": 1000, "height": 800})
    assert page.locator("#differences .scroll").evaluate("e => e.scrollWidth <= e.clientWidth")


def test_equal_results_are_called_equal(opened: Open, sines: Path) -> None:
    setup = Setup(str(sines), delegates=("add_sub",))
    page = opened(report(setup, layers=diff_layers(setup, runs=1)))
    assert "Every tensor is the same, value for value." in page.locator("#differences").inner_text()
    assert page.locator("#differences .chart").count() == 0


def test_the_page_opens_at_the_signature_and_lists_the_others(opened: Open, sines: Path) -> None:
    setup = Setup(str(sines.with_stem("language_model")), delegates=("sin",))
    brief = RunControl(runs=3, min_seconds=0, warmup_seconds=0)
    measured = benchmark(setup, control=brief, signature="decode")
    beside = compare(setup, [setup], signature="decode", blocks=5, seconds=0.05, processes=False)
    page = opened(report(setup, signature="decode", benchmark=measured, comparison=beside))
    assert page.locator(".node").count() == 130
    assert "decode 1 130 nodes: sin" in " ".join(page.locator("#signatures").inner_text().split())
    for part in ("#time", "#verdicts"):
        assert "tokens a second" in page.locator(part).inner_text()
    page.locator("#signatures").get_by_role("button", name="prefill_8").click()
    assert page.locator(".node").count() == 89
