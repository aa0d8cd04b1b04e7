"""The TFLite flatbuffer: declarative tables, a checked reader, a writer.

Open first: ``tables.py`` for the tables of a model, ``options.py`` for the options of operators,
``enums.py``; ``metadata.py`` for TFLite Metadata; ``reader.py`` and ``writer.py`` for files;
``flatbuffer.py`` for reads with checked bounds; ``table.py`` for how a table is declared.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
