"""The op table: operator name to registration, filled by the ``kernel`` decorator.

Each kernel enters itself when its module is imported. ``kernels/ops.py`` declares which module that
is, and a module is imported when one of its operators is looked up: a model uses few of them, and
all together take longer than running a small one. :func:`delegraph.builtin_registration` looks an
operator up with all of them declared. The table, with versions, types and files, is
``docs/operators.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps

from delegraph.operators.checks import require_dense
from delegraph.operators.lazy_table import LazyTable
from delegraph.operators.registration import Eval, InPlace, Node, OpContext, Prepare, Registration
from delegraph.schema.enums import BuiltinOperator

OP_TABLE = LazyTable[Registration]()
"""Builtin operators by schema name, custom operators of TFLite and TFLM by custom name."""


def kernel(
    name: str,
    *,
    versions: tuple[int, int] = (1, 1),
    inplace: InPlace = InPlace.NONE,
    uses_blas: bool = False,
    sparse_inputs: Collection[int] = (),
) -> Callable[[Prepare], Prepare]:
    """Register the decorated ``prepare`` function as the kernel of operator *name*.

    Args:
        name: operator name such as ``CONV_2D``; a name that is no builtin operator is that of a
            custom operator.
        versions: first and last version implemented, as ``register.cc`` of TFLite gives them.
        inplace: inputs that may share memory with output 0.
        uses_blas: whether the kernel multiplies matrices with NumPy.
        sparse_inputs: positions of inputs that may be sparse constants, which hold fewer values
            than their shape says; others are refused before *prepare* sees the node.
    """

    def register(prepare: Prepare) -> Prepare:
        code = BuiltinOperator.__members__.get(name, BuiltinOperator.CUSTOM)

        @wraps(prepare)
        def checked(context: OpContext, node: Node) -> Eval:
            require_dense(context, node, sparse_inputs)
            return prepare(context, node)

        entry = Registration(name, checked, code, versions, inplace, uses_blas=uses_blas)
        OP_TABLE.enter(name, entry)
        return prepare

    return register
