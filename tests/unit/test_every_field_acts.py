"""No field of a Cluster is accepted and then has no effect: each one, changed, changes what the operator does or says.

A pass that merely reads a field proves nothing. So every leaf of the schema is set to another valid value in a Cluster
where it belongs, and what is written, asked, connected to and reported is compared. The same is done in Clusters where
it may not belong: there it must be refused, or act as well.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

import pytest

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.spec import ClusterSpec
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster import plan
from slinky_operator.cluster.parts.slurmctld import pod as slurmctld_pod
from slinky_operator.identity import users
from slinky_operator.kube.resources import LOGINSETS
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.pod_spec import builder, generated
from slinky_operator.nodeset.pod_spec.validation import RefusedTemplate
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import TextSource
from slinky_operator.slurm.conf.sources.gather import names_of_sources
from slinky_operator.slurm.pod_templates.templates import RefusedFragment
from tests.unit.api.test_models import certificate
from tests.unit.cluster.world import World, cluster_object, node_set_object
from tests.unit.test_every_field_counts import fields_of
from tests.unit.token.worlds import TokenWorld

PASSES = 7
"""After which everything has been written that a new Cluster needs."""

KEY = {"name": "key", "key": "file"}
OTHER = {"changed": "yes"}
SECRETS = {name: {"file": b"k" * 40, "changed": b"c" * 40} for name in ("key", "changed")}

TEXTS = {"key": TextSource("key", exists=True, texts={"file": "a", "changed": "b"})}
SERVERS = "http://there:6820 https://there:6820 http://elsewhere:6820"

MANAGED: dict[str, Any] = {}
EXPORTER: dict[str, Any] = {"enabled": True, "serviceMonitor": {"enabled": True}}
ELSEWHERE: dict[str, Any] = {"server": "http://there:6820", "token": {"secretRef": KEY}}
BASES: Mapping[str, dict[str, Any]] = {
    "server": {**ELSEWHERE, "metrics": {"exporter": {**EXPORTER, "tokenRef": KEY}}},
    "token": ELSEWHERE,
    "caBundle": {**ELSEWHERE, "server": "https://there:6820", "caBundle": certificate()},
    "auth.slurmKeyRef": {"auth": {"slurmKeyRef": KEY}},
    "auth.jwtKeyRef": {"auth": {"jwtKeyRef": KEY}},
    "auth.jwksRef": {"auth": {"jwksRef": KEY}},
    "auth.signingKeyRef": {"auth": {"signingKeyRef": KEY}},
    "controller.external": {**ELSEWHERE, "controller": {"external": {"host": "there"}}},
    "accounting": {"accounting": {}},
    "accounting.external": {"accounting": {"external": {"host": "there"}}},
    "accounting.database": {"accounting": {"database": {"host": "there", "passwordRef": KEY}}},
    "login": {"login": [{"name": "front"}]},
    "identity.sssd": {"identity": {"sssd": {"confRef": KEY}}},
    "identity.passwd": {"identity": {"passwd": {"configMapRef": {"name": "users"}}}},
    "identity.homes": {"identity": {"homes": {"claimName": "homes"}}},
    "identity.homes.volume": {"identity": {"homes": {"volume": {"emptyDir": {}}}}},
    "partitions": {"partitions": [{"name": "night", "nodeSets": ["ALL"]}], "nodes": [{"name": "metal"}]},
    "nodes": {"nodes": [{"name": "metal"}]},
    "containers": {"containers": {"mounts": ["/home"]}},
    "metrics.exporter": {"metrics": {"exporter": EXPORTER}},
    "metrics.exporter.tokenRef": {**ELSEWHERE, "metrics": {"exporter": {**EXPORTER, "tokenRef": KEY}}},
    "metrics.serviceMonitor": {"metrics": {"enabled": True, "serviceMonitor": {"enabled": True}}},
}
"""Where a field belongs, by the longest beginning of its path; the others belong into `MANAGED`."""

BY_PATH: Mapping[str, Any] = {
    "metrics.exporter.names": ["slurmctld"],
    "server": "http://elsewhere:6820",
    "caBundle": certificate("changed"),
    "clusterName": "changed",
    "auth.tokenLifetime": "1h",
    "auth.keysWhenDeleted": "Retain",
    "controller.external.host": "changed",
    "controller.external.port": 7000,
    "restapi.replicas": 2,
    "accounting.enabled": False,
    "accounting.external.host": "changed",
    "accounting.external.port": 7000,
    "accounting.database.host": "changed",
    "accounting.database.port": 7000,
    "accounting.database.name": "changed",
    "accounting.database.username": "changed",
    "accounting.extraConf": "PurgeJobAfter=12months",
    "login[].rootSshAuthorizedKeys": "ssh-ed25519 changed",
    "login[].extraSshdConfig": "PasswordAuthentication no",
    "login[].sessionGracePeriod": "1h",
    "login[].name": "changed",
    "login[].replicas": 3,
    "identity.homes.claimName": "changed",
    "identity.homes.volume": {"nfs": {"server": "there", "path": "/"}},
    "identity.homes.mountPath": "/changed",
    "identity.homes.create": True,
    "partitions[].name": "changed",
    "partitions[].nodeSets": ["compute"],
    "partitions[].nodes": ["metal"],
    "partitions[].config": "MaxTime=60",
    "nodes[].name": "changed",
    "nodes[].config": "CPUs=3",
    "extraConf": "MinJobAge=77",
    "maxNodeCount": 77,
    "containers.mounts": ["/scratch"],
    "configFiles": {"gres.conf": "AutoDetect=off"},
    "metrics.enabled": True,
    "metrics.serviceMonitor.enabled": False,
    "metrics.serviceMonitor.interval": "77s",
    "metrics.serviceMonitor.scrapeTimeout": "7s",
    "metrics.exporter.serviceMonitor.enabled": False,
    "metrics.exporter.serviceMonitor.interval": "77s",
    "metrics.exporter.serviceMonitor.scrapeTimeout": "7s",
    "metrics.exporter.username": "changed",
    "metrics.exporter.interval": "77s",
    "metrics.exporter.nodes": 77,
    "metrics.exporter.users": 77,
    "metrics.exporter.accounts": 77,
    "metrics.exporter.callUsers": 77,
}
BY_NAME: Mapping[str, Any] = {
    "name": "changed",
    "key": "changed",
    "image": "changed:1",
    "requests": {"cpu": "11m"},
    "limits": {"cpu": "3"},
    "template": {"metadata": {"annotations": OTHER}},
    "labels": OTHER,
    "annotations": OTHER,
    "spec": {"type": "LoadBalancer"},
    "enabled": False,
    "existingClaim": "changed",
    "storageClassName": "changed",
    "accessModes": ["ReadWriteMany"],
    "size": "77Gi",
    "whenDeleted": "Delete",
    "prologScripts": {"changed.sh": "#!/bin/sh\n"},
    "epilogScripts": {"changed.sh": "#!/bin/sh\n"},
    "prologSlurmctldScripts": {"changed.sh": "#!/bin/sh\n"},
    "epilogSlurmctldScripts": {"changed.sh": "#!/bin/sh\n"},
}
"""Other values, by the whole path of a field or by its name."""

GRANTS: Mapping[str, Any] = {
    "auth.tokens[].namespaces": ["other"],
    "auth.tokens[].usernames": ["bob"],
    "auth.tokens[].maxLifetime": "1m",
}
"""Fields that only Tokens are about."""


OTHER_PLACES = (("server", ""), ("accounting.external", "accounting."), ("accounting.database", "accounting."))
"""Bases in which fields of a daemon do not belong, and the beginning of their paths."""


@dataclass(frozen=True)
class Leaf:
    """A field that has no fields of its own."""

    path: str

    @property
    def base(self) -> dict[str, Any]:
        """A spec in which it belongs."""
        plain = self.path.replace("[]", "")
        found = [one for one in BASES if plain == one or plain.startswith(f"{one}.")]
        return BASES[max(found, key=len)] if found else MANAGED

    @property
    def value(self) -> Any:
        """Another valid value."""
        return BY_PATH[self.path] if self.path in BY_PATH else BY_NAME[self.path.rpartition(".")[2]]

    def changed_in(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """A spec with the other value."""
        spec: dict[str, Any] = copy.deepcopy(dict(base))
        at: Any = spec
        *parents, last = self.path.split(".")
        for parent in parents:
            name, listed = parent.removesuffix("[]"), parent.endswith("[]")
            at = at.setdefault(name, [{"name": "changed"}] if listed else {})
            at = at[0] if listed else at
        at[last] = self.value
        return spec


def written(path: str) -> str:
    """A path with the names of the API."""
    parts = [part.split("_") for part in path.split(".")]
    return ".".join(first + "".join(word[:1].upper() + word[1:] for word in rest) for first, *rest in parts)


ELSEWHERE_TRIED = (
    "accounting.tree.", "jobs.tenants[].", "jobs.sylabs.", "jobs.virtual_nodes.", "jobs.bridge.", "maintenance.",
)  # fmt: skip
"""Fields that are tried in `tests/unit/cluster/parts/accounts/test_fields_of_the_tree.py`, in
`tests/unit/virtual_nodes/nodes/test_fields.py`, `tests/unit/bridge/nodes/test_fields.py`,
`tests/unit/cluster/parts/maintenance/test_fields.py`, and for jobs elsewhere."""

LEAVES = [written(path) for path, _, _ in fields_of(ClusterSpec) if not path.startswith(ELSEWHERE_TRIED)]
"""Of the schema."""


@cache
def outcome_of(text: str) -> str:
    """Everything that the operator does and says for a Cluster, and nothing that only repeats its spec."""
    raw = cluster_object(json.loads(text))
    world = World(raw, secrets=copy.deepcopy(SECRETS), meant_for=dict.fromkeys(SECRETS, SERVERS))
    world.add(node_set_object("compute"))
    world.texts = dict(TEXTS)
    log: list[Any] = []
    for _ in range(PASSES):
        world.log = []
        world.step()
        log += world.log
        for name in ("slurm-database", "slurm-accounting"):
            if ("StatefulSet", name) in world.children:
                world.children["StatefulSet", name]["status"] = {"readyReplicas": 1}
        if ("Token", "slurm-exporter") in world.children:
            issued = {"secretName": "slurm-exporter", "issuedAt": "2026-11-22T12:00:00Z"}
            world.children["Token", "slurm-exporter"]["status"] = issued
    # An object of another name would not be observed: written in each pass, and never deleted.
    unseen = [name for kind, name in world.children if kind != LOGINSETS.kind and not naming.is_child("slurm", name)]
    assert unseen == [], "naming.children lacks them"
    status = world.raw.get("status")
    cluster = Cluster.parse(world.raw)
    sources = (
        *plan.secrets(cluster, ()),
        *names_of_sources(cluster.spec),
        *users.config_maps(cluster.spec.identity),
    )
    pod = slurmd_pod(cluster)
    world.raw["metadata"]["deletionTimestamp"] = "2026-11-22T12:00:00Z"
    return json.dumps(plain([log, status, sources, pod, world.plan().actions, cluster.slurm_name]), sort_keys=True)


def slurmd_pod(cluster: Cluster) -> Any:
    """A pod of a NodeSet of the Cluster, which the NodeSet controller builds; why there is none."""
    place, defaults = PodSlot("compute-0", "compute-0", 0), generated.Defaults(image="slurmd:1", image_pull_policy="")
    of = NodeSet.parse(node_set_object("compute"))
    try:
        return builder.build(of, cluster, place=place, revision="r", guard_uid="g", defaults=defaults)
    except (RefusedFragment, RefusedTemplate) as error:
        return str(error)


def plain(value: Any) -> Any:
    """JSON of anything, without the Cluster itself and without digests of its settings."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {one.name: getattr(value, one.name) for one in fields(value)}
        return {"class": type(value).__name__, **{name: plain(inner) for name, inner in found.items()}}
    if isinstance(value, Mapping):
        # The pods of these worlds refuse to be asked for what caches do not keep.
        if dict(value).get("kind") == "Cluster":
            return "the Cluster"
        return {
            str(key): plain(inner) for key, inner in dict(value).items() if key != slurmctld_pod.ANNOTATION_POD_SPEC
        }
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return str(value)


