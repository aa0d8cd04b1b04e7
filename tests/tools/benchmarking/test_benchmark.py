from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import DelegateContext, Node
from delegraph.delegation.rules import PlacementRule
from delegraph.errors import ArgumentError, PlacementError
from delegraph.tools import InputRequest, RunControl, Setup, benchmark
from delegraph.tools.array_files import read_npz
from delegraph.tools.benchmarking.run_control import DRY_RUN, Clock
from delegraph.tools.benchmarking.timed_model import INIT, timed_model
from support.by_name import ByName, ByNameKernel
from support.signatures import two_signatures

BRIEF = RunControl(runs=3, min_seconds=0, warmup_runs=2, warmup_seconds=0)


@pytest.fixture(params=["delegraph", "litert"])
def runtime(request: pytest.FixtureRequest) -> Any:
    if request.param == "litert":
        pytest.importorskip("ai_edge_litert")
    return request.param


@pytest.fixture
def signatures(tmp_path: Path) -> str:
    path = tmp_path / "signatures.tflite"
    path.write_bytes(two_signatures())
    return str(path)


class Work:
    """A clock that goes on by what the delegate's kernel does."""

    def __init__(self) -> None:
        self.now = 0.0
        self.did: list[str] = []
        self.clock = Clock(lambda: self.now, lambda seconds: None)

    def do(self, what: str, seconds: float) -> None:
        self.did.append(what)
        self.now += seconds

    def delegate(self) -> ByName:
        work = self

        class Kernel(ByNameKernel):
            def init(self, context: DelegateContext, params: Any) -> None:
                work.do("init", 100)
                super().init(context, params)

            def prepare(self, context: DelegateContext, node: Node) -> None:
                work.do("prepare", 1000)
                super().prepare(context, node)

            def eval(self, context: DelegateContext, node: Node) -> None:
                work.do("eval", 0.5)
                super().eval(context, node)

        return ByName("SIN", kernel=Kernel)


def test_stages_are_in_order_and_a_delegates_time_is_in_its_own(sines: Path, runtime: Any) -> None:
    work = Work()
    setup = Setup(str(sines), runtime, [work.delegate()], use_default_delegates=False)
    result = benchmark(setup, control=BRIEF, clock=work.clock)
    seconds = {stage.name: stage.seconds for stage in result.stages}
    assert tuple(seconds) == (*INIT, "invoke")
    assert seconds["create delegates"] == seconds["load"] == 0
    assert seconds["apply delegates"] % 1000 == 200  # two partitions
    assert seconds["apply delegates"] + seconds["allocate"] == 200 + 1000 * work.did.count(
        "prepare"
    )
    assert result.init_seconds == seconds["apply delegates"] + seconds["allocate"]
    assert result.warmup == (1, 1)
    assert result.runs == (1, 1, 1)


def test_every_set_up_has_all_stages(sines: Path, runtime: Any) -> None:
    """Also one without delegates, whose load no delegate ends."""
    result = benchmark(Setup(str(sines), runtime), control=DRY_RUN)
    assert [stage.name for stage in result.stages] == [*INIT]
    assert (result.warmup, result.runs, result.latency) == ((), (), None)


def test_the_inputs_are_copied_before_every_run_outside_of_its_time(sines: Path) -> None:
    work = Work()
    with timed_model(Setup(str(sines)), InputRequest(["2"]), clock=work.clock) as model:
        call = model.call

        class Watched:
            def fill(self, values: Any) -> None:
                work.do("fill", 10)
                call.fill(values)

            def invoke(self) -> None:
                work.do("invoke", 1)
                call.invoke()

        object.__setattr__(model, "call", Watched())
        for _ in range(2):
            assert model.run() == 1
            model.interpreter.set_tensor(
                model.interpreter.get_input_details()[0]["index"], np.float32([7])
            )
        assert model.run() == 1
        assert work.did == ["fill", "invoke"] * 3
        ((_, values),) = call.outputs()
        np.testing.assert_allclose(values, np.sin(2) + 2 + np.sin(4), rtol=1e-6)


