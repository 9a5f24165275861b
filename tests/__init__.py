"""The tests; `tests/README.md` says what goes where."""
