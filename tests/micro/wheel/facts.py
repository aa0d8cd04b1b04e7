"""What users of the wheel's Python API see: calls, one fact each, and what comes of them.

Needs nothing but NumPy and a module `runtime`, so that it runs in the wheel's environment too.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path

import numpy as np

FACTS = {}
COPIED = ("int16", "int32", "int64", "uint8", "bool", "float32", "uint32", "uint64")
MODELS = Path(__file__).with_name("goldens") / "fact_models.json"
KEPT = Path(__file__).with_name("goldens") / "facts.json"


def fact(function):
    """Add a fact: a function of the module `runtime` and of a maker of interpreters."""
    FACTS[function.__name__] = function
    return function


def outcomes(runtime, guarded=lambda call, *arguments: call(*arguments)):
    """Return what comes of each fact: a value, or the type and words of an error.

    Args:
        runtime: the module.
        guarded: makes the calls.
    """
    models = {name: base64.b64decode(data) for name, data in json.loads(MODELS.read_text()).items()}

    def make(name="add", *args, **options):
        return runtime.Interpreter.from_bytes(models[name], *args, **options)

    make.models = models
    return {name: guarded(_outcome, f, runtime, make) for name, f in FACTS.items()}


def _outcome(function, runtime, make):
    try:
        return ["value", _described(function(runtime, make))]
    except Exception as error:  # noqa: BLE001 - whatever it raises is the fact
        words = "" if isinstance(error, TypeError) else str(error)  # pybind11's own, with addresses
        return ["error", _builtin_base(type(error)), words]


def _builtin_base(kind):
    """Return the name of the built-in exception that *kind* is; Delegraph's have one as a base."""
    return next(base.__name__ for base in kind.__mro__ if base.__module__ == "builtins")


