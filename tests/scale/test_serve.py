"""A served model answers many clients what an interpreter answers, in every state of its server.

Both engines are tested: this process, and replicas of Ray Serve where Ray is installed.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.digits import answers_one_by_one
from support.gated_delegate import GatedModel
from support.served import Served, kill

NEEDED = ("grpc", "httptools", "psutil", "tritonclient", "uvicorn")
if not all(map(importlib.util.find_spec, NEEDED)):
    pytest.skip("serving is tested by make test-scale-serve", allow_module_level=True)
HAS_RAY = importlib.util.find_spec("ray") is not None
with_ray = pytest.mark.skipif(not HAS_RAY, reason="tested by make test-scale-serve-ray")

import psutil  # noqa: E402
from tritonclient import grpc, http  # noqa: E402
from tritonclient.utils import InferenceServerException, np_to_triton_dtype  # noqa: E402

DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"
PICTURES = np.random.default_rng(0).integers(-128, 128, (64, 8, 8, 1)).astype(np.int8)
WAYS = ("binary", "json", "grpc")


class Client:
    """Triton's client, over one of its ways."""

    def __init__(self, served: Served, way: str, model: str = "digits_int8") -> None:
        self._module: Any = grpc if way == "grpc" else http
        address = served.grpc if way == "grpc" else served.http
        self.triton: Any = self._module.InferenceServerClient(address)
        self._is_binary = way == "binary"
        self._way = way
        self._model = model

    def ask(self, output: str, **inputs: NDArray[Any]) -> NDArray[Any]:
        """Return one output of the model."""
        tensors = []
        for name, values in inputs.items():
            datatype = np_to_triton_dtype(values.dtype)
            tensor = self._module.InferInput(name, list(values.shape), datatype)
            binary = {} if self._way == "grpc" else {"binary_data": self._is_binary}
            tensor.set_data_from_numpy(values, **binary)
            tensors.append(tensor)
        wanted = None
        if self._way == "json":
            wanted = [self._module.InferRequestedOutput(output, binary_data=False)]
        found: NDArray[Any] = self.triton.infer(self._model, tensors, outputs=wanted).as_numpy(
            output
        )
        return found

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.triton.close()


@pytest.fixture(scope="module")
def expected() -> NDArray[Any]:
    """What an interpreter answers to each picture."""
    return answers_one_by_one(PICTURES)


ENGINES = {"embedded": [], "ray": ["--replicas", "2"]}


@pytest.fixture(scope="module", params=["embedded", pytest.param("ray", marks=with_ray)])
def engine(request: pytest.FixtureRequest) -> str:
    """The engine that computes."""
    return str(request.param)


@pytest.fixture(scope="module")
def digits(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    words = [str(DIGITS), "--delegate", "numba_cpu", "--max-batch-size", "16", *ENGINES[engine]]
    with Served(words, tmp_path_factory.mktemp("digits") / "log") as served:
        served.wait_until_ready()
        yield served


def serving(gated: GatedModel, *words: str) -> Served:
    return Served([*gated.words, *words], gated.folder / "log")


@pytest.fixture
def gated(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GatedModel:
    if engine == "ray":  # one replica, which Ray's cluster has
        monkeypatch.setenv("RAY_ADDRESS", "local")
    return GatedModel(tmp_path)


def test_no_port_is_open_to_other_machines(digits: Served) -> None:
    server = psutil.Process(digits.process.pid)
    found = [
        address
        for process in [server, *server.children(recursive=True)]
        for address in listening(process)
    ]
    assert {address.port for address in found} >= {digits.http_port, digits.grpc_port}
    for address in found:
        host = ip_address(address.ip)
        assert (getattr(host, "ipv4_mapped", None) or host).is_loopback, address


def listening(process: Any) -> list[Any]:
    """Return the addresses at which a process listens; none if it has ended."""
    try:
        connections = process.net_connections("inet")
    except psutil.Error:
        return []
    return [each.laddr for each in connections if each.status == "LISTEN"]


@pytest.mark.parametrize("way", ["binary", "grpc"])
def test_metadata_is_the_signature(digits: Served, way: str) -> None:
    as_json = {"as_json": True} if way == "grpc" else {}
    with Client(digits, way) as client:
        assert client.triton.is_server_live()
        assert client.triton.is_model_ready("digits_int8")
        server = client.triton.get_server_metadata(**as_json)
        model = client.triton.get_model_metadata("digits_int8", **as_json)
    assert server["name"] == "delegraph"
    assert "binary_tensor_data" in server["extensions"]
    shapes = [list(map(int, model[key][0]["shape"])) for key in ("inputs", "outputs")]
    assert shapes == [[-1, 8, 8, 1], [-1, 10]]
    assert [model[key][0]["name"] for key in ("inputs", "outputs")] == ["image", "digit"]
    assert [model[key][0]["datatype"] for key in ("inputs", "outputs")] == ["INT8", "INT8"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", [1, 5, 16])
def test_every_way_gives_what_an_interpreter_gives(
    digits: Served, expected: NDArray[Any], way: str, rows: int
) -> None:
    with Client(digits, way) as client:
        found = client.ask("digit", image=PICTURES[:rows])
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, expected[:rows])


def test_eight_clients_get_their_own_answers(digits: Served, expected: NDArray[Any]) -> None:
    def asked(seed: int) -> int:
        rng = np.random.default_rng(seed)
        with Client(digits, ("binary", "grpc")[seed % 2]) as client:
            for _ in range(50):
                start, rows = int(rng.integers(60)), int(rng.integers(1, 5))
                found = client.ask("digit", image=PICTURES[start : start + rows])
                np.testing.assert_array_equal(found, expected[start : start + rows])
        return 50

    before = digits.metrics()
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(asked, range(8))) == 400
    after = digits.metrics()
    answered = 'delegraph_requests_total{model_name="digits_int8",outcome="answered"}'
    batches = 'delegraph_batch_rows_count{model_name="digits_int8"}'
    assert after[answered] - before.get(answered, 0) == 400
    assert after[batches] - before.get(batches, 0) < 400  # several were computed together


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"image": PICTURES[:1].astype(np.int32)}, "input 'image' is INT32, expected INT8"),
        ({"image": PICTURES[:1, :4]}, r"has shape \[1, 4, 8, 1\], expected \[-1, 8, 8, 1\]"),
        ({"image": PICTURES[:17]}, "a request of 17 rows, expected 1 to 16"),
        ({"imago": PICTURES[:1]}, r"no input 'imago' \(did you mean 'image'\?\)"),
    ],
)
def test_requests_that_do_not_fit(digits: Served, way: str, inputs: Any, message: str) -> None:
    refusal = refused(digits, way, "digits_int8", "digit", **inputs)
    assert status(refusal) in ("400", "StatusCode.INVALID_ARGUMENT")
    assert re.search(message, str(refusal))


