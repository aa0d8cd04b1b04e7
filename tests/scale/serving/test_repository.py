"""Models come and go while a server runs, and no request is lost by it."""

from __future__ import annotations

import asyncio
import gc
import shutil
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("prometheus_client", reason="tested by make test-scale-serve")

from delegraph import Interpreter
from delegraph.scale.predictor import Predictor
from delegraph.scale.serving.engines.local_engine import LocalEngine
from delegraph.scale.serving.model_files import ModelFile, OfferedModels
from delegraph.scale.serving.refusals import Kind, Refusal
from delegraph.scale.serving.repository import Repository
from delegraph.scale.serving.requests import InferRequest
from delegraph.scale.serving.served_model import ServedModel
from delegraph.scale.serving.tensors import GivenTensor
from delegraph.testing import graph_model, tensor
from delegraph.tools.setup import Setup
from support.gated_delegate import GatedModel

X = np.array([[1.0, 4.0]], np.float32)


def write(path: Path, op: str) -> None:
    """Write a model that computes ``y`` from ``x [1, 2], float32`` by one operator."""
    tensors = {"x": tensor((1, 2)), "y": tensor((1, 2))}
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(graph_model([(op, "x", "y")], inputs="x", outputs="y", tensors=tensors))
    new.rename(path)


def engine(file: ModelFile, delegate: str | None = None) -> LocalEngine:
    files = () if delegate is None else (delegate,)
    return LocalEngine(Predictor(Setup(file.path, delegate_files=files, threads=1)), 0.0, 8)


def during(
    folder: Path,
    test: Callable[[Repository], Awaitable[None]],
    opened: Callable[[ModelFile], LocalEngine] = engine,
    *,
    all_versions: bool = False,
    may_change: bool = True,
) -> None:
    """Run a test with a started repository of a folder."""

    async def run() -> None:
        repository = Repository(OfferedModels(str(folder), all_versions, may_change), opened)
        await repository.start()
        try:
            await test(repository)
        finally:
            await repository.stop()

    asyncio.run(run())


async def answer(model: ServedModel) -> Any:
    response = await model.infer(InferRequest({"x": GivenTensor("FP32", X)}))
    return response.outputs[0].values


async def check(repository: Repository, name: str, expected: Any, version: str = "") -> None:
    found = await answer(repository.find(name, version))
    np.testing.assert_array_equal(found, expected)


def states(repository: Repository) -> list[tuple[str, str, str]]:
    return [(one["name"], one["version"], one["state"]) for one in repository.index()]


def refused(kind: Kind, match: str) -> Any:
    return pytest.raises(Refusal, match=match, check=lambda refusal: refusal.kind is kind)


def interpreters() -> int:
    gc.collect()
    return sum(isinstance(thing, Interpreter) for thing in gc.get_objects())


def test_each_model_is_served_by_its_name_and_the_newest_version(tmp_path: Path) -> None:
    write(tmp_path / "neg.tflite", "NEG")
    write(tmp_path / "net" / "1" / "model.tflite", "SQRT")
    write(tmp_path / "net" / "10" / "model.tflite", "SQUARE")

    async def test(repository: Repository) -> None:
        assert await repository.is_ready()
        assert states(repository) == [("neg", "", "READY"), ("net", "10", "READY")]
        await check(repository, "neg", -X)
        await check(repository, "net", X * X)
        await check(repository, "net", X * X, "10")
        assert repository.metadata("net")["versions"] == ["10"]
        with refused(Kind.NOT_FOUND, "has no version '1'; versions are 10"):
            repository.find("net", "1")
        with refused(Kind.NOT_FOUND, "no model 'nett' .did you mean 'net'"):
            repository.find("nett")
        assert repository.outcomes()["answered"] == 3

    during(tmp_path, test)


def test_all_versions_are_served_if_they_are_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "net" / "1" / "model.tflite", "SQRT")
    write(tmp_path / "net" / "2" / "model.tflite", "SQUARE")

    async def test(repository: Repository) -> None:
        assert repository.metadata("net")["versions"] == ["1", "2"]
        await check(repository, "net", X * X)
        await check(repository, "net", np.sqrt(X), "1")

    during(tmp_path, test, all_versions=True)


