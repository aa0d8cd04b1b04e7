"""Tokens per second of a small decoder with a cache of keys and values, beside LiteRT.

    python tests/benchmarks/decoder.py [--weights int8,int4] [--threads 1] [--seconds 5]

A step feeds a token, its position and the mask, runs the model, takes the likeliest next token, and
hands the caches on. It is the same code for LiteRT with XNNPACK and for Delegraph with
``numba_cpu``, which take turns. Ratios are of times: below 1 Delegraph makes more tokens a second.

Tokens of quantized models may differ: XNNPACK quantises activations in a way of its own, Delegraph
as LiteRT's other kernels do.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import interpreter as litert
from decoder_model import WEIGHTS, Sizes, decoder_model
from ratio_rows import Row, row, write_rows

from delegraph import Interpreter
from delegraph.tools import all_times, interleave, ratio_of

MASKED = np.float32(-1e9)


def stepper(interpreter: Any, length: int) -> Callable[[], int]:
    """Return a function that generates the next token; it starts again when the cache is full."""
    interpreter.allocate_tensors()
    inputs = {}
    for details in interpreter.get_input_details():
        inputs[details["name"]] = details["index"]
        # Masked rows count 0 times what is in the cache, which must be a number.
        interpreter.set_tensor(details["index"], np.zeros(details["shape"], details["dtype"]))
    outputs = {d["name"]: d["index"] for d in interpreter.get_output_details()}
    caches = [(inputs[name.removeprefix("new_")], outputs[name]) for name in outputs if "_" in name]
    token, position = np.zeros(1, np.int32), np.zeros(1, np.int32)
    mask = np.full((1, 1, 1, length), MASKED, np.float32)

    def step() -> int:
        mask[..., : position[0] + 1] = 0
        interpreter.set_tensor(inputs["token"], token)
        interpreter.set_tensor(inputs["position"], position)
        interpreter.set_tensor(inputs["mask"], mask)
        interpreter.invoke()
        for given, made in caches:
            interpreter.set_tensor(given, interpreter.get_tensor(made))
        token[0] = interpreter.get_tensor(outputs["logits"]).argmax()
        position[0] = (position[0] + 1) % length
        if position[0] == 0:
            mask.fill(MASKED)
        return int(token[0])

    return step


def measure(weights: str, threads: int, seconds: float) -> Row:
    """Print tokens per second of both; return the ratio of their times."""
    sizes = Sizes()
    content = decoder_model(weights, sizes)
    ours = Interpreter(model_content=content, delegates=["numba_cpu"], num_threads=threads)
    theirs = litert.Interpreter(model_content=content, num_threads=threads)
    steps = {"LiteRT": stepper(theirs, sizes.length), "Delegraph": stepper(ours, sizes.length)}
    agree = sum(steps["LiteRT"]() == steps["Delegraph"]() for _ in range(16))
    found = interleave(steps, seconds)
    what = f"decoder, {weights}, {threads} thread{'s' * (threads != 1)}"
    result = row(what, ratio_of(found["Delegraph"], found["LiteRT"], np.median))
    rates = {name: 1 / np.median(all_times(times)) for name, times in found.items()}
    told = ", ".join(f"{name} {rate:.0f} tokens/s" for name, rate in rates.items())
    print(f"{what}: {result} ({told}; {agree} of the first 16 tokens agree)")
    print(f"  {ours.placement}", flush=True)
    return result


def main() -> None:
    """Print a line for each kind of weights and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", default=",".join(WEIGHTS), help="comma-separated")
    parser.add_argument("--threads", default="1", help="one or several numbers: 1,2")
    parser.add_argument("--seconds", type=float, default=5, help="for each line")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the ratios")
    args = parser.parse_args()
    chosen = args.weights.split(",")
    for weights in chosen:
        if weights not in WEIGHTS:
            parser.error(f"no weights {weights!r}, expected some of: {', '.join(WEIGHTS)}")
    threads = [int(word) for word in args.threads.split(",")]
    found = [measure(weights, count, args.seconds) for count in threads for weights in chosen]
    write_rows(args.json, found)


if __name__ == "__main__":
    main()
