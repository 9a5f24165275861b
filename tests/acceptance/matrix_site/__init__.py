"""A project around the deployable one whose workers meet faults on purpose.

Worker processes of `test_matrix.py` run with `tests.acceptance.matrix_site.settings`.
"""
