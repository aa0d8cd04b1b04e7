"""Records what TensorFlow makes of the cases: ``python record.py [MODULE...]``.

Without arguments it records every module of cases whose results are missing or out of date.
"""

from __future__ import annotations

import sys
from collections import defaultdict

import flex_cases
import recorded_results
from delegraph_flex.tensorflow_executor.executor import TensorFlowExecutor
from flex_cases import Case


def main(wanted: list[str]) -> int:
    """Record modules; return the number of cases that TensorFlow refuses."""
    modules: dict[str, dict[str, Case]] = defaultdict(dict)
    for name, case in flex_cases.all_cases():
        module, _, key = name.partition(".")
        modules[module][key] = case
    unknown = sorted(set(wanted) - set(modules))
    if unknown:
        raise SystemExit(f"no cases in {', '.join(unknown)}; there are {', '.join(modules)}")
    chosen = wanted or [name for name, cases in modules.items() if not _is_recorded(name, cases)]
    return sum(_record(module, modules[module]) for module in chosen)


def _is_recorded(module: str, cases: dict[str, Case]) -> bool:
    try:
        for key, case in cases.items():
            recorded_results.recorded(f"{module}.{key}", case)
    except recorded_results.NotRecorded:
        return False
    return True


def _record(module: str, cases: dict[str, Case]) -> int:
    executor, results, refused = TensorFlowExecutor(), [], 0
    for key, case in cases.items():
        try:
            results.append((key, case, flex_cases.run(case, executor)))
        except Exception as error:  # noqa: BLE001 - TensorFlow refuses in many ways
            refused += 1
            print(f"{module}.{key}: {error}", file=sys.stderr)
    size = recorded_results.write(module, results)
    print(f"{module}: {len(results)} cases, {size} bytes")
    return refused


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
