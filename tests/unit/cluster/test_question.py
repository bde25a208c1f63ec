"""Answers to questions are remembered while what they are about is there."""

from __future__ import annotations

from slinky_operator.cluster.question import Answers, Question


class Count(Question[int]):
    """A question about a pod."""


class Total(Question[int]):
    """One about the whole Cluster."""


def test_answers_about_pods_that_are_gone_are_forgotten() -> None:
    answers = Answers()
    answers.note(Total, 1)
    for number in range(40):
        answers.note(Count, number, f"pod-{number}")
    copy = answers.copy()
    answers.retain({f"pod-{number}" for number in range(20, 40)})
    assert answers.every(Count) == {f"pod-{number}": number for number in range(20, 40)}
    assert answers.of(Total) == 1
    assert len(copy.every(Count)) == 40, "what a pass has been given stays as it is"


def test_an_answer_can_be_forgotten() -> None:
    answers = Answers()
    answers.note(Count, 1, "a")
    answers.note(Count, None, "a")
    answers.note(Count, None, "never there")
    assert answers.of(Count, "a") is None
