"""No text in an answer of Slurm costs much: each key of each object gets every hostile text, and so do all readers.

Decoders and the keys that they read are found by themselves, so a new one is tried as it is. The models of users' and
nodes' objects are tried field by field with `READERS`: what reads their texts is to be named there.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, Final

import pytest
from typing_extensions import override

from slinky_operator.nodeset.slurm_nodes import identity
from slinky_operator.slurm.nodes.gres_amounts import gres_amounts
from slinky_operator.slurmjob.model.slurm_records import marks, records
from slurm_client import decode
from slurm_client.connection.answers import _weight
from slurm_client.models import Job, JobRecord, JobState, Node, Partition, Reservation
from slurm_client.notation import hostlist
from slurm_exporter.families.jobs import task_count
from slurm_exporter.families.nodes import gres_counts
from tests.support.hostile_texts import Cost, measured, texts

pytestmark = pytest.mark.thorough

LONGEST: Final = 65_536
PEAK: Final = 96 * 2**20
"""Bytes that one object of an answer may take at most, with all that is made of it."""
SECONDS: Final = 10.0
"""Time that the thread runs, tracing included."""
LINES: Final = 200_000
"""Lines of Python for one object."""

TEXTS: Final = texts(LONGEST)


class Asked(dict[str, Any]):
    """An object that has every key, and notes which are read."""

    def __init__(self, keys: set[str]) -> None:
        super().__init__({"name": "a"})
        self.keys_read = keys

    @override
    def get(self, key: str, default: Any = None) -> Any:
        self.keys_read.add(key)
        return "1"


def decoders() -> dict[str, Callable[[Any], Any]]:
    """Every function that makes a model of an object of an answer."""
    found: dict[str, Callable[[Any], Any]] = {}
    for module in pkgutil.walk_packages(decode.__path__, f"{decode.__name__}."):
        for name, function in inspect.getmembers(importlib.import_module(module.name), inspect.isfunction):
            is_public = function.__module__ == module.name and not name.startswith("_")
            if is_public and list(inspect.signature(function).parameters) == ["raw"]:
                found[f"{module.name.removeprefix(decode.__name__)[1:]}.{name}"] = function
    return found


DECODERS: Final = decoders()


def run(function: Callable[[Any], Any], raw: Any) -> Any:
    with suppress(ValueError):
        made = function(raw)
        return list(made) if inspect.isgenerator(made) else made
    return None


def keys_of(function: Callable[[Any], Any]) -> list[str]:
    keys: set[str] = set()
    run(function, Asked(keys))
    return sorted(keys)


def too_much(costs: Mapping[str, Cost]) -> dict[str, Cost]:
    return {
        name: cost for name, cost in costs.items() if cost.peak > PEAK or cost.seconds > SECONDS or cost.lines > LINES
    }


def test_the_decoders_are_found() -> None:
    assert {"jobs.job", "nodes.node", "partitions.partition", "resources.reservation", "database.history.job"} <= {
        *DECODERS
    }
    assert {"nodes", "name", "array_task_string"} <= {*keys_of(DECODERS["jobs.job"])}


@pytest.mark.parametrize("name", DECODERS)
def test_no_key_of_an_object_costs_much_to_decode(name: str) -> None:
    function = DECODERS[name]
    keys = keys_of(function)
    plain = dict.fromkeys(keys, "1")
    nested: Any = 1
    for _ in range(150):
        nested = {"number": nested}
    costs = {}
    for key in keys:
        for kind, text in TEXTS.items():
            with measured(traced=False) as cost:
                run(function, {**plain, key: text})
            costs[f"{key} {kind}"] = cost()
        for kind, value in (("list", [TEXTS["hosts"]] * 9), ("many", ["a"] * LONGEST), ("nested", nested)):
            with measured(traced=False) as cost:
                run(function, {**plain, key: value})
            costs[f"{key} {kind}"] = cost()
    assert too_much(costs) == {}


def read_job(job: Job) -> None:
    records.of_queue([job])
    marks.read(job.extra)
    hostlist.shorten(job.scheduled_nodes, 512)
    inspect.unwrap(task_count)(job.array_tasks)
    assert _weight(job) < PEAK


def read_node(node: Node) -> None:
    for text in (node.gres, node.gres_used, node.gres_drained):
        gres_amounts(text)
        inspect.unwrap(gres_counts)(text)
    identity.is_named_in(node, "ns", "a-0")
    identity.is_tagged(node, "ns/a")


READERS: Final[dict[type, tuple[Any, tuple[Callable[[Any], Any], ...]]]] = {
    Job: (Job(id=1, array_job_id=1, state=JobState("PENDING")), (read_job,)),
    JobRecord: (JobRecord(id=1, array_job_id=1, state=JobState("PENDING")), (lambda one: records.of_history([one]),)),
    Node: (Node(name="a"), (read_node,)),
    Partition: (Partition(name="a"), (lambda one: hostlist.size(one.node_list),)),
    Reservation: (Reservation(name="a"), (lambda one: hostlist.size(one.node_list),)),
}
"""What the operator and the exporter read of the objects of users and nodes."""


def text_fields(model: type) -> Iterator[tuple[str, bool]]:
    """Fields of a model with texts, and whether there are several."""
    for one in fields(model):
        kind = str(one.type)
        if kind.startswith(("str", "tuple[str")):
            yield one.name, kind.startswith("tuple")


@pytest.mark.parametrize(
    ("model", "name", "several"),
    [(model, name, several) for model in READERS for name, several in text_fields(model)],
    ids=lambda part: part if isinstance(part, str) else getattr(part, "__name__", ""),
)
def test_no_field_costs_its_readers_much(model: type, name: str, several: bool) -> None:
    plain, readers = READERS[model]
    costs = {}
    deep = "[" * LONGEST
    for kind, text in {**TEXTS, "deep": deep, "mask": "0x" + "5" * 1_000_000}.items():
        one = replace(plain, **{name: (text,) * 9 if several else text})
        for place, reader in enumerate(readers):
            with measured() as cost:
                reader(one)
            costs[f"{kind} {place}"] = cost()
    assert too_much(costs) == {}
