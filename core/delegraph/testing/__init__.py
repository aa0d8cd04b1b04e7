"""Testing tools for authors of delegates.

``DelegateConformance`` is the conformance kit's class to subclass. For tests of one's own,
``one_op_model``, ``graph_model`` and ``subgraphs_model`` write small models, of tensors made by
``tensor`` and ``constant``, ``delegraph_outputs`` runs them, and ``run_command`` runs the command.
``interrupted`` raises where Ctrl-C might.

Open first: ``delegate_conformance.py`` and ``conformance/contract.py`` for the kit,
``operator_cases/`` for the cases it tries, ``one_op.py`` for models of one operator,
``delegraph.tools.shrinking`` for making a failing case smaller.

Each is loaded when it is first used, because pytest imports this package in every run of an
environment, for its plugin.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__, "operator_case")
