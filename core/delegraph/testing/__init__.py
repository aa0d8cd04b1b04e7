"""Testing tools for authors of delegates.

``DelegateConformance`` is the conformance kit's class to subclass. For other tests,
``one_op_model``, ``graph_model`` and ``subgraphs_model`` write small models from tensors made by
``tensor`` and ``constant``. ``delegraph_outputs`` runs a model, ``run_command`` runs the command,
and ``interrupted`` raises ``KeyboardInterrupt`` at a chosen line.

Open first: ``delegate_conformance.py`` and ``conformance/contract.py`` for the kit,
``operator_cases/`` for its cases, ``one_op.py`` for models of one operator,
``delegraph.tools.shrinking`` for making a failing case smaller.

Modules are loaded when they are first used, because pytest imports this package for its plugin in
every run.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__, "operator_case")
