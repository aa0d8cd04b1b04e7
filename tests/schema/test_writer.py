from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from delegraph.schema import read_model, tables, write_model
from delegraph.schema.enums import BuiltinOperator, QuantizationDetails
from delegraph.schema.options import (
    BUILTIN_OPTIONS,
    BUILTIN_OPTIONS_2,
    PackOptions,
    ReshapeOptions,
    options_field,
)
from delegraph.schema.table import (
    ArrayVector,
    Child,
    ChildVector,
    Kind,
    Scalar,
    ScalarVector,
    String,
    Table,
    Union,
)
from delegraph.testing import tensor
from delegraph.testing.one_op import one_op_records
from support.corpus import CORPUS, corpus_rows, needs_corpus


def read(content: bytes) -> tables.Model:
    return read_model(np.frombuffer(content, np.uint8))


class Filler:
    """Fills tables with seeded values of every kind."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def table(self, table: type[Table]) -> Table:
        return table(**{f.name: self.value(f.kind, f.default) for f in table.FIELDS})

    def value(self, kind: Kind, default: Any) -> Any:
        if self.rng.random() < 0.2:
            return default
        match kind:
            case Scalar(dtype, enum):
                value = self.numbers(dtype, 1)[0].item()
                return value if enum is None else list(enum)[value % len(enum)]
            case String():
                return "".join(self.rng.choice(list("aé/:☃\0"), self.rng.integers(0, 9)))
            case ScalarVector(dtype, enum):
                values = self.numbers(dtype, self.rng.integers(0, 5)).tolist()
                return tuple(values if enum is None else [enum(abs(v) % len(enum)) for v in values])
            case ArrayVector(dtype):
                return self.numbers(dtype, self.rng.integers(0, 5))
            case Child(table):
                return self.table(table)
            case ChildVector(table):
                return tuple(self.table(table) for _ in range(self.rng.integers(0, 4)))
            case Union(members):
                return self.table(members[int(self.rng.choice(list(members)))])

    def numbers(self, dtype: np.dtype[Any], count: int) -> Any:
        if dtype.kind == "f":
            return self.rng.normal(size=count).astype(dtype)
        if dtype.kind == "b":
            return self.rng.integers(0, 2, count).astype(dtype)
        limits = np.iinfo(dtype)
        return self.rng.integers(limits.min, limits.max, count, dtype, endpoint=True)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_is_read_equal(seed: int) -> None:
    filler = Filler(seed)
    model = filler.table(tables.Model).replace(operator_codes=())
    assert isinstance(model, tables.Model)
    buffers = [b.replace(offset=0, size=0) for b in model.buffers or ()]
    model = tables.with_operators(
        model.replace(buffers=tuple(buffers)),
        lambda o: o.replace(large_custom_options_offset=0, large_custom_options_size=0),
    )
    assert read(write_model(model)) == model


@pytest.mark.parametrize("options", [*BUILTIN_OPTIONS.values()], ids=lambda t: t.__name__)
def test_options_of_the_first_union_are_read_equal(options: type[Table]) -> None:
    check_options("builtin_options", options)


@pytest.mark.parametrize("options", [*BUILTIN_OPTIONS_2.values()], ids=lambda t: t.__name__)
def test_options_of_the_second_union_are_read_equal(options: type[Table]) -> None:
    check_options("builtin_options_2", options)


def check_options(field: str, options: type[Table]) -> None:
    filler = Filler(1)
    written = [filler.table(options) for _ in range(10)]
    operators = tuple(tables.Operator(**options_field(record)) for record in written)
    assert [getattr(operator, field) for operator in operators] == written
    model = tables.Model(subgraphs=(tables.SubGraph(operators=operators),))
    again = read(write_model(model))
    assert again.subgraphs is not None
    assert again.subgraphs[0].operators == operators


def test_defaults_take_no_space() -> None:
    lean = write_model(tables.Model(buffers=(tables.Buffer(),)))
    explicit = write_model(tables.Model(buffers=(tables.Buffer(offset=0, size=0),), version=0))
    assert lean == explicit


def test_constants_start_at_multiples_of_16() -> None:
    data = [np.arange(n, dtype=np.uint8) + 1 for n in (1, 3, 17)]
    content = write_model(tables.Model(buffers=tuple(tables.Buffer(data=d) for d in data)))
    for array in data:
        assert content.index(array.tobytes()) % 16 == 0


def test_a_missing_list_differs_from_an_empty_one() -> None:
    model = tables.Model(buffers=(tables.Buffer(), tables.Buffer(data=np.empty(0, np.uint8))))
    buffers = read(write_model(model)).buffers
    assert buffers is not None
    assert buffers[0].data is None
    assert buffers[1].data is not None
    assert len(buffers[1].data) == 0


def model_with_constants() -> tables.Model:
    data = [np.full(100 + n, n, np.uint8) for n in range(5)]
    records = one_op_records("my_op", [tensor((2,))], [tensor((2,))], custom_options=b"options")
    return records.replace(
        buffers=(*(records.buffers or ()), *(tables.Buffer(data=d) for d in data)),
        metadata=(tables.Metadata(name="runtime", buffer=5),),
    )


def test_constants_beyond_the_limit_stand_behind_the_flatbuffer() -> None:
    model = model_with_constants()
    inside, outside = write_model(model), write_model(model, inline_limit=300)
    assert read(outside) == read(inside) == model
    raw = raw_buffers(outside)
    assert [size for _, size in raw[3:]] == [100, 101, 0, 103, 104]  # metadata's stays inside
    assert all(offset % 16 == 0 for offset, _ in raw)


def test_custom_options_and_constants_stay_inside_up_to_the_limit() -> None:
    total = len(b"options") + sum(100 + n for n in range(5))
    at_limit = write_model(model_with_constants(), inline_limit=total)
    assert at_limit == write_model(model_with_constants())
    beyond = write_model(model_with_constants(), inline_limit=total - 1)
    assert [size for _, size in raw_buffers(beyond)[3:]] == [100, 101, 0, 103, 104]


def test_only_some_operators_may_have_options_behind_the_flatbuffer() -> None:
    options = np.frombuffer(b"some options", np.uint8)
    operators = (tables.Operator(inputs=(1,)), tables.Operator(custom_options=options))
    model = tables.Model(subgraphs=(tables.SubGraph(operators=operators),))
    assert read(write_model(model, inline_limit=0)) == model


def raw_buffers(content: bytes) -> list[tuple[int, int]]:
    """Return offset and size as they stand in the file, by the official reader."""
    from ai_edge_litert.schema_py_generated import Model

    root = Model.GetRootAs(content)
    buffers = [root.Buffers(i) for i in range(root.BuffersLength())]
    return [(b.Offset(), b.Size()) for b in buffers]


@needs_corpus
def test_the_official_interpreter_reads_constants_behind_the_flatbuffer() -> None:
    row = next(row for row in accepted_rows() if "CONV_2D" in row["ops"])
    model = read((CORPUS / row["file"]).read_bytes())
    check_same_outputs(row, write_model(model, inline_limit=0))


def accepted_rows() -> list[dict[str, Any]]:
    """Return models that the official interpreter runs, the smallest of each operator set."""
    refused = ("tflm__person_detect", "tflm__keyword_scrambled_8bit")
    seen, rows = set(), []
    for row in sorted(corpus_rows(), key=lambda r: r["size"]):
        ops = frozenset(row.get("ops", ()))
        if row["expect"] == "ok" and row["name"] not in refused and ops not in seen:
            seen.add(ops)
            rows.append(row)
    return rows


@needs_corpus
@pytest.mark.parametrize("row", corpus_rows(), ids=lambda row: row["name"])
def test_real_models_are_read_written_and_read_equal(row: dict[str, Any]) -> None:
    content = (CORPUS / row["file"]).read_bytes()
    if content[4:8] != b"TFL3":
        pytest.skip("not a flatbuffer")
    model = read(content)
    assert read(write_model(model)) == model


@needs_corpus
@pytest.mark.parametrize("row", accepted_rows(), ids=lambda row: row["name"])
def test_the_official_interpreter_gives_the_same_for_written_models(row: dict[str, Any]) -> None:
    check_same_outputs(row, write_model(read((CORPUS / row["file"]).read_bytes())))


def check_same_outputs(row: dict[str, Any], content: bytes) -> None:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    with np.load(CORPUS / row["golden"]) as archive:
        golden = dict(archive)
    interpreter = Interpreter(
        model_content=content,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        num_threads=1,
    )
    inputs = interpreter.get_input_details()
    for i, detail in enumerate(inputs):
        if tuple(detail["shape"]) != golden[f"in_{i}"].shape:
            interpreter.resize_tensor_input(detail["index"], golden[f"in_{i}"].shape)
    interpreter.allocate_tensors()
    for i, detail in enumerate(inputs):
        interpreter.set_tensor(detail["index"], golden[f"in_{i}"])
    interpreter.invoke()
    for i, detail in enumerate(interpreter.get_output_details()):
        got, want = interpreter.get_tensor(detail["index"]), golden[f"out_{i}"]
        if want.dtype.kind == "S":
            got = got.astype(want.dtype)
        assert_array_equal(got, want)


def test_a_table_outside_of_its_union_is_refused() -> None:
    operator = tables.Operator(builtin_options=tables.Buffer())
    model = tables.Model(subgraphs=(tables.SubGraph(operators=(operator,)),))
    with pytest.raises(TypeError, match="Buffer is not a member of this union"):
        write_model(model)


def test_a_number_that_does_not_fit_is_refused() -> None:
    operator = tables.Operator(builtin_options=PackOptions(axis=1 << 31))
    model = tables.Model(subgraphs=(tables.SubGraph(operators=(operator,)),))
    with pytest.raises(TypeError, match="bad number 2147483648 for type int32"):
        write_model(model)


def test_an_array_of_another_dtype_is_refused() -> None:
    wrong: Any = np.zeros(3, np.float64)
    with pytest.raises(TypeError, match="data holds uint8, not float64"):
        write_model(tables.Model(buffers=(tables.Buffer(data=wrong),)))


def test_operator_codes_above_127_keep_a_placeholder_for_old_readers() -> None:
    code = tables.operator_code(BuiltinOperator.STABLEHLO_COMPOSITE, version=2)
    assert code.deprecated_builtin_code == 127
    assert tables.operator_code(BuiltinOperator.ADD).deprecated_builtin_code == 0


def test_union_tags_are_those_of_the_schema() -> None:
    from ai_edge_litert.schema_py_generated import Model

    details = tables.BlockwiseQuantization(scales=1, block_size=32)
    quantization = tables.QuantizationParameters(details=details)
    graph = tables.SubGraph(
        tensors=(tables.Tensor(quantization=quantization),),
        operators=(tables.Operator(builtin_options=ReshapeOptions(new_shape=(2, -1))),),
    )
    official = Model.GetRootAs(write_model(tables.Model(subgraphs=(graph,)))).Subgraphs(0)
    tag = official.Tensors(0).Quantization().DetailsType()
    assert tag == QuantizationDetails.BlockwiseQuantization
    assert official.Operators(0).BuiltinOptionsType() == 17
