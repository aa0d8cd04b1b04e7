"""Tries every operator with every type in the place of every tensor's, other counts and odd scales.

python tests/conformance/run_ill_formed.py [--op NAME] [--cases N]

Prints each complaint, and how many cases there were. Exit code 1 when there is a complaint.
"""

from __future__ import annotations

import argparse
import sys
from itertools import chain, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.ill_formed import complaint, foreign_error, ill_formed, is_valid, oddly_quantized
from conformance.judging import Judge
from delegraph.testing.operator_cases import cases
from delegraph.testing.registered_operators import REGISTERED_OPERATORS


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--op", action="append", help="an operator; all of them by default")
    parser.add_argument("--cases", type=int, default=1, help="valid cases of each to begin with")
    arguments = parser.parse_args()
    tried = complaints = 0
    with Judge() as judge:
        for op in arguments.op or REGISTERED_OPERATORS:
            valid = filter(is_valid, cases(op, seed=3, count=12))
            for case in islice(valid, arguments.cases):
                ways = ((name, complaint(name, c, judge)) for name, c in ill_formed(case))
                odd = ((name, foreign_error(c)) for name, c in oddly_quantized(case))
                for name, found in chain(ways, odd):
                    tried += 1
                    if found:
                        complaints += 1
                        print(f"{name}: {found}")
    print(f"{tried} cases of ill-formed nodes, {complaints} complaints")
    return int(complaints > 0)


if __name__ == "__main__":
    sys.exit(main())
