from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from importlib_metadata import version

from delegraph.delegation.tolerance import Tolerance
from delegraph.testing import one_op_model, tensor
from delegraph.tools import Setup, diff, diff_layers
from delegraph.tools.differing.cause import cause_of
from delegraph.tools.differing.html_page import difference_page, histogram_of
from delegraph.tools.differing.input_runs import OFFICIAL
from delegraph.tools.differing.numerics_profile import rounding
from delegraph.tools.differing.verdict import verdict_of
from support.browser import Opened
from support.faulty_delegate import Faulty, off_by
from support.layer_models import file, setup_of


def test_histograms_count_each_element_that_differs_by_its_power_of_two(wrong: Setup) -> None:
    found = diff(wrong, runs=3)
    (output,) = found.outputs
    counts = histogram_of(output)
    assert sum(counts.values()) == sum(d.unequal for d in output.runs) == 3
    assert set(counts) <= {-1, 0}  # a difference of 1, rounded


def test_the_page_is_whole_without_scripts_or_other_files(wrong: Setup) -> None:
    found, layers = diff(wrong, runs=1), diff_layers(wrong, inner="alone")
    verdict = verdict_of(found, layers)
    page = difference_page(found, verdict, layers)
    heading = re.sub("<.*?>", "", page[page.index("<h1>") : page.index("</h1>")])
    assert heading == verdict.text.replace("'", "&#x27;")
    assert page[page.index("<h2>Layers") :].count('<tr id="node-') == 4  # the nodes of the model
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r"<script|<link|src=|https?:", page)
    assert page.count("<figure>") == 1


def test_the_verdict_links_to_the_row_of_its_node_and_rows_have_snr(wrong: Setup) -> None:
    found, layers = diff(wrong, runs=2), diff_layers(wrong, runs=1, tolerance=rounding)
    verdict = verdict_of(found, layers)
    page = difference_page(found, verdict, layers, command="delegraph diff <m>")
    assert (
        f'<a href="#node-{verdict.node}">node {verdict.node} (MUL)</a>'
        in page[: page.index("</h1>")]
    )
    row = page[page.index(f'<tr id="node-{verdict.node}">') :].split("</tr>")[0]
    layer = next(layer for layer in layers.layers if layer.node == verdict.node)
    assert layer.drift is not None
    figures = layer.drift.compared()["max"].max, layer.drift.signal()["snr_db"].min
    assert "".join(re.findall("number[^>]*>([^<]*)", row)[1:3]) == "".join(
        f"{f:.4g}" for f in figures
    )
    assert "layers of seed 0, the worst of 2 runs" in page
    assert ">ULP<" in page
    assert f"Delegraph {version('delegraph')}, 20" in page
    assert "<code>delegraph diff &lt;m&gt;</code>" in page


def test_a_page_without_differences_speaks_of_no_histograms(chain: str) -> None:
    same = setup_of(chain, "delegraph")
    found, layers = diff(same, runs=1), diff_layers(same)
    page = difference_page(found, verdict_of(found, layers), layers)
    assert "All compared tensors are equal." in page
    assert "istogram" not in page
    assert 'data-title="runs on">Delegraph</td>' in page  # whose kernels run the nodes


def test_no_run_is_the_worst_where_all_are_equal(chain: str) -> None:
    same = setup_of(chain, "delegraph")
    found, layers = diff(same, runs=2), diff_layers(same, runs=1)
    page = difference_page(found, verdict_of(found, layers), layers)
    assert "layers of seed 0; outputs of all 2 runs are equal" in page


def test_names_of_a_model_are_no_markup(chain: str) -> None:
    found = diff(setup_of(chain, "delegraph"), runs=1)
    (output,) = found.outputs
    object.__setattr__(output, "name", "<script>")
    assert "<script>" not in difference_page(found, verdict_of(found))


def test_the_page_has_cause_tolerance_and_snr(wrong: Setup) -> None:
    found = diff(wrong, runs=1, tolerance={"": Tolerance(absolute=1e-4)})
    cause = cause_of(found, inputs=OFFICIAL)
    page = difference_page(found, verdict_of(found), cause=cause)
    assert f"<p>Cause: {cause}".split("(")[0] in page
    assert "is wrong" in page
    assert "tolerance: 0.0001<" in page
    assert ">SNR dB<" in page


