"""The delegate: claims nodes, and turns each partition into a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn
from weakref import WeakKeyDictionary

from delegraph import (
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.delegation import limited_num_threads
from delegraph.errors import DelegateError
from delegraph_numba_cpu.kept.keys import is_wanted
from delegraph_numba_cpu.kept.store import KeptClaims, KeptPrograms, Maker
from delegraph_numba_cpu.library.cpu import level_named, physical_cores
from delegraph_numba_cpu.library.kernel_library import library
from delegraph_numba_cpu.options import NumbaCpuOptions
from delegraph_numba_cpu.program.pool import POOL
from delegraph_numba_cpu.program.program import Program, described, is_guarded
from delegraph_numba_cpu.program.working_memory import WorkingMemory

if TYPE_CHECKING:
    from delegraph import Capabilities
    from delegraph_numba_cpu.codegen.cpu_levels import CpuLevel
    from delegraph_numba_cpu.instructions.memory import Memory
    from delegraph_numba_cpu.library.kernel_library import Library
    from delegraph_numba_cpu.program.node_times import TimedProgram

# The package ``lowering`` is imported only where it is needed: a start with kept programs does not
# need it.


class NumbaCpuDelegate(SimpleDelegateInterface):
    """Delegate that claims the nodes for which it has kernels; see ``lowering``.

    Attributes:
        options, num_threads: the user's settings.
        level: instruction set of the processor that the kernels use, such as ``avx2``.
        in_model: notes for the user on the use of programs in model files, as keys in order.
    """

    def __init__(self, options: NumbaCpuOptions) -> None:
        self.options = options
        self.num_threads = limited_num_threads(options.num_threads)
        self.level = self.chosen_level()
        self.in_model: dict[str, None] = {}
        self._working_memory: WeakKeyDictionary[DelegateContext, WorkingMemory] = (
            WeakKeyDictionary()
        )
        self._claims: WeakKeyDictionary[DelegateContext, KeptClaims] = WeakKeyDictionary()

    def chosen_level(self) -> CpuLevel:
        """Return the instruction-set level that the option ``cpu`` selects."""
        return level_named(self.options.cpu)

    def open_library(self) -> Library:
        """Return the library of compiled kernels for the delegate's instruction-set level."""
        return library(self.level)

    def wants_programs(self) -> bool:
        """Whether the user allows compiled programs to be stored in files."""
        return is_wanted(self.options.kept_programs)

    def keeps_programs(self, context: DelegateContext) -> bool:
        """Whether the compiled programs of a subgraph are stored in files.

        Args:
            context: the subgraph.
        """
        return context in self._claims and self._claims[context].is_worth_it

    def initialize(self, context: DelegateContext) -> None:
        before = self._claims.pop(context, None)
        if self.wants_programs() and not is_guarded():
            self._claims[context] = KeptClaims(context, [self.options.exact], before)

    def working_memory(self, context: DelegateContext) -> WorkingMemory:
        """Return the memory for intermediate values, which all programs of a subgraph share.

        Args:
            context: the subgraph.
        """
        return self._working_memory.setdefault(context, WorkingMemory(context.memory_limit))

    def name(self) -> str:
        return "numba_cpu"

    def flags(self) -> DelegateFlags:
        return (
            DelegateFlags.ALLOW_DYNAMIC_TENSORS
            | DelegateFlags.REQUIRE_PROPAGATED_SHAPES
            | DelegateFlags.PER_OPERATOR_PROFILING
        )

    def capabilities(self) -> Capabilities:
        from delegraph import Capabilities, Tolerance
        from delegraph_numba_cpu.lowering import OPERATORS

        claims = [claim for name, entry in OPERATORS.items() for claim in entry.claims(name)]
        unit = Tolerance(absolute=0.0 if self.options.exact else 1.0)
        return Capabilities(
            claims, tolerance={"INT8": unit, "UINT8": unit, "FLOAT32": Tolerance(1e-5, 1e-5)}
        )

    def note(self) -> str:
        exactness = "" if self.options.exact else "integers within 1 unit per operator"
        return "; ".join(filter(None, (exactness, *self.in_model)))

    def most_threads(self, requested: int | None) -> int:
        return min(self.workers(requested or 0), POOL.most_threads)

    def workers(self, requested: int) -> int:
        """Number of threads for which programs are made.

        Args:
            requested: number of threads that the user allows the interpreter; below 1 if not set.
        """
        return self.num_threads or limited_num_threads(max(requested, 0)) or physical_cores()

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        kept = self._claims.get(context)
        answer = None if kept is None else kept.known(node.index)
        if answer is None:
            answer = self.decided(registration, node, context)
            if kept is not None:
                kept.add(node.index, answer)
        return answer

    def decided(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        """Return True if this delegate can compute a node, otherwise a rejection with the reason.

        Args:
            registration: the node's operator.
            node: the node.
            context: the subgraph.
        """
        from delegraph_numba_cpu.lowering import OPERATORS, Call
        from delegraph_numba_cpu.lowering.checks import check_quantization, first_rejection

        operator = OPERATORS.get(registration.name)
        if operator is None or node.delegate is not None:
            return Rejection("op", f"numba_cpu has no kernel for {registration.name}")
        call = Call(context, node, registration.name)
        rejection = check_quantization(call)
        if rejection is None:
            rejection = first_rejection(
                operator.rejection(call), self._other_rounding(node, context)
            )
        return True if rejection is None else rejection

    def check_claims(self, context: DelegateContext, nodes: Sequence[int]) -> None:
        """Check that nodes which a model file declares as supported really are.

        Nothing is checked if the claims of this subgraph are not from the model file.

        Args:
            context: the subgraph.
            nodes: indices of the nodes, which are about to be lowered.

        Raises:
            DelegateError: there is no lowering for one of the nodes.
        """
        kept = self._claims.get(context)
        if kept is None or not kept.are_from_model:
            return
        for index in nodes:
            node, registration = context.get_node_and_registration(index)
            answer = self.decided(registration, node, context)
            if isinstance(answer, Rejection):
                raise DelegateError(
                    f"the model file says that numba_cpu takes {described(context, [index])}, and "
                    f"it does not ({answer}): compile the model again",
                    phase="prepare",
                )

    def _other_rounding(self, node: Node, context: DelegateContext) -> Rejection | None:
        """Return a rejection if the kernels round otherwise than the host asks, else None."""
        from delegraph_numba_cpu.lowering.checks import ROUNDED_TYPES

        if not self.options.exact or context.numerics == "builtin":
            return None
        for index in (*node.inputs, *node.outputs):
            if index >= 0 and context.tensors[index].type.name in ROUNDED_TYPES:
                return Rejection(
                    "numerics",
                    actual=context.numerics,
                    expected="builtin, or the option exact=false",
                    tensor=index,
                )
        return None

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return NumbaCpuKernel(self)


def inlined_subgraphs(context: DelegateContext, nodes: Sequence[int]) -> Iterator[int]:
    """Yield the indices of the subgraphs that replace composite nodes among some nodes.

    Args:
        context: the subgraph of the nodes.
        nodes: indices of the nodes.
    """
    for position in nodes:
        node, registration = context.get_node_and_registration(position)
        if registration.name == "STABLEHLO_COMPOSITE":
            index = int(node.options.decomposition_subgraph_index)
            inner = context.acquire_subgraph_context(index)
            yield index
            yield from inlined_subgraphs(inner, inner.get_execution_plan())


class NumbaCpuKernel(SimpleDelegateKernelInterface):
    """Kernel of one partition: it finds or makes the partition's program, and runs it.

    Attributes:
        kernel_library: the compiled kernels.
        params: the partition; set by ``init``.
        kept: kept programs of the partition; set by ``init``.
        program: the program for the present shapes; None before the first ``prepare``, and in a dry
            run.
    """

    start_module = "delegraph_numba_cpu.kept.start"

    def __init__(self, delegate: NumbaCpuDelegate) -> None:
        self._delegate = delegate
        self.kernel_library = delegate.open_library()
        self.program: Program | None = None
        self._timed: TimedProgram | None = None  # of the program, once a profile was taken

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self.params = params
        self._are_claims_checked = False
        self._packed: dict[object, Memory] = {}  # weights as kernels want them
        self.kept = KeptPrograms(params, self._delegate.keeps_programs(context))
        for index in inlined_subgraphs(context, params.nodes_to_replace):
            context.mark_subgraph_as_delegation_skippable(index)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        maker = Maker(
            (self._delegate.options.exact,),
            self._delegate.workers(context.recommended_num_threads),
            self.kernel_library,
            self._delegate.working_memory(context),
        )
        self.program = self._timed = None
        if is_guarded():
            program = self._lowered(context, maker)
        else:
            program = self.kept.find(context, maker)
            if program is None:
                program = self._lowered(context, maker)
                if program is not None:
                    self.kept.add(program)
            if self.kept.in_model:
                self._delegate.in_model[self.kept.in_model] = None
        POOL.warn_of(maker.workers)
        if program is not None and context.cancellation is not None:
            program.heed(context.cancellation.word)
        self.program = program

    def _lowered(self, context: DelegateContext, maker: Maker) -> Program | None:
        """Return a program for the partition; None in a dry run, before kernels are compiled."""
        from delegraph.delegation import is_dry_run
        from delegraph_numba_cpu.lowering import Call
        from delegraph_numba_cpu.lowering.composites import inlined
        from delegraph_numba_cpu.lowering.fusion import Partition
        from delegraph_numba_cpu.lowering.schedule import lower_all
        from delegraph_numba_cpu.program.builder import ProgramBuilder

        builder = ProgramBuilder(
            context,
            self.kernel_library,
            maker.workers,
            self._delegate.options.exact,
            self._packed,
            maker.working_memory,
        )
        params = self.params
        for index in (*params.input_tensors, *params.output_tensors):
            builder.border(index)
        if not self._are_claims_checked:
            self._delegate.check_claims(context, params.nodes_to_replace)
            self._are_claims_checked = True
        nodes = map(context.get_node_and_registration, params.nodes_to_replace)
        calls = inlined([Call(context, node, registration.name) for node, registration in nodes])
        builder.context = calls[0].context
        lower_all(Partition(calls, params.output_tensors), builder)
        if is_dry_run():
            return None
        if not is_guarded():
            return builder.finish()
        from delegraph_numba_cpu.program.guarded_program import GuardedProgram

        return builder.finish(GuardedProgram)

    def eval(self, context: DelegateContext, node: Node) -> None:
        program = self.program
        if program is None:
            raise DelegateError("an interpreter of a dry run cannot invoke", phase="eval")
        if context.is_profiling:
            has_run = self._run_timed(context, program)
        else:
            has_run = program.run(POOL, self.kernel_library)
        if not has_run:
            self._raise_why(context, program)

    def native_eval(self, context: DelegateContext, node: Node) -> Callable[[], None] | None:
        program = self.program
        if program is None or type(self).eval is not NumbaCpuKernel.eval:
            return None
        return program.known_run(
            POOL,
            self.kernel_library,
            context,
            otherwise=partial(self.eval, context, node),
            failed=partial(self._raise_why, context, program),
        )

    def may_share_memory(self, context: DelegateContext, given: int, made: int) -> bool:
        program = self.program
        return program is not None and not program.is_guarded and program.may_share(given, made)

    def may_fail_halfway(self) -> bool:
        program = self.program
        return program is None or program.is_guarded or program.can_fail

    @staticmethod
    def _raise_why(context: DelegateContext, program: Program) -> NoReturn:
        """Raise the error that explains why a run was not completed."""
        from delegraph.delegation import raise_if_requested
        from delegraph_numba_cpu.program.failures import wrong_position

        raise_if_requested(context)
        wrong = wrong_position(program)
        if wrong is not None:
            raise DelegateError(f"{described(context, wrong.nodes)}: {wrong}", phase="eval")
        raise DelegateError("the run was stopped, for an unknown reason", phase="eval")

    def _run_timed(self, context: DelegateContext, program: Program) -> bool:
        """Run the program, and record the time of each node in the profile.

        The result is False if the run was cancelled or failed.
        """
        from delegraph_numba_cpu.program.node_times import TimedProgram

        if program.is_guarded:  # the times of a guarded program mean nothing
            return program.run(POOL, self.kernel_library)
        if self._timed is None:
            self._timed = TimedProgram(program)

        def record(nodes: tuple[int, ...], start: int, duration: int) -> None:
            if nodes:
                names = (context.get_node_and_registration(i)[1].name for i in nodes)
                context.record_event("+".join(names), nodes[0], start, duration, nodes[1:])

        return self._timed.run(POOL, self.kernel_library, record)
