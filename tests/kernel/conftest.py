"""Settings of the kernel's property tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine would fail an example for its first, slow call; pytest-timeout bounds
# each test as a whole.
settings.register_profile("kernel", deadline=None)
settings.load_profile("kernel")
