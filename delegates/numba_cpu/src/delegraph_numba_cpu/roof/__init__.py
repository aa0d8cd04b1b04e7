"""Roof of a model's operators: the least time in which this processor could compute each of them.

``processor.py`` measures what the processor can do. ``operators.py`` computes the roof of each
operator. ``report.py`` joins both for a model, and ``printing.py`` shows the result.
"""
