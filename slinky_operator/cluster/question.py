"""What a part wants to know from the world: a question, and the answers that are remembered.

A question is frozen data that a step makes (`actions.Ask`), and knows how it is asked. The executor asks it, and its
answer is remembered by its type until the next one. A question that fails has an answer too, which says why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Generic, TypeVar

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext

A = TypeVar("A")


class Question(Generic[A]):
    """A question of a part, about one Cluster."""

    @property
    def about(self) -> str:
        """What it is about, if answers about several things are remembered: the name of a pod."""
        return ""

    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> A | None:
        """Ask it.

        Parameters
        ----------
        answers
            What is remembered, with the last answer to this question.

        Returns
        -------
        A | None
            The answer to remember; `None` to forget the last one.
        """
        raise NotImplementedError

    def is_news(self, before: A | None, answer: A | None) -> bool:
        """Whether an answer makes another round worthwhile at once.

        The pass is then repeated, at most eight times, and its status is not written: an answer that differs in its
        time alone is no news.
        """
        _ = before, answer
        return True


class Answers:
    """Answers about one Cluster, the last one to each question."""

    def __init__(self, known: Mapping[tuple[type[Any], str], Any] | None = None) -> None:
        self._known = dict(known or {})

    def of(self, question: type[Question[A]], about: str = "") -> A | None:
        """The last answer to a type of question."""
        found: A | None = self._known.get((question, about))
        return found

    def every(self, question: type[Question[A]]) -> dict[str, A]:
        """The last answers to a type of question, by what they are about."""
        return {about: one for (kind, about), one in self._known.items() if kind is question}

    def note(self, question: type[Question[A]], answer: A | None, about: str = "") -> None:
        """Remember an answer; `None` forgets the last one."""
        if answer is None:
            _ = self._known.pop((question, about), None)
        else:
            self._known[question, about] = answer

    def retain(self, pods: Collection[str]) -> None:
        """Forget answers about other pods: they are gone."""
        for question, about in list(self._known):
            if about and about not in pods:
                del self._known[question, about]

    def copy(self) -> Answers:
        """A copy that later answers do not change."""
        return Answers(self._known)
