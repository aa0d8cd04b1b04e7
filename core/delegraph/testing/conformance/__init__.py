"""Conformance kit: checks a delegate against its contract, with models that it claims to support.

``contract``, ``soundness`` and ``numbers`` hold the checks as plain functions of a ``Subject``;
each raises ``AssertionError`` with what is wrong, or ``unittest.SkipTest`` when it does not apply.
``delegraph.testing.DelegateConformance`` makes tests of them.
"""
