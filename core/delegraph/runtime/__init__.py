"""Executes a model: interpreter, session, subgraphs, preparation and evaluation of nodes.

Open first: ``interpreter.py`` for the class that users have; ``session.py`` for the loaded model
and the delegates applied to it; ``subgraph.py`` for tensors, nodes and memory;
``execution/steps.py`` for how nodes are prepared and run; ``op_resolver.py`` for which kernel an
operator gets; ``subgraph_memory.py`` for where tensors are; ``execution/node_errors.py`` for what
an error says; ``official/`` for rarely used members of the official class.
"""