def _described(value):
    """Return *value* as JSON has it, with the types that NumPy gives."""
    if isinstance(value, np.ndarray | np.generic):
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return [kind, value.dtype.str, list(value.shape), np.asarray(value).ravel().tolist()]
    if isinstance(value, dict):
        return {key: _described(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_described(item) for item in value]
    if isinstance(value, type):
        return value.__name__
    return value


FLOATS = np.arange(4, dtype=np.float32).reshape(1, 4)
BYTES = np.arange(4, dtype=np.int8).reshape(1, 4)


# -- making an interpreter -------------------------------------------------------------------------

FACTS |= {
    "no_registerers": lambda runtime, make: make("add", []).invoke(),
    "default_arena": lambda runtime, make: make("int8").invoke(),
    "configurations": lambda runtime, make: {
        member.name: member.value for member in runtime.InterpreterConfig
    },
    "decompression_memory": lambda runtime, make: make(
        "add", alt_decompression_memory_size=1024
    ).invoke(),
    "allocations": lambda runtime, make: make().print_allocations(),
    "public_names": lambda runtime, make: sorted(
        name for name in dir(runtime.Interpreter) if not name.startswith("_")
    ),
}


def ending(call):
    """Return a fact of which only counts whether *call* ends in an error."""

    def run(runtime, make):
        call(runtime, make)

    return run


ENDINGS = {
    "no_path": lambda runtime, make: runtime.Interpreter.from_file(None),
    "wrong_path": lambda runtime, make: runtime.Interpreter.from_file("wrong.tflite"),
    "folder_as_path": lambda runtime, make: runtime.Interpreter.from_file("."),
    "no_bytes": lambda runtime, make: runtime.Interpreter.from_bytes(None),
    "no_model_for_the_constructor": lambda runtime, make: runtime.Interpreter(None, [], None),
    "constructor_needs_three_arguments": lambda runtime, make: runtime.Interpreter(
        make.models["add"]
    ),
    "constructor_needs_a_list_of_registerers": lambda runtime, make: runtime.Interpreter(
        make.models["add"], None, 4096
    ),
    "registerers_in_a_text": lambda runtime, make: make("add", "WrongFormat"),
    "registerers_in_a_tuple": lambda runtime, make: make("add", ("Some",)),
    "registerers_that_are_no_texts": lambda runtime, make: make("add", [("wrong", "format")]),
    "unknown_registerer": lambda runtime, make: make("add", ["SomeRandomOp"]),
    "small_arena": lambda runtime, make: make("int8", arena_size=700),
    "arena_of_a_text": lambda runtime, make: make("add", arena_size="4096"),
    "arena_of_a_fraction": lambda runtime, make: make("add", arena_size=4096.5),
    "negative_arena": lambda runtime, make: make("add", arena_size=-1),
    "unknown_operator": lambda runtime, make: make("unknown"),
    "unknown_configuration": lambda runtime, make: make("add", intrepreter_config=1),
    "configuration_is_misspelled": lambda runtime, make: make(
        "add", interpreter_config=runtime.InterpreterConfig.kPreserveAllTensors
    ),
    "tensor_of_the_default_configuration": lambda runtime, make: make().GetTensor(0, 0),
}
FACTS |= {name: ending(call) for name, call in ENDINGS.items()}


@fact
def constructor(runtime, make):
    interpreter = runtime.Interpreter(make.models["add"], [], 4096)
    interpreter.set_input(FLOATS, 0)
    return interpreter.invoke()


@fact
def positional_arguments(runtime, make):
    config = runtime.InterpreterConfig.kPreserveAllTensors
    interpreter = make("add", [], 1 << 16, config, 0)
    interpreter.set_input(FLOATS, 0)
    interpreter.set_input(FLOATS, 1)
    interpreter.invoke()
    return interpreter.GetTensor(2, 0)


# -- inputs ----------------------------------------------------------------------------------------


def refuse_input(name, value, index=0, model="add"):
    def set_input(runtime, make):
        return make(model).set_input(value, index)

    FACTS[f"input_{name}"] = set_input


refuse_input("right", FLOATS)
refuse_input("none", None)
refuse_input("without_index", FLOATS, None)
refuse_input("negative_index", FLOATS, -1)
refuse_input("out_of_bound", FLOATS, 2)
refuse_input("far_out_of_bound", FLOATS, 10**6)
refuse_input("index_as_text", FLOATS, "0")
refuse_input("index_as_fraction", FLOATS, 0.0)
refuse_input("index_of_numpy", FLOATS, np.int64(1))
refuse_input("index_true", FLOATS, True)
refuse_input("rank", FLOATS[0])
refuse_input("rank_above", FLOATS[None])
refuse_input("size", FLOATS[:, :3])
refuse_input("first_size", np.repeat(FLOATS, 2, 0))
refuse_input("empty", FLOATS[:0])
refuse_input("column", FLOATS.T)
refuse_input("scalar", np.float32(1))
refuse_input("list", [[1.0, 2.0, 3.0, 4.0]])
refuse_input("list_of_whole_numbers", [[1, 2, 3, 4]])
refuse_input("list_of_numpy_numbers", [[np.float32(1)] * 4])
refuse_input("ragged", [[1.0], [1.0, 2.0]])
refuse_input("text", "1 2 3 4")
refuse_input("bytes", b"1234")
refuse_input("fortran_order", np.asfortranarray(np.ones((2, 3), np.float32)), 0, "matrix")
refuse_input("transposed", np.ones((3, 2), np.float32).T, 0, "matrix")
refuse_input("strided", np.ones((2, 6), np.float32)[:, ::2], 0, "matrix")
refuse_input("big_endian", FLOATS.astype(">f4"))
refuse_input("read_only", np.frombuffer(FLOATS.tobytes(), np.float32).reshape(1, 4))
for given in (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *("object", "S4", "U4", "datetime64[s]"),
):
    values = FLOATS.astype("int64").astype(given) if "date" in given else FLOATS.astype(given)
    refuse_input(f"{given}_for_float32", values)
    refuse_input(f"{given}_for_int8", values, 0, "int8")
for kind in COPIED:
    values = np.ones((1, 4), kind)
    refuse_input(f"{kind}_for_{kind}", values, 0, f"copy_{kind}")
    refuse_input(f"float64_for_{kind}", values.astype(np.float64), 0, f"copy_{kind}")


@fact
def names_of_arguments(runtime, make):
    interpreter = make()
    interpreter.set_input(input_data=FLOATS, index=0)
    interpreter.set_input(input_data=FLOATS, index=1)
    return [interpreter.invoke(), interpreter.get_output(index=0)]


@fact
def input_is_copied(runtime, make):
    interpreter, x = make(), FLOATS.copy()
    interpreter.set_input(x, 0)
    interpreter.set_input(x, 1)
    x[...] = 100
    interpreter.invoke()
    return interpreter.get_output(0)


# -- outputs ---------------------------------------------------------------------------------------


def ask(name, method, *arguments, model="add"):
    def call(runtime, make):
        interpreter = make(model)
        return getattr(interpreter, method)(*arguments)

    FACTS[f"{method}_{name}"] = call


for method in ("get_output", "get_input_details", "get_output_details"):
    ask("without_index", method, None)
    ask("negative_index", method, -1)
    ask("out_of_bound", method, 7)
    ask("index_as_text", method, "0")
    ask("index_as_fraction", method, 0.5)
    ask("no_argument", method)
for method in ("get_input_details", "get_output_details"):
    for model in ("add", "int8", "scalar", "copy_bool", "copy_int64", "per_channel"):
        ask(f"of_{model}", method, 0, model=model)


@fact
def output(runtime, make):
    interpreter = make()
    interpreter.set_input(FLOATS, 0)
    interpreter.set_input(FLOATS, 1)
    status = interpreter.invoke()
    first = interpreter.get_output(0)
    interpreter.set_input(FLOATS + 1, 0)
    interpreter.invoke()
    flags = first.flags
    return [status, first, interpreter.get_output(0), flags.owndata, flags.writeable]


@fact
def scalar_output(runtime, make):
    interpreter = make("scalar")
    interpreter.set_input(np.float32(3), 0)
    interpreter.invoke()
    return interpreter.get_output(0)


@fact
def scalar_given_as_array(runtime, make):
    interpreter = make("scalar")
    interpreter.set_input(np.array(3, np.float32), 0)
    interpreter.invoke()
    return interpreter.get_output(0)


@fact
def int8_output(runtime, make):
    interpreter = make("int8")
    interpreter.set_input(BYTES, 0)
    interpreter.invoke()
    return interpreter.get_output(0)


@fact
def failing_invoke(runtime, make):
    interpreter = make("gather")
    interpreter.set_input(np.array([[99]], np.int32), 0)
    interpreter.invoke()


# -- the rest --------------------------------------------------------------------------------------


@fact
def state_and_reset(runtime, make):
    interpreter, heard = make("delay"), []
    for step in ([1, 2], [3, 4], None, [5, 6], [7, 8]):
        if step is None:
            heard.append(interpreter.reset())
            continue
        interpreter.set_input(np.array(step, np.int16), 0)
        interpreter.invoke()
        heard.append(interpreter.get_output(0))
    return heard


@fact
def variables_and_reset(runtime, make):
    interpreter, heard = make("counter"), []
    for is_reset in (False, False, True, False):
        if is_reset:
            interpreter.reset()
        interpreter.set_input(np.ones(1, np.float32), 0)
        interpreter.invoke()
        heard.append(interpreter.get_output(0))
    return heard


@fact
def every_tensor(runtime, make):
    config = runtime.InterpreterConfig.kPreserveAllTensors
    interpreter = make("twice", arena_size=1 << 16, intrepreter_config=config)
    interpreter.set_input(FLOATS, 0)
    interpreter.invoke()
    return [interpreter.GetTensor(i, 0) for i in range(3)]


@fact
def tensor_index_as_text(runtime, make):
    config = runtime.InterpreterConfig.kPreserveAllTensors
    make(arena_size=1 << 16, intrepreter_config=config).GetTensor("0", 0)


@fact
def allocations_of_preserved_tensors(runtime, make):
    config = runtime.InterpreterConfig.kPreserveAllTensors
    make(arena_size=1 << 16, intrepreter_config=config).print_allocations()


def compared(mine, theirs):
    """Return the facts that differ, each as what is found here and in the wheel.

    Messages may go on after the wheel's words.
    """
    apart = {}
    for name, right in theirs.items():
        found = mine.get(name)
        same = found == right
        if right[0] == "error" and found is not None and found[0] == "error":
            same = found[1] == right[1] and found[2].startswith(right[2].rstrip("."))
        if not same:
            apart[name] = [found, right]
    return apart


def in_a_child(call, *arguments):
    """Return what a call gives, made in a child process: the wheel may crash."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writer, "w") as stream:
            stream.write(json.dumps(call(*arguments)))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else ["crash"]


if __name__ == "__main__":
    from tflite_micro.python.tflite_micro import runtime

    Path(sys.argv[1]).write_text(json.dumps(outcomes(runtime, in_a_child), indent=1) + "\n")
