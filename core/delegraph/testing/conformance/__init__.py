"""The conformance kit: requirements on a delegate, checked with models that it claims.

``contract``, ``soundness`` and ``numbers`` hold the checks as plain functions of a ``Subject``;
each raises ``AssertionError`` with what is wrong, or ``unittest.SkipTest`` when it does not apply.
``delegraph.testing.DelegateConformance`` makes tests of them.
"""
