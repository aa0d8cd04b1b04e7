"""Options of operators that look rows up: embeddings, hash tables and word pairs.

Source:
    tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from delegraph.schema.enums import TensorType
from delegraph.schema.operator_enums import CombinerType, LSHProjectionType
from delegraph.schema.table import INT32, Table, boolean, enum, int32, vector


class ConcatEmbeddingsOptions(Table):
    """Options of ``CONCAT_EMBEDDINGS``."""

    num_channels: int = int32(0, default=0)
    num_columns_per_channel: tuple[int, ...] = vector(1, INT32, default=())
    embedding_dim_per_channel: tuple[int, ...] = vector(2, INT32, default=())


class LSHProjectionOptions(Table):
    """Options of ``LSH_PROJECTION``."""

    type: LSHProjectionType = enum(0, default=LSHProjectionType.UNKNOWN)


class SkipGramOptions(Table):
    """Options of ``SKIP_GRAM``."""

    ngram_size: int = int32(0, default=0)
    max_skip_size: int = int32(1, default=0)
    include_all_ngrams: bool = boolean(2, default=False)


class EmbeddingLookupSparseOptions(Table):
    """Options of ``EMBEDDING_LOOKUP_SPARSE``."""

    combiner: CombinerType = enum(0, default=CombinerType.SUM)


class HashtableOptions(Table):
    """Options of ``HASHTABLE``."""

    table_id: int = int32(0, default=0)
    key_dtype: TensorType = enum(1, default=TensorType.FLOAT32)
    value_dtype: TensorType = enum(2, default=TensorType.FLOAT32)
