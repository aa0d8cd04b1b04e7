"""Report page of a model: graph, placement and measurements; it needs no network.

Open first: ``report.py`` for what a report holds, ``page.py`` for how the page is put together,
``graph.py`` and ``memory.py`` for what it is told, ``assets/README.md`` for its script and style.
"""
