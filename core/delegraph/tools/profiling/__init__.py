"""Where the time of a model goes, operator by operator, and files that show it.

Open first: ``node_data.py`` for values on the graph in Model Explorer.
"""