def outcome(spec: Mapping[str, Any]) -> str:
    return outcome_of(json.dumps(spec, sort_keys=True))


def test_every_field_has_another_value_here() -> None:
    assert [path for path in LEAVES if path not in {*GRANTS, *BY_PATH} and path.rpartition(".")[2] not in BY_NAME] == []
    assert {*GRANTS, *BY_PATH} <= set(LEAVES)


@pytest.mark.parametrize("path", [path for path in LEAVES if path not in GRANTS])
def test_a_field_that_is_changed_changes_what_the_operator_does(path: str) -> None:
    leaf = Leaf(path)
    changed = leaf.changed_in(leaf.base)
    assert Cluster.parse(cluster_object(changed)).spec != Cluster.parse(cluster_object(leaf.base)).spec
    assert outcome(changed) != outcome(leaf.base)


@pytest.mark.parametrize(
    ("place", "path"),
    [
        (place, path)
        for place, start in OTHER_PLACES
        for path in LEAVES
        if path.startswith(start) and path not in GRANTS
    ],
)
def test_where_a_field_has_no_effect_it_is_refused(place: str, path: str) -> None:
    base, leaf = BASES[place], Leaf(path)
    try:
        _ = Cluster.parse(cluster_object(leaf.changed_in(base)))
    except InvalidObjectError:
        return
    assert outcome(leaf.changed_in(base)) != outcome(base)


def answer_to_a_token(grant: Mapping[str, Any]) -> tuple[object, ...]:
    """What comes of the Token of another namespace."""
    world = TokenWorld()
    world.cluster(auth={"tokens": [{"namespaces": ["lab"], "usernames": ["alice"], **grant}]})
    world.token("a", "lab", clusterRef={"name": "slurm", "namespace": "ns"}, username="alice", lifetime="5m")
    asyncio.run(world.step("a", "lab"))
    return world.ready("a", "lab")


@pytest.mark.parametrize("path", GRANTS)
def test_a_grant_that_is_changed_changes_the_answer_to_a_token(path: str) -> None:
    assert answer_to_a_token({path.rpartition(".")[2]: GRANTS[path]}) != answer_to_a_token({})


def test_a_field_that_is_only_read_would_be_found() -> None:
    first, second = outcome({"controller": {"image": "a:1"}}), outcome({"controller": {"image": "a:2"}})
    assert first != second
    assert "a:2" not in first.replace("a:1", "")
    # What only repeats the spec is left out of the comparison.
    assert '"spec": {"controller": {"image"' not in first
