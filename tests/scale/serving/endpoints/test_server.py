"""A server in its process: access, refusals, and large requests beside small ones."""

from __future__ import annotations

import gzip
import importlib.util
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.gated_delegate import GatedModel
from support.served import Served

NEEDED = ("grpc", "httptools", "psutil", "tritonclient", "uvicorn")
if not all(map(importlib.util.find_spec, NEEDED)):
    pytest.skip("serving is tested by make test-scale-serve", allow_module_level=True)

import grpc  # noqa: E402
import psutil  # noqa: E402
from tritonclient import grpc as triton  # noqa: E402

DIGITS = Path(__file__).parents[4] / "docs" / "demo" / "models" / "digits_int8.tflite"
INFER = "/v2/models/neg/infer"
SMALL_LIMITS = [
    *("--header-timeout", "1", "--body-timeout", "1", "--idle-timeout", "2"),
    *("--max-body-size", "1", "--max-decompressed-size", "1", "--max-connections", "20"),
]


def asked(value: float) -> bytes:
    """Return the JSON of a request."""
    x = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [value, value]}
    return json.dumps({"inputs": [x]}).encode()


def head(path: str = INFER, method: str = "POST", **headers: object) -> bytes:
    """Return a header of HTTP."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: here", *lines, "", ""]).encode()


def posted(body: bytes, **headers: object) -> bytes:
    """Return a request of HTTP with a body."""
    return head(content_length=len(body), **headers) + body


class Raw:
    """A connection that sends any bytes."""

    def __init__(self, served: Served) -> None:
        self.socket = socket.create_connection(("127.0.0.1", served.http_port), timeout=20)

    def send(self, content: bytes) -> Raw:
        self.socket.sendall(content)
        return self

    def answer(self) -> tuple[int, dict[str, Any]]:
        """Return status and JSON of the next answer; status 0 if the connection ends."""
        found = b""
        while b"\r\n\r\n" not in found:
            found += (more := self.socket.recv(65536))
            if not more:
                return 0, {}
        lines, _, body = found.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in lines.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        while len(body) < length:
            body += self.socket.recv(65536)
        return int(lines.split(b" ")[1]), json.loads(body)

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> GatedModel:
    return GatedModel(tmp_path_factory.mktemp("gated"))


@pytest.fixture(scope="module")
def served(gated: GatedModel) -> Iterator[Served]:
    words = [*gated.words, *SMALL_LIMITS, "--access-log", str(gated.folder / "access")]
    with Served(words, gated.folder / "log") as found:
        found.wait_until_ready()
        yield found


def one(served: Served, content: bytes) -> tuple[int, str]:
    """Return status and error of the answer to some bytes."""
    with Raw(served) as raw:
        status, answer = raw.send(content).answer()
    return status, str(answer.get("error", ""))


def test_only_two_loopback_ports_are_open(served: Served) -> None:
    process = psutil.Process(served.process.pid)
    found = [each.laddr for each in process.net_connections("inet") if each.status == "LISTEN"]
    assert {address.port for address in found} == {served.http_port, served.grpc_port}
    hosts = [ip_address(address.ip) for address in found]
    assert all((getattr(host, "ipv4_mapped", None) or host).is_loopback for host in hosts)
    assert len(found) == 2
    assert process.children() == []


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b"nonsense\r\n\r\n", 400, "the request is not HTTP/1.1"),
        (head(content_length=2**20 + 1), 413, "the body has 1048577 bytes, expected at most"),
        (
            head(transfer_encoding="chunked") + b"80000\r\n" + bytes(0x80000) + b"\r\n"
            b"90000\r\n" + bytes(0x90000) + b"\r\n0\r\n\r\n",
            413,
            "the body has more than the 1048576 bytes",
        ),
        (
            head(transfer_encoding="chunked") + b"0\r\n" + b"x: y\r\n" * 400_000,
            413,
            "the body has more than 1048576 bytes",
        ),
        (head(x="a" * 70_000), 431, "the header"),
        (b"POST /" + b"a" * 70_000, 431, "the header is larger than 65536 bytes"),
        (posted(asked(1), content_encoding="br"), 415, "Content-Encoding is 'br'"),
        (posted(asked(1), content_encoding="gzip"), 400, "the body is no gzip"),
        (
            posted(gzip.compress(bytes(2**21), mtime=0), content_encoding="gzip"),
            413,
            "more than 1048576 bytes after decompression",
        ),
        (posted(asked(1), inference_header_content_length=9999), 400, "is 9999, expected at most"),
        (posted(asked(1), inference_header_content_length=-1), 400, "is '-1', expected a number"),
        (posted(b"[" * 100), 400, "has 100 levels, expected at most 32"),
        (head("/v2/nothing", "GET"), 404, "no path /v2/nothing"),
        (head("/v2/models/other", "GET"), 404, "no model 'other'"),
        (head("/v2/models/neg/versions/9", "GET"), 404, "no version '9'"),
        (head(method="GET"), 405, "GET of /v2/models/neg/infer, expected POST"),
    ],
)
def test_refusals(served: Served, content: bytes, status: int, message: str) -> None:
    found, error = one(served, content)
    assert (found, message in error) == (status, True), error
    assert one(served, posted(asked(1))) == (200, "")


def test_a_refused_body_is_taken_and_the_connection_goes_on(served: Served) -> None:
    with Raw(served) as raw:
        assert raw.send(head(content_length=2**21)).answer()[0] == 413
        assert raw.send(bytes(2**21) + posted(asked(1))).answer()[0] == 200


def test_compressed_requests(served: Served) -> None:
    assert one(served, posted(gzip.compress(asked(1)), content_encoding="gzip")) == (200, "")


def test_slow_clients_are_not_waited_for(served: Served) -> None:
    with Raw(served) as header, Raw(served) as body, Raw(served) as idle:
        header.send(head()[:20])
        body.send(posted(asked(1))[:-1])
        assert idle.send(posted(asked(1))).answer()[0] == 200
        found = header.answer(), body.answer()
        assert [status for status, _ in found] == [408, 408]
        assert found[0][1] == {"error": "no header after 1 s"}
        assert found[1][1] == {"error": "the body is not complete after 1 s"}
        assert idle.socket.recv(1) == b""  # closed without a word


def test_connections_over_the_limit(served: Served) -> None:
    raws = [Raw(served) for _ in range(30)]
    try:
        for raw in raws[:20]:
            raw.send(head()[:20])
        statuses = [raw.answer()[0] for raw in raws[::-1]]
        assert sorted(statuses) == [408] * 20 + [503] * 10
    finally:
        for raw in raws:
            raw.socket.close()
    served.wait_until(lambda: served.status("v2/health/live") == 200)


def test_what_clients_gave_up_is_not_computed(served: Served, gated: GatedModel) -> None:
    answered = 'delegraph_requests_total{model_name="neg",outcome="answered"}'
    computed = 'delegraph_batch_rows_sum{model_name="neg"}'
    before = served.metrics()
    gated.gate.touch()
    with ThreadPoolExecutor(1) as pool:
        kept = pool.submit(one, served, posted(asked(1)))
        served.wait_until(lambda: in_progress(served) == 1)
        raws = [Raw(served).send(posted(asked(2))) for _ in range(5)]
        client = triton.InferenceServerClient(served.grpc)
        x = triton.InferInput("x", [1, 2], "FP32").set_data_from_numpy(np.ones((1, 2), np.float32))
        with pytest.raises(Exception, match="Deadline Exceeded"):
            client.infer("neg", [x], client_timeout=0.5)
        called = client.async_infer("neg", [x], lambda result, error: None)
        served.wait_until(lambda: in_progress(served) == 7)
        called.cancel()
        client.close()
        for raw in raws:
            raw.socket.close()
        served.wait_until(lambda: in_progress(served) == 1)
        gated.gate.unlink()
        assert kept.result() == (200, "")
    assert one(served, posted(asked(1))) == (200, "")
    after = served.metrics()
    assert after[answered] - before.get(answered, 0) == 2
    assert after[computed] - before.get(computed, 0) == 2
    served.wait_until(lambda: [line["status"] for line in logged(gated)].count(499) >= 5)


def in_progress(served: Served) -> float:
    return served.metrics().get('delegraph_requests_in_progress{model_name="neg"}', 0)


def test_large_json_delays_no_other_client(served: Served) -> None:
    numbers = ",".join(["1.5"] * 200_000)
    large = f'{{"inputs":[{{"name":"x","shape":[100000,2],"datatype":"FP32","data":[{numbers}]}}]}}'
    with ThreadPoolExecutor(3) as pool:
        asked_large = [pool.submit(one, served, posted(large.encode())) for _ in range(3)]
        while not all(future.done() for future in asked_large):
            assert one(served, posted(asked(1))) == (200, "")
    for future in asked_large:
        assert future.result() == (400, "a request of 100000 rows, expected 1 to 32")


def test_the_access_log_names_each_request(served: Served, gated: GatedModel) -> None:
    client = triton.InferenceServerClient(served.grpc)
    client.is_server_live()
    client.close()
    one(served, posted(asked(1)))
    served.wait_until(lambda: any(line.get("path") == INFER for line in logged(gated)[-1:]))
    lines = logged(gated)
    last = lines[-1]
    assert last["status"] == 200
    assert (last["method"], last["model"], last["protocol"]) == ("POST", "neg", "http")
    assert last["seconds"] > 0
    assert any(line["method"] == "ServerLive" and line["status"] == "OK" for line in lines)


def logged(gated: GatedModel) -> list[dict[str, Any]]:
    """Return the records of the access log."""
    return [json.loads(line) for line in (gated.folder / "access").read_text().splitlines()]


def test_grpc_refuses_what_rest_refuses(served: Served) -> None:
    channel = grpc.insecure_channel(served.grpc)
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")

    def code(content: bytes) -> tuple[str, str]:
        with pytest.raises(grpc.RpcError) as caught:
            call(content, timeout=10)
        return caught.value.code().name, caught.value.details()

    with channel:
        assert code(bytes(2**21))[0] == "RESOURCE_EXHAUSTED"
        for wrong in (
            b"\x0a",
            b"\x0a\x05neg",
            b"\xff" * 20,
            b"\x0a\x03neg\x3a\xff\xff\xff\xff\x0f",
        ):
            assert code(wrong)[0] in ("INVALID_ARGUMENT", "NOT_FOUND")
        assert code(b"\x0a\x03neg\x2a\x03\x0a\x01x\x2a\x03\x0a\x01x")[0] == "INVALID_ARGUMENT"
        assert code(b"\x0a\x03neg") == ("INVALID_ARGUMENT", "input 'x' is missing; inputs are x")


HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""Start of a connection of gRPC: the preface of HTTP/2, and an empty frame of settings."""


