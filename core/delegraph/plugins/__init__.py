"""Discovery of installed plugins, and creation of delegates by name.

A plugin's entry-point module needs ``hookimpl`` and spec classes, which ``delegraph`` exports as
well. Other code begins with :func:`installed`. Importing this package discovers nothing and imports
neither NumPy nor any plugin.

Open first: ``hookspecs.py`` and ``specs.py`` for what the author of a plugin writes;
``plugin_set.py`` for how a delegate is found by name; ``discovery.py`` for how plugins are found;
``options.py`` for how options are read; ``choice.py`` for the lists that allow and disable plugins.

Each name is loaded when it is first used, so a model without plugins starts quickly.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__, "engine_compiler")
