from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import launched


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser
