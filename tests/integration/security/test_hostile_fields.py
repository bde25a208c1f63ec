"""Hostile text in the fields of every kind, on a real API server with the operator that runs.

Fields come from the schemas, so a new one is tried as it is. A seed chooses fields and texts. What a text costs is
measured in tests/unit/bounds; here it must come out as text: in no configuration as a line, in no log as more
than one line, in no status and Event as what a terminal obeys, and without end nowhere.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from slinky_api.crd.definition import definition
from slinky_api.v1alpha1 import JOB_KINDS, KINDS
from tests.support.deployed_operator import fetch
from tests.support.from_schema import Path, Schema, filled, text_fields
from tests.support.tenants import HELLO, OWN, TENANT, VICTIM, Answer, Site, made, plural

SEED: Final = 34
INJECTED: Final = "Injected"
TEXTS: Final = {
    "line": f"a\n{INJECTED}=1",
    "return": f"a\r{INJECTED}=1",
    "separator": f"a\u2028{INJECTED}=1",
    "escape": f"\x1b[2J\x9b1m{INJECTED}",
    "invisible": f"a\u200b\u202e{INJECTED}",
    "path": f"../../{INJECTED}",
    "shell": f"$({INJECTED})`{INJECTED}`;{INJECTED}",
    "template": "{{ 7*7 }}{% for a in b %}",
    "continued": f"a \\\n{INJECTED}=1",
    "percents": "%s%n%j%%",
    "nothing": "",
}
LINES: Final = re.compile(r"extraConf|configFiles|Scripts|\.config$|extraSshdConfig|AuthorizedKeys|script$|health")
"""Fields that are lines themselves: who may write them writes lines."""

MOST: Final = {"Cluster": 12, "NodeSet": 27, "LoginSet": 12, "Token": 12, "SlurmJob": 38}
"""Objects of each kind: each Cluster has daemons, whose objects are made one by one."""

PASSES: Final = 40
"""Passes over an object at most, together with those that its own children, Clusters and retries cause."""

LONGEST: Final = 32_768
LONGEST_EVENT: Final = 1024


class Tried(NamedTuple):
    """One object with hostile text in one field."""

    kind: str
    field: str
    text: str
    body: dict[str, Any]


def schema_of(resource: Any, model: Any) -> Schema:
    version = definition(resource, model)["spec"]["versions"][0]
    found: Schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


SCHEMAS: Final = {resource.kind: schema_of(resource, model) for resource, model in (*KINDS, *JOB_KINDS)}
USUAL: Final[dict[str, dict[str, Any]]] = {
    "Cluster": {},
    "NodeSet": {"clusterName": "fuzzed", "replicas": 1},
    "LoginSet": {"clusterName": "fuzzed"},
    "Token": {"clusterRef": {"name": "keys", "namespace": VICTIM}},
    "SlurmJob": {"clusterName": "slurm", "clusterNamespace": VICTIM, "script": HELLO},
}
"""What lets the operator come as far as the field in question."""


def tried(kind: str) -> Iterator[Tried]:
    """Objects of a kind in the order of the seed, each with another field as long as there are any."""
    chance = random.Random(f"{SEED} {kind}")  # noqa: S311 - the same each time is the point
    fields = list(text_fields(SCHEMAS[kind]))
    chance.shuffle(fields)
    for number in range(MOST[kind]):
        path = fields[number % len(fields)][0]
        name = chance.choice(sorted(TEXTS))
        yield Tried(kind, ".".join(path), name, body_of(kind, f"fuzz-{number}", path, TEXTS[name]))


def body_of(kind: str, name: str, path: Path, text: str) -> dict[str, Any]:
    spec: dict[str, Any] = filled(SCHEMAS[kind], path, lambda _: text, items=1)
    usual = {key: value for key, value in USUAL[kind].items() if key != path[0]}
    return made(kind, name, {**spec, **usual}, annotations={"note": text})


@pytest.fixture(scope="module")
def answers(site: Site) -> list[tuple[Tried, Answer]]:
    """What the API server says to each; the operator has looked at all that it takes."""
    assert site.create(made("Cluster", "fuzzed", {})).status == 201
    everything = [one for kind in SCHEMAS for one in tried(kind)]
    found = list(zip(everything, site.side_by_side(lambda one: site.create(one.body), everything), strict=True))

    def unseen() -> list[str]:
        left = {(one.kind, one.body["metadata"]["name"]) for one, answer in found if answer.status == 201}
        for kind in SCHEMAS:
            for obj in site.items(f"{OWN}{TENANT}/{plural(kind)}"):
                if obj.get("status", {}).get("conditions"):
                    left.discard((kind, obj["metadata"]["name"]))
        return [f"{kind} {name}" for kind, name in sorted(left)]

    site.until("all have conditions", lambda: not unseen())
    return found


Answers = list[tuple[Tried, Answer]]


def test_each_kind_is_tried_and_each_object_is_taken_or_refused_by_its_schema(answers: Answers) -> None:
    assert SCHEMAS.keys() == MOST.keys()
    for one, answer in answers:
        assert answer.status in {201, 422, 400}, (one, answer)
        if answer.status != 201:
            assert answer.words
    taken = {one.kind for one, answer in answers if answer.status == 201}
    # A Token has names alone, and no name takes any of it.
    assert taken == SCHEMAS.keys() - {"Token"}


def texts_of(status: dict[str, Any]) -> Iterator[str]:
    yield str(status.get("summary", ""))
    for one in status.get("conditions", ()):
        yield one["reason"]
        yield one.get("message", "")


def test_every_text_of_the_operator_prints_and_has_a_bound(site: Site, answers: Answers) -> None:
    for kind in SCHEMAS:
        for obj in site.items(f"{OWN}{TENANT}/{plural(kind)}"):
            for text in texts_of(obj["status"]):
                assert text.replace("\n", "").isprintable(), (kind, obj["metadata"]["name"], text)
                assert len(text) <= LONGEST
    events = site.items(f"/api/v1/namespaces/{TENANT}/events")
    assert events
    for event in events:
        assert event["message"].replace("\n", "").isprintable(), event
        assert len(event["message"]) <= LONGEST_EVENT


def test_no_line_of_the_log_is_somebody_elses(site: Site, answers: Answers) -> None:
    for line in site.log.read_text().splitlines():
        if line.startswith("{"):
            assert json.loads(line)["message"].isprintable()
        else:
            assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z (DEBUG|INFO|WARNING|ERROR) ", line), line
        assert "Traceback" not in line


def test_no_text_is_a_line_of_a_configuration(site: Site, answers: Answers) -> None:
    may = {one.body["metadata"]["name"] for one, _ in answers if one.kind == "Cluster" and LINES.search(one.field)}
    seen = 0
    for config in site.items(f"/api/v1/namespaces/{TENANT}/configmaps"):
        if config["metadata"].get("labels", {}).get("cluster.slinky.slurm.net/name") in may:
            continue
        for name, text in config.get("data", {}).items():
            seen += 1
            lines = [line for line in text.splitlines() if line.strip().startswith(INJECTED)]
            assert lines == [], (config["metadata"]["name"], name)
    assert seen


def test_nothing_goes_round_in_circles(site: Site, answers: Answers) -> None:
    page = fetch(f"{site.url}/metrics")
    passes = sum(
        float(line.rpartition(" ")[2])
        for line in page.splitlines()
        if line.startswith("slurm_operator_reconcile_total{")
    )
    objects = sum(
        len(site.items(f"{OWN}{namespace}/{plural(kind)}")) for kind in SCHEMAS for namespace in (TENANT, VICTIM)
    )
    assert 0 < passes < PASSES * objects, page[-3000:]


def test_the_other_namespace_is_served_meanwhile(site: Site, answers: Answers) -> None:
    body = made("SlurmJob", "meanwhile", {"clusterName": "slurm", "script": HELLO})
    assert site.ask("POST", f"{OWN}{VICTIM}/slurmjobs", body, who=site.admin).status == 201
    site.until("its job", lambda: site.find("SlurmJob", "meanwhile", VICTIM).get("status", {}).get("jobId"))
