"""What is kept of the partitions of a Cluster that a node selector may stand for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from slinky_operator.jobs.tenants import Grant
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slinky_operator.sylabs.clusters import Chosen
from slinky_operator.sylabs.partitions import LONGEST_NAME, MOST_NAMES, PartitionReader
from slinky_operator.sylabs.translation.site import Site
from slurm_client.models import Partition


class Slurm:
    """A Slurm with the partitions that a test sets."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.contact = Contact(ContactState.READY, datetime(2026, 11, 23, tzinfo=UTC), "")

    @property
    def client(self) -> Slurm:
        return self

    def find(self, namespace: str, name: str) -> Slurm:
        assert (namespace, name) == ("ns", "slurm")
        return self

    async def partitions(self) -> list[Partition]:
        return [Partition(name=name) for name in self.names]


async def found(reader: PartitionReader, name: str) -> bool:
    """Whether Slurm has a partition."""
    answer = await reader.ask(Chosen("ns", "slurm", Grant("alice"), Site()), {"wlm.sylabs.io/queue": name})
    assert isinstance(answer, Chosen)
    return name in answer.site.partitions


async def test_few_partitions_with_names_of_usual_length_are_kept() -> None:
    names = [f"p{number:05}" for number in range(5_000)]
    longest = "a" * LONGEST_NAME
    reader = PartitionReader(Slurm([*names, longest, f"{longest}a", "a" * 2**20]), lambda: 0.0)
    assert await found(reader, "p00000")
    assert await found(reader, longest)
    assert not await found(reader, f"{longest}a")
    assert not await found(reader, names[MOST_NAMES])
    ((_, kept),) = reader._known.values()
    assert len(kept) == MOST_NAMES
    assert max(map(len, kept)) == LONGEST_NAME


async def test_all_partitions_of_a_usual_slurm_are_kept() -> None:
    names = [f"p{number}" for number in range(MOST_NAMES)]
    reader = PartitionReader(Slurm(names), lambda: 0.0)
    assert [name for name in names if not await found(reader, name)] == []
