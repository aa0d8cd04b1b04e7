from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from compiled_models import compiled, convolution, random_inputs
from delegraph import Interpreter
from delegraph.errors import ArgumentError
from delegraph.testing.outputs import outputs_of
from delegraph_edgetpu import edgetpu_custom_op, statistics
from delegraph_edgetpu.custom_options import CUSTOM_OP
from delegraph_edgetpu.devices import CACHE_BYTES, VARIABLE, Parameters, device_named, devices


def parameters(key: bytes, token: int, cached: int = 100, streamed: int = 0) -> Parameters:
    return Parameters(key, token, cached, streamed)


def run(*several: Parameters, device: str = ":0") -> None:
    for each in several:
        with device_named(device).running(each):
            pass


# -- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"),
    [("", ":0"), (":0", ":0"), (":1", ":1"), ("usb", ":0"), ("usb:0", ":0"), ("pci", ":1"),
     ("pci:0", ":1")],
)  # fmt: skip
def test_devices_have_the_names_that_libedgetpu_gives_them(name: str, found: str) -> None:
    assert device_named(name).name == found


@pytest.mark.parametrize("name", [":2", "usb:1", "tpu", ":", "0", ":00", "usb:"])
def test_an_unknown_device_is_an_error_that_lists_those_there_are(name: str) -> None:
    with pytest.raises(
        ArgumentError, match=r"':0' or 'usb:0', ':1' or 'pci:0', and 'pci' or 'usb' for any"
    ) as error:
        device_named(name)
    assert f"no Edge TPU {name!r}" in str(error.value)


def test_the_environment_says_how_many_devices_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "3")
    assert [device.kind for device in devices()] == ["usb:0", "usb:1", "usb:2"]
    assert device_named(":2").name == ":2"


def test_the_environment_says_which_devices_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "pci, usb,pci")
    assert [(d.name, d.kind) for d in devices()] == [
        (":0", "pci:0"), (":1", "usb:0"), (":2", "pci:1"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["0", "65", "999999999999", "usb,gpu", "-1", "usb,"])
def test_an_environment_that_makes_no_sense_is_an_error(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ArgumentError, match=f"{VARIABLE} is '{text}', expected"):
        devices()


# -- the parameter cache -----------------------------------------------------------------------


def test_parameters_are_loaded_once() -> None:
    run(*[parameters(b"a", 1)] * 3)
    found = statistics()[0]
    assert (found.inferences, found.parameter_loads, found.loaded_bytes) == (3, 1, 100)
    assert (found.evictions, found.streamed_bytes) == (0, 0)


def test_models_that_were_compiled_together_share_the_cache() -> None:
    run(parameters(b"a", 1), parameters(b"b", 1), parameters(b"a", 1))
    found = statistics()[0]
    assert (found.parameter_loads, found.cached_executables, found.cached_bytes) == (2, 2, 200)
    assert found.evictions == 0


def test_models_that_were_compiled_apart_evict_each_other() -> None:
    run(parameters(b"a", 1), parameters(b"b", 1), parameters(b"c", 2), parameters(b"a", 1))
    found = statistics()[0]
    assert (found.parameter_loads, found.evictions) == (4, 3)
    assert (found.caching_token, found.cached_executables, found.cached_bytes) == (1, 1, 100)


def test_what_is_not_on_the_chip_is_streamed_at_each_inference() -> None:
    run(*[parameters(b"a", 1, cached=CACHE_BYTES, streamed=1000)] * 3)
    found = statistics()[0]
    assert (found.loaded_bytes, found.streamed_bytes) == (CACHE_BYTES, 3000)


def test_parameters_that_find_the_cache_full_are_streamed() -> None:
    run(parameters(b"a", 1, cached=CACHE_BYTES - 10), *[parameters(b"b", 1, cached=50)] * 2)
    found = statistics()[0]
    assert (found.loaded_bytes, found.streamed_bytes) == (CACHE_BYTES, 80)


def test_each_device_has_a_cache_of_its_own() -> None:
    run(parameters(b"a", 1), device=":0")
    run(parameters(b"b", 2), device=":1")
    run(parameters(b"a", 1), device=":0")
    assert [(s.device, s.parameter_loads, s.evictions) for s in statistics()] == [
        (":0", 1, 0), (":1", 1, 0),
    ]  # fmt: skip


def test_a_reset_device_knows_nothing() -> None:
    run(parameters(b"a", 1))
    device_named(":0").reset()
    found = statistics()[0]
    assert (found.inferences, found.cached_executables, found.caching_token) == (0, 0, 0)
    run(parameters(b"a", 1))
    assert statistics()[0].parameter_loads == 1


def test_statistics_can_be_written_as_json() -> None:
    run(parameters(b"a", 5))
    written = json.loads(json.dumps([each.to_json() for each in statistics()]))
    assert written[0] == {
        "device": ":0", "kind": "usb:0", "inferences": 1, "parameter_loads": 1,
        "loaded_bytes": 100, "streamed_bytes": 0, "evictions": 0, "caching_token": 5,
        "cached_executables": 1, "cached_bytes": 100,
    }  # fmt: skip


# -- several users -----------------------------------------------------------------------------


def test_a_device_runs_one_inference_at_a_time() -> None:
    device, order = device_named(":0"), []

    def second() -> None:
        with device.running(parameters(b"b", 1)):
            order.append("second")

    thread = threading.Thread(target=second)
    with device.running(parameters(b"a", 1)):
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_device_serves_several_interpreters_at_once() -> None:
    model = [convolution(seed) for seed in range(3)]
    inputs = [random_inputs(content, seed) for seed, content in enumerate(model)]
    expected = [
        outputs_of(Interpreter(model_content=m), x) for m, x in zip(model, inputs, strict=True)
    ]
    wrong: list[int] = []

    def use(i: int) -> None:
        op = edgetpu_custom_op(":1")
        content = compiled(model[i], caching_token=i + 1)
        with Interpreter(model_content=content, custom_ops={CUSTOM_OP: op}) as interpreter:
            for _ in range(20):
                is_right = np.array_equal(outputs_of(interpreter, inputs[i])[0], expected[i][0])
                wrong.extend([] if is_right else [i])

    threads = [threading.Thread(target=use, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert statistics()[1].inferences == 60
    assert statistics()[0].inferences == 0
