"""Oddities: functions that change a case at random, listed in :data:`ODDITIES`.

Each function takes a :class:`Draft` and returns a changed draft, or None if it does not apply.
Models stay well-formed files. The compared runtimes may accept or reject them, but both must do the
same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.schema import tables
from delegraph.schema.enums import BuiltinOperator, TensorType
from delegraph.schema.options import ReshapeOptions, options_field
from delegraph.schema.table import Scalar, Table
from delegraph.testing.registered_operators import BUILTIN_VERSIONS
from delegraph.testing.sweep.draft import Draft, Oddity, bytes_of, constant_array
from delegraph.testing.sweep.lengths import resized, stretched_axis, stretched_weights
from delegraph.testing.sweep.weights import float16_weights, narrow_weights, sparse_weights

FLOATS = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, 1e-39, 1.0, -1.0, 100.0, -100.0)
"""Unusual floats; none is so large that sums depend on their order by more than roundings."""


def no_quantization(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft without quantization of all tensors or of one; None if none is quantized."""
    having = [i for i, t in enumerate(draft.tensors) if t.quantization is not None]
    if not having:
        return None
    for index in having if chance.random() < 0.6 else [chance.choice(having)]:
        draft = draft.with_tensor(index, quantization=None)
    return draft


def odd_quantization(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with odd scales or zero points: 0, tiny, huge, missing, per channel.

    The result is None if no tensor has scales.
    """
    having = [i for i, t in enumerate(draft.tensors) if _scales(t) is not None]
    if not having:
        return None
    everywhere = chance.random() < 0.3
    change = chance.choice((_scale, _scale, _zero_point, _channels, _missing))
    for index in having if everywhere else [chance.choice(having)]:
        tensor = draft.tensors[index]
        changes = change(chance, tensor)
        if changes and tensor.quantization is not None:
            draft = draft.with_tensor(index, quantization=tensor.quantization.replace(**changes))
    return draft


def _scales(tensor: tables.Tensor) -> NDArray[np.float32] | None:
    """Return the scales of a tensor; None if it has none."""
    q = tensor.quantization
    return None if q is None or q.scale is None or not len(q.scale) else q.scale


def _scale(chance: Random, tensor: tables.Tensor) -> dict[str, Any]:
    factor = chance.choice((0.0, 1e-30, 1e-9, 1e-5, 1e-3, 1e3, 1e9, 1e30, -1.0, 0.5, 2.0))
    with np.errstate(all="ignore"):
        return {"scale": np.float32(_scales(tensor)) * np.float32(factor)}


def _zero_point(chance: Random, tensor: tables.Tensor) -> dict[str, Any]:
    dtype = NUMPY_DTYPES[tensor.type]
    if dtype.kind not in "iu":
        return {}
    limits = np.iinfo(dtype)
    zero = chance.choice((limits.min, limits.max, 0, 1, -1))
    scales = _scales(tensor)
    return {} if scales is None else {"zero_point": np.full(len(scales), zero, np.int64)}


def _channels(chance: Random, tensor: tables.Tensor) -> dict[str, Any]:
    shape = tensor.shape or ()
    if not shape:
        return {}
    axis = chance.randrange(len(shape))
    count = shape[axis]
    rng = np.random.default_rng(chance.randrange(1 << 30))
    first = np.float32(_scales(tensor)).flat[0]
    points = rng.integers(-2, 3, count) if chance.random() < 0.3 else np.zeros(count, np.int64)
    scale = (first * rng.uniform(0.5, 2, count)).astype(np.float32)
    return {"scale": scale, "zero_point": points, "quantized_dimension": axis}


def _missing(chance: Random, tensor: tables.Tensor) -> dict[str, Any]:
    """Return changes to a quantization record that remove the scale, the zero point, or both."""
    gone = chance.choice((("scale",), ("zero_point",), ("scale", "zero_point")))
    return dict.fromkeys(gone)


def constant_inputs(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with constants in place of all inputs, or of one.

    The result is None if there are no inputs, or if a value cannot be stored as a constant.
    """
    inputs = draft.main.inputs or ()
    if not inputs:
        return None
    fixed = set(range(len(inputs)))
    if chance.random() < 0.7:
        fixed = {chance.randrange(len(inputs))}
    for i in fixed:
        array = draft.steps[0][i]
        dtype = NUMPY_DTYPES[draft.tensors[inputs[i]].type]
        if array.dtype != dtype or array.dtype.kind == "O":
            return None
        draft = draft.with_data(inputs[i], bytes_of(array)).with_tensor(
            inputs[i], shape=array.shape
        )
    kept = [i for i in range(len(inputs)) if i not in fixed]
    steps = tuple(tuple(step[i] for i in kept) for step in draft.steps)
    return replace(draft.with_main(inputs=tuple(inputs[i] for i in kept)), steps=steps)


def constant_is_input(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with one constant that is also a graph input; None if it has no constant."""
    return _fed_constant(chance, draft, keeps_data=True)


def computed_constant(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with one constant replaced by an input with the same values.

    The result is None if there is no constant.
    """
    return _fed_constant(chance, draft, keeps_data=False)


def _fed_constant(chance: Random, draft: Draft, *, keeps_data: bool) -> Draft | None:
    indices = [i for i in draft.constants() if constant_array(draft, i) is not None]
    if not indices:
        return None
    index = chance.choice(indices)
    array = constant_array(draft, index)
    assert array is not None
    steps = tuple((*step, array) for step in draft.steps)
    changed = draft.with_main(inputs=(*(draft.main.inputs or ()), index))
    return replace(changed if keeps_data else changed.with_data(index, None), steps=steps)


def absent_input(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with an input of a node absent, but not the node's first input.

    The result is None if the node has fewer than two inputs.
    """
    at = chance.randrange(max(1, len(draft.main.operators or ())))
    node = (draft.main.operators or ())[at]
    inputs = list(node.inputs or ())
    if len(inputs) < 2:
        return None
    if chance.random() < 0.3:
        return draft.with_node(at, inputs=tuple(inputs[:-1]))
    inputs[chance.randrange(1, len(inputs))] = -1
    return draft.with_node(at, inputs=tuple(inputs))


def same_tensor_twice(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with one tensor as two inputs of a node; *chance* chooses the node.

    The result is None if the node does not have two inputs of one type.
    """
    at = chance.randrange(max(1, len(draft.main.operators or ())))
    inputs = list((draft.main.operators or ())[at].inputs or ())
    pairs = [
        (i, j) for i, a in enumerate(inputs) for j, b in enumerate(inputs)
        if i != j and a >= 0 and b >= 0 and draft.tensors[a].type == draft.tensors[b].type
    ]  # fmt: skip
    if not pairs:
        return None
    i, j = chance.choice(pairs)
    inputs[j] = inputs[i]
    return draft.with_node(at, inputs=tuple(inputs))


def other_option(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with another value for an option of one node.

    The result is None if the node has no options.
    """
    at = chance.randrange(max(1, len(draft.main.operators or ())))
    node = (draft.main.operators or ())[at]
    options = node.builtin_options or node.builtin_options_2
    if not isinstance(options, Table):
        return None
    kinds = {f.name: f.kind for f in type(options).FIELDS if isinstance(f.kind, Scalar)}
    if not kinds:
        return None
    name = chance.choice(list(kinds))
    value = _option_value(chance, kinds[name], getattr(options, name))
    return draft.with_node(at, **options_field(options.replace(**{name: value})))


def _option_value(chance: Random, kind: Scalar, now: Any) -> Any:
    if kind.enum is not None:
        return chance.choice(list(kind.enum))
    if kind.dtype.kind == "b":
        return not now
    if kind.dtype.kind == "f":
        return float(np.float32(chance.choice((0.0, 1.0, -1.0, 0.5, 1e-5, 1e5, float(now)))))
    return chance.choice((0, 1, 2, 3, 4, -1 if kind.dtype.kind == "i" else 5))


def other_version(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with random versions of the operators that have several; never None."""
    codes = []
    for code in draft.records.operator_codes or ():
        low, high = BUILTIN_VERSIONS.get(code.builtin_code.name, (1, 1))
        codes.append(code.replace(version=chance.randint(low, high)))
    return replace(draft, records=draft.records.replace(operator_codes=tuple(codes)))


def late_shape(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with an input whose shape is known only while invoking.

    The result is None if there are no inputs, or if their shapes change between invokes.
    """
    inputs = list(draft.main.inputs or ())
    shapes = {tuple(a.shape for a in step) for step in draft.steps}
    if not inputs or len(shapes) != 1:
        return None
    number = chance.randrange(len(inputs))
    index, array = inputs[number], draft.steps[0][number]
    first = len(draft.tensors)
    given = draft.tensors[index].replace(name="given", buffer=0)
    wanted = tables.Tensor(shape=(array.ndim,), type=TensorType.INT32, buffer=0, name="shape")
    codes = draft.records.operator_codes or ()
    node = tables.Operator(
        opcode_index=len(codes), inputs=(first, first + 1), outputs=(index,),
        **options_field(ReshapeOptions()),
    )  # fmt: skip
    inputs[number] = first
    changed = draft.with_main(
        tensors=(*draft.tensors, given, wanted), inputs=(*inputs, first + 1),
        operators=(node, *(draft.main.operators or ())),
    )  # fmt: skip
    code = tables.operator_code(BuiltinOperator.RESHAPE, version=1, custom_code=None)
    records = changed.records.replace(operator_codes=(*codes, code))
    shape = np.array(array.shape, np.int32)
    return Draft(records, tuple((*step, shape) for step in draft.steps))


def extreme_values(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with extreme inputs and maybe constants, including NaN and infinities.

    The result is never None.
    """
    rng = np.random.default_rng(chance.randrange(1 << 30))
    alike = chance.random() < 0.5
    steps = tuple(tuple(_extreme(rng, a, alike) for a in step) for step in draft.steps)
    if chance.random() < 0.5:
        for index in draft.constants():
            array = constant_array(draft, index)
            if array is not None and array.dtype.itemsize <= 2 and array.dtype.kind in "iu":
                draft = draft.with_data(index, bytes_of(_extreme(rng, array, alike)))
    return replace(draft, steps=steps)


def _extreme(rng: np.random.Generator, array: NDArray[Any], alike: bool) -> NDArray[Any]:
    """Return *array* with extreme values, such as infinities or the type's limits.

    With *alike*, all elements get one value; otherwise several are chosen.
    """
    if array.dtype.kind == "f":
        ends: Sequence[Any] = FLOATS
    elif array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        ends = (limits.min, limits.max, limits.min + 1, 0, 1)
    else:
        return array
    with np.errstate(all="ignore"):
        values = np.array(ends).astype(array.dtype)
    if alike:
        return np.asarray(np.full_like(array, rng.choice(values)))
    drawn = rng.choice(values, array.shape)
    return np.asarray(np.where(rng.random(array.shape) < 0.5, drawn, array))


ODDITIES: tuple[Oddity, ...] = (
    no_quantization, odd_quantization, constant_inputs, constant_is_input, computed_constant,
    absent_input, same_tensor_twice, other_option, other_version, late_shape, stretched_axis,
    stretched_weights, resized, extreme_values, narrow_weights, float16_weights, sparse_weights,
)  # fmt: skip
