"""What a worker process registers; read `walk.py`."""

from stateknot.registry import register
from tests.acceptance.matrix_site.walk import build_walk

register(build_walk())
