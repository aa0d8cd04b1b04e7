"""Errors as other processes are sent them."""

from __future__ import annotations

import inspect
import pickle

import pytest

from delegraph import errors

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.DelegraphError)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_can_be_sent_to_another_process(kind: type[errors.DelegraphError]) -> None:
    needed = inspect.signature(kind.__init__).parameters.values()
    given = {p.name: 7 for p in needed if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
    made = kind("what went wrong", **given)
    sent = pickle.loads(pickle.dumps(made))
    assert type(sent) is kind
    assert (sent.args, sent.__dict__) == (made.args, made.__dict__)
