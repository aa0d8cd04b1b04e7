"""Options of one compiled model: accelerators, and options of each kind of hardware.

Source:
    ai_edge_litert/options.py, cpu_options.py, gpu_options.py and hardware_accelerator.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Any

from delegraph.compiled_model.failures import checked_c_int, checked_text
from delegraph.compiled_model.vendor_options import IntelOpenVinoOptions, QualcommOptions
from delegraph.errors import ArgumentError, CompiledModelError
from delegraph.runtime.arguments import OpResolverType, checked_flag

if TYPE_CHECKING:
    from typing import Self  # type: ignore[attr-defined, unused-ignore]  # 3.11; never run on 3.10


class HardwareAccelerator(IntFlag):
    """Kinds of hardware that may compute a model; ``CPU | NPU`` names several.

    ``CPU`` means Delegraph's kernels and all delegates. ``NPU`` alone means that the given
    ``delegates`` must compute the whole model. A GPU is not supported.
    """

    CPU = 1
    GPU = 2
    NPU = 4


class CpuKernelMode(IntEnum):
    """Kernels that compute a model.

    * ``DELEGATE`` (formerly ``XNNPACK``): the default delegate and Delegraph's kernels.
    * ``REFERENCE``: Delegraph's kernels, which round as the official reference kernels.
    * ``BUILTIN``: Delegraph's kernels, without default delegate.
    """

    DELEGATE = 0
    XNNPACK = 0
    REFERENCE = 1
    BUILTIN = 2


_RESOLVERS = {
    CpuKernelMode.DELEGATE: OpResolverType.AUTO,
    CpuKernelMode.REFERENCE: OpResolverType.BUILTIN_REF,
    CpuKernelMode.BUILTIN: OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
}


@dataclass
class CpuOptions:
    """Options of the CPU.

    Attributes:
        num_threads: number of threads; 0 or less lets the runtime choose.
        kernel_mode: kernels that compute the model; None means ``DELEGATE``.
        enable_ynnpack: no effect here.
        xnnpack_flags: no effect here.
        xnnpack_weight_cache_path: no effect here; ``cache_dir`` is for Delegraph's delegates.
    """

    num_threads: int = 0
    kernel_mode: CpuKernelMode | None = None
    enable_ynnpack: bool = False
    xnnpack_flags: int | None = None
    xnnpack_weight_cache_path: str = ""

    def interpreter_arguments(self) -> dict[str, Any]:
        """Return the arguments of ``Interpreter`` for these options.

        Raises:
            ArgumentTypeError: a value has the wrong type.
            CompiledModelError: the kernel mode is unknown.
        """
        threads = checked_c_int("num_threads", self.num_threads)
        mode = 0 if self.kernel_mode is None else int(self.kernel_mode)
        checked_flag("enable_ynnpack", self.enable_ynnpack)
        if self.xnnpack_flags is not None:
            checked_c_int("xnnpack_flags", self.xnnpack_flags)
        checked_text("xnnpack_weight_cache_path", self.xnnpack_weight_cache_path)
        if mode not in _RESOLVERS:
            known = ", ".join(f"{m.name} ({m.value})" for m in CpuKernelMode)
            raise CompiledModelError(f"kernel_mode is {mode}, expected one of {known}")
        return {
            "num_threads": threads if threads > 0 else None,
            "experimental_op_resolver_type": _RESOLVERS[CpuKernelMode(mode)],
        }


@dataclass
class GpuOptions:
    """Options of the GPU; they have no effect here."""

    enforce_f32: bool = False
    constant_tensor_sharing: bool = False
    infinite_float_capping: bool = False
    benchmark_mode: bool = False
    allow_src_quantized_fc_conv_ops: bool = False
    hint_waiting_for_completion: bool = False

    def check(self) -> None:
        """Raise an error if an option has the wrong type.

        Raises:
            ArgumentTypeError: a flag is neither True nor False.
        """
        for field in fields(self):
            checked_flag(field.name, getattr(self, field.name))


@dataclass(init=False)
class Options:
    """Options of one compiled model.

    A group of options that is not given is created at the first access.

    Args:
        hardware_accelerators: kinds of hardware that may compute the model.
        cpu_options: options of the CPU.
        gpu_options: options of the GPU.
        qualcomm_options: options of Qualcomm's processors.
        intel_openvino_options: options of Intel's OpenVINO.
    """

    hardware_accelerators: HardwareAccelerator = HardwareAccelerator.CPU
    _cpu_options: CpuOptions | None = None
    _gpu_options: GpuOptions | None = None
    _qualcomm_options: QualcommOptions | None = None
    _intel_openvino_options: IntelOpenVinoOptions | None = None

    def __init__(
        self,
        hardware_accelerators: HardwareAccelerator = HardwareAccelerator.CPU,
        cpu_options: CpuOptions | None = None,
        gpu_options: GpuOptions | None = None,
        qualcomm_options: QualcommOptions | None = None,
        intel_openvino_options: IntelOpenVinoOptions | None = None,
    ) -> None:
        self.hardware_accelerators = hardware_accelerators
        self._cpu_options = cpu_options
        self._gpu_options = gpu_options
        self._qualcomm_options = qualcomm_options
        self._intel_openvino_options = intel_openvino_options

    @classmethod
    def create(cls) -> Self:
        """Return the default options."""
        return cls()

    @property
    def cpu_options(self) -> CpuOptions:
        """Options of the CPU."""
        if self._cpu_options is None:
            self._cpu_options = CpuOptions()
        return self._cpu_options

    @property
    def gpu_options(self) -> GpuOptions:
        """Options of the GPU."""
        if self._gpu_options is None:
            self._gpu_options = GpuOptions()
        return self._gpu_options

    @property
    def qualcomm_options(self) -> QualcommOptions:
        """Options of Qualcomm's processors."""
        if self._qualcomm_options is None:
            self._qualcomm_options = QualcommOptions()
        return self._qualcomm_options

    @property
    def intel_openvino_options(self) -> IntelOpenVinoOptions:
        """Options of Intel's OpenVINO."""
        if self._intel_openvino_options is None:
            self._intel_openvino_options = IntelOpenVinoOptions()
        return self._intel_openvino_options

    def interpreter_arguments(self) -> dict[str, Any]:
        """Return the arguments of ``Interpreter`` for these options.

        Raises:
            ArgumentTypeError: an option has the wrong type.
            CompiledModelError: the accelerator does not exist here, or the kernel mode is unknown.
        """
        accelerators = checked_accelerators(int(self.hardware_accelerators))
        for group in (self._gpu_options, self._qualcomm_options, self._intel_openvino_options):
            if group is not None:
                group.check()
        cpu = CpuOptions() if self._cpu_options is None else self._cpu_options
        arguments = cpu.interpreter_arguments()
        if not accelerators & HardwareAccelerator.CPU:
            arguments["experimental_op_resolver_type"] = _RESOLVERS[CpuKernelMode.BUILTIN]
        return arguments