def refused(
    served: Served, way: str, model: str, output: str, **inputs: NDArray[Any]
) -> InferenceServerException:
    """Return how the server refuses a request."""
    with Client(served, way, model) as client, pytest.raises(InferenceServerException) as caught:
        client.ask(output, **inputs)
    return caught.value


@pytest.mark.parametrize("way", ["json", "grpc"])
def test_what_the_server_does_not_have(digits: Served, way: str) -> None:
    refusal = refused(digits, way, "other", "digit", image=PICTURES[:1])
    assert status(refusal) in ("404", "StatusCode.NOT_FOUND")
    with (
        Client(digits, way) as client,
        pytest.raises(InferenceServerException, match="models are not unloaded by requests"),
    ):
        client.triton.unload_model("digits_int8")


def test_outputs_that_the_model_does_not_have(digits: Served) -> None:
    refusal = refused(digits, "json", "digits_int8", "digits", image=PICTURES[:1])
    assert "no output 'digits' (did you mean 'digit'" in str(refusal)


def json_request(value: object) -> bytes:
    """Return a request in which a value stands for each pixel."""
    image = {"name": "image", "shape": [1, 8, 8, 1], "datatype": "INT8", "data": 64 * [value]}
    return json.dumps({"inputs": [image]}).encode()


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"{}", {}),
        (b"[1", {}),
        (b"\x00", {}),
        (b'{"inputs": 3}', {}),
        (b'{"inputs": [{"name": "image"}]}', {}),
        (json_request(1.5), {}),
        (json_request(200), {}),
        (json_request("one"), {}),
        (b'{"inputs": [{"name": "image"}]}', {"Inference-Header-Content-Length": "x"}),
        (b'{"inputs": []}   ', {"Inference-Header-Content-Length": "14"}),
        (
            b'{"inputs": [{"name": "image", "shape": [1, 8, 8, 1], "datatype": "INT8",'
            b'"parameters": {"binary_data_size": 64}}]}12345',
            {"Inference-Header-Content-Length": "113"},
        ),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "application/octet-stream"])
def test_damaged_requests(digits: Served, body: bytes, headers: dict[str, str], kind: str) -> None:
    url = f"http://{digits.http}/v2/models/digits_int8/infer"
    request = urllib.request.Request(url, body, {"Content-Type": kind, **headers})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    with caught.value as answer:
        assert answer.code == 400
        assert set(json.loads(answer.read())) == {"error"}


def test_it_is_ready_when_delegates_are(gated: GatedModel, engine: str) -> None:
    gated.gate.touch()
    x = np.ones((1, 2), np.float32)
    with serving(gated) as served:
        served.wait_until(lambda: served.status("v2/health/live") == 200)
        if engine == "ray":
            served.wait_until(served.replicas)
        assert served.status("v2/health/ready") == 503
        assert served.status("v2/models/neg/ready") == 503
        assert status(refused(served, "json", "neg", "y", x=x)) == "503"
        assert status(refused(served, "grpc", "neg", "y", x=x)) == "StatusCode.UNAVAILABLE"
        with Client(served, "grpc", "neg") as client:
            assert not client.triton.is_server_ready()
        gated.gate.unlink()
        served.wait_until_ready()
        assert [ask(served, way, 5) for way in WAYS] == [-5, -5, -5]


