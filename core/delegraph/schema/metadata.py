"""The tables of TFLite Metadata: the author's description of a model's inputs, outputs and files.

The tables are a separate flatbuffer, in the model's metadata entry ``TFLITE_METADATA``. Fields that
Delegraph does not use are omitted; the reader skips them.

Source:
    tensorflow_lite_support/metadata/metadata_schema.fbs.
"""

from __future__ import annotations

from enum import IntEnum

from delegraph.schema.table import (
    FLOAT32,
    UINT32,
    Table,
    child,
    children,
    enum,
    float32,
    int32,
    string,
    uint32,
    union,
    vector,
)

FILE_IDENTIFIER = b"M001"


class AssociatedFileType(IntEnum):
    """Kind of a file of the zip, such as labels: ``AssociatedFileType`` of the schema."""

    UNKNOWN = 0
    DESCRIPTIONS = 1
    TENSOR_AXIS_LABELS = 2
    TENSOR_VALUE_LABELS = 3
    TENSOR_AXIS_SCORE_CALIBRATION = 4
    VOCABULARY = 5
    SCANN_INDEX_FILE = 6


class ColorSpaceType(IntEnum):
    """Colours of a picture, such as RGB: ``ColorSpaceType`` of the schema."""

    UNKNOWN = 0
    RGB = 1
    GRAYSCALE = 2


class BoundingBoxType(IntEnum):
    """Meaning of a box's four numbers: ``BoundingBoxType`` of the schema."""

    UNKNOWN = 0
    BOUNDARIES = 1
    UPPER_LEFT = 2
    CENTER = 3


class CoordinateType(IntEnum):
    """Unit of a box's numbers, pixels or the picture's size: ``CoordinateType`` of the schema."""

    RATIO = 0
    PIXEL = 1


class AssociatedFile(Table):
    """A file of the zip that follows the model."""

    name: str | None = string(0, default=None)
    description: str | None = string(1, default=None)
    type: AssociatedFileType = enum(2, default=AssociatedFileType.UNKNOWN)
    locale: str | None = string(3, default=None)


class FeatureProperties(Table):
    """Description of a tensor of plain numbers."""


class ImageSize(Table):
    """Width and height of a picture, in pixels."""

    width: int = uint32(0, default=0)
    height: int = uint32(1, default=0)


class ImageProperties(Table):
    """Description of a tensor that is a picture."""

    color_space: ColorSpaceType = enum(0, default=ColorSpaceType.UNKNOWN)
    default_size: ImageSize | None = child(1, ImageSize, default=None)


class BoundingBoxProperties(Table):
    """Description of a tensor of boxes; ``index`` has the position of each number in a box."""

    index: tuple[int, ...] = vector(  # type: ignore[assignment]  # hides tuple.index
        0, UINT32, default=()
    )
    type: BoundingBoxType = enum(1, default=BoundingBoxType.UNKNOWN)
    coordinate_type: CoordinateType = enum(2, default=CoordinateType.RATIO)


class AudioProperties(Table):
    """Description of a tensor that is a sound."""

    sample_rate: int = uint32(0, default=0)
    channels: int = uint32(1, default=0)


CONTENT_PROPERTIES: dict[int, type[Table]] = {
    1: FeatureProperties,
    2: ImageProperties,
    3: BoundingBoxProperties,
    4: AudioProperties,
}


class ValueRange(Table):
    """First and last dimension to which a content applies, both included."""

    min: int = int32(0, default=0)
    max: int = int32(1, default=0)


class Content(Table):
    """Kind of data in a tensor, such as an image, and its dimensions."""

    content_properties: Table | None = union(1, CONTENT_PROPERTIES, default=None)
    range: ValueRange | None = child(2, ValueRange, default=None)


class NormalizationOptions(Table):
    """Means and deviations that normalise an input by ``(x - mean) / std``; one or per channel."""

    mean: tuple[float, ...] = vector(0, FLOAT32, default=())
    std: tuple[float, ...] = vector(1, FLOAT32, default=())


class ScoreThresholdingOptions(Table):
    """Threshold of scores; results with lower scores should be dropped."""

    global_score_threshold: float = float32(0, default=0.0)


class BertTokenizerOptions(Table):
    """WordPiece tokenizer of BERT, with its vocabulary."""

    vocab_file: tuple[AssociatedFile, ...] = children(0, AssociatedFile, default=())


class SentencePieceTokenizerOptions(Table):
    """SentencePiece tokenizer, with its model."""

    sentencepiece_model: tuple[AssociatedFile, ...] = children(0, AssociatedFile, default=())
    vocab_file: tuple[AssociatedFile, ...] = children(1, AssociatedFile, default=())


class RegexTokenizerOptions(Table):
    """Tokenizer that splits texts at matches of a regular expression, with its vocabulary."""

    delim_regex_pattern: str | None = string(0, default=None)
    vocab_file: tuple[AssociatedFile, ...] = children(1, AssociatedFile, default=())


PROCESS_UNIT_OPTIONS: dict[int, type[Table]] = {
    1: NormalizationOptions,
    3: ScoreThresholdingOptions,
    4: BertTokenizerOptions,
    5: SentencePieceTokenizerOptions,
    6: RegexTokenizerOptions,
}


class ProcessUnit(Table):
    """A step of processing that is applied to a tensor outside of the model."""

    options: Table | None = union(1, PROCESS_UNIT_OPTIONS, default=None)


class TensorMetadata(Table):
    """Description of an input or output of a subgraph."""

    name: str | None = string(0, default=None)
    description: str | None = string(1, default=None)
    content: Content | None = child(3, Content, default=None)
    process_units: tuple[ProcessUnit, ...] = children(4, ProcessUnit, default=())
    associated_files: tuple[AssociatedFile, ...] = children(6, AssociatedFile, default=())


class SubGraphMetadata(Table):
    """Description of a subgraph; tensors are in the order of its ``inputs`` and ``outputs``."""

    name: str | None = string(0, default=None)
    description: str | None = string(1, default=None)
    input_tensor_metadata: tuple[TensorMetadata, ...] = children(2, TensorMetadata, default=())
    output_tensor_metadata: tuple[TensorMetadata, ...] = children(3, TensorMetadata, default=())
    associated_files: tuple[AssociatedFile, ...] = children(4, AssociatedFile, default=())
    input_process_units: tuple[ProcessUnit, ...] = children(5, ProcessUnit, default=())


class ModelMetadata(Table):
    """The root table: the author's description of a model."""

    name: str | None = string(0, default=None)
    description: str | None = string(1, default=None)
    version: str | None = string(2, default=None)
    subgraph_metadata: tuple[SubGraphMetadata, ...] = children(3, SubGraphMetadata, default=())
    author: str | None = string(4, default=None)
    license: str | None = string(5, default=None)
    associated_files: tuple[AssociatedFile, ...] = children(6, AssociatedFile, default=())
