"""Profiles: the time of each operator of a model, and files for trace viewers.

Open first: ``recording.py`` for what is measured, ``op_profile.py`` for the tables; ``tracks.py``
for what ran when, which ``chrome_trace.py`` and ``speedscope.py`` write for their viewers;
``node_files.py`` and ``node_data.py`` for values on the graph in Model Explorer.
"""
