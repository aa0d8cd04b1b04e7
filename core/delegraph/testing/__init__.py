"""What authors of delegates test them with: the conformance kit.

``DelegateConformance`` is the class to subclass. The rest is loaded when it is first used, because
pytest imports this package in every run of an environment, for its plugin.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
