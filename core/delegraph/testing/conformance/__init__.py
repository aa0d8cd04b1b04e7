"""The conformance kit: what a delegate must do, checked with models of what it claims.

``contract``, ``soundness`` and ``numbers`` hold the checks as plain functions of a ``Subject``;
each raises ``AssertionError`` with what is wrong, or ``unittest.SkipTest`` when it does not apply.
``delegraph.testing.DelegateConformance`` makes tests of them.
"""