def test_rules_threads_and_delegates_of_the_set_up_count(sines: Path, runtime: Any) -> None:
    rule = PlacementRule("exclude", operators="SIN", nodes=0)
    setup = Setup(
        str(sines), runtime, ("sin",), threads=1, rules=[rule], use_default_delegates=False
    )
    result = benchmark(setup, control=BRIEF)
    assert "sin takes 1 in 1 partition" in result.placement
    assert result.setup["threads"] == 1


def test_a_delegate_of_a_file_is_made_once_in_its_own_stage(
    sines: Path, runtime: Any, tmp_path: Path
) -> None:
    made = tmp_path / "made.txt"
    path = tmp_path / "mine.py"
    path.write_text(
        "from support.by_name import ByName\n"
        "def delegate():\n"
        f"    with open({str(made)!r}, 'a') as file:\n"
        "        file.write('.')\n"
        "    return ByName('SIN', name='mine')\n"
    )
    setup = Setup(str(sines), runtime, delegate_files=(str(path),), use_default_delegates=False)
    result = benchmark(setup, control=DRY_RUN)
    assert "mine takes 2 in 2 partitions" in result.placement
    assert made.read_text() == "."
    assert result.setup["delegate_files"] == [str(path)]


def test_a_requirement_holds_on_either_runtime(sines: Path, runtime: Any) -> None:
    setup = Setup(str(sines), runtime, ("sin",), require="full", use_default_delegates=False)
    with pytest.raises(PlacementError, match="3 nodes stay behind"):
        benchmark(setup, control=DRY_RUN)


@pytest.mark.parametrize("signature", ["negate", "wave"])
def test_a_signature_of_any_subgraph_is_timed_alone(
    signatures: str, runtime: Any, signature: str, tmp_path: Path
) -> None:
    path = tmp_path / "outputs.npz"
    request = InputRequest(["x=2,3"], shapes={"x": [2]})
    result = benchmark(
        Setup(signatures, runtime), request, BRIEF, signature=signature, save=str(path)
    )
    assert (result.signature, len(result.runs)) == (signature, 3)
    assert result.inputs == ({"name": "x", "dtype": "float32", "shape": [2], "source": "2,3"},)
    x = np.float32([2, 3])
    expected = {"negate": -x, "wave": np.sin(x)}[signature]
    np.testing.assert_allclose(read_npz(str(path))["y"], expected, rtol=1e-6)


def test_what_a_delegate_raises_in_a_signature_is_raised(signatures: str, runtime: Any) -> None:
    class Fails(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            raise KeyError("a reason")

    setup = Setup(signatures, runtime, [ByName("SIN", kernel=Fails)], use_default_delegates=False)
    with pytest.raises(Exception, match="a reason") as raised:
        benchmark(setup, control=BRIEF, signature="wave")
    errors = (raised.value, raised.value.__cause__)
    assert any(isinstance(error, KeyError) for error in errors)


def test_outputs_of_no_run_cannot_be_saved(sines: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"no outputs to save in .*: the model did not run"):
        benchmark(Setup(str(sines)), control=DRY_RUN, save=str(tmp_path / "y.npz"))


def test_progress_is_told_of_warm_up_and_runs(sines: Path) -> None:
    told: list[tuple[str, float, float | None]] = []
    benchmark(Setup(str(sines)), control=BRIEF, progress=lambda *what: told.append(what))
    assert told[:2] == [("warming up", 0.5, 1.0), ("warming up", 1.0, 1.0)]
    assert [what for what, *_ in told] == ["warming up"] * 2 + ["running"] * 3


def test_bytes_of_inputs_and_model_are_counted(sines: Path) -> None:
    result = benchmark(Setup(str(sines)), control=DRY_RUN)
    assert (result.model_bytes, result.input_bytes) == (sines.stat().st_size, 4)
