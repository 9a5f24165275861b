"""Adding up what a run used."""

from __future__ import annotations

from stateknot.kernel.usage import add_up


def test_usage_is_the_sum_of_all_attempts() -> None:
    """Failed ones count: they used it."""
    found = add_up(
        [
            ("a", "failed", {"tokens": 3}),
            ("a", "succeeded", {"tokens": 4, "calls": 1}),
            ("b", "succeeded", None),
        ]
    )
    assert (dict(found.amounts), found.is_complete) == ({"tokens": 7, "calls": 1}, True)


def test_lost_attempt_of_a_node_that_reports_makes_it_incomplete() -> None:
    """Whichever came first."""
    attempts = [("a", "lost", None), ("a", "succeeded", {"tokens": 4})]
    assert not add_up(attempts).is_complete
    assert not add_up(reversed(attempts)).is_complete


def test_lost_attempt_of_a_node_that_reports_nothing_takes_nothing_away() -> None:
    attempts = [("b", "lost", None), ("a", "succeeded", {"tokens": 4})]
    assert add_up(attempts).is_complete
