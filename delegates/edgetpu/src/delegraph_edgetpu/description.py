"""Description of an ``edgetpu-custom-op`` for ``delegraph inspect``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from delegraph.graph import TensorSpec, parse_model
from delegraph_edgetpu.custom_options import read_custom_options
from delegraph_edgetpu.executable import Executable, RealExecutable, parse
from delegraph_edgetpu.real_executables import Layer, explain_refusal, read_real


def describe_options(custom_options: bytes) -> dict[str, str]:
    """Return facts about the executable in *custom_options*: a mapping from names to texts.

    Raises:
        ExecutableError: the executable is damaged.
    """
    content = read_custom_options(custom_options)
    executable = parse(content)
    size = f"{len(content):,} bytes"
    if isinstance(executable, RealExecutable):
        return _of_real(executable, size)
    return _of_ours(executable, size)


def _of_ours(executable: Executable, size: str) -> dict[str, str]:
    (subgraph, *_) = parse_model(executable.model).subgraphs
    counts = Counter(operator.name for operator in subgraph.operators)
    streamed = executable.parameter_bytes - executable.cached_bytes
    return {
        "executable": f"DGE1, {size}, by delegraph-edgetpu",
        "oldest runtime": str(executable.runtime_version),
        "parameters": _parameters(executable.cached_bytes, streamed),
        "caching token": f"{executable.caching_token:#018x}",
        "multiply-adds": f"{executable.multiply_adds:,}",
        "operators": ", ".join(f"{count} {name}" for name, count in sorted(counts.items())),
        "inputs": _tensors([subgraph.tensors[i] for i in subgraph.inputs]),
        "outputs": _tensors([subgraph.tensors[i] for i in subgraph.outputs]),
    }


def _of_real(executable: RealExecutable, size: str) -> dict[str, str]:
    package = read_real(executable)
    token = next((part.caching_token for part in package.parts if part.caching_token), 0)
    cycles = sum(part.estimated_cycles for part in package.parts)
    instructions = sum(part.instruction_bytes for part in package.parts)
    chip = f" ({package.chip})" if package.chip else ""
    return {
        "executable": f"DWN1, {size}, for a real Edge TPU{chip}",
        "compiler": package.compiler_version or "not named",
        "oldest runtime": str(package.runtime_version),
        "parts": ", ".join(part.kind for part in package.parts),
        "parameters": _parameters(package.cached_bytes, package.streamed_bytes),
        "caching token": f"{token:#018x}" if token else "none",
        "instructions": f"{instructions:,} bytes",
        **({"estimated cycles": f"{cycles:,}"} if cycles else {}),
        "inputs": _layers([layer for part in package.parts for layer in part.inputs]),
        "outputs": _layers([layer for part in package.parts for layer in part.outputs]),
        "runs": explain_refusal(executable),
    }


def _parameters(cached: int, streamed: int) -> str:
    return f"{cached:,} bytes on the chip, {streamed:,} streamed at each inference"


def _tensors(tensors: Sequence[TensorSpec]) -> str:
    return "; ".join(f"{t.name or t.index} {t.type.name}{list(t.shape)}" for t in tensors)


def _layers(layers: Sequence[Layer]) -> str:
    return "; ".join(f"{each.name} {each.type}{list(each.shape)}" for each in layers)
