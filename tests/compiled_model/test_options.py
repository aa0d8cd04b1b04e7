from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph.compiled_model import CpuKernelMode, CpuOptions, HardwareAccelerator, Options
from delegraph.compiled_model.options import resolved_options
from delegraph.errors import PlacementError
from support.by_name import ByName
from support.compiled_models import ONES, adding, buffers, negating


def answer(model: Any) -> list[float]:
    inputs, outputs = buffers(model, ONES)
    model.run_by_index(0, inputs, outputs)
    found: list[float] = outputs[0].read(4, np.float32).tolist()
    return found


def made(api: Any, **arguments: Any) -> Any:
    return api.CompiledModel.from_buffer(negating(), **arguments)


def test_groups_are_made_when_asked_for_and_kept(api: Any) -> None:
    options = api.Options()
    assert options == api.Options.create()
    for name in ("cpu", "gpu", "qualcomm", "intel_openvino"):
        group = getattr(options, f"{name}_options")
        assert getattr(options, f"{name}_options") is group
        with pytest.raises(AttributeError):
            setattr(options, f"{name}_options", group)
    assert options != api.Options()
    assert options.cpu_options == api.CpuOptions()
    given = api.CpuOptions(num_threads=3)
    assert api.Options(cpu_options=given).cpu_options is given
    with pytest.raises(TypeError):
        hash(options)


@pytest.mark.parametrize("accelerator", [1, 5, "1", 1.0, True, None], ids=repr)
def test_accelerators_that_are_there(api: Any, accelerator: Any) -> None:
    model = made(api, hardware_accel=accelerator)
    assert answer(model) == [-1] * 4
    if accelerator is not None:
        options = api.Options(hardware_accelerators=accelerator)
        assert answer(made(api, options=options)) == [-1] * 4


@pytest.mark.parametrize("accelerator", [0, 2, 3, 4, 6, 7, 8, -1])
def test_accelerators_that_are_not(api: Any, accelerator: int) -> None:
    with pytest.raises(RuntimeError):
        made(api, hardware_accel=api.HardwareAccelerator(accelerator) if accelerator > 0 else 0)
    with pytest.raises(RuntimeError):
        made(api, options=api.Options(accelerator))


