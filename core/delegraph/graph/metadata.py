"""TFLite Metadata, the author's description of a model: labels and tensors, typed and checked.

The model runs without metadata, so faults are not raised but listed in ``ModelMetadata.faults``.

Source:
    tensorflow_lite_support/metadata/metadata_schema.fbs by way of :mod:`delegraph.schema.metadata`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from delegraph.errors import MalformedModelError
from delegraph.graph.associated_files import AssociatedFiles
from delegraph.graph.model import Model
from delegraph.lazy_dataclass import dataclass, field
from delegraph.schema import metadata as tables
from delegraph.schema.flatbuffer import NOT_A_FLATBUFFER
from delegraph.schema.metadata import AssociatedFileType, BoundingBoxType, CoordinateType
from delegraph.schema.reader import read_root
from delegraph.schema.table import Table

METADATA_ENTRY = "TFLITE_METADATA"
"""Name of the metadata entry that contains the flatbuffer."""

_CONTENTS: dict[type[Table], str] = {
    tables.FeatureProperties: "features",
    tables.ImageProperties: "image",
    tables.BoundingBoxProperties: "bounding boxes",
    tables.AudioProperties: "audio",
}

_BOXES: dict[int, str] = {
    BoundingBoxType.BOUNDARIES: "boundaries",
    BoundingBoxType.UPPER_LEFT: "upper left",
    BoundingBoxType.CENTER: "center",
}


@dataclass(frozen=True, slots=True)
class BoxLayout:
    """Meaning of the four numbers of a bounding box.

    Attributes:
        type: ``boundaries`` (left, top, right, bottom); or ``upper left`` or ``center``: a point
            (x, y), then width and height.
        index: position of each of these numbers in a box; ``(0, 1, 2, 3)`` is the order of *type*.
        is_pixels: whether the numbers are pixels of the model's input; otherwise they are fractions
            of the input's width and height.
    """

    type: str
    index: tuple[int, ...] = (0, 1, 2, 3)
    is_pixels: bool = False


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Way of converting text to the numbers of an input.

    Attributes:
        kind: ``regex``, ``bert`` or ``sentencepiece``.
        pattern: regular expression at whose matches ``regex`` splits text; empty for other kinds.
        vocabulary: lines of the vocabulary's file; empty if there is none.
    """

    kind: str
    pattern: str = ""
    vocabulary: tuple[str, ...] = field(default=(), metadata={"json_key": None})


@dataclass(frozen=True, slots=True)
class TensorMetadata:
    """Description of one input or output of the model.

    Attributes:
        index: index of the tensor; -1 if there is no description.
        name: name in the description; may be empty, or differ from the tensor's name.
        description: text for people.
        content: ``image``, ``audio``, ``bounding boxes``, ``features``; empty if unknown.
        size: width and height of an image, in pixels; None if unknown.
        mean: numbers that are subtracted from an input: one, or one per channel; may be empty.
        std: numbers by which the differences are divided, as many as in ``mean``.
        sample_rate: sample rate of a sound, in hertz; None if unknown.
        channels: number of channels of a sound; None if unknown.
        boxes: layout of bounding boxes; None for other tensors.
        score_threshold: lowest score that counts as a result; None if unknown.
        axis_labels: names of the classes, one for each index along the last axis.
        value_labels: names of the classes whose numbers are the tensor's values, from class 0 on.
        files: names of the associated files, each with its type in lower case.
        tokenizer: how text is converted to numbers of this input; None if unknown.
    """

    index: int = -1
    name: str = ""
    description: str = ""
    content: str = ""
    size: tuple[int, int] | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    sample_rate: int | None = None
    channels: int | None = None
    boxes: BoxLayout | None = None
    score_threshold: float | None = None
    axis_labels: tuple[str, ...] = ()
    value_labels: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    tokenizer: Tokenizer | None = None


