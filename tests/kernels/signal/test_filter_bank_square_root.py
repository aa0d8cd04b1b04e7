import math

import numpy as np

from delegraph.kernels.signal.filter_bank_square_root import rounded_root


def slow(x):
    root = math.isqrt(x)
    return root + (x - root * root > root and root != (0xFFFF if x < 2**32 else 0xFFFFFFFF))


def test_roots_are_exact_near_every_square():
    roots = [*range(70), 2**16 - 1, 2**16, *(2**k + d for k in range(17, 33) for d in (-1, 0, 1))]
    near = {r * r + d for r in roots for d in (-1, 0, 1, r, r + 1)}
    values = sorted(x for x in near if 0 <= x < 2**64)
    assert rounded_root(np.array(values, np.uint64)).tolist() == [slow(x) for x in values]
