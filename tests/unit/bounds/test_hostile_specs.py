"""No text of any kind costs much: each field of each kind gets every hostile text, as long and as often as may be.

Kinds and fields are taken from the schemas, so a new one is tried as it is, and a new kind needs a way to be tried.
Cluster and NodeSet, whose passes are longer, are tried in `tests/unit/passes/test_long_texts.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

import pytest

from slinky_api.crd.definition import definition
from slinky_api.sylabs import OLD_JOB_KINDS
from slinky_api.v1alpha1 import JOB_KINDS, KINDS
from slinky_api.v1alpha1.common import ApiObject
from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs.parameters import PARAMETERS
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.jobs.translation import translate
from slinky_operator.sylabs.kinds import KINDS as OLD_KINDS
from slurm_client.notation.sbatch.lines import LONGEST as LONGEST_WORD
from slurm_client.notation.sbatch.table import TAKES
from tests.support.from_schema import ITEM, Path, Schema, filled, text_fields
from tests.support.hostile_texts import SHORT, Cost, measured, texts
from tests.unit.loginset import builders as loginsets
from tests.unit.slurmjob.worlds import job_world
from tests.unit.sylabs.worlds import old_world
from tests.unit.token.worlds import TokenWorld

pytestmark = pytest.mark.thorough

LINES: Final = 60_000
"""Lines of the event loop's thread: 20 ms on a machine that runs three in a microsecond."""

TRIES: Final = 3
"""While a thread works, the loop does its other work, more of it on a busy machine: that only adds to a cost."""

LINES_OF_A_TRANSLATION: Final = 600_000
"""The same of a translation, which runs in a thread, once for each version of an object."""

PEAK: Final = 96 * 2**20
"""Bytes: an object has a megabyte and a half."""

SECONDS: Final = 10.0
"""Time that the thread runs, tracing included."""

UNBOUNDED: Final = 200_000
WHOLE: Final = 262_144
"""Characters of a text, and of all items of a list, where the schema leaves them open."""

Specs = Mapping[str, dict[str, Any]]
Trial = Callable[[Specs], Coroutine[Any, Any, dict[str, Cost]]]
"""The first passes over an object of each spec."""


def schema_of(resource: Any, model: type[ApiObject]) -> Schema:
    version = definition(resource, model)["spec"]["versions"][0]
    found: Schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


async def of_slurmjobs(specs: Specs) -> dict[str, Cost]:
    costs = {}
    async with job_world() as world:
        for number, (name, spec) in enumerate(specs.items()):
            fixed = {"clusterName": "slurm", "clusterNamespace": "ns"}
            world.job(f"a{number}", **{"dryRun": True, "logs": {}, **fixed, **spec})
            with measured() as cost:
                for _ in range(3):
                    _ = await world.step(f"a{number}")
            assert world.status(f"a{number}")["conditions"]
            costs[name] = cost()
    return costs


def of_old(index: int) -> Trial:
    async def trial(specs: Specs) -> dict[str, Cost]:
        costs = {}
        async with old_world() as world:
            kind = OLD_KINDS[index]
            for number, (name, spec) in enumerate(specs.items()):
                world.old(kind, f"a{number}", **spec)
                with measured() as cost:
                    for _ in range(2):
                        _ = await world.look(kind, f"a{number}")
                assert world.shown(kind, f"a{number}") or world.child(kind, f"a{number}")
                costs[name] = cost()
        return costs

    return trial


async def of_loginsets(specs: Specs) -> dict[str, Cost]:
    costs = {}
    for name, spec in specs.items():
        world = loginsets.World(**{"clusterName": "slurm", **spec})
        with measured() as cost:
            for _ in range(2):
                await world.step()
        assert world.status["conditions"]
        costs[name] = cost()
    return costs


async def of_tokens(specs: Specs) -> dict[str, Cost]:
    costs = {}
    for name, spec in specs.items():
        world = TokenWorld()
        world.cluster(auth={"tokens": [{"namespaces": ["ns"], "usernames": ["alice"]}]})
        world.token(**{"username": "alice", **spec})
        with measured() as cost:
            for _ in range(2):
                _ = await world.step()
        assert world.status()["conditions"]
        costs[name] = cost()
    return costs


TRIALS: Final[Mapping[str, Trial | None]] = {
    "slinky.slurm.net/Cluster": None,
    "slinky.slurm.net/NodeSet": None,
    "slinky.slurm.net/LoginSet": of_loginsets,
    "slinky.slurm.net/Token": of_tokens,
    "slinky.slurm.net/SlurmJob": of_slurmjobs,
    **{f"{kind.resource.group}/{kind.resource.kind}": of_old(place) for place, kind in enumerate(OLD_KINDS)},
}
"""How each kind is tried; None for those of `test_long_texts`."""

