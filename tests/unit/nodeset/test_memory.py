"""What is waited for until Slurm's cache shows it: own writes, and records of pods that have gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.observation.observe import OLDEST_PICTURE
from slinky_operator.slurm.connection.contact import ContactState


class Picture(SimpleNamespace):
    """Slurm, as far as it matters here."""

    def __init__(self, nodes_at: float) -> None:
        super().__init__(contact=SimpleNamespace(state=ContactState.READY), nodes_at=nodes_at, asked=0)

    def show_output(self, nodeset: str, shares: tuple[float, float] | None) -> None:
        assert shares is None, f"{nodeset} has no job log server"

    def hurry(self, *, whole: bool = False) -> None:
        self.asked += 1


def must_wait(memory: Memory, slurm: Any, now: float) -> bool:
    return memory.is_awaited(memory.follow_write(slurm), now)


def test_a_picture_is_asked_for_once_for_each_write_and_waited_for() -> None:
    slurm: Any = Picture(nodes_at=10.0)
    memory = Memory(told_slurm_at=11.0)
    assert all(must_wait(memory, slurm, 12.0) for _ in range(5))
    assert slurm.asked == 1

    slurm.nodes_at = 11.5
    assert not must_wait(memory, slurm, 12.0)
    assert not must_wait(memory, slurm, 13.0)
    assert slurm.asked == 1

    memory.told_slurm_at = 14.0
    assert must_wait(memory, slurm, 14.0)
    assert slurm.asked == 2


def test_a_picture_that_was_asked_for_before_the_write_does_not_show_it() -> None:
    slurm: Any = Picture(nodes_at=11.0)
    assert must_wait(Memory(told_slurm_at=11.0), slurm, 11.0)


def test_a_picture_that_never_comes_is_not_waited_for_for_ever() -> None:
    slurm: Any = Picture(nodes_at=10.0)
    memory = Memory(told_slurm_at=11.0)
    assert not must_wait(memory, slurm, 11.0 + OLDEST_PICTURE)


def test_a_name_is_unlisted_until_slurm_is_asked_for_its_nodes_after_its_pod_has_gone() -> None:
    memory = Memory(gone={"a-0": 10.0, "a-1": 20.0})

    def asked(at: float | None) -> Any:
        return SimpleNamespace(nodes_at=at)

    assert memory.unlisted(None) == memory.unlisted(asked(None)) == memory.unlisted(asked(10.0)) == {"a-0", "a-1"}
    assert memory.unlisted(asked(15.0)) == {"a-1"}
    assert memory.unlisted(asked(20.5)) == frozenset()
    assert not memory.gone


def test_a_list_of_nodes_is_requested_once_for_each_pod_that_has_gone() -> None:
    memory = Memory(gone={"a-0": 10.0, "a-1": 10.0})

    assert not memory.needs_list(frozenset())
    assert memory.needs_list({"a-0"})
    assert not memory.needs_list({"a-0", "a-1"})
    memory.gone["a-0"] = 12.0
    assert memory.needs_list({"a-0", "a-1"})
    assert not memory.needs_list({"a-0", "a-1"})
