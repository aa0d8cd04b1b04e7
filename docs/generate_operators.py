"""Writes ``operators.md`` beside this file from the op table: which operators have a kernel.

python docs/generate_operators.py
"""

from __future__ import annotations

import json
from pathlib import Path

import delegraph.kernels.ops  # noqa: F401 - declares the kernels
from delegraph.operators import OP_TABLE, InPlace, Registration
from delegraph.schema.enums import BuiltinOperator
from delegraph.testing import DIFFERENCES, MICRO_OPERATORS, cases

PAGE = Path(__file__).with_name("operators.md")
TYPES = Path(__file__).with_name("operator_types.json")
"""The types that each operator takes: ``tests/conformance/run.py --write-types`` found them out."""

BUILTIN_OPERATORS = set(BuiltinOperator) - {
    BuiltinOperator.CUSTOM,
    BuiltinOperator.DELEGATE,
    BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES,
}

INTRODUCTION = """\
# Operators

<!-- Written by docs/generate_operators.py; `make test` fails when it is out of step. -->

The operators that run without a delegate, from the op table. A model with any other builtin
operator is refused while it is loaded; the error names the operator. Any other custom operator
stays in the graph, so that a delegate or a plugin may provide it.

*Versions* are the operator versions that the kernel implements. *Types* are those of the data for
which Delegraph and LiteRT 2.3 were both run and agree (`make conformance`); `INT16 by INT8` names
the data's type and the weights'. Other types are refused by both, or were not tried. *In place*
says that the output may share memory with an input of the same size. Where the two do not agree,
[differences.md](differences.md#operators) says why.
"""


MICRO = """\
## TFLM's signal operators: {}

Custom operators of TensorFlow Lite for Microcontrollers. Results are those of the wheel
`tflite-micro` bit for bit (`make tflm-oracle`), in `Interpreter` and in `MicroInterpreter`.
Operators that *keep* a state start again when variables are reset.
"""


REFERENCE_NUMERICS = """\
## Reference numerics

Where LiteRT's builtin and reference kernels give different results, Delegraph gives those of the
builtin kernels. `Interpreter(numerics="reference")`, and `OpResolverType.BUILTIN_REF`, choose the
reference kernels. Integer results then equal theirs bit for bit, except for the entries of
[differences.md](differences.md).
"""


ON_ARM = """\
## Official kernels on ARM

Delegraph's integers are the same on every processor: those of the official kernels on x86-64. On
ARM, official *builtin* kernels may give others:

| scaling of sums in `CONV_2D`, `FULLY_CONNECTED` | roundings |
|---|---|
| x86-64 | one, halves up |
| ARM (`SQRDMULH`, then `SRSHL`) | two, each with halves up |
| ruy's common code | two: halves away from zero, then up |

That is what ruy's `apply_multiplier.cc` and
[its author](https://github.com/tensorflow/tensorflow/issues/25087) say: bit-exactness across
processors is no aim there.

Both official wheels 2.3.0, ARM's under emulation, ran models on the same random inputs. Of 23
integer outputs, two of them INT8, two differed with the builtin kernels. They are of the UINT8
networks `mobilenet_v1_0.25_128_quant` (at most 4 units, in 0.7 % of the values) and
`automl_labeler_model` (2 units, in 3 of 5 values). XNNPACK's and the reference
kernels gave the same on both processors.

Delegraph itself gave the same on both in 11,232 seeded cases of all operators: integers to the bit,
floats to a ten-thousandth. The official builtin kernels for ARM also differ in the following.

| what | on ARM |
|---|---|
| quantized `LSTM`, `UNIDIRECTIONAL_SEQUENCE_LSTM` | other roundings, which add up over the steps |
| `EXP`, `LOG` of INT16; `DEQUANTIZE` | 1 unit; the last bits of the float |
| `QUANTIZE` beyond 32 bits, `POW` of INT32 that overflows | the nearest integer |
| `QUANTIZE` of NaN | the zero point |
| comparisons of INT8 with scales above 1, `SUM` with an output scale of 0 | other overflows |
| `STABLEHLO_SHIFT_LEFT` by less than 0 or more bits than there are | other numbers |
"""


def page() -> str:
    """Return the operators page as Markdown."""
    known = sorted(OP_TABLE.values(), key=lambda r: (r.custom_name != "", r.name))
    builtin = [r for r in known if not r.custom_name]
    custom = [r for r in known if r.custom_name and r.name not in MICRO_OPERATORS]
    micro = [r for r in known if r.name in MICRO_OPERATORS]
    parts = [
        INTRODUCTION,
        f"## Builtin operators: {len(builtin)} of {len(BUILTIN_OPERATORS)}\n",
        table(builtin),
        f"## Custom operators: {len(custom)}\n",
        table(custom),
        MICRO.format(len(micro)),
        micro_table(micro),
        REFERENCE_NUMERICS,
        differences(),
        ON_ARM,
        "## Not implemented\n",
        ", ".join(f"`{name}`" for name in missing()) + ".\n",
    ]
    return "\n".join(parts)


def table(registrations: list[Registration]) -> str:
    """Return the rows of the operator table."""
    lines = ["| operator | versions | types | in place | kernel |", "|---|---|---|---|---|"]
    taken = json.loads(TYPES.read_text(encoding="utf-8"))
    for registration in registrations:
        first, last = registration.versions
        versions = str(first) if first == last else f"{first}-{last}"
        types = ", ".join(taken.get(registration.name, ()))
        inplace = "" if registration.inplace == InPlace.NONE else "yes"
        kernel = registration.prepare.__module__.removeprefix("delegraph.").replace(".", "/")
        row = (f"`{registration.name}`", versions, types, inplace, f"`{kernel}.py`")
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def micro_table(registrations: list[Registration]) -> str:
    """Return a row for each operator specific to TFLM, with the types of its first input."""
    lines = ["| operator | types | keeps | kernel |", "|---|---|---|---|"]
    for registration in registrations:
        found = list(cases(registration.name))
        types = ", ".join(sorted({case.types()[0] for case in found}))
        keeps = "yes" if len(found[0].steps) > 1 else ""
        kernel = registration.prepare.__module__.removeprefix("delegraph.").replace(".", "/")
        lines.append(f"| `{registration.name}` | {types} | {keeps} | `{kernel}.py` |")
    return "\n".join(lines) + "\n"


def differences() -> str:
    """Return a row for each difference between the optimized and the reference official kernels."""
    lines = ["| operators | types | builtin | reference |", "|---|---|---|---|"]
    for d in DIFFERENCES:
        ops = ", ".join(f"`{op}`" for op in d.ops)
        lines.append(f"| {ops} | {', '.join(d.types)} | {d.builtin} | {d.reference} |")
    return "\n".join(lines) + "\n"


def missing() -> list[str]:
    """Return the builtin operators that have no kernel, sorted by name."""
    return sorted({operator.name for operator in BUILTIN_OPERATORS} - OP_TABLE.keys())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
