from __future__ import annotations

import os

from hypothesis import settings

# A slow machine is no failure. Where CI is set, Hypothesis takes its own profile "ci" instead.
settings.register_profile(
    "default", settings.get_profile("default"), deadline=None, print_blob=True
)

os.environ["DELEGRAPH_DEFAULT_DELEGATES"] = ""  # tests name the delegates they are about
