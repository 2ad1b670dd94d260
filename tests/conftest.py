"""Two ways to search: the same cases in every run, or new ones in each (`--hypothesis-profile search`)."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile("same")
