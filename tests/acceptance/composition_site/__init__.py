"""A project around the deployable one whose workers know one recorded composition.

`test_composition_processes.py` names it in the environment; read `loops.py` next.
"""
