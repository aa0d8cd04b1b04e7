"""Cases of products of matrices, with Einsum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one

TOLERANCES = {
    DataType.FLOAT32: 1e-6,
    DataType.FLOAT64: 1e-12,
    DataType.FLOAT16: 2e-3,
    DataType.BFLOAT16: 1e-2,
    DataType.COMPLEX64: 1e-6,
    DataType.COMPLEX128: 1e-12,
    DataType.INT32: 0.0,
    DataType.INT64: 0.0,
}
EQUATIONS = {
    ((2, 3),): [
        "ij->ji", "ij->", "ij->j", "ij->ij", "...->...", "...j->...", "i...->...i", "ij->jij",
    ],
    ((3, 3),): ["ii->i", "ii->", "...ii->...i", "ij->iij", "ii->ii"],
    ((2, 3), (3, 4)): [
        "ij,jk->ik", "ij,jk->", "ij,jk->kij", "ij,kl->", "ij,jk->k", "...j,jk->k...",
    ],
    ((2, 3, 4), (2, 4, 5)): ["bij,bjk->bik", "bij,bjk->kib", "abc,acd->"],
    ((2, 3, 2, 4), (2, 5, 2, 4)): ["BTNH,BFNH->BNFT", "btnh,bfnh->bnft", "abcd,aecd->acbe"],
    ((2, 1, 3, 4), (5, 4, 2)): ["...ij,...jk->...ik", "...ij,...jk->ki..."],
    ((3,), (4,)): ["i,j->ij", "i,j->", "a,b->ba"],
    ((3,), (3,)): ["i,i->", "i,i->i", "...,...->..."],
    ((2, 3), ()): ["ij,->ji", "ij,...->ij..."],
    ((3, 3), (3, 2)): ["ii,ij->j", "ij,jk->iik", "ii,jk->kj"],
    ((0, 3), (3, 2)): ["ij,jk->ik", "ij,jk->jk"],
}  # fmt: skip


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(5)

    def some(type: DataType, *shape: int) -> np.ndarray:
        values = rng.normal(0, 3, shape)
        if type in (DataType.COMPLEX64, DataType.COMPLEX128):
            values = values + 1j * rng.normal(0, 3, shape)
        if type in (DataType.FLOAT16, DataType.BFLOAT16):
            values = np.abs(values)  # sums that do not cancel
        return values.astype(type.dtype)

    for type, tolerance in TOLERANCES.items():
        attrs = {"T": type, "tolerance": tolerance}
        for a in (False, True):
            for b in (False, True):
                x, y = (
                    some(type, *((3, 2) if a else (2, 3))),
                    some(type, *((4, 3) if b else (3, 4))),
                )
                yield one("MatMul", x, y, transpose_a=a, transpose_b=b, **attrs)
                yield one(
                    "BatchMatMulV2", np.stack([x, x]), y[None, None], adj_x=a, adj_y=b, **attrs
                )
                yield one("BatchMatMul", x[None], y[None], adj_x=a, adj_y=b, **attrs)
        yield one("MatMul", some(type, 2, 0), some(type, 0, 2), **attrs)
        for shapes in EQUATIONS if type is DataType.FLOAT32 else list(EQUATIONS)[:3]:
            for equation in EQUATIONS[shapes]:
                arrays = [some(type, *shape) for shape in shapes]
                yield one(
                    "Einsum", *arrays, name=f"Einsum {equation}", equation=equation.encode(),
                    N=len(arrays), **attrs,
                )  # fmt: skip
    for one_type, other, result in (
        (DataType.INT8, DataType.INT8, DataType.INT32),
        (DataType.UINT8, DataType.INT8, DataType.INT32),
        (DataType.FLOAT32, DataType.FLOAT32, DataType.FLOAT32),
    ):
        x, y = (rng.integers(0, 99, (2, 3, 3)).astype(t.dtype) for t in (one_type, other))
        yield one(
            "BatchMatMulV3", x, y, Ta=one_type, Tb=other, Tout=result, adj_x=False, adj_y=True,
            out=TensorType[result.name], tolerance=1e-6,
        )  # fmt: skip
