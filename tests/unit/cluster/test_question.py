"""Answers to questions are remembered, and not without end."""

from __future__ import annotations

from slinky_operator.cluster.question import MOST_KEPT, Answers, Question


class Count(Question[int]):
    """A question about a pod."""


class Total(Question[int]):
    """One about the whole Cluster."""


def test_the_last_answers_about_pods_are_kept() -> None:
    answers = Answers()
    answers.note(Total, 1)
    for number in range(MOST_KEPT):
        answers.note(Count, number, f"pod-{number}")
    answers.note(Count, 100, "pod-0")
    answers.note(Count, 200, "pod-new")
    found = answers.every(Count)
    assert len(found) == MOST_KEPT
    assert "pod-1" not in found, "the pod that was asked the longest time ago"
    assert (found["pod-0"], found["pod-new"]) == (100, 200)
    assert answers.of(Total) == 1


def test_an_answer_can_be_forgotten() -> None:
    answers = Answers()
    answers.note(Count, 1, "a")
    answers.note(Count, None, "a")
    answers.note(Count, None, "never there")
    assert answers.of(Count, "a") is None
