"""The page at / shows what is served, and its programs call it, whatever names models have."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delegraph.testing import graph_model, tensor
from support.browser import launched
from support.served import Served

NEEDED = ("grpc", "httptools", "tritonclient", "uvicorn")
if not all(map(importlib.util.find_spec, NEEDED)):
    pytest.skip("serving is tested by make test-scale-serve", allow_module_level=True)

EVIL = 'it\'s; $(false) "\u202e"<img src=x onerror=alert(1)>\n{{grpc}} \U0001f600'
TOKEN = "open-sesame"


def write(path: Path, name: str, shape: tuple[int, ...]) -> None:
    """Write a model that negates the input of a name into ``y``."""
    same_size = "x" * len(name.encode())
    tensors = {same_size: tensor(shape), "y": tensor(shape)}
    nodes = [("NEG", same_size, "y")]
    model = graph_model(nodes, inputs=same_size, outputs="y", tensors=tensors)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.replace(same_size.encode(), name.encode()))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("models")
    write(folder / "evil.tflite", EVIL, (1, 2))
    write(folder / "large" / "1" / "model.tflite", EVIL, (1, 100))
    write(folder / "large" / "2" / "model.tflite", "some_input", (1, 100))
    (folder / "bad.tflite").write_bytes(b"no model at all")
    with Served([str(folder), "--versions", "all"], folder / "log") as server:
        server.wait_until_ready()
        yield server


class Opened:
    """The page of a server in a browser.

    Attributes:
        page: Playwright's.
        complaints: what its console says.
        hosts: hosts that it asked.
    """

    def __init__(self, browser: Any, served: Served, **context: Any) -> None:
        self._context = browser.new_context(**context)
        self.page = self._context.new_page()
        self.page.set_default_timeout(20_000)
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        self.page.goto(f"http://{served.http}/")

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *error: object) -> None:
        self._context.close()

    def card(self, name: str) -> Any:
        return self.page.locator("article", has=self.page.get_by_role("heading", name=name))


def test_the_page_shows_every_model_and_asks_no_other_host(browser: Any, served: Served) -> None:
    with Opened(browser, served) as opened:
        opened.page.get_by_text("2 of 3 models ready.").wait_for()
        assert "TFL3" in opened.card("bad").inner_text()
        assert "version 1 ready, version 2 ready" in opened.card("large").inner_text()
        names = opened.card("evil").locator("td:nth-child(2)").all_text_contents()
        assert names == [EVIL, "y"]
        assert opened.page.locator("img").count() == 0
        assert opened.complaints == []
        assert opened.hosts == {served.http}


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_window(
    browser: Any, served: Served, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 800}
    with Opened(browser, served, viewport=size, color_scheme=scheme) as opened:
        opened.page.get_by_text("2 of 3 models ready.").wait_for()
        for summary in opened.page.locator("summary").all():
            summary.click()
        assert opened.page.evaluate("document.documentElement.scrollWidth") == width
        dark = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (dark == "rgb(18, 22, 28)") == (scheme == "dark")


def test_each_program_of_the_page_calls_its_model(browser: Any, served: Served) -> None:
    with Opened(browser, served) as opened:
        opened.page.get_by_text("2 of 3 models ready.").wait_for()
        programs = opened.page.locator("pre").all_text_contents()
        assert len(programs) == 9
        for program in programs:
            command = ["bash", "-c", program]
            if not program.startswith(("curl", "{")):
                command = [sys.executable, "-c", program]
            ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert ran.returncode == 0, (program, ran.stderr)
            assert '"outputs"' in ran.stdout or ran.stdout.startswith("[[-0. -0."), ran.stdout
        figures = opened.card("evil").locator(".figures")
        figures.locator("dd", has_text=" ms").first.wait_for()  # the next reading of the metrics
        rate = figures.locator("div", has_text="requests/s").locator("dd")
        assert float(rate.inner_text()) > 0
        assert opened.complaints == []


def test_the_page_runs_no_scripts_but_its_own(served: Served) -> None:
    with urllib.request.urlopen(f"http://{served.http}/", timeout=10) as answer:
        policy, text = answer.headers["Content-Security-Policy"], answer.read().decode()
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "evil" not in text
    assert f'<meta name="grpc" content="{served.grpc_port}">' in text


def test_a_server_that_needs_a_token_shows_models_to_those_who_have_it(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "secret.tflite", "some_input", (1, 2))
    write(tmp_path / "other.tflite", "some_input", (1, 2))
    monkeypatch.setenv("DELEGRAPH_SERVE_TOKEN", TOKEN)
    words = [str(tmp_path / "secret.tflite"), str(tmp_path / "other.tflite")]
    with Served(words, tmp_path / "log") as served:
        served.wait_until_ready()
        with Opened(browser, served) as opened:
            opened.page.get_by_text("Locked.").wait_for()
            assert opened.page.locator("article").count() == 0
            for typed, shown in (("wrong", "The server refused this token."), (TOKEN, "2 of 2")):
                opened.page.get_by_label("This server needs a token.").fill(typed)
                opened.page.get_by_role("button", name="Show the models").click()
                opened.page.get_by_text(shown).wait_for()
            program = opened.card("secret").locator("pre").first.text_content()
        environment = {**os.environ, "TOKEN": TOKEN}
        ran = subprocess.run(
            ["bash", "-c", program], capture_output=True, text=True, env=environment, timeout=60
        )
        assert '"outputs"' in ran.stdout


def test_a_web_page_changes_no_models(served: Served) -> None:
    url = f"http://{served.http}/v2/repository/models/evil/unload"
    request = urllib.request.Request(url, b"", {"Origin": "http://example.org"}, method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused, urllib.request.urlopen(request):
        pass
    with refused.value as answer:
        assert answer.code == 403
        assert b"a web page may not load or unload models" in answer.read()
