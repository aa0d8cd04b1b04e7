"""The TFLite flatbuffer: declarative tables, a checked reader, a writer.

Open first: ``tables.py`` for the tables of a model, ``options.py`` for the options of operators,
``enums.py`` for enumerations; ``metadata.py`` for TFLite Metadata; ``reader.py`` and ``writer.py``
for files; ``flatbuffer.py`` for reads with checked bounds; ``table.py`` for how a table is
declared.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