def test_the_page_has_the_place_of_the_greatest_difference_and_both_latencies(wrong: Setup) -> None:
    found = diff(wrong, runs=2)
    compared = found.outputs[0].worst.compared
    assert compared is not None
    page = difference_page(found, verdict_of(found))
    assert f"greatest difference at {list(compared.index)}: {compared.found:.4g}, expected" in page
    latency = page[page.index("<h2>Latency") :]
    for side in ("test", "reference"):
        assert f"<td>{side}</td><td class=number>2</td>" in latency
    assert "times of one run" not in page


def test_the_page_says_that_latency_is_of_one_run_and_why_layers_are_missing(wrong: Setup) -> None:
    found, layers = diff(wrong, runs=1), diff_layers(wrong, inner="boundaries")
    page = difference_page(found, verdict_of(found, layers), layers)
    assert "times of one run" in page
    assert ": inside partition 0 of" in page


def test_nan_is_told_and_its_bar_is_labelled_infinite(tmp_path: Path) -> None:
    model = file(tmp_path, one_op_model("SIN", [tensor((1,))], [tensor((1,), name="y")]))
    wrong = setup_of(model, "delegraph", Faulty("SIN", fault=off_by(float("nan"))))
    found = diff(wrong, runs=1)
    page = difference_page(found, verdict_of(found))
    assert "by up to inf, as one side has NaN or infinities</h1>" in page
    assert "<p>1 NaN value, 0 in the reference</p>" in page
    assert ">infinite</text>" in page


def test_a_long_file_name_does_not_widen_the_page_of_a_phone(browser: Any, tmp_path: Path) -> None:
    content = one_op_model("SIN", [tensor((1,))], [tensor((1,), name="y" * 90)])
    model = file(tmp_path, content, f"{'long_' * 20}name.tflite")
    found, layers = diff(setup_of(model, "delegraph"), runs=1), diff_layers(Setup(model))
    page = tmp_path / "page.html"
    page.write_text(difference_page(found, verdict_of(found, layers), layers), encoding="utf-8")
    opened = Opened(browser, page)
    opened.page.set_viewport_size({"width": 360, "height": 700})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 360
    opened.close()


def test_figures_of_layers_and_histograms_fit_a_phone(wrong: Setup, browser: Any) -> None:
    found, layers = diff(wrong, runs=3), diff_layers(wrong)
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.set_content(difference_page(found, verdict_of(found, layers), layers))
    right = "e => Math.max(...e.map(x => x.getBoundingClientRect().right))"
    for shown in ("figure svg", "tr td:nth-child(4)"):
        assert page.locator(shown).evaluate_all(right) <= 360
    latency = page.locator("h2:has-text('Latency') + .wide")
    assert latency.evaluate("e => e.scrollWidth - e.clientWidth") == 0
    page.close()


def test_worst_layers_come_first_where_the_user_sorts_so(wrong: Setup) -> None:
    found, layers = diff(wrong, runs=1), diff_layers(wrong)
    for worst_first in (False, True):
        page = difference_page(found, verdict_of(found), layers, worst_first=worst_first)
        rows = re.findall(r'data-title="node">(\d+)', page)
        assert rows == [str(layer.node) for layer in layers.shown(worst_first=worst_first)]


@pytest.mark.parametrize("width", [360, 700, 1000, 1280, 1600])
def test_the_table_of_layers_fits_its_window(wrong: Setup, browser: Any, width: int) -> None:
    found, layers = diff(wrong, runs=1), diff_layers(wrong)
    for layer in layers.layers:
        object.__setattr__(layer, "op", "DEPTHWISE_CONV_2D")
        object.__setattr__(layer, "name", "name/" * 40)
        object.__setattr__(layer, "delegate", "numba_cpu, mine")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.set_content(difference_page(found, verdict_of(found), layers))
    assert layers.same_inputs_say_more
    assert page.locator(".layers").evaluate("e => e.scrollWidth <= e.clientWidth")
    page.close()


def test_the_cause_shortens_a_fused_name(wrong: Setup) -> None:
    found = diff(wrong, runs=1, tolerance={"": Tolerance(absolute=1e-4)})
    cause = cause_of(found, inputs=OFFICIAL)
    assert cause is not None
    assert cause.layer is not None
    assert cause.layer.same_inputs is not None
    object.__setattr__(cause.layer.same_inputs, "name", "a/Conv2D;" * 20)
    text = difference_page(found, verdict_of(found), cause=cause).split("Cause: ")[1]
    assert len(text.split("</p>")[0]) < 180 < len(str(cause))
