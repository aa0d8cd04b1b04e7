from __future__ import annotations

import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from delegraph.plugins.sources import pip_install
from delegraph.schema.enums import TensorType
from delegraph.schema.metadata import (
    AssociatedFile,
    AssociatedFileType,
    AudioProperties,
    BertTokenizerOptions,
    BoundingBoxProperties,
    BoundingBoxType,
    ProcessUnit,
    RegexTokenizerOptions,
)
from delegraph.schema.options import AddOptions, ArgMaxOptions, ReducerOptions, SubOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from support.by_name import doubling_while
from support.command import Command, Refused
from support.described_models import of_tensor, with_metadata
from support.fake_distributions import GOOD, write_plugin
from support.signatures import two_signatures


@pytest.fixture
def add(tmp_path: Path) -> Path:
    """Two inputs, t0 + t1."""
    path = tmp_path / "add.tflite"
    kinds = [tensor((2,)), tensor((2,))]
    path.write_bytes(one_op_model("ADD", kinds, [tensor((2,))], AddOptions()))
    return path


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """A quantized output of 10 classes that repeats its input."""
    path = tmp_path / "scores.tflite"
    kind = {"type": "UINT8", "scale": 0.5, "zero_point": 100}
    path.write_bytes(one_op_model("RELU", [tensor((1, 10), **kind)], [tensor((1, 10), **kind)]))
    return path


def test_f_of_2(delegraph: Command, sines: Path) -> None:
    ran = delegraph("run", sines, "--input", "x=2", "--delegate", "sin")
    assert (ran.code, ran.err) == (0, "")
    assert "5 nodes: sin takes 2 in 2 partitions, 3 stay with Delegraph's kernels" in ran.lines
    assert "x float32 [1] 2" in ran.lines
    assert "y float32 [1] 2.152495" in ran.lines


def test_inputs_go_by_name_or_position(delegraph: Command, add: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.float32([10, 20]))
    for first, second in (("t0=1,2", f"t1={tmp_path}/b.npy"), ("0=1,2", f"1={tmp_path}/b.npy")):
        shown = delegraph("run", add, "-i", first, "-i", second, "--json").json
        assert shown["outputs"][0]["first"] == [11, 22]


def test_names_of_inputs_may_hold_an_equals_sign(delegraph: Command, tmp_path: Path) -> None:
    path = tmp_path / "named.tflite"
    inputs = [tensor((1,), name="a"), tensor((1,), name="a=b")]
    path.write_bytes(one_op_model("SUB", inputs, [tensor((1,))], SubOptions()))
    shown = delegraph("run", path, "-i", "a=b=1", "-i", "a=3", "--json").json
    assert shown["outputs"][0]["first"] == [2]


def test_inputs_that_are_not_given_are_random_and_follow_the_seed(
    delegraph: Command, add: Path
) -> None:
    first, again, other = (
        delegraph("run", add, "--seed", seed, "--json").json["outputs"][0]["first"]
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_numerics_are_chosen_and_recorded(delegraph: Command, tmp_path: Path) -> None:
    model = tmp_path / "product.tflite"  # over no axis: only the reference kernel rescales
    no_axis = constant(np.zeros(0, np.int32))
    x, y = tensor((2,), "INT8", scale=1.0), tensor((2,), "INT8", scale=0.5)
    model.write_bytes(one_op_model("REDUCE_PROD", [x, no_axis], [y], ReducerOptions()))
    for numerics, expected in {"builtin": [3, 4], "reference": [6, 8]}.items():
        ran = delegraph("run", model, "-i", "3,4", "--numerics", numerics)
        assert (f"numerics: {numerics}" in ran.lines) == (numerics != "builtin")
        shown = delegraph("run", model, "-i", "3,4", "--numerics", numerics, "--json").json
        assert (shown["numerics"], shown["outputs"][0]["first"]) == (numerics, expected)
    assert delegraph("run", model, "--json").json["numerics"] == "builtin"


def test_a_signature_name_is_an_input_name(delegraph: Command, sines: Path) -> None:
    assert delegraph("run", sines, "-i", "x=0", "--json").json["outputs"][0]["first"] == [0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["-i", "1,2"],
            "does not say for which of the inputs 't0', 't1'; for example --input t0=1,2",
        ),
        (["-i", "t9=1"], "--input 't9=1' names none of the inputs: 't0', 't1'"),
        (["-i", "t0=1", "-i", "0=1"], "input '0' is given twice"),
        (["-i", "t0=1,2,3"], "3 numbers are given, expected 1 or 2"),
        (["-i", "t0=gone.npy"], "input 't0' (float32 [2]): 'gone.npy' cannot be read"),
        (["-i", "t0=gone.wav"], "sound 'gone.wav' cannot be read: No such file or directory"),
        (
            ["-i", "t0=word"],
            "input 't0' (float32 [2]) takes numbers, not 'word': give 'random', 'zeros'",
        ),
    ],
)
def test_a_wrong_input_exits_with_2(
    refused: Refused, add: Path, words: list[str], message: str
) -> None:
    assert message in refused("run", add, *words)


