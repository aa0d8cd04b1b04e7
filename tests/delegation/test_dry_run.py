from __future__ import annotations

import pytest

from delegraph.delegation.dry_run import dry_run, is_dry_run


def test_it_is_one_inside_only() -> None:
    assert not is_dry_run()
    with dry_run():
        with dry_run():
            assert is_dry_run()
        assert is_dry_run()
    assert not is_dry_run()


def test_an_error_ends_it() -> None:
    with pytest.raises(ValueError, match="inside"), dry_run():
        raise ValueError("inside")
    assert not is_dry_run()
