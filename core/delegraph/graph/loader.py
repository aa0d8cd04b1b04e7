"""Loads model files as :class:`~delegraph.graph.model.Model` and checks that they are safe to use.

Models that the official runtime rejects while it builds an interpreter are rejected here, too. In
addition, every index (tensor, subgraph, buffer) is checked, so later code need not check indices.

Source:
    ``InterpreterBuilder``, tflite/core/interpreter_builder.cc; ``FlatBufferModel``,
    tflite/converter/core/model_builder_base.h. Differences are noted at the checks.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.collector import collector_paused
from delegraph.errors import ExternalBufferError, MalformedModelError, SectionError
from delegraph.graph.model import (
    ExternalBuffers,
    Model,
    OperatorSpec,
    Signature,
    Specs,
    SubgraphSpec,
    TensorSpec,
)
from delegraph.graph.model_files import mapped_address
from delegraph.graph.tensor_loader import Copies, TensorLoader, require_tensors
from delegraph.log import Logger
from delegraph.schema import tables
from delegraph.schema.enums import ActivationFunctionType, BuiltinOperator
from delegraph.schema.options import OPTIONS_OF_OPERATOR
from delegraph.schema.read_limit import ReadLimit
from delegraph.schema.reader import FILE_IDENTIFIER, read_model
from delegraph.schema.table import Columns, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.graph.external_buffers import Weights
    from delegraph.graph.model_entries import EntryPlaces

logger = Logger(__name__)

SCHEMA_VERSION = 3

_SUBGRAPH_BYTES, _TENSOR_BYTES, _OPERATOR_BYTES, _SIGNATURE_BYTES = 12_000, 700, 2000, 700
_BYTES_PER_OBJECT = 50
"""Number of bytes of a file, without constants, for each Python object made from the file."""

_OPERAND_BYTES = 200
"""Number of bytes of memory for each operand of an operator until the model is prepared.

In the file an operand takes 4 bytes, or less if operators share a list.
"""


def load_model(
    path: str | os.PathLike[str],
    table_limit: int | None = None,
    memory_limit: int | None = None,
    weights_dir: str | os.PathLike[str] | None = None,
) -> Model:
    """Load the model in the file at *path*; the file is mapped and constants are not copied.

    Args:
        path: path of the file; ``FILE#SECTION`` is a model in a bundle.
        table_limit: maximal number of tables (operators, tensors, options); None means a million.
        memory_limit: maximal number of bytes of texts, lists, options and decompressed content;
            None means a limit that suits the file's size.
        weights_dir: a folder that may contain external buffers, in addition to the folder of the
            file.

    Raises:
        ArgumentError: the file cannot be opened.
        MalformedModelError: the file is not a valid model, or is a damaged bundle.
        SectionError: the bundle does not have the section, or has several models.
        ExternalBufferError: constants in another file cannot be used.
    """
    content, file, sections = mapped_address(path)
    try:
        if sections is None and content[4:8].tobytes() == FILE_IDENTIFIER:
            weights = _beside(file, weights_dir)
            model = _parsed(content, table_limit, memory_limit, weights, os.fspath(path))
        else:
            from delegraph.bundles.opening import find_model  # lazy import: most files are models

            found = find_model(content, sections, memory_limit)
            if memory_limit is not None:
                memory_limit = max(0, memory_limit - found.inflated)
            weights = found.weights if found.chain else _beside(file, weights_dir)
            model = _parsed(found.content, table_limit, memory_limit, weights, os.fspath(path))
    except (MalformedModelError, SectionError, ExternalBufferError) as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from error
    operators = sum(len(subgraph.operators) for subgraph in model.subgraphs)
    text = "read %s: %d bytes, %d operators in %d subgraphs"
    logger.info(text, path, len(model.content), operators, len(model.subgraphs))
    return model


def _beside(file: str, weights_dir: str | os.PathLike[str] | None) -> Weights:
    """Return a function that maps a group's file beside the model *file* or in *weights_dir*."""

    def weights(group: str) -> NDArray[np.uint8]:
        from delegraph.graph.external_buffers import file_beside  # lazy import: few models have any

        return file_beside(file, group, weights_dir)

    return weights


