"""A page that shows a model, who runs what in it, and what was measured; without any network.

Open first: ``report.py`` for what a report holds, ``page.py`` for how the page is put together,
``graph.py`` and ``memory.py`` for what it is told, ``assets/README.md`` for its script and style.
"""
