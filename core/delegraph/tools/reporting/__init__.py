"""Creates an HTML page about a model, its placement and measurements; needs no network.

Open first: ``report.py`` for the content of a report, ``page.py`` for building the page,
``graph.py`` and ``memory.py`` for its data, ``assets/README.md`` for its script and style.
"""