@pytest.mark.parametrize("start", [b"", HTTP2[:10], HTTP2], ids=["silent", "half", "idle"])
def test_connections_of_grpc_are_closed_in_time(served: Served, start: bytes) -> None:
    address = ("127.0.0.1", served.grpc_port)
    with socket.create_connection(address, timeout=10) as raw:
        raw.sendall(start)
        while raw.recv(4096):
            pass  # until the server closes the connection


def test_connections_of_grpc_over_the_limit(served: Served) -> None:
    with ExitStack() as stack:
        address = ("127.0.0.1", served.grpc_port)
        raws = [stack.enter_context(socket.create_connection(address, 10)) for _ in range(30)]
        for raw in raws:
            raw.sendall(HTTP2)
        assert sum(bool(_received(raw)) for raw in raws) <= 20
    with grpc.insecure_channel(served.grpc) as channel:
        grpc.channel_ready_future(channel).result(timeout=10)


def _received(raw: socket.socket) -> bytes:
    """Return the first bytes of a server; empty if it closes the connection."""
    try:
        return raw.recv(4096)
    except ConnectionError:
        return b""


def test_a_token_is_needed_but_by_probes(gated: GatedModel, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    with Served([*gated.words, "--token-file", str(token)], tmp_path / "log") as served:
        served.wait_until_ready()
        assert one(served, posted(asked(1))) == (401, "unauthorized")
        assert one(served, posted(asked(1), authorization="Bearer wrong")) == (401, "unauthorized")
        assert one(served, posted(asked(1), authorization="Bearer s3cret")) == (200, "")
        assert served.status("metrics") == 401
        client = triton.InferenceServerClient(served.grpc)
        assert client.is_server_live()
        with pytest.raises(Exception, match="unauthorized"):
            client.get_model_metadata("neg")
        right = {"authorization": "Bearer s3cret"}
        assert client.get_model_metadata("neg", headers=right).name == "neg"
        client.close()


def test_encryption(gated: GatedModel, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", str(key), "-out", str(cert), "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    words = [*gated.words, "--tls-cert", str(cert), "--tls-key", str(key)]
    with Served(words, tmp_path / "log") as served:
        trusted = ssl.create_default_context(cafile=str(cert))
        served.wait_until(lambda: "is ready: https://" in (tmp_path / "log").read_text())
        with (
            socket.create_connection(("127.0.0.1", served.http_port)) as plain,
            trusted.wrap_socket(plain, server_hostname="localhost") as encrypted,
        ):
            encrypted.sendall(posted(asked(1)))
            assert encrypted.recv(100).startswith(b"HTTP/1.1 200")
        client = triton.InferenceServerClient(served.grpc, ssl=True, root_certificates=str(cert))
        assert client.is_server_ready()
        client.close()


def test_unix_sockets_in_place_of_ports(gated: GatedModel, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    with Served([*gated.words, "--unix-socket", str(path)], tmp_path / "log") as served:
        served.wait_until(lambda: "is ready" in (tmp_path / "log").read_text())
        assert path.stat().st_mode & 0o777 == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(posted(asked(1)))
            assert client.recv(100).startswith(b"HTTP/1.1 200")
        other = triton.InferenceServerClient(f"unix:{path}.grpc")
        assert other.is_server_ready()
        other.close()
        found = psutil.Process(served.process.pid).net_connections("inet")
        assert [each for each in found if each.status == "LISTEN"] == []
        served.stop()
        assert served.end() == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tls-cert", "missing"], "--tls-cert and --tls-key belong together"),
        (["--tls-cert", "missing", "--tls-key", "missing"], "'missing' cannot be read"),
        (["--host", "no.such.host.invalid"], "--host 'no.such.host.invalid' cannot be used"),
        (["--token-file", "missing"], "--token-file 'missing' cannot be read"),
        (["--access-log", "missing/log"], "--access-log 'missing/log' cannot be opened"),
        (["--unix-socket", "missing/socket"], "--unix-socket 'missing/socket"),
    ],
)
def test_options_that_cannot_be(words: list[str], message: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Served([str(DIGITS), *words], log) as served:
        assert served.end() == 2
    assert message in log.read_text()


def test_a_full_disk_for_the_log_stops_nothing(gated: GatedModel, tmp_path: Path) -> None:
    words = [*gated.words, "--access-log", "/dev/full"]
    with Served(words, tmp_path / "log") as served:
        served.wait_until_ready()
        assert one(served, posted(asked(1))) == (200, "")
        served.stop()
        assert served.end() == 0


def test_it_ends_while_a_delegate_hangs(gated: GatedModel, tmp_path: Path) -> None:
    gated.gate.touch()
    try:
        with Served([*gated.words, "--grace", "1"], tmp_path / "log") as served:
            served.wait_until(lambda: served.status("v2/health/live") == 200)
            start = time.monotonic()
            served.stop()
            assert served.end() == 0
            assert time.monotonic() - start < 15
    finally:
        gated.gate.unlink()
