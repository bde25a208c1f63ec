"""Places and features that Slurm does not take: it is not asked for them with each pass, and what it says stays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from slinky_operator.nodeset.drain.slurm_steps import give_traits
from slinky_operator.nodeset.execute import slurm_writes
from slinky_operator.nodeset.execute.context import PassOutcome
from slinky_operator.nodeset.execute.queries import slurm_queries
from slinky_operator.nodeset.execute.slurm_writes import CHANGES_AT_ONCE
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.model.actions import SetTraits
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes.kubernetes_features import AGAIN, Traits, words_of
from slurm_client import errors
from slurm_client.models import Node
from tests.unit.nodeset.planning.test_steady import seen

ZONE = {"name": "default", "nodeLabels": ["zone"]}
NAMES = ("a-0", "a-1")


def placed(zone: str = "eu-1") -> Snapshot:
    """Two nodes without a place, on a Node with a label."""
    own = seen()
    spec = type(own.nodeset.spec).model_validate(
        {**own.nodeset.spec.model_dump(by_alias=True, exclude_none=True), "topology": [ZONE]}
    )
    pods = tuple(replace(pod, host="m-1") for pod in own.pods)
    hosts = {"m-1": KubernetesNode("m-1", labels={"zone": zone})}
    return replace(own, nodeset=own.nodeset.model_copy(update={"spec": spec}), pods=pods, hosts=hosts)


class Slurm:
    """Writes no place."""

    def __init__(self, nodes: Mapping[str, Node], error: errors.SlurmError | None) -> None:
        self.nodes, self.error = nodes, error
        self.reads = 0
        self.written: list[list[str]] = []
        self.client = self

    async def refresh(self, names: Collection[str]) -> Mapping[str, Node]:
        self.reads += 1
        return {name: self.nodes[name] for name in names}

    async def update_nodes(self, names: Sequence[str], **_: Any) -> None:
        if self.error is not None:
            raise self.error
        self.written.append(list(names))


def context(slurm: Slurm) -> Any:
    return SimpleNamespace(
        outcome=PassOutcome(), owner="ns/a", reach=lambda: slurm, warn=lambda *_: None, unseen=False, written_at=None
    )


async def passed(snapshot: Snapshot, memory: Memory, slurm: Slurm, clock: float) -> tuple[int, list[str]]:
    """One pass: how often Slurm was read, and what is said of what it does not take."""
    slurm.reads = 0
    snapshot = replace(snapshot, refused_traits=memory.refused_traits(clock))
    for action in give_traits(snapshot, snapshot.members):
        assert isinstance(action, SetTraits)
        own = context(slurm)
        await slurm_writes.set_traits(own, action.wanted)
        memory.note_traits(own.outcome.traits, clock)
    return slurm.reads, words_of(memory.refused_traits(clock))


@pytest.fixture(autouse=True)
def tagged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slinky_operator.nodeset.slurm_nodes.identity.is_tagged", lambda *_: True)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.InvalidRequest("no such block"), ["the place default:eu-1 for a-0, a-1: no such block"]),
        (errors.NotSupported("v0.0.42 has no topology"), []),
    ],
)
async def test_what_slurm_does_not_take_is_asked_for_rarely_and_told_all_the_time(
    error: errors.SlurmError, words: list[str]
) -> None:
    memory, own = Memory(), placed()
    slurm = Slurm(own.slurm.nodes, error)

    assert await passed(own, memory, slurm, 100.0) == (1, words)
    assert await passed(own, memory, slurm, 100.0 + AGAIN - 1) == (0, words)
    assert await passed(own, memory, slurm, 100.0 + AGAIN) == (1, words)


async def test_another_label_is_asked_for_at_once_and_what_is_taken_is_said_no_more() -> None:
    memory, own = Memory(), placed()
    slurm = Slurm(own.slurm.nodes, errors.InvalidRequest("no such block"))
    _ = await passed(own, memory, slurm, 100.0)

    slurm.error = None
    reads, _ = await passed(placed("eu-2"), memory, slurm, 101.0)
    assert reads == 2
    assert memory.refused_traits(101.0) == {}


@pytest.mark.parametrize(
    "wanted", [Traits((), f"default:{'x' * 10_000}"), Traits(tuple(f"feature-{number}" for number in range(1_000)))]
)
async def test_a_long_place_and_many_features_leave_room_for_what_slurm_says_of_them(wanted: Traits) -> None:
    memory, own = Memory(), placed()
    names = {name: replace(one, topology="") for name, one in own.slurm.nodes.items()}
    doing = context(Slurm(names, errors.InvalidRequest("no such thing")))

    await slurm_writes.set_traits(doing, dict.fromkeys(names, wanted))
    memory.note_traits(doing.outcome.traits, 100.0)

    (words,) = words_of(memory.refused_traits(100.0))
    assert len(words) < 500
    assert words.endswith("for a-0, a-1: no such thing")


@pytest.mark.parametrize("error", [None, errors.NotSupported("v0.0.42 has no topology")])
async def test_many_places_are_written_some_at_a_time_and_the_others_soon(
    error: errors.SlurmError | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_queries, "MAX_SINGLE_GETS", 100)
    names = [f"a-{number}" for number in range(CHANGES_AT_ONCE + 3)]
    (some, *_) = placed().slurm.nodes.values()
    slurm = Slurm({name: replace(some, name=name, topology="") for name in names}, error)
    wanted = {name: Traits((), f"default:rack-{name}") for name in names}
    own = context(slurm)

    await slurm_writes.set_traits(own, wanted)

    assert list(own.outcome.traits) == names[:CHANGES_AT_ONCE]
    assert own.outcome.acted
    assert slurm.written == ([] if error is not None else [[name] for name in names[:CHANGES_AT_ONCE]])
    # The last ones: no further pass is asked for if nothing was written.
    own = context(slurm)
    await slurm_writes.set_traits(own, {name: wanted[name] for name in names[CHANGES_AT_ONCE:]})
    assert (list(own.outcome.traits), own.outcome.acted) == (names[CHANGES_AT_ONCE:], error is None)