def test_a_row_that_the_model_fails_on_spoils_no_other(gated: GatedModel) -> None:
    with serving(gated, "--max-latency", "200") as served:
        served.wait_until_ready()
        values = [1.0, 88.0, 3.0, 4.0]
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(ask, served, "grpc", value) for value in values]
            for value, found in zip(values, asked, strict=True):
                if value == 88:
                    with pytest.raises(InferenceServerException, match=r"row 0: .*88 is too much"):
                        found.result()
                else:
                    assert found.result() == -value


def ask(served: Served, way: str, value: float) -> float:
    """Return what the model makes of a value."""
    x = np.full((1, 2), value, np.float32)
    with Client(served, way, "neg") as client:
        return float(client.ask("y", x=x)[0, 0])


def test_who_comes_while_others_are_computed_is_computed_together(gated: GatedModel) -> None:
    with serving(gated, "--max-latency", "0") as served:
        served.wait_until_ready()
        gated.gate.touch()
        waiting = 'delegraph_requests_in_progress{model_name="neg"}'
        asked = []
        with ThreadPoolExecutor(10) as pool:
            for value in range(10):
                asked.append(pool.submit(ask, served, "grpc", float(value)))
                served.wait_until(lambda: served.metrics().get(waiting) == len(asked))
            gated.gate.unlink()
            assert [one.result() for one in asked] == [-value for value in range(10)]
        assert served.metrics()['delegraph_batch_rows_count{model_name="neg"}'] <= 4


def test_too_many_requests_are_refused_at_once_and_stopping_answers_the_others(
    gated: GatedModel, engine: str
) -> None:
    computed = 2 if engine == "ray" else 1  # a replica fills a batch while it computes one
    with serving(gated, "--max-batch-size", "1", "--max-queue", "2") as served:
        served.wait_until_ready()
        gated.gate.touch()
        with ThreadPoolExecutor(24) as pool:
            asked = [
                pool.submit(ask, served, way, float(value))
                for value, way in enumerate(itertools.islice(itertools.cycle(WAYS), 24))
            ]
            served.wait_until(lambda: sum(map(Future.done, asked)) >= 22 - computed)
            refusals = [one.exception() for one in asked if one.done()]
            assert {
                str(error.status())
                for error in refusals
                if isinstance(error, InferenceServerException)
            } == {"503", "StatusCode.UNAVAILABLE"}
            assert all("too many requests" in str(error) for error in refusals)
            served.stop()
            served.wait_until(lambda: served.status("v2/health/live") == 0)  # takes no others
            gated.gate.unlink()
            answered = [value for value, one in enumerate(asked) if not one.exception()]
            assert len(answered) == 24 - len(refusals)
            assert all(asked[value].result() == -value for value in answered)
        assert served.end() == 0


@with_ray
def test_a_replica_that_is_killed_returns_and_the_other_answers(tmp_path: Path) -> None:
    with serving(GatedModel(tmp_path), "--replicas", "2") as served:
        served.wait_until_ready()
        first = served.wait_until(lambda: two(served.replicas()))
        kill(first[0])
        outcomes = [outcome(served, value) for value in range(40)]
        assert outcomes.count("answered") >= 38
        assert served.status("v2/health/ready") == 200
        again = served.wait_until(lambda: two(served.replicas()))
        assert first[1] in again
        assert first[0] not in again
        assert outcome(served, 66) == "the replica has ended"  # a request that kills, too
        served.wait_until(lambda: outcome(served, 1) == "answered")


def two(processes: list[int]) -> list[int]:
    return processes if len(processes) == 2 else []


def outcome(served: Served, value: float) -> str:
    """Return what became of a request: it is answered, or to be sent again."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, served, "grpc", value)
        error = asked.exception()
    if error is None:
        assert asked.result() == -value
        return "answered"
    assert status(error) == "StatusCode.UNAVAILABLE"
    assert "the replica has ended" in str(error)
    return "the replica has ended"


def status(error: BaseException | None) -> str:
    """Return the status of a refusal."""
    assert isinstance(error, InferenceServerException)
    return str(error.status())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--delegate", "no_such"], "no_such"),
        (["--signature", "no_such"], "the model has no signature 'no_such'"),
    ],
)
def test_what_cannot_be_served_says_so_before_anything_starts(
    words: list[str], message: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with Served([str(DIGITS), *words], log) as served:
        assert served.end() != 0
    assert message in log.read_text()


def test_a_port_that_is_taken(digits: Served, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Served([str(DIGITS)], log, http_port=digits.http_port) as served:
        assert served.end() != 0
    assert f"error: port {digits.http_port} cannot be used" in log.read_text()
