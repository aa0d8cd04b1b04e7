"""Target and backend of ``aot_compile`` that compile partitions of an installed delegate.

Importing this module registers the backend. LiteRT calls the backend for each step of its pipeline.
In the step ``apply_plugin``, which runs a vendor's compiler for other backends, the delegate
compiles.

Source:
    ``ai_edge_litert/aot/core/aot_types.py``, ``Target`` and ``Backend``.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from delegraph.errors import ArgumentError, CompilationError, DelegraphError
from delegraph.plugins.options import Given
from delegraph.plugins.plugin_set import installed
from delegraph.tools.compiling import CompiledModel, compile_model
from delegraph.tools.explanation import operator_counts

try:
    from ai_edge_litert.aot.core import aot_types, components
    from ai_edge_litert.aot.vendors import import_vendor
except ImportError as error:
    raise ModuleNotFoundError(
        f"delegraph.aot needs ai_edge_litert.aot ({error}): pip install --upgrade ai-edge-litert",
        name=error.name,
    ) from error

ARGUMENTS = ("placement", "limits")
"""Arguments of ``compile_model`` that ``aot_compile`` and ``CompilationConfig`` accept."""

REASONS = 3
"""Largest number of rejections in the error message if nothing of a model was compiled."""


@dataclass(frozen=True)
class DelegraphTarget(aot_types.Target):
    """An installed delegate for which ``aot_compile`` compiles partitions.

    >>> DelegraphTarget("openvino", options={"device": "NPU"})
    DelegraphTarget(delegate='openvino', options={'device': 'NPU'})

    Attributes:
        delegate: ``name``, ``dist:name`` or ``name:key=value,key=value``.
        options: options of the delegate, as a mapping or text; None means the options in
            *delegate*, or the defaults.

    Raises:
        ArgumentError: *delegate* is not the name of a delegate.
    """

    delegate: str
    options: Given = field(default=None, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.delegate, str) or not self.delegate:
            raise ArgumentError(f"delegate is {self.delegate!r}, expected a name")

    @classmethod
    def backend_id(cls) -> str:
        """Identifier of the backend."""
        return "delegraph"

    def flatten(self) -> dict[str, Any]:
        """Return the configuration from which the backend is created."""
        return {"backend_id": self.backend_id(), "delegate": self.delegate, "options": self.options}


@import_vendor.register_backend
class DelegraphBackend(aot_types.Backend):
    """Backend that compiles the partitions of one delegate into the model file."""

    @classmethod
    def id(cls) -> str:
        """Identifier under which the backend is registered."""
        return DelegraphTarget.backend_id()

    @classmethod
    def create(cls, config: aot_types.Config) -> DelegraphBackend:
        """Return the backend for the configuration *config*."""
        return cls(config)

    @property
    def target(self) -> DelegraphTarget:
        """Delegate, with options, for which the backend compiles."""
        return DelegraphTarget(self.config["delegate"], self.config["options"])

    @property
    def target_id(self) -> str:
        """Name of the target for file names, such as ``delegraph_openvino_device_NPU``."""
        target = self.target
        options = target.options or ""
        if isinstance(options, Mapping):
            options = ",".join(f"{key}={value}" for key, value in options.items())
        text = f"{target.delegate}:{options}".removesuffix(":")
        name = re.sub(r"[^A-Za-z0-9.-]+", "_", f"{self.id()}_{text}")
        if len(name) <= 100 and re.fullmatch(r"[\w.:,=-]*", text, re.ASCII):
            return name
        return f"{name[:80]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @property
    def quantize_recipe(self) -> str | None:
        """Recipe for the quantizer; None if ``aot_compile`` was given none."""
        recipe: str | None = self.config.get("quantize_recipe")
        return recipe

    def specialize(self) -> Iterable[DelegraphBackend]:
        """Yield this backend; if it has no target, a backend for each delegate that can compile."""
        if "delegate" in self.config:
            yield self
            return
        able = (o.spec.name for o in installed().offers() if o.compiler is not None)
        for name in dict.fromkeys(able):
            yield self.create({**self.config, **DelegraphTarget(name).flatten()})

    def call_component(
        self,
        input_model: aot_types.Model,
        output_model: aot_types.Model,
        component: aot_types.Component,
    ) -> None:
        """Run *component*, a step of LiteRT's pipeline, from *input_model* to *output_model*.

        The last step, ``apply_plugin``, compiles the delegate's partitions.

        Raises:
            CompilationError: the step is unknown, a delegate or its compiler failed, or nothing was
                compiled.
            ValueError: the model or an argument is wrong.
        """
        if isinstance(component, components.MlirTransformsT):
            component(input_model, output_model, [])
        elif isinstance(component, components.AieQuantizerT):
            component(input_model, output_model, quantization_recipe=self.quantize_recipe)
        elif isinstance(component, components.ApplyPluginT):
            if getattr(component, "_subgraphs_to_compile", None):
                raise CompilationError(
                    "subgraphs_to_compile has no effect on Delegraph's delegates; give "
                    "placement=PlacementPolicy([PlacementRule('exclude', subgraph=...)])"
                )
            self._compile(input_model, output_model)
        else:
            raise CompilationError(f"backend 'delegraph' has no step {component.component_name!r}")

    def _compile(self, input_model: aot_types.Model, output_model: aot_types.Model) -> None:
        target = self.target
        source = input_model.model_bytes if input_model.in_memory else input_model.path
        try:
            compiled = compile_model(
                source, {target.delegate: target.options}, **self._compile_arguments()
            )
            if not compiled.partitions:
                raise CompilationError("\n".join(_nothing_compiled(target, compiled)))
            compiled.write(output_model.path)
        except ValueError:
            raise  # counts as a failed backend in aot_compile, which other errors would end
        except DelegraphError as error:
            raise CompilationError(str(error)) from error
        output_model.partition_stats = aot_types.PartitionStats(list(_statistics(compiled)))

    def _compile_arguments(self) -> dict[str, Any]:
        given = self.config.get("compilation_config", {})
        unknown = sorted(given.keys() - set(ARGUMENTS))
        if unknown:
            raise CompilationError(
                f"CompilationConfig has {unknown[0]!r}; backend 'delegraph' knows "
                f"{', '.join(sorted(ARGUMENTS))}; options of the delegate belong to DelegraphTarget"
            )
        return {**{name: self.config[name] for name in ARGUMENTS if name in self.config}, **given}


def _nothing_compiled(target: DelegraphTarget, compiled: CompiledModel) -> Iterator[str]:
    """Yield the lines of the error for a model in which nothing was compiled."""
    yield f"nothing of the model was compiled for delegate {target.delegate!r}"
    refusals = compiled.explanation.refusals
    yield from (f"{operator_counts(r.ops)}: {r.reason}" for r in refusals[:REASONS])
    if len(refusals) > REASONS:
        yield f"and {len(refusals) - REASONS} more reasons"


def _statistics(compiled: CompiledModel) -> Iterator[aot_types.SubgraphPartitionStats]:
    """Yield the numbers of compiled and other operators of each subgraph, for LiteRT's report."""
    placement = compiled.explanation.placement
    name = placement.delegates[-1]  # earlier custom operators only get their shapes
    own = [partition for partition in placement.partitions if partition.delegate == name]
    numbers = {partition.index for partition in own}
    totals = Counter(node.subgraph for node in placement.nodes)
    offloaded = Counter(node.subgraph for node in placement.nodes if node.partition in numbers)
    partitions = Counter(partition.subgraph for partition in own)
    for index in sorted(totals):
        yield aot_types.SubgraphPartitionStats(
            index, offloaded[index], totals[index], partitions[index]
        )
