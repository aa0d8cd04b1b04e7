"""Conformance kit: checks a delegate against its contract, with models that it claims to support.

``contract``, ``soundness`` and ``numbers`` hold the checks as plain functions of a ``Subject``;
each raises ``AssertionError`` that describes the fault, or ``unittest.SkipTest`` if it does not
apply. ``delegraph.testing.DelegateConformance`` runs them as tests.
"""