def test_classes_are_dequantised_labelled_and_sorted(
    delegraph: Command, scores: Path, tmp_path: Path
) -> None:
    (tmp_path / "labels.txt").write_text("".join(f"class {i}\n" for i in range(10)))
    values = "101,102,103,255,104,105,106,107,108,100"
    ran = delegraph("run", scores, "-i", values, "--labels", tmp_path / "labels.txt", "--top", 2)
    start = ran.lines.index("score class label")
    assert ran.lines[start + 1 : start + 3] == ["77.5 3 class 3", "4 8 class 8"]


def test_labels_and_thresholds_that_nothing_takes_are_named(
    delegraph: Command, add: Path, scores: Path, tmp_path: Path
) -> None:
    assert delegraph("run", add, "--threshold", "0.5").err == (
        "note: --threshold has no effect, as no output has scores; leave it out\n"
    )
    (tmp_path / "labels.txt").write_text("ten\n" * 10)
    words = ("--labels", tmp_path / "labels.txt", "--threshold", "1000")
    assert delegraph("run", scores, *words).err == ""  # there are scores, all of them lower


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty, expected one name a line"), (b"\xff\xfe", ": expected a text file in UTF-8")],
)
def test_a_file_that_holds_no_labels_is_refused(
    refused: Refused, scores: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "labels.txt"
    path.write_bytes(content)
    err = refused("run", scores, "--labels", path)
    assert err.startswith(f"error: --labels '{path}'")
    assert message in err


def test_without_labels_classes_are_numbers(delegraph: Command, scores: Path) -> None:
    ran = delegraph("run", scores, "-i", "0,0,0,0,0,0,0,0,0,102")
    start = ran.lines.index("score class")
    assert ran.lines[start + 1] == "1 9"
    assert len([line for line in ran.lines[start + 1 :] if line.startswith(("1 ", "0 "))]) == 5


def test_numbers_that_are_no_probabilities_are_no_classes(delegraph: Command, scores: Path) -> None:
    ran = delegraph("run", scores, "-i", "0,0,0,0,0,0,0,0,0,200")
    assert "score class" not in ran.lines
    assert "stored integers; real value = 0.5 x (stored - 100)" in ran.lines


@pytest.fixture
def described_scores(tmp_path: Path) -> Path:
    """Three scores that repeat a sound of three samples, with labels and a threshold of 0.25."""
    path = tmp_path / "described.tflite"
    model = one_op_model("RELU", [tensor((1, 3), name="x")], [tensor((1, 3), name="y")])
    sound = of_tensor("sound", AudioProperties(sample_rate=8000, channels=1))
    scores = of_tensor("scores", axis_labels="labels.txt", threshold=0.25)
    path.write_bytes(with_metadata(model, (sound,), (scores,), {"labels.txt": b"ant\nbee\ncat"}))
    return path


def test_labels_and_threshold_are_the_models_own(
    delegraph: Command, described_scores: Path
) -> None:
    shown = delegraph("run", described_scores, "-i", "0.2,0.5,0.3", "--json").json["outputs"][0]
    assert [(score["index"], score["label"]) for score in shown["top"]] == [(1, "bee"), (2, "cat")]
    ran = delegraph("run", described_scores, "-i", "0.2,0.5,0.3", "--threshold", "0.4")
    start = ran.lines.index("score class label")
    assert ran.lines[start + 1 : start + 3] == ["0.5 1 bee", ""]
    ran = delegraph("run", described_scores, "-i", "0.2,0.5,0.3", "--threshold", "0.6")
    assert "scores: no class has a score of at least 0.6" in ran.lines


def test_the_users_labels_come_first(
    delegraph: Command, described_scores: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("one\ntwo\nthree\n")
    words = ("-i", "0,1,0", "--labels", tmp_path / "mine.txt", "--json")
    (score,) = delegraph("run", described_scores, *words).json["outputs"][0]["top"]
    assert score["label"] == "two"


def test_a_sound_is_given_as_the_metadata_says(
    delegraph: Command, described_scores: Path, tmp_path: Path
) -> None:
    path = tmp_path / "x.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(np.array([[0, 0], [16384, 16384], [8192, 24576], [0, 0]], "<i2"))
    shown = delegraph("run", described_scores, "-i", path, "--json").json
    assert shown["outputs"][0]["first"] == [0, 0.5, 0.5]
    notes = ["2 channels mixed to 1", "the first 0.000375 of 0.0005 s"]
    assert shown["inputs"][0]["notes"] == notes
    assert "; ".join(notes) in delegraph("run", described_scores, "-i", path).lines


def test_metadata_that_cannot_be_used_is_a_note(delegraph: Command, described_scores: Path) -> None:
    whole = described_scores.read_bytes()
    described_scores.write_bytes(whole[: whole.index(b"PK\x03\x04")])
    ran = delegraph("run", described_scores, "-i", "0,1,0")
    assert ran.code == 0
    assert ran.err == (
        "note: the model's metadata: no zip with 'labels.txt' follows the model; it is left out; "
        "options such as --labels and --mean replace it\n"
    )


def with_vocabulary(model: bytes) -> bytes:
    """Return *model* with a tokenizer that knows three words."""
    file = AssociatedFile(name="vocab.txt", type=AssociatedFileType.VOCABULARY)
    options = RegexTokenizerOptions(delim_regex_pattern=r"[^\w\']+", vocab_file=(file,))
    vocabulary = b"<PAD> 0\n<START> 1\n<UNKNOWN> 2\ngood 3\nfilm 4\n"
    units = (ProcessUnit(options=options),)
    return with_metadata(model, (of_tensor("text"),), files={"vocab.txt": vocabulary}, units=units)


def test_a_text_becomes_numbers_by_the_metadatas_tokenizer(
    delegraph: Command, tmp_path: Path
) -> None:
    path = tmp_path / "text.tflite"
    x, y = tensor((1, 6), "INT32"), tensor((1, 6), "INT32")
    path.write_bytes(with_vocabulary(one_op_model("NEG", [x], [y])))
    ran = delegraph("run", path, "-i", "good bad film")
    assert "3 words by the metadata's regex tokenizer, 1 of them unknown" in ran.lines
    shown = delegraph("run", path, "-i", "good bad film", "--json").json
    assert shown["outputs"][0]["first"] == [-1, -3, -2, -4, 0, 0]
    shown = delegraph("run", path, "-i", "1,2,3,4,5,6", "--json").json
    assert shown["outputs"][0]["first"] == [-1, -2, -3, -4, -5, -6]
    shown = delegraph("run", path, "-i", "text:1,2", "--json").json
    assert shown["outputs"][0]["first"] == [-1, -2, -2, 0, 0, 0]
    path.write_bytes(path.read_bytes()[:-60])  # the zip is gone
    ran = delegraph("run", path, "-i", "good bad film")
    assert (ran.code, len(ran.err.splitlines())) == (2, 2)
    assert "the metadata names a regex tokenizer that cannot be used here" in ran.err


def test_a_text_without_a_name_makes_all_inputs_of_bert(delegraph: Command, tmp_path: Path) -> None:
    path = tmp_path / "bert.tflite"
    x = tensor((1, 5), "INT32")
    nodes = [("ADD", "a b", "ab", AddOptions()), ("ADD", "ab c", "y", AddOptions())]
    tensors = dict.fromkeys(("a", "b", "ab", "c", "y"), x)
    content = graph_model(nodes, inputs="a b c", outputs="y", tensors=tensors)
    file = AssociatedFile(name="vocab.txt", type=AssociatedFileType.VOCABULARY)
    units = (ProcessUnit(options=BertTokenizerOptions(vocab_file=(file,))),)
    said = tuple(of_tensor(name) for name in ("ids", "mask", "segment_ids"))
    files = {"vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\n"}
    path.write_bytes(with_metadata(content, said, files=files, units=units))
    shown = delegraph("run", path, "-i", "Hello you", "--json").json
    assert shown["outputs"][0]["first"] == [2 + 1, 4 + 1, 1 + 1, 3 + 1, 0]


def test_outputs_are_named_by_what_they_are(delegraph: Command, tmp_path: Path) -> None:
    path = tmp_path / "unnamed.tflite"
    path.write_bytes(one_op_model("NEG", [tensor((2,))], [tensor((2,), name="Identity_1")]))
    assert "NEG float32 [2] -2, -2" in delegraph("run", path, "-i", "2").lines


def test_all_commands_give_an_output_one_name(delegraph: Command, tmp_path: Path) -> None:
    model, data, rows = (tmp_path / name for name in ("m.tflite", "in.npz", "rows.npz"))
    content = one_op_model("NEG", [tensor((1, 2))], [tensor((1, 2), name="Identity_1")])
    model.write_bytes(with_metadata(content, (of_tensor("speed"),)))
    np.savez(data, speed=np.ones((1, 2), np.float32))
    delegraph("predict", model, data, "-o", rows, "--processes", 1)
    ran = delegraph("run", model, "-i", data, "--save", tmp_path / "out.npz", "--json").json
    differed = delegraph("diff", model, "-i", data, "--tolerance", "Identity_1=0", "--json").json
    assert "NEG" in np.load(rows).files
    assert np.load(tmp_path / "out.npz").files == ["NEG"]
    assert [ran[each][0]["name"] for each in ("inputs", "outputs")] == ["speed", "NEG"]
    assert differed["outputs"][0]["name"] == "NEG"
    assert differed["outputs"][0]["outside_tolerance"] == 0


def test_values_of_an_output_stay_on_one_line(
    delegraph: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    path = tmp_path / "wide.tflite"
    path.write_bytes(one_op_model("NEG", [tensor((3, 9))], [tensor((3, 9))]))
    ran = delegraph("run", path)
    (row,) = [line for line in ran.lines if line.startswith("t1 float32")]
    assert row.endswith(", ...")


def test_equal_notes_about_inputs_appear_once(
    delegraph: Command, tmp_path: Path, photo: Path
) -> None:
    path = tmp_path / "two.tflite"
    first, second, y = (tensor((1, 4, 4, 3)) for _ in range(3))
    path.write_bytes(one_op_model("ADD", [first, second], [y], AddOptions()))
    ran = delegraph("run", path, "-i", f"0={photo}", "-i", f"1={photo}")
    (note,) = [line for line in ran.out.splitlines() if "normalized to -1 ... 1" in line]
    assert note.startswith("  t0, t1: ")
    assert note.endswith("as the model does not say (--mean and --std do)")


def test_options_about_pictures_change_the_input_and_need_one(
    delegraph: Command, refused: Refused, tmp_path: Path, photo: Path
) -> None:
    path = tmp_path / "same.tflite"
    path.write_bytes(one_op_model("NEG", [tensor((1, 4, 4, 3))], [tensor((1, 4, 4, 3))]))
    words = ("--mean", "0", "--std", "1", "--crop", "square", "--channels", "bgr", "--json")
    shown = delegraph("run", path, "-i", photo, *words).json
    (given,) = shown["inputs"]
    assert "normalized as --mean and --std say" in given["notes"]
    assert shown["outputs"][0]["minimum"] >= -255
    err = refused("run", path, "--mean", "5")
    assert "--mean needs an input that is a picture: --input photo.jpg" in err
    ran = delegraph("run", path, "-i", photo, "--crop-fraction", "0.5")
    assert (ran.code, "--crop-fraction needs --crop square" in ran.err) == (2, True)


def test_the_best_classes_are_drawn(delegraph: Command, tmp_path: Path, photo: Path) -> None:
    path, out = tmp_path / "classes.tflite", tmp_path / "out.png"
    axes = constant(np.int32([1, 2]))
    inputs = [tensor((1, 4, 4, 3)), axes]
    options = ReducerOptions(keep_dims=False)
    path.write_bytes(one_op_model("MEAN", inputs, [tensor((1, 3))], options))
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n")
    words = ("--labels", tmp_path / "labels.txt", "--draw", out)
    ran = delegraph("run", path, "-i", photo, *words)
    assert (ran.code, ran.err) == (0, "")
    assert out.read_bytes().startswith(b"\x89PNG")


def test_outputs_can_be_saved(delegraph: Command, add: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    assert delegraph("run", add, "-i", "t0=1", "-i", "t1=2", "--save", path).code == 0
    with np.load(path) as saved:
        np.testing.assert_array_equal(saved["t2"], [3, 3])


def test_saved_outputs_can_be_inputs_again(delegraph: Command, tmp_path: Path) -> None:
    model, saved = tmp_path / "neg.tflite", tmp_path / "out.npz"
    model.write_bytes(one_op_model("NEG", [tensor((2,), name="x")], [tensor((2,), name="x")]))
    assert delegraph("run", model, "-i", "1,2", "--save", saved).code == 0
    shown = delegraph("run", model, "-i", saved, "--json").json
    assert shown["outputs"][0]["first"] == [1, 2]
    assert shown["inputs"][0]["value"] == str(saved)


def test_a_signature_is_called_by_its_names(
    delegraph: Command, refused: Refused, tmp_path: Path
) -> None:
    path = tmp_path / "two.tflite"
    path.write_bytes(two_signatures())
    shown = delegraph("run", path, "--signature", "wave", "-i", "x=0", "--json").json
    assert (shown["signature"], shown["outputs"][0]["name"]) == ("wave", "y")
    assert shown["outputs"][0]["first"] == [0]
    ran = delegraph("run", path, "--signature", "wave", "-i", "0")
    assert "signature wave; others: negate" in ran.lines
    err = refused("run", path, "--signature", "wawe")
    assert "no signature 'wawe' (did you mean 'wave'?); it has 'negate', 'wave'" in err


def test_the_signature_that_ran_is_named_where_none_was_asked_for(
    delegraph: Command, tmp_path: Path
) -> None:
    path = tmp_path / "two.tflite"
    path.write_bytes(two_signatures())
    assert "signature negate; others: wave" in delegraph("run", path).lines


def test_a_model_without_signatures_says_so(refused: Refused, add: Path) -> None:
    err = refused("run", add, "--signature", "main")
    assert "the model has no signature 'main'; it has none" in err


def test_several_invokes_are_timed_each(delegraph: Command, add: Path) -> None:
    shown = delegraph("run", add, "--repeat", "3", "--json").json["milliseconds"]
    assert len(shown["invokes"]) == 3
    assert shown["invoke"] == sorted(shown["invokes"])[1]
    assert "(median of 3, " in delegraph("run", add, "--repeat", "3").lines[-1]
    assert "median" not in delegraph("run", add).lines[-1]


def test_a_memory_limit_is_the_users(delegraph: Command, refused: Refused, add: Path) -> None:
    err = refused("run", add, "--memory-limit", "4", code=1)
    assert "needs 8 bytes, more than the limit of 4 bytes; --memory-limit sets another" in err
    assert delegraph("run", add, "--memory-limit", "1K").code == 0
    assert delegraph("run", add, "--memory-limit", "some").code == 2


def test_an_input_beyond_the_limit_gets_no_values(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "huge.tflite"
    path.write_bytes(one_op_model("RELU", [tensor((1 << 12, 1 << 20))], [tensor((1,))]))
    err = refused("run", path, code=1)
    assert "(float32 [4096, 1048576]) needs 17179869184 bytes, more than the limit of" in err


def test_a_text_is_given_as_it_is(delegraph: Command, tmp_path: Path) -> None:
    path = tmp_path / "text.tflite"
    strings = tensor((1,), "STRING")
    path.write_bytes(
        one_op_model("RESHAPE", [strings, constant(np.int32([1, 1]))], [tensor((1, 1), "STRING")])
    )
    for text in ("What, a film", "photo.png", "speech.wav"):
        shown = delegraph("run", path, "-i", text, "--json").json
        assert shown["outputs"][0]["first"] == [text]


def test_an_open_dimension_follows_the_file(delegraph: Command, tmp_path: Path) -> None:
    model = tmp_path / "open.tflite"
    x = tensor((1, 2), shape_signature=(-1, 2))
    model.write_bytes(one_op_model("SIN", [x], [tensor((1, 2), shape_signature=(-1, 2))]))
    np.save(tmp_path / "x.npy", np.zeros((3, 2), np.float32))
    shown = delegraph("run", model, "-i", tmp_path / "x.npy", "--json").json
    assert shown["outputs"][0]["shape"] == [3, 2]


def test_an_unresolved_operator_exits_with_1_and_names_the_package(
    refused: Refused, custom: Path
) -> None:
    err = refused("run", custom, code=1)
    assert f"FlexErf (1 node): {pip_install('delegraph-flex')}" in err
    assert err.startswith(f"error: {custom.name}: Encountered unresolved custom op: FlexErf.")


def test_an_operator_of_a_delegate_that_is_not_named_says_what_to_type(
    fresh_delegraph: Command, custom: Path, tmp_path: Path
) -> None:
    source = GOOD.format(module="fake_erf", delegate="good")
    spec = '"a fake", _load, custom_ops=("FlexErf",))'
    write_plugin(tmp_path / "site", "erf", source.replace('"a fake", _load)', spec))
    ran = fresh_delegraph("run", custom, "-d", "none", DELEGRAPH_PLUGINS="erf")
    assert ran.code == 1
    assert "delegate 'good' is there for it and was not applied: -d good\n" in ran.err


def test_a_picture_without_pillow_says_what_to_install(
    delegraph: Command, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "picture.tflite"
    kind = {"type": "UINT8", "scale": 1.0}
    shape = (1, 2, 2, 3)
    model.write_bytes(one_op_model("RELU", [tensor(shape, **kind)], [tensor(shape, **kind)]))
    monkeypatch.setitem(sys.modules, "PIL", None)
    ran = delegraph("run", model, "-i", tmp_path / "x.png")
    assert "cannot be read: No such file" in ran.err
    (tmp_path / "x.png").touch()
    err = refused("run", model, "-i", tmp_path / "x.png")
    assert "needs Pillow; install it with: pip install 'delegraph[images]'" in err


def test_labels_that_fit_no_output_are_noted(delegraph: Command, add: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("a\nb\nc\nd\n")
    ran = delegraph("run", add, "--labels", tmp_path / "labels.txt")
    assert ran.code == 0
    assert "labels.txt has 4 names, no output has as many classes" in ran.err


def test_two_classes_have_their_labels(delegraph: Command, add: Path, tmp_path: Path) -> None:
    ran = delegraph("run", add, "--top", "2")
    assert ran.err.startswith("note: --top has no effect, as no output is known to be a class")
    (tmp_path / "labels.txt").write_text("no\nyes\n")
    ran = delegraph("run", add, "--labels", tmp_path / "labels.txt")
    assert {line.split()[-1] for line in ran.lines if line.split()[1:2] in (["0"], ["1"])} == {
        "no",
        "yes",
    }


def test_a_time_limit_ends_a_loop_without_end(
    delegraph: Command, refused: Refused, tmp_path: Path
) -> None:
    path = tmp_path / "loop.tflite"
    path.write_bytes(doubling_while())
    assert delegraph("run", path, "-i", "1", "--time-limit", "60", "--json").json["outputs"]
    err = refused("run", path, "-i", "0", "--time-limit", "0.05", code=4)
    assert err.startswith("error: The call took more than the time limit of 0.05 s")
    assert "; --time-limit sets another" in err
    assert delegraph("run", path, "--time-limit", "0").code == 2


LOUD = """\
import ctypes, os
import numpy as np
from delegraph import SimpleDelegateInterface, SimpleDelegateKernelInterface

def say(what):
    print(what)
    os.write(1, what.encode() + b"\\n")
    ctypes.CDLL(None).puts(what.encode())

class Kernel(SimpleDelegateKernelInterface):
    def init(self, context, params):
        say("init")
    def prepare(self, context, node):
        say("prepare")
    def eval(self, context, node):
        say("eval")
        x, y = (context.tensors[i].data for i in node.inputs)
        np.add(x, y, out=context.tensors[node.outputs[0]].data)

class FakeDelegate(SimpleDelegateInterface):
    def name(self):
        say("name")
        return "loud"
    def is_node_supported_by_delegate(self, registration, node, context):
        return True
    def create_delegate_kernel_interface(self):
        return Kernel()

say("import")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are another matter there")
def test_nothing_that_a_delegate_prints_spoils_json(
    fresh_delegraph: Command, tmp_path: Path, add: Path
) -> None:
    write_plugin(tmp_path / "site", "loud")
    (tmp_path / "site" / "fake_loud_heavy.py").write_text(LOUD)
    ran = fresh_delegraph("run", add, "-d", "loud", "-i", "t0=1,2", "-i", "t1=3,4", "--json")
    assert ran.code == 0
    assert ran.json["outputs"][0]["first"] == [4, 6]
    for phase in ("import", "name", "init", "prepare", "eval"):
        assert ran.err.split().count(phase) % 3 == 0
        assert phase in ran.err.split()


@pytest.mark.parametrize("command", ["run", "explain", "inspect"])
def test_a_limit_on_tables_is_the_users(
    delegraph: Command, refused: Refused, sines: Path, command: str
) -> None:
    delegates = ("-d", "sin") * (command != "inspect")
    err = refused(command, sines, *delegates, "--table-limit", "2", code=1)
    assert "more tables than the limit of 2; --table-limit sets another" in err
    assert delegraph(command, sines, *delegates, "--table-limit", "900").code == 0


@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_limit_on_calls_is_the_users(
    delegraph: Command, refused: Refused, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "loop.tflite"
    path.write_bytes(doubling_while())
    err = refused(command, path, "-d", "sin", "--depth-limit", "0", code=1)
    assert "1 deep, more than the limit of 0; --depth-limit sets" in err
    value = ("-i", "1") * (command == "run")
    assert delegraph(command, path, "-d", "sin", *value, "--depth-limit", "1").code == 0


@pytest.fixture
def detector(tmp_path: Path) -> Path:
    """A model that takes a picture of 4 x 4 and always finds the same two objects."""
    path = tmp_path / "detector.tflite"
    boxes = np.float32([[[0.25, 0.25, 0.75, 0.5], [0.0, 0.0, 1.0, 1.0]]])
    fixed = {
        "boxes": constant(boxes),
        "classes": constant(np.float32([[1, 0]])),
        "scores": constant(np.float32([[0.875, 0.25]])),
    }
    outputs = {f"{name}_out": tensor(value.shape) for name, value in fixed.items()}
    model = graph_model(
        [("RELU", name, f"{name}_out") for name in fixed],
        inputs="image",
        outputs=" ".join(outputs),
        tensors={"image": tensor((1, 4, 4, 3)), **fixed, **outputs},
    )
    layout = BoundingBoxProperties(type=BoundingBoxType.BOUNDARIES, index=(1, 0, 3, 2))
    said = (
        of_tensor("locations", layout),
        of_tensor("classes", value_labels="labels.txt"),
        of_tensor("scores"),
    )
    path.write_bytes(with_metadata(model, (), said, {"labels.txt": b"cat\ndog"}))
    return path


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """200 x 100 pixels."""
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (200, 100), "grey").save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_detections_have_labels_scores_and_places(
    delegraph: Command, detector: Path, photo: Path
) -> None:
    ran = delegraph("run", detector, "-i", photo)
    assert "Detections: 1 of 2 with a score of at least 0.3, in pixels of the picture" in ran.lines
    start = ran.lines.index("score class label left top right bottom")
    assert ran.lines[start + 1 : start + 3] == ["0.875 1 dog 50 25 100 75", ""]
    shown = delegraph("run", detector, "-i", photo, "--threshold", "0.2", "--json").json
    assert [(box["label"], box["score"]) for box in shown["detections"]] == [
        ("dog", 0.875),
        ("cat", 0.25),
    ]
    assert shown["detections"][0]["left"] == 0.25
    assert (shown["poses"], shown["segmentation"], shown["drawn"]) == (None, None, None)


def test_without_a_picture_places_are_parts_of_it(delegraph: Command, detector: Path) -> None:
    ran = delegraph("run", detector)
    assert "0.875 1 dog 0.250 0.250 0.500 0.750" in ran.lines


def test_detections_are_drawn(
    delegraph: Command, detector: Path, photo: Path, tmp_path: Path
) -> None:
    path = tmp_path / "drawn.png"
    ran = delegraph("run", detector, "-i", photo, "--draw", path)
    assert (ran.code, ran.err) == (0, "")
    assert f"picture drawn to {path}, 2 times as wide and high" in ran.lines
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--draw", "out.png"], "--draw needs an input that is a picture: --input photo.jpg"),
        (["--draw", "out.txt"], "'out.txt': expected a file ending in .jpeg, .jpg, .png, .webp"),
    ],
)
def test_drawing_that_cannot_be_is_a_usage_error(
    refused: Refused, detector: Path, words: list[str], message: str
) -> None:
    assert message in refused("run", detector, *words)


def test_outputs_without_a_finding_are_nothing_to_draw(
    refused: Refused, tmp_path: Path, photo: Path
) -> None:
    path = tmp_path / "same.tflite"
    path.write_bytes(one_op_model("RELU", [tensor((1, 4, 4, 3))], [tensor((1, 4, 4, 3))]))
    err = refused("run", path, "-i", photo, "--draw", tmp_path / "out.png")
    assert "no boxes, key points, classes of pixels or scores of classes are recog" in err
    assert not (tmp_path / "out.png").exists()


def test_classes_of_pixels_are_counted(delegraph: Command, tmp_path: Path, photo: Path) -> None:
    path = tmp_path / "segmentation.tflite"
    inputs = [tensor((1, 4, 4, 3), "UINT8", scale=1.0), constant(np.int32(3))]
    options = ArgMaxOptions(output_type=TensorType.INT64)
    model = one_op_model("ARG_MAX", inputs, [tensor((1, 4, 4), "INT64")], options)
    path.write_bytes(model)
    (tmp_path / "labels.txt").write_text("background\ncat\n")
    ran = delegraph("run", path, "-i", photo, "--labels", tmp_path / "labels.txt")
    assert (ran.code, ran.err) == (0, "")
    start = ran.lines.index("Classes of 4 x 4 pixels")
    assert ran.lines[start + 1 : start + 3] == ["share class label", "100.0 % 0 background"]
    found = delegraph("run", path, "-i", photo, "--json").json["segmentation"]
    assert found == {
        "height": 4,
        "width": 4,
        "classes": [{"index": 0, "label": None, "pixels": 16}],
    }


def test_points_of_a_pose_are_named(delegraph: Command, tmp_path: Path, photo: Path) -> None:
    path = tmp_path / "pose.tflite"
    points = constant(np.full((1, 1, 17, 3), 0.5, np.float32))
    model = graph_model(
        [("RELU", "points", "y")],
        inputs="image",
        outputs="y",
        tensors={"image": tensor((1, 4, 4, 3)), "points": points, "y": tensor((1, 1, 17, 3))},
    )
    path.write_bytes(model)
    ran = delegraph("run", path, "-i", photo)
    start = ran.lines.index("Pose 1, score 0.50, in pixels of the picture")
    assert ran.lines[start + 1 : start + 3] == ["score point x y", "0.50 nose 100 50"]
    ran = delegraph("run", path, "-i", photo, "--threshold", "0.6")
    assert "Poses: 0 of 1 with a score of at least 0.6; --threshold changes that" in ran.lines
    assert "shown below" not in ran.out
