"""Makes an HTML page about a model, its placement and its measurements; needs no network.

Open first: ``report.py`` for what a report holds, ``page.py`` for how the page is put together,
``graph.py`` and ``memory.py`` for what it is told, ``assets/README.md`` for its script and style.
"""
