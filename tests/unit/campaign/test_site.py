"""What is there at two times is compared by names that last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from tests.campaign.site.administrator import Administrator
from tests.campaign.site.site import Site, lasting_name, wrong_nodes


def test_the_guard_of_a_nodeset_that_was_made_again_is_the_same_and_two_of_them_are_one_too_many() -> None:
    before, after = (lasting_name("configmaps", f"nodeset-a-{one}") for one in ("6be94659", "0ae981f8"))
    assert before == after
    assert Counter([before, after]) - Counter([before]) == Counter([after])


def test_names_without_a_hash_stay() -> None:
    assert lasting_name("secrets", "slurm-auth-jwt") == "secrets slurm-auth-jwt"
    assert lasting_name("configmaps", "slurm-config") == "configmaps slurm-config"


IDLE = dict.fromkeys(("a-0", "a-1", "a-2", "b-0", "b-1", "node-2"), "idle")


def test_a_nodeset_may_have_other_nodes_than_before_and_no_more_or_fewer_of_them() -> None:
    others = {node: state for node, state in IDLE.items() if node != "b-0"}
    assert wrong_nodes(IDLE, {"node-2"}) == wrong_nodes({**others, "b-2": "idle"}, {"node-2"}) == {}
    assert wrong_nodes(others, {"node-2"}) == {"of b": "1 are there, and 2 at rest"}
    assert wrong_nodes({**IDLE, "c-0": "idle"}, {"node-2"}) == {"of c": "1 are there, and 0 at rest"}


def test_a_node_that_is_not_idle_or_not_there_is_wrong() -> None:
    assert wrong_nodes({**IDLE, "a-1": "drained"}, {"node-2"}) == {"a-1": "drained"}
    assert wrong_nodes({**IDLE}, {"node-2", "node-1"}) == {"node-1": "absent"}
    assert wrong_nodes(IDLE, set()) == {"of node": "1 are there, and 0 at rest"}


@dataclass
class Slow:
    """A site that comes to rest by what is said of each moment, on a clock of its own."""

    restless: Callable[[float], str]
    now: float = 0.0
    done: int = 0
    at_rest: Counter[str] = field(default_factory=Counter)
    astray: Callable[[float], str] = lambda now: ""

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def administrator(self) -> Administrator:
        return cast("Administrator", self)

    def restore(self) -> list[str]:
        self.done += 1
        return []

    def cancel_ended(self, names: object) -> list[str]:
        return []

    def orphans(self) -> list[str]:
        return [said] if (said := self.astray(self.now)) else []

    def _restless(self) -> Iterator[str]:
        if said := self.restless(self.now):
            yield said


@pytest.mark.parametrize(
    ("restless", "left", "until"),
    [
        (lambda now: "", [], 0),
        (lambda now: f"pod {now // 50}" if now < 700 else "", [], 700),
        (lambda now: "stuck", ["stuck"], 302),
        (lambda now: f"pod {now // 50}", ["pod 18.0"], 902),
    ],
)
def test_a_round_is_given_up_when_nothing_changes_any_more_or_everything_for_ever(
    monkeypatch: pytest.MonkeyPatch, restless: Callable[[float], str], left: list[str], until: float
) -> None:
    slow = Slow(restless)
    monkeypatch.setattr("tests.campaign.site.site.time", slow)
    assert Site.settle(cast("Site", slow), 300) == left
    assert slow.now == until
    assert slow.done == until / 2


def test_what_a_round_waits_for_is_told_when_it_is_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {0: "job 1: RUNNING", 2: "job 1: COMPLETING", 4: "node a-0: mixed", 6: ""}
    slow, heard = Slow(lambda now: said[int(now)]), list[str]()
    monkeypatch.setattr("tests.campaign.site.site.time", slow)
    assert Site.settle(cast("Site", slow), 300, waits=heard.append) == []
    assert heard == ["job 1", "node a-0", "nothing"]


def test_a_round_ends_when_what_lost_its_owner_has_one_again_of_which_the_operator_hears_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow, heard = Slow(lambda now: "job 1: RUNNING" if now < 4 else ""), list[str]()
    slow.astray = lambda now: "secrets portal of nobody: 1 are there, and 0 at rest before" if now < 30 else ""
    monkeypatch.setattr("tests.campaign.site.site.time", slow)
    assert Site.settle(cast("Site", slow), 300) == []
    assert slow.now == 4, "nobody knows what is there at rest while the site comes up"
    slow.now, slow.at_rest = 0.0, Counter(["secrets portal"])
    assert Site.settle(cast("Site", slow), 300, waits=heard.append) == []
    assert slow.now == 30
    assert heard == ["job 1", "secrets portal of nobody", "nothing"]


def test_what_is_astray_is_what_was_not_there_so_often_or_is_gone() -> None:
    site: Any = type("Site", (), {"at_rest": Counter(["secrets a", "secrets b"])})()
    site.objects = lambda: Counter(["secrets a", "secrets a", "secrets c"])
    assert Site.orphans(cast("Site", site)) == [
        "secrets a: 2 are there, and 1 at rest before",
        "secrets b: 0 are there, and 1 at rest before",
        "secrets c: 1 are there, and 0 at rest before",
    ]
