"""What a worker process registers; read `held_nodes.py`."""

from stateknot.registry import register
from tests.acceptance.crash_site.held_nodes import build_fan, build_line

register(build_line())
register(build_fan())
