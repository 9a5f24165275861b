"""What a worker process registers; read `kinds.py`."""

from stateknot.registry import register
from tests.acceptance.once_site.kinds import KINDS, build_kind

for kind in KINDS:
    register(build_kind(kind))
