"""The text of a profile."""

from __future__ import annotations

from delegraph import Interpreter
from delegraph.runtime.execution.profile import Profile
from support.by_name import ByName, sines


def test_print_shows_the_mean_time_of_each_node_with_units() -> None:
    profile = Profile()
    profile.add("SIN", 0, 7, start=0, duration=250_000)
    profile.add("CONV_2D", 0, 3, start=0, duration=3_000_000, delegate="fast")
    profile.add("SIN", 0, 7, start=9, duration=750_000)
    assert str(profile).splitlines() == [
        "Profile of 3 events",
        "operator  node  delegate  times      mean   share",
        "CONV_2D   0:3   fast          1  3.000 ms  75.0 %",
        "SIN       0:7   -             2  0.500 ms  25.0 %",
        "total 4.000 ms",
    ]


def test_the_table_has_nodes_of_the_model_and_the_number_of_invokes() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN", "ADD")])
    interpreter.allocate_tensors()
    with interpreter.profile() as profile:
        interpreter.invoke()
        interpreter.invoke()
    _, header, *rows, total = str(profile).splitlines()
    places = {tuple(p.nodes) for p in interpreter.placement.partitions}
    shown = {row.split()[1] for row in rows if "by_name" in row}
    assert shown == {"0:" + ",".join(map(str, nodes)) for nodes in places}
    assert "node" in header
    assert total.endswith(" ms in 2 invokes")
