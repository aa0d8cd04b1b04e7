"""Likely mistakes in every command: the message says what, where and what to do, in one line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from delegraph.cli import COMMANDS, CommandGroup, main
from support.command import Command, Refused

MODELS = Path(__file__).parents[2] / "docs" / "demo" / "models"

NO_FILE = r"'MODEL': File 'gone.tflite' does not exist \(see 'delegraph {} --help'\)"
NO_MODEL = "notes.tflite: it is a text file, no TFLite model: give the .tflite file"
CUT = r"cut.tflite: .* end of the file \(1000 bytes\); check that .*, and copy or download it again"
NO_DELEGATE = r"no installed plugin provides delegate '{}'; pip installs delegates[,;] "
NO_FOLDER = "there is no folder 'gone'"
NO_SAVE = r"--save has no effect with --against: --result-json FILE saves a comparison"
NO_TIME_LIMIT = "--time-limit has no effect with --bisect: --probe-time-limit bounds"
ALL_SIGNATURES = "--(lock|check) is about all signatures: leave out --signature"
NO_TASK = r"no task '{}'{}, expected one of: classification, .* or --metric PACKAGE:FUNCTION"
NO_SIGNATURE = "the model has no signature 'x'; it has 'serving_default'"

MISTAKES = {
    "run gone.tflite": NO_FILE.format("run"),
    "run empty.tflit": r"'empty.tflit' does not exist \(did you mean 'empty.tflite'\?\)",
    "run notes.tflite": NO_MODEL,
    "run cut.tflite": CUT,
    "run empty.tflite": "'empty.tflite' is empty; check that",
    "run https://example.com/m.tflite": "it is an address: download the file first",
    "run FLOAT -i ../.": r"takes one input, not the folder '../.'; predict runs folders",
    "run .": "it is a folder, no TFLite model: it has ",
    "run FLOAT -d nosuch": NO_DELEGATE.format("nosuch"),
    "run FLOAT --input imag=0": r"'imag=0' \(did you mean 'image'\?\) names none of the inputs: ",
    "run FLOAT --input image=gone.png": "picture 'gone.png' cannot be read: No such file",
    "run FLOAT --image cat.bmp": r"No such option '--image' \(did you mean '--input'\?\)",
    "run FLOAT --threads 0": "'--threads': 0 is out of range, expected at least 1",
    "run FLOAT --threads two": "'--threads': 'two' is no integer",
    "run FLOAT --numerics exact": "'exact' is not one of 'builtin', 'reference'",
    "run FLOAT --save out.csv": r"out\.csv': expected a file ending in \.npz",
    "run FLOAT --save gone/out.npz": r"out\.npz': there is no folder ",
    "run FLOAT --top 0": "Invalid value for '--top'",
    "run FLOAT --top x": r"'--top': 'x' is no integer \(see",
    "run SINES -d sin --require full": "--require full: 3 nodes stay behind",
    "run": "Missing argument 'MODEL'",
    "run no/gone.tflite": r"does not exist; there is no folder 'no' \(see",
    "test nosuch": NO_DELEGATE.format("nosuch"),
    "test": "Missing argument 'DELEGATE",
    "test sin --badge badge.png": "badge.png",
    "rum FLOAT": r"no command 'rum' \(did you mean 'run'\?\); ",
    "m.tflite": "no command 'm.tflite': 'delegraph run m.tflite' runs it",
    "help": "no command 'help': 'delegraph --help' does that",
    "te": r"no command 'te' \(did you mean 'test' or 'test-operators'\?\); 'delegraph --help' ",
    "quantise": "no command 'quantise': Delegraph does not quantize, it runs quantized models",
    "validate": "no command 'validate': 'delegraph diff' compares outputs, 'delegraph inspect'",
    "simplify": "no command 'simplify'; 'delegraph --help' lists the commands",
    "predict FLOAT": "Missing argument 'DATA'",
    "predict gone.tflite a.npz": NO_FILE.format("predict"),
    "predict FLOAT notes.txt -o out.npz": "'notes.txt' is neither a folder nor a file ending in ",
    "serve gone.tflite": NO_FILE.format("serve"),
    "serve FLOAT --prot 80": r"No such option '--prot'",
    "serve FLOAT --max-batch-size 0": "Invalid value for '--max-batch-size'",
    "serve FLOAT --max-latency -1": "Invalid value for '--max-latency'",
    "serve FLOAT --http-port 70000": "Invalid value for '--http-port'",
    "serve FLOAT --name a/b": "--name 'a/b' is part of a URL, expected a name without '/'",
    "serve": "Missing argument 'MODEL",
    "benchmark gone.tflite": NO_FILE.format("benchmark"),
    "benchmark FLOAT --runs 0": "'--runs': 0 is out of range, expected at least 1",
    "benchmark FLOAT --num-runs 3": r"'--num-runs' \(did you mean '--runs'\?\)",
    "benchmark FLOAT --against runtime=litert": "go there as .*: --against .--runtime litert",
    "benchmark FLOAT --signature x": NO_SIGNATURE,
    "benchmark SINES --blocks 6": "--blocks needs --against",
    "benchmark SINES --fail-above 5": "--fail-above needs --against or --compare-with",
    "benchmark SINES --against '--threads 2' --runs 9": "--runs has no effect with --against",
    "benchmark SINES --against -dnone --dry-run": "--dry-run has no effect with --against",
    "benchmark SINES --against -dnone --save a.json": NO_SAVE,
    "benchmark SINES --against -dnone --op-profile": "--op-profile .*: a profile is of one set-up",
    "benchmark SINES --against -dnone --trace t.json": "--trace has no effect with --against",
    "benchmark SINES --against '--wings 2'": "No such option",
    "benchmark SINES --against '--seed 3'": "--seed is for all set-ups, give it outside of ",
    "benchmark SINES --graph=other.tflite": "; MODEL and --graph=MODEL are the same, give one",
    "benchmark SINES --against -dnone --blocks 4": "4 is out of range, expected at least 5",
    "benchmark SINES --dry-run --op-profile": "a profile needs runs",
    "benchmark SINES --trace gone/trace.json": NO_FOLDER,
    "benchmark SINES --num_runs": "--num_runs needs a value",
    "benchmark SINES --dry_run=maybe": "expected true or false",
    "benchmark SINES --use_caching=true": "Python's interpreters have no argument for it",
    "benchmark SINES --allow_fp16=true": "-d NAME:KEY=VALUE",
    "benchmark SINES --output_filepath=o": r"--save FILE\.npz writes the last outputs",
    "benchmark SINES --input_layer=x": "--input_layer needs --input_layer_shape",
    "benchmark SINES --input_layer_shape=1,2": "--input_layer_shape needs --input_layer",
    "diff gone.tflite": NO_FILE.format("diff"),
    "diff FLOAT --rtol 1e-3": r"'--rtol' \(did you mean '--tolerance'\?\)",
    "diff FLOAT --atol=1e-3": r"'--atol' \(did you mean '--tolerance'\?\)",
    "diff FLOAT --against SINES": r"'--against' \(did you mean '--reference'\?\)",
    "diff FLOAT --reference -x": "--reference '-x': No such option '-x'",
    "diff FLOAT --reference none": "does not exist; a delegate needs -d: --reference .-d none",
    "memory FLOAT --draw a.gif": "'--plot': 'a.gif': expected a file ending in .svg or .png",
    "memory FLOAT --draw no/a.svg": "'--plot': 'no/a.svg': there is no folder 'no'",
    "diff FLOAT --reference SINES": "cannot take the same values: give the reference",
    "micro FLOAT": r"no command .micro.: .delegraph memory --micro. does that",
    "diff FLOAT SINES": r"extra argument \(.*\); --reference FILE compares with another model",
    "diff FLOAT --html .": r"'--html': '.' is a folder, give the name of a file",
    "diff SINES --plot l.png": "--plot needs --layers",
    "diff SINES --node-data folder": "--node-data needs --layers",
    "diff SINES --inner alone": "--inner needs --layers",
    "diff SINES --html d.txt": r"'d\.txt': expected a file ending in \.html or \.htm",
    "diff SINES --layers --plot l.pdf": r"expected a file ending in \.png, \.svg",
    "diff SINES --bisect x --tolerance 0 --layers": "--bisect and --layers",
    "diff SINES --bisect x --tolerance 0 --warmup 2": "--warmup has no effect with",
    "diff SINES --bisect x --tolerance 0 --time-limit 5": NO_TIME_LIMIT,
    "diff SINES --probe-time-limit 5": "--probe-time-limit needs --bisect",
    "diff --bisect SINES --tolerance 0": "MODEL comes first",
    "evaluate custom FLOAT": r"missing: DATA, --metric PACKAGE:FUNCTION \(Python",
    "evaluate classification FLOAT": r"missing: --images FOLDER \(.*\), --truth FILE \(",
    "evaluate classfication m.tflite": NO_TASK.format(
        "classfication", r" \(did you mean 'classification'\?\)"
    ),
    "evaluate model.tflite m.tflite": NO_TASK.format("model.tflite", ""),
    "evaluate FLOAT": r"the task comes before '.*', one of: classification, detection, custom;",
    "inspect gone.tflite": NO_FILE.format("inspect"),
    "inspect notes.tflite": NO_MODEL,
    "inspect cut.tflite": CUT,
    "inspect FLOAT --jsno": "No such option",
    "inspect SINES --log-level loud": "'loud' is not one of 'debug', 'info', 'warning', 'error'",
    "explain FLOAT --delegat sin": r"option '--delegat' \(did you mean one of: .*'\?\) \(see",
    "explain FLOAT -d sinn": r"delegate 'sinn' \(did you mean 'sin'\?\); available: ",
    "explain FLOAT -d sin:a=1": "delegate 'sin' has no option",
    "explain FLOAT -d a:b:c": "delegate 'a:b:c' cannot be read",
    "explain FLOAT -d ''": "or 'name:key=value,key=value'; it is empty",
    "explain FLOAT -d sin --lock a.json --check notes.txt": "give one of them",
    "explain SINES -d sin --signature serving_default --lock a.json": ALL_SIGNATURES,
    "explain FLOAT -d sin --signature serving_default --check notes.txt": ALL_SIGNATURES.format(
        "check"
    ),
    "explain FLOAT -d sin --signature x": NO_SIGNATURE,
    "explain FLOAT --check notes.txt": "not JSON: .*; 'delegraph explain --lock' writes one",
    "explain FLOAT --lock gone/x.json": NO_FOLDER,
    "compile FLOAT": "give at least one --delegate; those that compile into the file: ",
    "compile FLOAT -d nosuch -o out.tflite": NO_DELEGATE.format("nosuch"),
    "compile FLOAT -d sin -o gone/out.tflite": NO_FOLDER,
    "compile FLOAT -d numba_cpu -o FLOAT": "is the model itself: give -o another name",
    "compile FLOAT -d numba_cpu -o a.onnx": "'a.onnx': expected a file ending in .tflite",
    "compile FLOAT -d numba_cpu -o .": "'.' is a folder, give the name of a file",
    "memory notes.tflite": NO_MODEL,
    "memory FLOAT --planner nosuch": "no planner 'nosuch'; there are delegraph, tflite,",
    "memory FLOAT --planner naiv": r"'naiv' \(did you mean 'naive'\?\); there are",
    "memory FLOAT --write-offline gone/o.tflite": NO_FOLDER,
    "memory FLOAT --budget much": "'much' is no size, expected 4096, 256K or 1.5M",
    "memory FLOAT --align 3": "3 is no power of two, expected 1, 2, 4, 8, 16, 32 or 64",
    "memory FLOAT --align 65": "65 is out of range, expected 1 to 64",
    "memory FLOAT --align 32 --write-offline o.tflite": "no effect with --write-offline: TFLM ",
    "report notes.tflite": NO_MODEL,
    "report FLOAT --html x.html": r"'--html' \(did you mean '--output'\?\)",
    "report FLOAT -o gone/a.html": NO_FOLDER,
    "report FLOAT -o .": "'.' is a folder",
    "report FLOAT --runs 3": "--runs needs --benchmark",
    "report FLOAT --dry-run": "--dry-run needs --benchmark",
    "report FLOAT --benchmark --seconds 3": "--seconds needs --against",
    "report FLOAT --reference -dnone": "--reference needs --diff",
    "report FLOAT --inner alone": "--inner needs --diff",
    "report FLOAT --diff-runs 1": "--diff-runs needs --diff",
    "report FLOAT --memory --runtime litert": "--memory needs --runtime delegraph: ",
    "report FLOAT --seconds 3": r"--seconds needs --against \(see 'delegraph report --help'\)",
    "report FLOAT --beside SINES": "names another model: make a report of each model, or compare",
    "report FLOAT --beside --bogus": "--beside '--bogus': No such option '--bogus'",
    "test-operators nosuch": NO_DELEGATE.format("nosuch"),
    "test-operators": "expected one delegate: DELEGATE, --delegate NAME or --delegate-file",
    "test-operators sin --operators ADD": r"did you mean one of: '--operator'",
    "plugins info nosuch": NO_DELEGATE.format("nosuch"),
    "plugins info notes.tflite": "this is a model's file name, where a delegate's name is expected",
    "test-operators core --operator conv2d": r"an operator 'conv2d' \(did you mean 'CONV_2D'\?\)",
    "test-operators ./notes.tflite": "this is a model's file name, where a delegate's name is",
    "plugins lsit": r"command 'lsit' \(did you mean 'list'\?\); expected one of: list, info, ",
    "plugins show": "No such command 'show'; expected one of: list, info, doctor",
    "plugins doctor --memory-limit 3": "--memory-limit needs --isolated",
    "cache clear nosuch": "nothing of 'nosuch' is kept; 'delegraph cache list' shows",
    "cache warm gone.tflite": "'MODEL...': File 'gone.tflite' does not exist",
    "cache purge": "No such command 'purge'; expected one of: ",
    "doctor --report gone/a.md": NO_FOLDER,
    "doctor --time-limit long": "'--time-limit': 'long' is no number",
    "doctor FLOAT": "unexpected extra argument",
    "run SINES -d xnnpack": "'xnnpack'; --runtime litert has XNNPACK, which LiteRT applies by",
    "run SINES -d fobar": "pip installs delegates, --delegate-file FILE.py applies that of a file",
    "new": "Missing argument 'NAME'",
    "new my-chip --template kernl": r"'custom-op' \(did you mean 'kernel'\?\)",
    "new my-chip --knd delegate": "No such option '--knd'",
    "new 2fast": "name is '2fast', expected a letter, then letters and digits with single ",
    "new my-chip --operators CONV_2D": "cannot start with operator 'CONV_2D', only with: ABS,",
    "new my-chip --template engin": r"'engin' is not one of .* \(did you mean 'engine'\?\)",
    "new my-chip --engine ort": "'ort' is not one of 'custom', 'onnxruntime', 'openvino'",
    "new my-chip --engine openvino --template kernel": "--engine is for --template engine or comp",
    "new my-chip --engine openvino --operators ADD": "is not for --engine openvino: change engine",
    "new my-chip --template custom-op --operators ADD": "not for --template custom-op",
}
"""Mapping from words to the pattern of the message; FLOAT and SINES are models."""

CODES = {
    1: {"run notes.tflite", "run cut.tflite", "run empty.tflite", "run SINES -d sin --require full"}
    | {"inspect notes.tflite", "inspect cut.tflite", "memory notes.tflite", "report notes.tflite"},
    3: {"explain FLOAT -d sinn", "run SINES -d xnnpack", "run SINES -d fobar"}
    | {"plugins info notes.tflite", "test-operators ./notes.tflite"}
    | {words for words, message in MISTAKES.items() if message == NO_DELEGATE.format("nosuch")},
}
"""Mapping from exit codes other than 2, of usage, to their words."""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are no models, in the folder that commands run in."""
    for name in ("notes.txt", "notes.tflite"):
        (tmp_path / name).write_text("some notes, no model")
    (tmp_path / "cut.tflite").write_bytes((MODELS / "digits_float.tflite").read_bytes()[:1000])
    (tmp_path / "empty.tflite").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path / "cache"))


