"""Management: the commands of an operator and the processes they supervise.

`commands/` holds thin Django commands; `supervision/` holds what starts, watches and
ends the processes behind `stateknot_worker` and `stateknot_up`.
"""
