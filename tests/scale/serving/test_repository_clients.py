"""Clients of the protocol list, load, unload and ask the models of a folder."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.testing import graph_model, tensor
from support.served import Served

NEEDED = ("grpc", "httptools", "tritonclient", "uvicorn")
if not all(map(importlib.util.find_spec, NEEDED)):
    pytest.skip("serving is tested by make test-scale-serve", allow_module_level=True)

from tritonclient import grpc, http  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402

X = np.array([[1.0, 4.0]], np.float32)


def write(path: Path, op: str) -> None:
    """Write a model that computes ``y`` from ``x [1, 2], float32`` by one operator."""
    tensors = {"x": tensor((1, 2)), "y": tensor((1, 2))}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(graph_model([(op, "x", "y")], inputs="x", outputs="y", tensors=tensors))


@pytest.fixture(params=["http", "grpc"])
def module(request: pytest.FixtureRequest) -> Any:
    """Triton's client of one of its ways."""
    return {"http": http, "grpc": grpc}[request.param]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "models" / "net" / "1" / "model.tflite", "SQRT")
    (tmp_path / "models" / "bad.tflite").write_bytes(b"no model at all")
    return tmp_path / "models"


def client(module: Any, served: Served) -> Any:
    return module.InferenceServerClient(served.grpc if module is grpc else served.http)


@pytest.fixture(params=["embedded", "ray"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What computes."""
    if request.param == "ray":
        if importlib.util.find_spec("ray") is None:
            pytest.skip("tested by make test-scale-serve-ray")
        monkeypatch.setenv("RAY_ADDRESS", "local")


@pytest.fixture
def asking(module: Any, engine: None, folder: Path, tmp_path: Path) -> Iterator[Any]:
    with Served([str(folder)], tmp_path / "log") as served:
        served.wait_until_ready()
        with client(module, served) as found:
            yield found


def asked(module: Any, found: Any, version: str = "") -> Any:
    """Return the answer of the model ``net``."""
    given = module.InferInput("x", [1, 2], "FP32")
    given.set_data_from_numpy(X)
    return found.infer("net", [given], model_version=version).as_numpy("y")


def states(found: Any) -> dict[str, str]:
    index = found.get_model_repository_index()
    if not isinstance(index, list):
        return {one.name: one.state for one in index.models}
    return {one["name"]: one["state"] for one in index}


def test_a_new_version_is_loaded_and_unloaded(module: Any, asking: Any, folder: Path) -> None:
    assert states(asking) == {"bad": "UNAVAILABLE", "net": "READY"}
    np.testing.assert_array_equal(asked(module, asking, "1"), np.sqrt(X))
    write(folder / "net" / "2" / "model.tflite", "SQUARE")
    asking.load_model("net")
    np.testing.assert_array_equal(asked(module, asking), X * X)
    with pytest.raises(InferenceServerException, match="has no version '1'; versions are 2"):
        asked(module, asking, "1")
    asking.unload_model("net")
    assert states(asking) == {"bad": "UNAVAILABLE", "net": "UNAVAILABLE"}
    with pytest.raises(InferenceServerException, match="is not ready: unloaded"):
        asked(module, asking)
    with pytest.raises(InferenceServerException, match=r"'bad' cannot be loaded: .*TFL3"):
        asking.load_model("bad")
    with pytest.raises(InferenceServerException, match="no model 'absent' in the repository"):
        asking.load_model("absent")


def test_models_are_fixed_where_the_command_line_says_so(
    module: Any, folder: Path, tmp_path: Path
) -> None:
    with Served([str(folder), "--model-control", "off"], tmp_path / "log") as served:
        served.wait_until_ready()
        with client(module, served) as found:
            with pytest.raises(InferenceServerException, match="clients may not load and unload"):
                found.unload_model("net")
            np.testing.assert_array_equal(asked(module, found), np.sqrt(X))