def test_a_damaged_file_is_listed_with_its_error_and_stops_nothing(tmp_path: Path) -> None:
    write(tmp_path / "good.tflite", "NEG")
    (tmp_path / "bad.tflite").write_bytes(b"no model at all")

    async def test(repository: Repository) -> None:
        assert await repository.is_ready()
        bad, good = repository.index()
        assert (bad["state"], good["state"]) == ("UNAVAILABLE", "READY")
        assert "TFL3" in bad["reason"]
        assert repository.index(only_ready=True) == [good]
        with refused(Kind.UNAVAILABLE, "model 'bad' is not ready: .*TFL3"):
            repository.find("bad")
        with refused(Kind.INVALID, "model 'bad' cannot be loaded: .*TFL3"):
            await repository.load("bad")
        write(tmp_path / "bad.tflite", "SQUARE")
        await repository.load("bad")
        await check(repository, "bad", X * X)

    during(tmp_path, test)


def test_a_server_with_nothing_but_damaged_files_is_not_ready(tmp_path: Path) -> None:
    (tmp_path / "bad.tflite").write_bytes(b"")

    async def test(repository: Repository) -> None:
        assert not await repository.is_ready()

    during(tmp_path, test)


def test_a_new_version_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    write(tmp_path / "net" / "1" / "model.tflite", "SQRT")
    before = interpreters()

    async def test(repository: Repository) -> None:
        old = interpreters()
        write(tmp_path / "net" / "2" / "model.tflite", "SQUARE")
        await check(repository, "net", np.sqrt(X))
        await repository.load("net")
        await check(repository, "net", X * X)
        assert states(repository) == [("net", "2", "READY")]
        assert interpreters() == old
        await repository.unload("net")
        assert interpreters() == before
        assert states(repository) == [("net", "2", "UNAVAILABLE")]
        assert repository.outcomes()["answered"] == 2
        with refused(Kind.UNAVAILABLE, "model 'net' is not ready: unloaded"):
            repository.find("net")
        assert await repository.is_ready()
        await repository.load("net")
        await check(repository, "net", X * X)

    during(tmp_path, test)


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("all_versions", [False, True])
def test_a_damaged_new_version_leaves_the_old_one(
    tmp_path: Path, version: str, all_versions: bool
) -> None:
    write(tmp_path / "net" / "1" / "model.tflite", "SQRT")

    async def test(repository: Repository) -> None:
        path = tmp_path / "net" / version / "model.tflite"
        path.parent.mkdir(exist_ok=True)
        (tmp_path / "new").write_bytes(b"no model at all")
        (tmp_path / "new").rename(path)
        with refused(Kind.INVALID, f"cannot be loaded: version {version}: .*TFL3"):
            await repository.load("net")
        await check(repository, "net", np.sqrt(X))
        await check(repository, "net", np.sqrt(X), "1")
        write(path, "SQUARE")
        await repository.load("net")
        await check(repository, "net", X * X)

    during(tmp_path, test, all_versions=all_versions)


def test_a_version_that_has_not_changed_is_kept_as_it_is(tmp_path: Path) -> None:
    write(tmp_path / "net" / "1" / "model.tflite", "SQRT")

    async def test(repository: Repository) -> None:
        before = repository.find("net")
        await repository.load("net")
        assert repository.find("net") is before
        del before
        count = interpreters()
        write(tmp_path / "net" / "1" / "model.tflite", "SQUARE")
        await repository.load("net")
        await check(repository, "net", X * X)
        assert interpreters() == count

    during(tmp_path, test)


