"""The files of docs/deploy are sound, and the servers that they start answer their probes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.served import Served

NEEDED = ("grpc", "httptools", "kubernetes_validate", "uvicorn", "yaml")
if not all(map(importlib.util.find_spec, NEEDED)):
    pytest.skip("serving is tested by make test-scale-serve", allow_module_level=True)

import kubernetes_validate  # noqa: E402
import yaml  # noqa: E402

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
MODELS = DEPLOY.parent / "demo" / "models"
KUBERNETES = "1.34"
TOOLS = Path(sys.executable).parent


def documents(name: str) -> dict[str, Any]:
    """Return the documents of a file by their kind."""
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / name).read_text()) if one}


def containers() -> list[Any]:
    """Return the containers of both clusters' files."""
    deployment = documents("kubernetes.yaml")["Deployment"]["spec"]["template"]["spec"]
    runtime = documents("kserve.yaml")["ServingRuntime"]["spec"]
    return [*deployment["containers"], *runtime["containers"]]


def image(instruction: str) -> list[str]:
    """Return the words of an instruction of the last stage."""
    text = (DEPLOY / "Containerfile").read_text()
    (words,) = re.findall(rf"^{instruction} (\[.*\])$", text, re.MULTILINE)
    return [str(word) for word in json.loads(words)]


def unit_command() -> list[str]:
    text = (DEPLOY / "delegraph.service").read_text()
    return shlex.split(re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)[0])


def test_the_containerfile_has_no_fault() -> None:
    program = TOOLS / "hadolint"
    if not program.exists():
        pytest.skip("hadolint has no wheel for this machine")
    ran = subprocess.run([program, DEPLOY / "Containerfile"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_image_runs_as_another_user_and_installs_wheels_only() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    last = text.rpartition("FROM")[2]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.MULTILINE)
    assert "RUN" not in last
    assert "--only-binary :all:" in text


def test_the_image_warms_the_cache_of_its_server(tmp_path: Path) -> None:
    text = (DEPLOY / "Containerfile").read_text()
    (step,) = re.findall(r"^RUN (find /models .*)$", text, re.MULTILINE)
    program = tmp_path / "delegraph"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m delegraph "$@"\n')
    program.chmod(0o755)
    step = step.replace("/opt/delegraph/bin/delegraph", str(program)).replace(
        "/models", str(MODELS)
    )
    environment = {**os.environ, "DELEGRAPH_CACHE": str(tmp_path / "cache")}
    ran = subprocess.run(["sh", "-c", step], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert "sines.tflite" in ran.stdout


@pytest.mark.parametrize("name", ["kubernetes.yaml", "kserve.yaml"])
def test_yaml_has_no_fault(name: str) -> None:
    rules = (
        "{extends: default, rules: {line-length: {max: 110}, document-start: disable, "
        "comments: {min-spaces-from-content: 1}}}"
    )
    command = [sys.executable, "-m", "yamllint", "--strict", "-d", rules, DEPLOY / name]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_kubernetes_knows_every_field() -> None:
    found = documents("kubernetes.yaml")
    assert sorted(found) == ["Deployment", "Service"]
    for one in found.values():
        kubernetes_validate.validate(one, KUBERNETES, strict=True)
    wrong = {**found["Service"], "spec": {"prots": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_the_service_leads_to_the_deployment() -> None:
    found = documents("kubernetes.yaml")
    template = found["Deployment"]["spec"]["template"]
    assert found["Service"]["spec"]["selector"] == template["metadata"]["labels"]
    names = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    assert {port["targetPort"] for port in found["Service"]["spec"]["ports"]} == names


def test_containers_of_kserve_are_containers_of_kubernetes() -> None:
    found = documents("kserve.yaml")
    runtime, service = found["ServingRuntime"], found["InferenceService"]
    assert runtime["apiVersion"] == "serving.kserve.io/v1alpha1"
    assert service["apiVersion"] == "serving.kserve.io/v1beta1"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "delegraph"},
        "spec": {"containers": runtime["spec"]["containers"]},
    }
    kubernetes_validate.validate(pod, KUBERNETES, strict=True)
    model = service["spec"]["predictor"]["model"]
    (known,) = runtime["spec"]["supportedModelFormats"]
    assert model["modelFormat"]["name"] == known["name"]
    assert model["runtime"] == runtime["metadata"]["name"]
    assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]


@pytest.mark.parametrize("container", containers(), ids=lambda one: str(one["name"]))
def test_containers_may_do_nothing_but_serve(container: Any) -> None:
    allowed = container["securityContext"]
    assert allowed["allowPrivilegeEscalation"] is False
    assert allowed["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"]["memory"]


def started(words: list[str], folder: Path) -> Served:
    """Return a server with paths and addresses of this machine in place of the files' own."""
    token, model = folder / "token", folder / "model.tflite"
    token.write_text("open-sesame")
    shutil.copy(MODELS / "digits_int8.tflite", model)
    here = {
        "/models": str(MODELS),
        "/srv/models": str(MODELS),
        "/mnt/models/model.tflite": str(model),
        "/run/secrets/delegraph/token": str(token),
        "${CREDENTIALS_DIRECTORY}/token": str(token),
        "0.0.0.0": "127.0.0.1",
    }
    return Served([here.get(word, word) for word in words], folder / "log")


@pytest.mark.parametrize("container", containers(), ids=lambda one: str(one["name"]))
def test_containers_answer_their_probes(container: Any, tmp_path: Path) -> None:
    program, command, *words = image("ENTRYPOINT")
    assert (program, command) == ("delegraph", "serve")
    probes = [probe for name, probe in container.items() if name.endswith("Probe")]
    ports = {port.get("name"): port["containerPort"] for port in container["ports"]}
    assert all(ports.get(p["httpGet"]["port"], p["httpGet"]["port"]) == 8080 for p in probes)
    with started([*words, *container["args"]], tmp_path) as served:
        for probe in probes:
            path = probe["httpGet"]["path"].lstrip("/")
            served.wait_until(lambda path=path: served.status(path) == 200)


def test_the_image_serves_its_models_by_default(tmp_path: Path) -> None:
    words = [*image("ENTRYPOINT")[2:], *image("CMD")]
    with started(words, tmp_path) as served:
        served.wait_until_ready()
        assert "digits_int8" in served.text("v2/models")


def test_the_unit_is_sound_and_may_do_little(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze")
    program = unit_command()[0]
    unit = tmp_path / "delegraph.service"
    unit.write_text((DEPLOY / unit.name).read_text().replace(program, "/bin/true"))
    ran = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    security = [analyze, "security", "--offline=true", "--threshold=20", "--no-pager", unit]
    ran = subprocess.run(security, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


def test_the_unit_serves_those_who_have_the_token(tmp_path: Path) -> None:
    program, command, *words = unit_command()
    assert (Path(program).name, command) == ("delegraph", "serve")
    with started(words, tmp_path) as served:
        served.wait_until_ready()
        assert served.status("v2/models") == 401
