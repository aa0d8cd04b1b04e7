"""How near each operator of a model comes to the most that the processor can do.

``processor.py`` measures the processor, ``operators.py`` compares each operator with it,
``report.py`` joins both for a model, ``printing.py`` shows the result.
"""