def test_every_command_has_three_mistakes() -> None:
    tried = [words.split()[0] for words in MISTAKES]
    assert {name: tried.count(name) for name in COMMANDS if tried.count(name) < 3} == {}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_told_in_one_line_that_helps(refused: Refused, words: str) -> None:
    named = {"FLOAT": MODELS / "digits_float.tflite", "SINES": MODELS / "sines.tflite"}
    code = next((code for code, failing in CODES.items() if words in failing), 2)
    err = refused(*(named.get(word, word) for word in shlex.split(words)), code=code)
    assert err.startswith("error: ")
    assert re.search(MISTAKES[words], err), err


@pytest.mark.parametrize("delegate", ["", "sin:a", "sin:a=1"])
@pytest.mark.parametrize("words", ["explain", "run", "memory", "diff", "benchmark", "report"])
def test_a_wrong_delegate_option_is_a_usage_error(
    delegraph: Command, words: str, delegate: str
) -> None:
    ran = delegraph(words, MODELS / "sines.tflite", "-d", delegate)
    assert ran.code == 2


def test_the_folder_of_installed_packages_is_no_part_of_a_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def broken() -> None:
        raise ImportError("no name 'x' (/home/me/.venv/lib/python3/site-packages/chip/run.py)")

    monkeypatch.setattr(CommandGroup, "get_command", lambda *_: broken)
    assert main(["run"]) == 1
    assert "no name 'x' (chip/run.py)" in capsys.readouterr().err