NOTHING_SAID = TensorMetadata()
"""Metadata of a tensor without a description."""


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """Description of a model by its author.

    Attributes:
        name: name of the model.
        description: text for people.
        version: version of the model.
        author: name of the author.
        license: terms of the license.
        inputs: descriptions of the first subgraph's inputs, in its order; empty if there are none.
        outputs: descriptions of the first subgraph's outputs.
        files: bytes of each file in the zip after the model, by name.
        faults: texts about faults in the metadata; the faulty parts are left out.
    """

    name: str = ""
    description: str = ""
    version: str = ""
    author: str = ""
    license: str = ""
    inputs: tuple[TensorMetadata, ...] = ()
    outputs: tuple[TensorMetadata, ...] = ()
    files: dict[str, int] = field(default_factory=dict)
    faults: tuple[str, ...] = ()

    def tensor(self, index: int) -> TensorMetadata:
        """Return the metadata of tensor *index*, an input or output of the first subgraph.

        Without metadata, all fields of the result are empty.
        """
        known = (tensor for tensor in (*self.inputs, *self.outputs) if tensor.index == index)
        return next(known, NOTHING_SAID)


def read_metadata(model: Model) -> ModelMetadata | None:
    """Return the author's metadata of *model*; None if it has neither metadata nor a zip."""
    faults: list[str] = []
    files = _files(model, faults)
    root = _root(model, faults)
    if root is None:
        sizes = {} if files is None else dict(files.sizes)
        return ModelMetadata(files=sizes, faults=tuple(faults)) if sizes or faults else None
    described = root.subgraph_metadata[0] if root.subgraph_metadata else tables.SubGraphMetadata()
    reader = _Reader(files, faults, described.input_process_units)
    graph = model.subgraphs[0]
    return ModelMetadata(
        name=root.name or described.name or "",
        description=root.description or described.description or "",
        version=root.version or "",
        author=root.author or "",
        license=root.license or "",
        inputs=reader.tensors("input", graph.inputs, described.input_tensor_metadata),
        outputs=reader.tensors("output", graph.outputs, described.output_tensor_metadata),
        files={} if files is None else dict(files.sizes),
        faults=tuple(dict.fromkeys(faults)),
    )


def _files(model: Model, faults: list[str]) -> AssociatedFiles | None:
    try:
        return AssociatedFiles(model.content)
    except MalformedModelError as error:
        faults.append(str(error))
        return None


def _root(model: Model, faults: list[str]) -> tables.ModelMetadata | None:
    content = model.metadata.get(METADATA_ENTRY)
    if content is None:
        return None
    try:
        if content[4:8].tobytes() != tables.FILE_IDENTIFIER:
            raise MalformedModelError("its file identifier is not 'M001'")
        return read_root(tables.ModelMetadata, content)
    except MalformedModelError as error:
        reason = str(error).removeprefix(f"{NOT_A_FLATBUFFER}: ")
        faults.append(f"{METADATA_ENTRY} is damaged: {reason}")
        return None