def test_a_model_that_was_not_there_before_is_found_by_load(tmp_path: Path) -> None:
    async def test(repository: Repository) -> None:
        assert await repository.is_ready()
        with refused(Kind.NOT_FOUND, "no model 'neg' in the repository"):
            await repository.load("neg")
        write(tmp_path / "neg.tflite", "NEG")
        write(tmp_path / "other.tflite", "NEG")
        await repository.load("neg")
        assert states(repository) == [("neg", "", "READY"), ("other", "", "UNAVAILABLE")]
        shutil.rmtree(tmp_path)
        with refused(Kind.UNAVAILABLE, "cannot be read"):
            await repository.load("neg")
        await check(repository, "neg", -X)

    during(tmp_path, test)


@pytest.mark.parametrize("name", ["..", "../neg", "/etc/passwd", "neg.tflite", "", "."])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    write(tmp_path / "neg.tflite", "NEG")
    (tmp_path / "models").mkdir()

    async def test(repository: Repository) -> None:
        for change in (repository.load, repository.unload):
            with refused(Kind.NOT_FOUND, "no model"):
                await change(name)

    during(tmp_path / "models", test)


def test_clients_change_nothing_unless_they_may(tmp_path: Path) -> None:
    write(tmp_path / "neg.tflite", "NEG")

    async def test(repository: Repository) -> None:
        for change in (repository.load, repository.unload):
            with refused(Kind.FORBIDDEN, "clients may not load and unload models"):
                await change("neg")
        await check(repository, "neg", -X)

    during(tmp_path, test, may_change=False)


async def turns(count: int = 50) -> None:
    """Let the event loop go on, and the threads of engines."""
    for _ in range(count):
        await asyncio.sleep(0.001)


def test_unloading_lets_running_requests_finish(tmp_path: Path) -> None:
    gated = GatedModel(tmp_path)
    delegate = gated.words[-1]

    async def test(repository: Repository) -> None:
        gated.gate.touch()
        model = repository.find("neg")
        running = [asyncio.create_task(answer(model)) for _ in range(3)]
        await turns()
        unloading = asyncio.create_task(repository.unload("neg"))
        await turns()
        assert states(repository) == [("neg", "", "UNLOADING")]
        with refused(Kind.UNAVAILABLE, "is not ready: it is unloading"):
            repository.find("neg")
        with refused(Kind.UNAVAILABLE, "was unloaded meanwhile"):
            await answer(model)
        assert not unloading.done()
        gated.gate.unlink()
        await unloading
        for task in running:
            np.testing.assert_array_equal(await task, -X)

    during(tmp_path, test, partial(engine, delegate=delegate))


def test_a_change_goes_on_when_its_client_leaves(tmp_path: Path) -> None:
    gated = GatedModel(tmp_path)
    delegate = gated.words[-1]

    async def test(repository: Repository) -> None:
        await repository.unload("neg")
        gated.gate.touch()  # the warm-up waits
        client = asyncio.create_task(repository.load("neg"))
        await turns()
        assert states(repository) == [("neg", "", "LOADING")]
        client.cancel()
        with suppress(asyncio.CancelledError):
            await client
        gated.gate.unlink()
        while states(repository)[0][2] == "LOADING":
            await turns(1)
        await check(repository, "neg", -X)

    during(tmp_path, test, partial(engine, delegate=delegate))


def test_models_are_loaded_away_from_the_event_loop(tmp_path: Path) -> None:
    write(tmp_path / "neg.tflite", "NEG")
    threads = []

    def opened(file: ModelFile) -> LocalEngine:
        threads.append(threading.current_thread())
        return engine(file)

    async def test(repository: Repository) -> None:
        assert threads
        assert threads[0] is not threading.main_thread()

    during(tmp_path, test, opened)


def test_an_engine_that_fails_in_any_way_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "a.tflite", "NEG")
    write(tmp_path / "b.tflite", "NEG")

    def opened(file: ModelFile) -> LocalEngine:
        if file.path.endswith("a.tflite"):
            raise KeyError("of a delegate")
        return engine(file)

    async def test(repository: Repository) -> None:
        assert states(repository) == [("a", "", "UNAVAILABLE"), ("b", "", "READY")]
        assert repository.index()[0]["reason"] == "KeyError: 'of a delegate'"
        assert caplog.messages == ["model a cannot be loaded: KeyError: 'of a delegate'"]

    during(tmp_path, test, opened)
