"""Options for vendors' hardware, which are checked and have no effect in this runtime.

Source:
    ai_edge_litert/qualcomm_options.py and intel_openvino_options.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from delegraph.compiled_model.failures import checked_c_int, checked_text


class QualcommLogLevel(IntEnum):
    """Amount of logging in Qualcomm's libraries; without effect here."""

    OFF = 0
    ERROR = 1
    WARN = 2
    INFO = 3
    VERBOSE = 4
    DEBUG = 5


class QualcommHtpPerformanceMode(IntEnum):
    """Speed and power of Qualcomm's tensor processor; without effect here."""

    DEFAULT = 0
    SUSTAINED_HIGH_PERFORMANCE = 1
    BURST = 2
    HIGH_PERFORMANCE = 3
    POWER_SAVER = 4
    LOW_POWER_SAVER = 5
    HIGH_POWER_SAVER = 6
    LOW_BALANCED = 7
    BALANCED = 8
    EXTREME_POWER_SAVER = 9


class QualcommDspPerformanceMode(IntEnum):
    """Speed and power of Qualcomm's signal processor; without effect here."""

    DEFAULT = 0
    SUSTAINED_HIGH_PERFORMANCE = 1
    BURST = 2
    HIGH_PERFORMANCE = 3
    POWER_SAVER = 4
    LOW_POWER_SAVER = 5
    HIGH_POWER_SAVER = 6
    LOW_BALANCED = 7
    BALANCED = 8


class QualcommProfiling(IntEnum):
    """Level of profiling in Qualcomm's libraries; without effect here."""

    OFF = 0
    BASIC = 1
    DETAILED = 2
    LINTING = 3
    OPTRACE = 4


class QualcommOptimizationLevel(IntEnum):
    """Goal of Qualcomm's compiler: short runs, or short preparation; without effect here."""

    OPTIMIZE_FOR_INFERENCE = 0
    OPTIMIZE_FOR_PREPARE = 1
    OPTIMIZE_FOR_INFERENCE_O3 = 2


class QualcommGraphPriority(IntEnum):
    """Priority of a model among the models that share a processor; without effect here."""

    DEFAULT = 0
    LOW = 1
    NORMAL = 2
    NORMAL_HIGH = 3
    HIGH = 4


class QualcommBackend(IntEnum):
    """Processor or format by which Qualcomm's libraries compute the model; without effect here."""

    UNDEFINED = 0
    GPU = 1
    HTP = 2
    DSP = 3
    IR = 4


class QualcommGraphIOTensorMemType(IntEnum):
    """Memory of a graph's inputs and outputs; without effect here."""

    RAW = 0
    MEM_HANDLE = 1


@dataclass
class QualcommOptions:
    """Options of Qualcomm's processors; they have no effect here."""

    LOG_LEVEL = QualcommLogLevel
    HTP_PERFORMANCE_MODE = QualcommHtpPerformanceMode
    DSP_PERFORMANCE_MODE = QualcommDspPerformanceMode
    PROFILING = QualcommProfiling
    OPTIMIZATION_LEVEL = QualcommOptimizationLevel
    GRAPH_PRIORITY = QualcommGraphPriority
    BACKEND = QualcommBackend
    GRAPH_IO_TENSOR_MEM_TYPE = QualcommGraphIOTensorMemType

    log_level: QualcommLogLevel | None = None
    htp_performance_mode: QualcommHtpPerformanceMode | None = None
    dsp_performance_mode: QualcommDspPerformanceMode | None = None
    use_int64_bias_as_int32: bool | None = None
    enable_weight_sharing: bool | None = None
    use_conv_hmx: bool | None = None
    use_fold_relu: bool | None = None
    profiling: QualcommProfiling | None = None
    dump_tensor_ids: Sequence[int] | None = None
    ir_json_dir: str = ""
    dlc_dir: str = ""
    vtcm_size: int | None = None
    num_hvx_threads: int | None = None
    optimization_level: QualcommOptimizationLevel | None = None
    graph_priority: QualcommGraphPriority | None = None
    backend: QualcommBackend | None = None
    saver_output_dir: str = ""
    graph_io_tensor_mem_type: QualcommGraphIOTensorMemType | None = None

    def check(self) -> None:
        """Raise an error if an option has the wrong type.

        Raises:
            ArgumentTypeError: a value has the wrong type.
            ValueError: an enumeration has the wrong value.
        """
        for choice in (
            self.log_level,
            self.htp_performance_mode,
            self.dsp_performance_mode,
            self.profiling,
            self.optimization_level,
            self.graph_priority,
            self.backend,
            self.graph_io_tensor_mem_type,
        ):
            if choice is not None:
                int(choice)
        for name in ("vtcm_size", "num_hvx_threads"):
            if (number := getattr(self, name)) is not None:
                checked_c_int(name, number)
        for number in self.dump_tensor_ids or ():
            checked_c_int("dump_tensor_ids", number)
        for name in ("ir_json_dir", "dlc_dir", "saver_output_dir"):
            checked_text(name, getattr(self, name))


class IntelOpenVinoGraphBackend(IntEnum):
    """Device on which OpenVINO computes the model; without effect here."""

    CPU = 0
    GPU = 1
    NPU = 2


class IntelOpenVinoPerformanceMode(IntEnum):
    """Goal of OpenVINO's compiler: short runs, or many runs at once; without effect here."""

    LATENCY = 0
    THROUGHPUT = 1
    CUMULATIVE_THROUGHPUT = 2


@dataclass
class IntelOpenVinoOptions:
    """Options of Intel's OpenVINO; they have no effect here: see the delegate ``openvino``."""

    GRAPH_BACKEND = IntelOpenVinoGraphBackend
    PERFORMANCE_MODE = IntelOpenVinoPerformanceMode

    graph_backend: IntelOpenVinoGraphBackend | None = None
    performance_mode: IntelOpenVinoPerformanceMode | None = None
    configs_map: dict[str, str] = field(default_factory=dict)
    enable_weight_sharing: bool | None = None

    def check(self) -> None:
        """Raise an error if an option has the wrong type.

        Raises:
            ArgumentTypeError: a value has the wrong type.
            ValueError: an enumeration has the wrong value.
        """
        for choice in (self.graph_backend, self.performance_mode):
            if choice is not None:
                int(choice)
        for key, value in dict(self.configs_map).items():
            checked_text("a key of configs_map", key)
            checked_text(f"configs_map[{key!r}]", value)
