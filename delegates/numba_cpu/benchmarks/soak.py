"""Invokes for a long time: ``python benchmarks/soak.py [--invokes 100000] [MODEL...]``.

Four interpreters in two threads of Python, each with two threads of the delegate, on inputs whose
outputs are known. Exits with 1 for the first wrong answer, and when memory grows.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.tools.model_inputs import random_values
from delegraph_numba_cpu.delegate import NumbaCpuDelegate
from delegraph_numba_cpu.options import NumbaCpuOptions

MODELS = Path(__file__).parents[3] / "docs" / "demo" / "models"
INTERPRETERS, THREADS = 4, 2
INPUTS = 16
ALLOWED_GROWTH = 4 << 20
"""Bytes; an allocator's own doing, and far less than one invoke would leave a thousand times."""


class Soaked:
    """An interpreter with inputs, and what their outputs are.

    Args:
        model: a ``.tflite`` file.
        seed: of the inputs.
    """

    def __init__(self, model: Path, seed: int) -> None:
        delegate = NumbaCpuDelegate(NumbaCpuOptions(num_threads=2))
        self.name = f"{model.name}, interpreter {seed}"
        self.interpreter = Interpreter(str(model), experimental_delegates=[delegate])
        self.interpreter.allocate_tensors()
        rng = np.random.default_rng(seed)
        details = self.interpreter.get_input_details()
        self.inputs = [[random_values(detail, rng) for detail in details] for _ in range(INPUTS)]
        self.expected = [self._invoke(i) for i in range(INPUTS)]
        self._compare_with_core(model)

    def _invoke(self, i: int) -> list[NDArray[Any]]:
        for detail, value in zip(self.interpreter.get_input_details(), self.inputs[i], strict=True):
            self.interpreter.set_tensor(detail["index"], value)
        self.interpreter.invoke()
        details = self.interpreter.get_output_details()
        return [self.interpreter.get_tensor(detail["index"]) for detail in details]

    def _compare_with_core(self, model: Path) -> None:
        """Make sure that what is expected is right, not only always the same."""
        with Interpreter(str(model)) as core:
            core.allocate_tensors()
            for inputs, expected in zip(self.inputs, self.expected, strict=True):
                for detail, value in zip(core.get_input_details(), inputs, strict=True):
                    core.set_tensor(detail["index"], value)
                core.invoke()
                for detail, value in zip(core.get_output_details(), expected, strict=True):
                    right = core.get_tensor(detail["index"])
                    if right.dtype.kind == "f":
                        np.testing.assert_allclose(value, right, rtol=1e-4, atol=1e-5)
                    else:
                        np.testing.assert_array_equal(value, right)

    def check(self, i: int) -> None:
        """Invoke with one of the inputs.

        Raises:
            AssertionError: an output is not, bit for bit, what it was the first time.
        """
        for found, expected in zip(self._invoke(i), self.expected[i], strict=True):
            if found.tobytes() != expected.tobytes():
                raise AssertionError(f"{self.name}: another answer to input {i} than before")


class Soak:
    """A number of invokes, shared by threads.

    Attributes:
        failure: the first that went wrong; None so far.
    """

    def __init__(self, soaked: Sequence[Soaked], invokes: int) -> None:
        self._soaked, self._left = soaked, invokes
        self._lock = threading.Lock()
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Invoke until the number is reached, or something has gone wrong."""
        shares = [self._soaked[i::THREADS] for i in range(THREADS)]
        threads = [threading.Thread(target=self._work, args=(share,)) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failure is not None:
            raise self.failure

    def _work(self, share: Sequence[Soaked]) -> None:
        chance = random.Random(share[0].name)
        while self._take():
            try:
                chance.choice(share).check(chance.randrange(INPUTS))
            except BaseException as error:  # noqa: BLE001 - raised again by run()
                self.failure = error

    def _take(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0 and self.failure is None


def resident_bytes() -> int:
    """Return how much memory this process has in use; 0 when the system does not tell."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * 4096


def soak(models: Sequence[Path], invokes: int, rounds: int = 10) -> int:
    """Invoke, and return by how many bytes memory grew after the first rounds."""
    soaked = [Soaked(models[i % len(models)], i) for i in range(INTERPRETERS)]
    sizes = []
    for i in range(rounds):
        start = time.perf_counter()
        Soak(soaked, invokes // rounds).run()
        gc.collect()
        sizes.append(resident_bytes())
        rate = invokes // rounds / (time.perf_counter() - start)
        print(
            f"{(i + 1) * invokes // rounds:7d} invokes, {rate:6.0f} a second, "
            f"{sizes[-1] / 1e6:6.1f} MB",
            flush=True,
        )
    return sizes[-1] - max(sizes[: max(1, rounds // 3)])


def main() -> int:
    """Soak and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--invokes", type=int, default=100_000)
    arguments = parser.parse_args()
    models = arguments.models or sorted(MODELS.glob("digits*.tflite"))
    sys.setswitchinterval(1e-4)  # threads of Python meet more often
    growth = soak(models, arguments.invokes)
    print(f"no wrong answer; memory grew by {growth / 1e6:.2f} MB")
    return int(growth > ALLOWED_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