class _Reader:
    """Converts metadata tables to typed records and collects their faults."""

    def __init__(
        self,
        files: AssociatedFiles | None,
        faults: list[str],
        units: Sequence[tables.ProcessUnit] = (),
    ) -> None:
        self._files = files
        self._faults = faults
        self._units = units
        self._lines: dict[str, tuple[str, ...]] = {}

    def tensors(
        self, side: str, indices: Sequence[int], described: Sequence[tables.TensorMetadata]
    ) -> tuple[TensorMetadata, ...]:
        """Return the metadata of all inputs or outputs; *side* is ``input`` or ``output``.

        *indices* are the indices of these tensors, and *described* their metadata in the file.
        """
        if not described:
            return ()
        if len(described) != len(indices):
            self._faults.append(
                f"{METADATA_ENTRY} describes {len(described)} {side}s, the model has {len(indices)}"
            )
            return ()
        units = self._units if side == "input" else ()  # the units that all inputs share
        pairs = zip(indices, described, strict=True)
        return tuple(self._tensor(index, record, units) for index, record in pairs)

    def _tensor(
        self, index: int, record: tables.TensorMetadata, common_units: Sequence[tables.ProcessUnit]
    ) -> TensorMetadata:
        properties = record.content.content_properties if record.content else None
        normalization = _unit(record, tables.NormalizationOptions)
        threshold = _unit(record, tables.ScoreThresholdingOptions)
        image = properties if isinstance(properties, tables.ImageProperties) else None
        audio = properties if isinstance(properties, tables.AudioProperties) else None
        size = image.default_size if image else None
        mean, std = self._normalization(record, normalization)
        return TensorMetadata(
            index=index,
            name=record.name or "",
            description=record.description or "",
            content=_CONTENTS.get(type(properties), "") if properties else "",
            size=(size.width, size.height) if size else None,
            mean=mean,
            std=std,
            sample_rate=audio.sample_rate or None if audio else None,
            channels=audio.channels or None if audio else None,
            boxes=self._boxes(properties),
            score_threshold=threshold.global_score_threshold if threshold else None,
            axis_labels=self._labels(record, AssociatedFileType.TENSOR_AXIS_LABELS),
            value_labels=self._labels(record, AssociatedFileType.TENSOR_VALUE_LABELS),
            files={f.name or "": _type_name(f.type) for f in record.associated_files},
            tokenizer=self._tokenizer((*record.process_units, *common_units)),
        )

    def _tokenizer(self, units: Sequence[tables.ProcessUnit]) -> Tokenizer | None:
        """Return the first tokenizer of *units*, with the lines of its vocabulary.

        The result is None if there is no tokenizer.
        """
        for options in (unit.options for unit in units):
            if isinstance(options, tables.SentencePieceTokenizerOptions):
                return Tokenizer("sentencepiece")
            if isinstance(options, tables.BertTokenizerOptions):
                return Tokenizer("bert", "", self._vocabulary(options.vocab_file))
            if isinstance(options, tables.RegexTokenizerOptions):
                pattern = options.delim_regex_pattern or ""
                return Tokenizer("regex", pattern, self._vocabulary(options.vocab_file))
        return None

    def _vocabulary(self, files: Sequence[tables.AssociatedFile]) -> tuple[str, ...]:
        names = [file.name for file in files if file.name]
        if not names or self._files is None:
            self._faults.append("the tokenizer has no vocabulary")
            return ()
        return self._lines_of(self._files, names[0])

    def _normalization(
        self, record: tables.TensorMetadata, options: tables.NormalizationOptions | None
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        if options is None or not (options.mean and options.std):
            return (), ()
        if 0.0 in options.std or len(options.mean) != len(options.std):
            self._faults.append(
                f"the normalization of {record.name!r} has {len(options.mean)} means and "
                f"{len(options.std)} deviations, or a deviation of 0"
            )
            return (), ()
        return options.mean, options.std

    def _boxes(self, properties: Table | None) -> BoxLayout | None:
        if not isinstance(properties, tables.BoundingBoxProperties):
            return None
        if properties.type not in _BOXES:
            return None
        index = properties.index or (0, 1, 2, 3)
        if sorted(index) != [0, 1, 2, 3]:
            self._faults.append(f"the order of a box's numbers is {list(index)}")
            return None
        in_pixels = properties.coordinate_type == CoordinateType.PIXEL
        return BoxLayout(_BOXES[properties.type], index, in_pixels)

    def _labels(self, record: tables.TensorMetadata, kind: AssociatedFileType) -> tuple[str, ...]:
        """Return the lines of the first label file of *kind* that *record* names.

        The other files of the kind are translations.
        """
        names = [f.name for f in record.associated_files if f.type == kind and f.name]
        if not names or self._files is None:
            return ()
        return self._lines_of(self._files, names[0])

    def _lines_of(self, files: AssociatedFiles, name: str) -> tuple[str, ...]:
        if name not in self._lines:  # many tensors may name the same file
            self._lines[name] = self._read_lines(files, name)
        return self._lines[name]

    def _read_lines(self, files: AssociatedFiles, name: str) -> tuple[str, ...]:
        try:
            lines = files.read(name).decode("utf-8-sig").rstrip().split("\n")
            return tuple(line.removesuffix("\r") for line in lines) if lines != [""] else ()
        except MalformedModelError as error:
            self._faults.append(str(error))
        except UnicodeDecodeError as error:
            self._faults.append(f"{name!r} of the zip after the model is no text: {error}")
        return ()


Unit = TypeVar("Unit", bound=Table)


def _unit(record: tables.TensorMetadata, kind: type[Unit]) -> Unit | None:
    """Return the options of a tensor's first process unit of type *kind*; None if it has none."""
    return next((u.options for u in record.process_units if isinstance(u.options, kind)), None)


def _type_name(kind: int) -> str:
    """Return the type *kind* of an associated file in words: ``tensor axis labels``.

    >>> _type_name(AssociatedFileType.VOCABULARY), _type_name(99)
    ('vocabulary', 'type 99')
    """
    if isinstance(kind, AssociatedFileType):
        return kind.name.lower().replace("_", " ")
    return f"type {kind}"
