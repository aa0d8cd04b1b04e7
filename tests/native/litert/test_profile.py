"""What ``LiteRtInterpreter.profile`` records: the nodes of Python's delegates."""

from __future__ import annotations

from delegraph import DelegateContext, DelegateFlags, Node, SimpleDelegateKernelInterface
from delegraph.native import LiteRtInterpreter
from delegraph.runtime.execution.profile import Profile
from support.by_name import ByName, ByNameKernel, sines

PROFILING = DelegateFlags.PER_OPERATOR_PROFILING


class Telling(ByName):
    """Records one event for all nodes of a partition, and whether a profile is taken."""

    def __init__(self, *ops: str) -> None:
        super().__init__(*ops, flags=PROFILING)
        self.seen: list[bool] = []

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        seen = self.seen

        class Kernel(ByNameKernel):
            def eval(self, context: DelegateContext, node: Node) -> None:
                seen.append(context.is_profiling)
                first, *others = (inner.index for inner, _ in self.nodes)
                context.record_event("INNER", first, 1, 7, others)
                super().eval(context, node)

        return Kernel(self)


def interpreter_with(*delegates: ByName) -> LiteRtInterpreter:
    interpreter = LiteRtInterpreter(model_content=sines(), delegates=list(delegates))
    interpreter.allocate_tensors()
    return interpreter


def told(profile: Profile) -> list[tuple[str, int, str | None, tuple[int, ...]]]:
    return [(e.name, e.node_index, e.delegate, e.fused) for e in profile.events]


def test_nodes_of_our_delegates_are_recorded_and_no_others() -> None:
    interpreter = interpreter_with(ByName("SIN"))
    with interpreter.profile() as profile:
        interpreter.invoke()
    assert told(profile) == [("by_name", 5, "by_name", ()), ("by_name", 6, "by_name", ())]
    assert {p.node_index for p in interpreter.placement.partitions if p.delegate == "by_name"} == {
        5,
        6,
    }
    assert all(event.duration > 0 for event in profile.events)


def test_a_delegate_tells_of_its_nodes_instead_or_besides() -> None:
    interpreter = interpreter_with(delegate := Telling("ADD", "SIN"))
    with interpreter.profile() as alone:
        interpreter.invoke()
    with interpreter.profile(whole_partitions=True) as both:
        interpreter.invoke()
    assert {event.name for event in alone.events} == {"INNER"}
    assert {event.name for event in both.events} == {"INNER", "by_name"}
    nodes = {node for event in alone.events for node in (event.node_index, *event.fused)}
    assert nodes == {0, 1, 3, 4}
    assert set(delegate.seen) == {True}


def test_nothing_is_recorded_outside_the_profile() -> None:
    interpreter = interpreter_with(delegate := Telling("SIN"))
    with interpreter.profile() as profile:
        pass
    interpreter.invoke()
    assert profile.events == []
    assert set(delegate.seen) == {False}


def test_without_our_delegates_nothing_is_recorded() -> None:
    interpreter = interpreter_with()
    with interpreter.profile() as profile:
        interpreter.invoke()
    assert profile.events == []