@pytest.mark.parametrize(
    ("accelerator", "error"), [("CPU", ValueError), (object(), TypeError), (2**40, TypeError)]
)
def test_what_is_no_accelerator(api: Any, accelerator: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        made(api, hardware_accel=accelerator)


def test_options_and_accelerator_are_not_given_together(api: Any) -> None:
    with pytest.raises(ValueError, match="Pass either options or hardware_accel, not both"):
        made(api, hardware_accel=api.HardwareAccelerator.CPU, options=api.Options())
    with pytest.raises(ValueError, match="not both"):
        api.CompiledModel.from_file("/nope", 1, None, api.Options())


@pytest.mark.parametrize(
    "wrong", [3, "x", 0, "", {}, object()], ids=lambda wrong: type(wrong).__name__
)
def test_what_is_no_options_is_an_attribute_error(api: Any, wrong: Any) -> None:
    with pytest.raises(AttributeError):
        made(api, options=wrong)
    with pytest.raises(AttributeError):
        made(api, options=api.Options(cpu_options=wrong))


@pytest.mark.parametrize(
    "given",
    [
        {"num_threads": 2},
        {"num_threads": 0},
        {"num_threads": -1},
        {"kernel_mode": 2},
        {"enable_ynnpack": None},
        {"xnnpack_flags": 0},
        {"xnnpack_weight_cache_path": ""},
    ],
    ids=str,
)
def test_options_of_the_cpu(api: Any, given: Any) -> None:
    assert answer(made(api, options=api.Options(cpu_options=api.CpuOptions(**given)))) == [-1] * 4


@pytest.mark.parametrize("mode", ["DELEGATE", "XNNPACK", "REFERENCE", "BUILTIN"])
def test_kernel_modes(api: Any, mode: str) -> None:
    cpu = api.CpuOptions(kernel_mode=api.CpuKernelMode[mode])
    model = made(api, options=api.Options(cpu_options=cpu))
    assert answer(model) == [-1] * 4
    if mode in ("REFERENCE", "BUILTIN"):
        assert model.is_fully_accelerated() is False


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"num_threads": "2"}, TypeError),
        ({"num_threads": None}, TypeError),
        ({"num_threads": 2.0}, TypeError),
        ({"num_threads": 2**40}, TypeError),
        ({"kernel_mode": "x"}, ValueError),
        ({"kernel_mode": 7}, RuntimeError),
        ({"enable_ynnpack": "yes"}, TypeError),
        ({"xnnpack_flags": "x"}, TypeError),
        ({"xnnpack_weight_cache_path": None}, TypeError),
    ],
    ids=str,
)
def test_wrong_options_of_the_cpu(api: Any, given: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        made(api, options=api.Options(cpu_options=api.CpuOptions(**given)))


@pytest.mark.parametrize(
    ("group", "given", "error"),
    [
        ("Gpu", {"enforce_f32": 3}, None),
        ("Gpu", {"enforce_f32": "x"}, TypeError),
        ("Qualcomm", {"log_level": 1, "dump_tensor_ids": [1, 2], "vtcm_size": 3}, None),
        ("Qualcomm", {"log_level": "x"}, ValueError),
        ("Qualcomm", {"vtcm_size": "x"}, TypeError),
        ("Qualcomm", {"ir_json_dir": 3}, TypeError),
        ("IntelOpenVino", {"configs_map": {"a": "b"}, "graph_backend": 2}, None),
        ("IntelOpenVino", {"configs_map": {"a": 1}}, TypeError),
        ("IntelOpenVino", {"graph_backend": "x"}, ValueError),
    ],
)
def test_options_of_other_hardware_are_checked(
    api: Any, group: str, given: Any, error: type[Exception] | None
) -> None:
    name = {"IntelOpenVino": "intel_openvino"}.get(group, group.lower())
    value = getattr(api, f"{group}Options")(**given)
    options = api.Options(**{f"{name}_options": value})
    if error is None:
        assert answer(made(api, options=options)) == [-1] * 4
    else:
        with pytest.raises(error):
            made(api, options=options)


# -- Delegraph alone ---------------------------------------------------------------------------


def test_without_options_there_is_one_thread() -> None:
    def threads(options: Options) -> Any:
        return options.interpreter_arguments()["num_threads"]

    assert threads(resolved_options(None, None)) == 1
    assert threads(resolved_options(None, HardwareAccelerator.CPU)) == 1
    assert threads(Options()) is None
    assert threads(Options(cpu_options=CpuOptions(num_threads=2))) == 2


@pytest.mark.parametrize(
    ("mode", "resolver"),
    [
        (None, "AUTO"),
        (CpuKernelMode.DELEGATE, "AUTO"),
        (CpuKernelMode.REFERENCE, "BUILTIN_REF"),
        (CpuKernelMode.BUILTIN, "BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    ],
)
def test_a_kernel_mode_is_an_op_resolver_type(mode: CpuKernelMode | None, resolver: str) -> None:
    arguments = Options(cpu_options=CpuOptions(kernel_mode=mode)).interpreter_arguments()
    assert arguments["experimental_op_resolver_type"].name == resolver


def test_without_the_cpu_delegates_must_have_every_node(ours: Any) -> None:
    npu = ours.HardwareAccelerator.NPU
    model = ours.CompiledModel.from_buffer(adding(), npu, delegates=[ByName("ADD")])
    assert model.is_fully_accelerated() is True
    with pytest.raises(PlacementError, match="ADD"):
        ours.CompiledModel.from_buffer(adding(), npu)
