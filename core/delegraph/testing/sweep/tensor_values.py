"""Values of all tensors of a case, including those between its nodes."""

from __future__ import annotations

import numpy as np

from delegraph.errors import DelegraphError
from delegraph.runtime.arguments import OpResolverType
from delegraph.runtime.interpreter import Interpreter
from delegraph.runtime.options import Limits
from delegraph.testing.sweep.hosts import MEMORY_LIMIT, TIME_LIMIT, WALL_LIMIT
from delegraph.testing.sweep.processor_limit import ProcessorLimit
from delegraph.testing.sweep.sweep_case import SweepCase, feed


def tensor_values(case: SweepCase) -> list[dict[int, np.ndarray]]:
    """Return the core's values of the tensors of *case* at each step, by tensor index.

    Steps after an error of the core are left out.
    """
    found: list[dict[int, np.ndarray]] = []
    try:
        with (
            ProcessorLimit(TIME_LIMIT, WALL_LIMIT) as limit,
            Interpreter(
                model_content=case.content,
                experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                experimental_preserve_all_tensors=True,
                delegates=[],
                num_threads=1,
                limits=Limits(memory=MEMORY_LIMIT),
            ) as interpreter,
        ):
            limit.interpreter = interpreter
            for step in range(len(case.steps)):
                feed(interpreter, case.steps, step)
                interpreter.invoke()
                values: dict[int, np.ndarray] = {}
                for detail in interpreter.get_tensor_details():
                    try:
                        values[detail["index"]] = np.array(interpreter.get_tensor(detail["index"]))
                    except (DelegraphError, ValueError):
                        continue  # has no data
                found.append(values)
    except Exception:  # noqa: BLE001 - the core may be what is wrong
        return found
    return found
