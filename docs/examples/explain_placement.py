"""Ask who runs what, and why a delegate left the rest."""

from pathlib import Path

from delegraph import Interpreter

MODEL = Path(__file__).parents[1] / "demo" / "models" / "digits_float.tflite"

with Interpreter(MODEL, delegates=["add_sub"]) as interpreter:
    interpreter.allocate_tensors()
    placement = interpreter.placement
    print(placement)
    for node in placement.nodes:
        who = node.delegate or "Delegraph's kernels"
        reasons = "; ".join(str(rejection) for rejection in node.rejections.values())
        print(f"{node.index:>4}  {node.op:<18} {who:<20} {reasons}")
    crossed = sum(crossing.bytes or 0 for crossing in placement.crossings)
    print(f"{crossed:,} bytes cross from one side to the other at each invoke.")