def checked_accelerators(bits: int) -> HardwareAccelerator:
    """Return *bits*, an integer, as accelerators, after checking that these exist.

    Raises:
        ArgumentTypeError: *bits* does not fit a C ``int``.
        CompiledModelError: *bits* has no accelerator, an unknown accelerator, or a GPU.
    """
    checked_c_int("hardware_accelerators", bits)
    if bits == 0:
        raise CompiledModelError("No acceleration provided: hardware_accelerators is 0")
    if not 0 < bits <= sum(HardwareAccelerator):
        raise CompiledModelError(f"hardware_accelerators is {bits}, expected bits of CPU, GPU, NPU")
    accelerators = HardwareAccelerator(bits)
    if accelerators & HardwareAccelerator.GPU:
        raise CompiledModelError(
            "there is no GPU accelerator in this runtime; ask for HardwareAccelerator.CPU, and "
            "name what shall compute as delegates=[...]"
        )
    return accelerators


def resolved_options(
    options: Options | None, hardware_accel: HardwareAccelerator | None
) -> Options:
    """Return *options*, or the options for *hardware_accel*; by default the CPU with one thread.

    Raises:
        ArgumentError: both arguments are given.
    """
    if options is not None:
        if hardware_accel is not None:
            raise ArgumentError("Pass either options or hardware_accel, not both.")
        return options
    accelerators = HardwareAccelerator.CPU if hardware_accel is None else hardware_accel
    return Options(accelerators, CpuOptions(num_threads=1))
