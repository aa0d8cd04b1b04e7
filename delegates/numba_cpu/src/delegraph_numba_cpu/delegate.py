"""The delegate: claims nodes, and turns each partition into a program."""

from __future__ import annotations

from delegraph import (
    Capabilities,
    Claim,
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    Tolerance,
)
from delegraph_numba_cpu.cpu import level_named, physical_cores
from delegraph_numba_cpu.library import library
from delegraph_numba_cpu.operators import OPERATORS, Call
from delegraph_numba_cpu.plugin import NumbaCpuOptions
from delegraph_numba_cpu.pool import POOL
from delegraph_numba_cpu.program import Program, ProgramBuilder
from delegraph_numba_cpu.schedule import Partition, lower_all


class NumbaCpuDelegate(SimpleDelegateInterface):
    """Takes what it has kernels for; see ``operators``."""

    def __init__(self, options: NumbaCpuOptions) -> None:
        self.options = options
        self.level = level_named(options.cpu)

    def name(self) -> str:
        return "numba_cpu"

    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES

    def capabilities(self) -> Capabilities:
        claims = [Claim(name, entry.types, *entry.features) for name, entry in OPERATORS.items()]
        unit = Tolerance(absolute=0.0 if self.options.exact else 1.0)
        return Capabilities(
            claims, tolerance={"INT8": unit, "UINT8": unit, "FLOAT32": Tolerance(1e-5, 1e-5)}
        )

    def note(self) -> str:
        return "" if self.options.exact else "integers within 1 unit per operator"

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        operator = OPERATORS.get(registration.name)
        if operator is None or node.delegate is not None:
            return Rejection("op", f"there is no kernel for {registration.name}")
        rejection = operator.check(Call.of(context, node, registration))
        return True if rejection is None else rejection

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return NumbaCpuKernel(self)


class NumbaCpuKernel(SimpleDelegateKernelInterface):
    """One partition.

    Attributes:
        library: the compiled kernels.
        partition: the nodes.
        program: what it runs; None before the first ``prepare``.
    """

    def __init__(self, delegate: NumbaCpuDelegate) -> None:
        self._delegate = delegate
        self.library = library(delegate.level)
        self.program: Program | None = None

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self._border = (*params.input_tensors, *params.output_tensors)
        self._packed: dict[object, object] = {}  # weights as kernels want them
        calls = [
            Call.of(context, *context.get_node_and_registration(index))
            for index in params.nodes_to_replace
        ]
        self.partition = Partition(calls, params.output_tensors)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        self._workers = (
            self._delegate.options.num_threads
            or max(context.recommended_num_threads, 0)
            or physical_cores()
        )
        builder = ProgramBuilder(
            context, self.library, self._workers, self._delegate.options.exact, self._packed
        )
        for index in self._border:
            builder.border(index)
        lower_all(self.partition, builder)
        self.program = builder.finish()

    def eval(self, context: DelegateContext, node: Node) -> None:
        program = self.program
        assert program is not None
        program.bind()
        POOL.run(program, self.library, self._workers)
