"""Measures the time of each operator of a model, and writes files that show it.

Open first: ``recording.py`` for measured runs and their events, ``op_profile.py`` for the tables.
``tracks.py`` arranges events in time; ``chrome_trace.py`` and ``speedscope.py`` write them for
viewers; ``node_files.py`` and ``node_data.py`` for values on the graph in Model Explorer.
"""