SCHEMAS: Final = {
    f"{resource.group}/{resource.kind}": schema_of(resource, model)
    for resource, model in (*KINDS, *JOB_KINDS, *OLD_JOB_KINDS)
}
FIELDS: Final[list[tuple[str, Path, Schema]]] = [
    (kind, path, schema)
    for kind in SCHEMAS
    if TRIALS.get(kind) is not None
    for path, schema in text_fields(SCHEMAS[kind])
]


TRANSLATED_NAMES: Final = frozenset(one.alias or name for name, one in SlurmJobSpec.model_fields.items())


def spec_with(field: tuple[str, Path, Schema], make: Callable[[int], Any], items: int) -> dict[str, Any]:
    kind, path, _ = field
    spec: dict[str, Any] = filled(SCHEMAS[kind], path, make, items=items)
    return spec


def test_every_kind_is_tried() -> None:
    assert SCHEMAS.keys() == TRIALS.keys()


def too_much(costs: Mapping[str, Cost], plain: Cost) -> dict[str, Cost]:
    return {
        name: cost
        for name, cost in costs.items()
        if cost.lines > plain.lines + LINES or cost.peak > PEAK or cost.seconds > SECONDS
    }


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field[0]}-{'.'.join(field[1])}")
def test_a_hostile_text_costs_the_event_loop_next_to_nothing(field: tuple[str, Path, Schema]) -> None:
    kind, path, schema = field
    trial = TRIALS[kind]
    assert trial is not None
    longest = schema.get("maxLength", UNBOUNDED)
    items = max(1, WHOLE // longest)
    made = {name: (text, 1 if name in SHORT else items) for name, text in texts(longest).items()}
    if ITEM in path:
        made["many"] = ("a", WHOLE // 16)

    specs = {"plain": spec_with(field, lambda _: "a", 1)}
    specs |= {name: spec_with(field, lambda _, text=text: text, items) for name, (text, items) in made.items()}  # type: ignore[misc]
    found: dict[str, Cost] = {}
    for _ in range(TRIES):
        costs = asyncio.run(trial(specs))
        found = too_much(costs, costs["plain"])
        if not found:
            break
        specs = {name: spec for name, spec in specs.items() if name in {"plain", *found}}
    assert found == {}


TRANSLATED: Final = [one for one in FIELDS if one[0].endswith("/SlurmJob") and one[1][0] in TRANSLATED_NAMES]


@pytest.mark.parametrize("field", TRANSLATED, ids=lambda field: ".".join(field[1]))
def test_nor_does_its_translation_in_a_thread_cost_much(field: tuple[str, Path, Schema]) -> None:
    longest = field[2].get("maxLength", UNBOUNDED)
    costs, plain = {}, Cost(LINES_OF_A_TRANSLATION, 0, 0.0)
    for name, text in texts(longest).items():
        items = 1 if name in SHORT else max(1, WHOLE // longest)
        written = {"script": "#!/bin/sh\n", **spec_with(field, lambda _, text=text: text, items)}  # type: ignore[misc]
        try:
            spec = SlurmJobSpec.model_validate(written)
        except ValueError:  # refused before it is translated; that is measured above
            continue
        with measured() as cost, suppress(InvalidJob):
            _ = translate(spec, name="a")
        costs[name] = cost()
    assert costs
    assert too_much(costs, plain) == {}


@pytest.mark.parametrize("name", PARAMETERS)
def test_nor_does_a_parameter(name: str) -> None:
    costs, plain = {}, Cost(LINES_OF_A_TRANSLATION, 0, 0.0)
    for kind, text in texts(UNBOUNDED).items():
        for value in (text, [text[:9]] * 20_000):
            spec = SlurmJobSpec.model_validate({"script": "#!/bin/sh\n", "parameters": {name: value}})
            with measured() as cost, suppress(InvalidJob):
                _ = translate(spec, name="a")
            costs[f"{kind} {type(value).__name__}"] = cost()
    assert too_much(costs, plain) == {}


WORDS: Final = texts(LONGEST_WORD)
OPTIONS_WITH_A_VALUE: Final = sorted(name for name, takes in TAKES.items() if takes != "none")


@pytest.mark.parametrize("option", OPTIONS_WITH_A_VALUE)
def test_nor_does_an_option_of_a_script(option: str) -> None:
    costs, plain = {}, Cost(LINES_OF_A_TRANSLATION, 0, 0.0)
    for kind in ("digits", "names", "arrays", "hosts", "brackets", "times", "resources", "long name", *SHORT):
        text = WORDS[kind]
        quoted = text.replace("\n", " ").replace("\\", "").replace("'", "")
        spec = SlurmJobSpec.model_validate({"script": f"#!/bin/sh\n#SBATCH --{option}='{quoted}'\n"})
        with measured(traced=False) as cost, suppress(InvalidJob):
            _ = translate(spec, name="a")
        costs[kind] = cost()
    assert too_much(costs, plain) == {}