def parse_model(
    content: bytes | bytearray | memoryview | mmap.mmap | NDArray[np.uint8],
    table_limit: int | None = None,
    memory_limit: int | None = None,
) -> Model:
    """Load a model from the bytes *content*; constants are views of *content*.

    Args:
        content: the bytes of a file.
        table_limit: maximal number of tables (operators, tensors, options); None means a million.
        memory_limit: maximal number of bytes of texts, lists, quantization, sparsity and options;
            None means 64 times the file's size. One megabyte is always allowed.

    Raises:
        MalformedModelError: the bytes are not a valid model.
        ExternalBufferError: the model keeps constants in another file.
    """
    data = np.frombuffer(content, np.uint8)
    data.flags.writeable = False
    return _parsed(data, table_limit, memory_limit, None)


def _parsed(
    content: NDArray[np.uint8],
    table_limit: int | None,
    memory_limit: int | None,
    weights: Weights | None,
    file: str = "",
) -> Model:
    with collector_paused(lasting=len(content) // _BYTES_PER_OBJECT):
        limit = ReadLimit(len(content), memory_limit)
        entries = _entries(content)
        model = content if entries is None else content[: entries.model_bytes]
        record = _record(model, table_limit, limit)
        external = ExternalBuffers()
        if record.external_buffers:
            from delegraph.graph.external_buffers import load_external_buffers  # lazy: few have any

            external = load_external_buffers(record, weights)
        return _model(record, content, entries, limit, external, file)


def _entries(content: NDArray[np.uint8]) -> EntryPlaces | None:
    if not content[-22:].tobytes().startswith(b"PK"):  # no zip follows the model
        return None
    from delegraph.graph.model_entries import find_entries

    return find_entries(content)


def _record(content: NDArray[np.uint8], table_limit: int | None, limit: ReadLimit) -> tables.Model:
    """Return the records of *content*, read within both limits; an error names another format."""
    try:
        return read_model(content, table_limit, limit, by_column=True)
    except MalformedModelError as error:
        from delegraph.graph.other_formats import other_format

        found = other_format(content)
        if not found or content[4:8].tobytes() == FILE_IDENTIFIER:
            raise
        raise MalformedModelError(f"{found}; {error}") from error


def _model(
    record: tables.Model,
    content: NDArray[np.uint8],
    entries: EntryPlaces | None,
    limit: ReadLimit,
    external: ExternalBuffers,
    file: str,
) -> Model:
    if record.version != SCHEMA_VERSION:
        raise MalformedModelError(
            f"Model provided is schema version {record.version} not equal to supported version "
            f"{SCHEMA_VERSION}."
        )
    codes = [_operator_type(i, code) for i, code in enumerate(record.operator_codes or ())]
    if not record.subgraphs:
        raise MalformedModelError("No subgraph in the model.")
    if record.buffers is None:
        raise MalformedModelError("No buffers in the model.")
    copies = Copies(limit)
    limit.take_objects(len(record.subgraphs), _SUBGRAPH_BYTES, "subgraphs")
    limit.take_objects(len(record.signature_defs or ()), _SIGNATURE_BYTES, "signatures")
    subgraphs = tuple(
        _subgraph(index, subgraph, record.buffers, external.contents, codes, copies)
        for index, subgraph in enumerate(record.subgraphs)
    )
    return Model(
        version=record.version,
        description=record.description or "",
        subgraphs=subgraphs,
        signatures=_signatures(record, subgraphs),
        metadata=_metadata(record),
        content=content,
        external_buffers=external,
        entries=entries,
        file=file,
    )


_OperatorType = tuple[str, BuiltinOperator, int]
"""Name, builtin code and version of an operator code."""


def _operator_type(index: int, record: tables.OperatorCode) -> _OperatorType:
    """Return name, builtin code and version of operators with operator code number *index*.

    *record* is that operator code.
    """
    code = max(record.builtin_code, record.deprecated_builtin_code)
    try:
        builtin = BuiltinOperator(code)
    except ValueError as error:
        raise MalformedModelError(
            f"operator code {index}: builtin code {code} is out of range (0 to "
            f"{max(BuiltinOperator):d}); the model may be newer than this library. "
            "Registration failed."
        ) from error
    if builtin is not BuiltinOperator.CUSTOM:
        return builtin.name, builtin, record.version
    if record.custom_code is None:
        raise MalformedModelError(
            f"operator code {index}: Operator with CUSTOM builtin_code has no custom_code."
        )
    return record.custom_code, builtin, record.version


def _subgraph(
    index: int,
    record: tables.SubGraph,
    buffers: Sequence[tables.Buffer],
    external: Mapping[int, NDArray[np.uint8]],
    codes: Sequence[_OperatorType],
    copies: Copies,
) -> SubgraphSpec:
    if record.tensors is None:
        raise MalformedModelError(f"Did not get tensors in subgraph {index}.")
    where = f"of subgraph {index}"
    copies.limit.take_objects(len(record.tensors), _TENSOR_BYTES, f"tensors {where}")
    copies.limit.take_objects(len(record.operators or ()), _OPERATOR_BYTES, f"operators {where}")
    tensors: Sequence[TensorSpec] = ()
    if record.tensors:
        records_of_tensors = Columns.of(record.tensors)
        tensors = TensorLoader(index, records_of_tensors, buffers, external, copies).load()
    inputs, outputs = record.inputs or (), record.outputs or ()
    require_tensors(inputs, len(tensors), f"subgraph {index} inputs")
    require_tensors(outputs, len(tensors), f"subgraph {index} outputs")
    operators: Sequence[OperatorSpec] = ()
    if record.operators:
        records = Columns.of(record.operators)
        operands = _require_operators(records, len(codes), len(tensors), index)
        copies.limit.take_objects(operands, _OPERAND_BYTES, f"operands {where}")
        custom_options = records.columns[_CUSTOM_OPTIONS]
        size = sum(len(options) for options in custom_options if options is not None)
        copies.limit.take(size, f"subgraph {index}: custom options")
        operators = _operators(records, codes)
    return SubgraphSpec(index, record.name or "", tensors, operators, inputs, outputs)


def _require_operators(
    records: Columns[tables.Operator], num_codes: int, num_tensors: int, subgraph: int
) -> int:
    """Check that operators refer to existing tensors and codes; return the number of operands."""
    opcodes = records.columns[_OPCODE_INDEX]
    if max(opcodes) >= num_codes:
        index = next(i for i, opcode in enumerate(opcodes) if opcode >= num_codes)
        raise MalformedModelError(
            f"subgraph {subgraph} operator {index}: Missing registration for opcode_index "
            f"{opcodes[index]}; the model has {num_codes} operator codes"
        )
    columns = [records.columns[number] for number in _TENSOR_LISTS]
    indices = list(chain.from_iterable(filter(None, chain.from_iterable(columns))))
    if indices and (min(indices) < -1 or max(indices) >= num_tensors):
        for position, lists in enumerate(zip(*columns, strict=True)):
            where = f"subgraph {subgraph} operator {position}"
            for tensors in lists:
                require_tensors(tensors or (), num_tensors, where)
    return len(indices)


_FIELDS = tables.Operator.__match_args__
_TENSOR_LISTS = tuple(map(_FIELDS.index, ("inputs", "outputs", "intermediates")))
_OPCODE_INDEX, _CUSTOM_OPTIONS = map(_FIELDS.index, ("opcode_index", "custom_options"))


def _operators(
    records: Columns[tables.Operator], codes: Sequence[_OperatorType]
) -> Specs[OperatorSpec]:
    """Return the specs of the operators in *records*, whose *codes* exist.

    Each field is computed for all operators at once.
    """
    opcodes, *lists, first, custom, _, _, intermediates, _, _, second, _ = records.columns
    lists = [[each or () for each in some] for some in (*lists, intermediates)]
    chosen = first if second.count(None) == len(second) else list(map(_either, first, second))
    names, builtins, versions = zip(*map(codes.__getitem__, opcodes), strict=True)
    expected = {opcode: OPTIONS_OF_OPERATOR.get(codes[opcode][1]) for opcode in set(opcodes)}
    options = [  # the official runtime ignores options of another operator, too
        given if type(given) is expected[opcode] else None
        for given, opcode in zip(chosen, opcodes, strict=True)
    ]
    distinct = dict(zip(map(id, options), options, strict=True))  # few: equal ones are shared
    known = {key: _with_known_activation(given) for key, given in distinct.items()}
    if any(known[key] is not given for key, given in distinct.items()):
        options = [known[id(given)] for given in options]
    columns = list(names), list(builtins), list(versions), *lists, options, custom
    return Specs(OperatorSpec, columns)


def _either(options: Table | None, options_2: Table | None) -> Table | None:
    return options_2 if options is None else options


_ACTIVATION, _NO_ACTIVATION = "fused_activation_function", ActivationFunctionType.NONE


def _with_known_activation(options: Any) -> Any:
    """Return options in which an unknown activation number is replaced by NONE.

    Source:
        ConvertActivation, tflite/core/api/flatbuffer_conversions.cc.
    """
    if isinstance(getattr(options, _ACTIVATION, _NO_ACTIVATION), ActivationFunctionType):
        return options
    return options.replace(**{_ACTIVATION: _NO_ACTIVATION})


def _signatures(record: tables.Model, subgraphs: Sequence[SubgraphSpec]) -> tuple[Signature, ...]:
    signatures = []
    for index, signature in enumerate(record.signature_defs or ()):
        where = f"signature {index}"
        if signature.signature_key is None:
            raise MalformedModelError(f"{where}: Missing exported method name for SignatureDef")
        if signature.subgraph_index >= len(subgraphs):
            raise MalformedModelError(
                f"{where} ({signature.signature_key!r}): subgraph {signature.subgraph_index} is "
                f"out of range, the model has {len(subgraphs)}"
            )
        num_tensors = len(subgraphs[signature.subgraph_index].tensors)
        signatures.append(
            Signature(
                signature.signature_key,
                _named_tensors(signature.inputs, num_tensors, f"{where} inputs"),
                _named_tensors(signature.outputs, num_tensors, f"{where} outputs"),
                signature.subgraph_index,
            )
        )
    return tuple(signatures)


def _named_tensors(
    maps: Sequence[tables.TensorMap] | None, num_tensors: int, where: str
) -> dict[str, int]:
    """Return tensor indices by name from *maps*, sorted by name as in the official runtime."""
    named = {m.name: m.tensor_index for m in maps or () if m.name is not None}
    require_tensors(list(named.values()), num_tensors, where)
    return dict(sorted(named.items()))


def _metadata(record: tables.Model) -> dict[str, NDArray[np.uint8]]:
    """Return the bytes of each metadata entry by name; if names repeat, the last one counts.

    Entries without name or bytes are left out.

    Source:
        ``ReadAllMetadata``, tflite/converter/core/model_builder_base.h.
    """
    buffers = record.buffers or ()
    found = {}
    for entry in record.metadata or ():
        if entry.name is not None and entry.buffer < len(buffers):
            data = buffers[entry.buffer].data
            if data is not None and len(data):
                found[entry.name] = data
    return found
