"""The conformance kit: checks a delegate's contract with models of its claims.

``contract``, ``soundness`` and ``numbers`` hold the checks as plain functions of a ``Subject``;
each raises ``AssertionError`` with what is wrong, or ``unittest.SkipTest`` when it does not apply.
``delegraph.testing.DelegateConformance`` makes tests of them.
"""
