"""Makes an HTML page about a model, its placement and its measurements; needs no network.

Open first: ``report.py`` for the content of a report, ``page.py`` for how the page is put together,
``graph.py`` and ``memory.py`` for its data, ``assets/README.md`` for its script and style.
"""
