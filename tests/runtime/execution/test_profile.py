"""The text of a profile."""

from __future__ import annotations

from delegraph.runtime.execution.profile import Profile


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
    ]
