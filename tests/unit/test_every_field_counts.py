"""No field of the API is accepted and then silently ignored: passes read it, or it is reported as not supported."""

from __future__ import annotations

import asyncio
import typing
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.spec import ClusterSpec
from slinky_api.v1alpha1.common import ApiModel, ApiObject
from slinky_api.v1alpha1.loginset import LoginSetSpec
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import NodeSetSpec
from slinky_api.v1alpha1.token import TokenSpec
from slinky_operator.bridge.nodes.model import wishes as bridge_wishes
from slinky_operator.cluster.actions import EmitEvent
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.spec import switched_off
from slinky_operator.cluster.status.not_supported import NOT_SUPPORTED, SWITCHED_OFF, not_supported
from slinky_operator.jobs import tenants
from slinky_operator.kube.events import EventType
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.pod_spec import builder, generated
from slinky_operator.nodeset.report.status import selector
from slinky_operator.reconcile.namespaces import NamespaceFacts
from slinky_operator.settings import Settings
from slinky_operator.slurm.conf.sources.gather import names_of_sources
from slinky_operator.sylabs import clusters
from slinky_operator.virtual_nodes.nodes.model.wishes import refusal_of, wanted_of
from slinky_operator.virtual_nodes.pods.translation.slurmjob import translate
from tests.unit.api.test_models import certificate
from tests.unit.autoscaling.worlds import World as AutoscaledWorld
from tests.unit.cluster.world import World, cluster_object, node_set_object
from tests.unit.cluster.world import passes as worlds
from tests.unit.loginset import builders as loginsets
from tests.unit.nodeset.health import checked
from tests.unit.nodeset.simulation import settling
from tests.unit.nodeset.simulation.histories import history
from tests.unit.token.worlds import TokenWorld

HISTORIES = 40
"""Lives of NodeSets that are watched."""

TOO_LATE = "policy:2 job_starts:0 scale:0 see_all poll pass time:3 time:3 poll pass pass"
"""One more, in which a drain takes too long."""

REPLACED = (
    "health:4 see_all sicken sicken:1 sicken:2 see_all time:3 pass poll pass see_all poll pass see_all "
    "replace:2 see_all pass see_all pass see_all"
)
"""And one in which bad nodes are replaced, more than once."""

KEY = {"name": "key", "key": "file"}
REF = [{"name": "texts"}]
MANAGED: dict[str, Any] = {
    "clusterName": "test",
    "auth": {"tokenLifetime": "10m", "jwksRef": KEY, "signingKeyRef": KEY},
    "controller": {"service": {"labels": {"a": "b"}}, "resources": {"limits": {"cpu": "1"}}},
    "restapi": {"service": {"labels": {"a": "b"}}, "resources": {"limits": {"cpu": "1"}}},
    "accounting": {"service": {"labels": {"a": "b"}}, "resources": {"limits": {"cpu": "1"}}},
    "partitions": [{"name": "night", "nodeSets": ["ALL"], "nodes": ["metal"], "config": "MaxTime=60"}],
    "nodes": [{"name": "metal", "config": "CPUs=1"}],
    "containers": {"mounts": ["/home"]},
    "login": [
        {
            "name": "front",
            "resources": {"limits": {"cpu": "1"}},
            "service": {"labels": {"a": "b"}},
            "authorizedKeysRef": {"name": "a"},
            "sshHostKeysRef": {"name": "a"},
            "sessionGracePeriod": "1m",
        }
    ],
    "configFileRefs": REF,
    "prologScriptRefs": REF,
    "epilogScriptRefs": REF,
    "prologSlurmctldScriptRefs": REF,
    "epilogSlurmctldScriptRefs": REF,
    "identity": {
        "sssd": {"confRef": KEY, "image": "sssd:1", "resources": {"limits": {"cpu": "1"}}},
        "homes": {"claimName": "homes"},
    },
    "maintenance": {
        "windows": [
            {
                "name": "night",
                "schedule": "0 2 * * *",
                "timeZone": "Europe/Berlin",
                "duration": "1h",
                "holdUpdates": True,
                "releaseEarly": True,
            },
            {"name": "once", "start": "2026-11-29T02:00:00Z", "duration": "1h"},
        ]
    },
}
"""What is needed for every part to be there; values do not matter."""

ELSEWHERE: tuple[dict[str, Any], ...] = (
    {"server": "http://there:6820", "token": {"secretRef": KEY}, "auth": {"slurmKeyRef": KEY}},
    {"server": "http://there:6820", "auth": {"jwtKeyRef": KEY}, "controller": {"external": {"host": "there"}}},
    {
        "server": "http://there:6820",
        "auth": {"jwtKeyRef": KEY},
        "metrics": {"exporter": {"enabled": True, "tokenRef": KEY}},
    },
)
TREE: dict[str, Any] = {
    "qos": [{"name": "fast", "preempts": ["normal"], "preemptMode": "cancel", "limits": {"maxTres": "cpu=1"}}],
    "accounts": [{"name": "physics", "qos": ["fast"], "users": ["alice"], "coordinators": ["alice"]}],
    "users": [{"name": "bob", "defaultAccount": "physics", "associations": [{"account": "physics"}]}],
}
MANAGED_OTHERWISE: tuple[dict[str, Any], ...] = (
    {"accounting": {"mariadb": {"persistence": {"existingClaim": "data"}, "resources": {"limits": {"cpu": "1"}}}}},
    {"accounting": {"mariadb": {"persistence": {"storageClassName": "s", "labels": {"a": "b"}}}}},
    {"accounting": {"database": {"host": "there", "passwordRef": KEY}}},
    {"accounting": {"external": {"host": "there"}, "tree": TREE}},
    {
        "metrics": {
            "enabled": True,
            "serviceMonitor": {"enabled": True, "interval": "30s", "scrapeTimeout": "5s", "labels": {"a": "b"}},
            "exporter": {
                "enabled": True,
                "resources": {"limits": {"cpu": "1"}},
                "service": {"labels": {"a": "b"}},
                "serviceMonitor": {"enabled": True, "interval": "30s", "scrapeTimeout": "5s", "labels": {"a": "b"}},
            },
        }
    },
    {"auth": {"slurmKeyRef": KEY, "jwtKeyRef": KEY}, "controller": {"persistence": {"existingClaim": "state"}}},
    {"identity": {"passwd": {"configMapRef": {"name": "users"}}, "homes": {"volume": {"emptyDir": {}}}}},
)

WHOLE = {"spec": {"containers": [{"name": "slurmd", "args": ["--conf-server", "there:6817"]}]}}
SHAPED: dict[str, Any] = {
    "jobLogs": {"keepFor": "1h", "resources": {"limits": {"cpu": "1"}}},
    "resources": {"limits": {"cpu": "1"}},
    "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
}
"""Parts of a NodeSet that are there only if they are set."""
SSH: dict[str, Any] = {
    "confinement": "Constrain",
    "ssh": {"port": 2222, "authorizedKeysRef": {"name": "people"}, "hostKeysRef": {"name": "hosts"}},
}
"""Those that need another field."""


class Reads:
    """Which fields of models are read, by their path in an object where that is known, and by class."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.fields: set[tuple[type, str]] = set()
        self._known: dict[int, tuple[ApiModel, str]] = {}

    def place(self, value: object, path: str) -> None:
        """Remember where in an object its parts are."""
        if isinstance(value, ApiModel):
            self._known[id(value)] = value, path
            for name, inner in vars(value).items():
                self.place(inner, f"{path}.{name}" if path else name)
        elif isinstance(value, tuple):
            for inner in value:
                self.place(inner, f"{path}[]")

    def read(self, model: ApiModel, name: str) -> None:
        kind = type(model)
        if name in {"to_dict", "model_dump"}:
            for field in kind.model_fields:
                self.read(model, field)
        elif name in kind.model_fields:
            self.fields.add((kind, name))
            at = self._known.get(id(model))
            if at is not None:
                self.paths.add(f"{at[1]}.{name}" if at[1] else name)


def fields_of(kind: type[ApiModel], path: str = "") -> Iterator[tuple[str, type[ApiModel], str]]:
    """Every leaf below a model: path, the class that has it, its name there."""
    for name, field in kind.model_fields.items():
        here = f"{path}.{name}" if path else name
        inner = list(_models(field.annotation))
        if not inner:
            yield here, kind, name
        for one, many in inner:
            yield from fields_of(one, f"{here}[]" if many else here)


def _models(annotation: Any, *, many: bool = False) -> Iterator[tuple[type[ApiModel], bool]]:
    if isinstance(annotation, type) and issubclass(annotation, ApiModel):
        yield annotation, many
    listed = many or typing.get_origin(annotation) is tuple
    for one in typing.get_args(annotation):
        yield from _models(one, many=listed)


def silent(kind: type[ApiModel], reads: Reads) -> list[str]:
    """Fields below a spec that nobody has read."""
    leaves = list(fields_of(kind))
    times = Counter((owner, name) for _, owner, name in leaves)
    return [
        path
        for path, owner, name in leaves
        if path not in reads.paths and not (times[owner, name] == 1 and (owner, name) in reads.fields)
    ]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """What is read of objects that are parsed from now on."""
    found = Reads()
    parse = ApiObject.parse.__func__  # type: ignore[attr-defined]

    def parse_and_place(cls: type[ApiObject], obj: Any) -> ApiObject:
        made: ApiObject = parse(cls, obj)
        found.place(vars(made)["spec"], "")
        return made

    def read(self: ApiModel, name: str) -> Any:
        if not name.startswith("_"):
            found.read(self, name)
        return object.__getattribute__(self, name)

    monkeypatch.setattr(ApiObject, "parse", classmethod(parse_and_place))
    monkeypatch.setattr(ApiModel, "__getattribute__", read, raising=False)
    return found


def build_pod(cluster: dict[str, Any], nodeset: dict[str, Any]) -> None:
    """Make a pod, which is what reads the rest."""
    of, cluster_of = NodeSet.parse(nodeset), Cluster.parse(cluster)
    defaults = generated.Defaults(image="slurmd:1", image_pull_policy="")
    builder.build(of, cluster_of, place=PodSlot("a-0", "a-0", 0), revision="r", guard_uid="g", defaults=defaults)


def ask_for_a_token() -> None:
    """Run a pass over a Token of another namespace, with every field set."""
    world = TokenWorld()
    grant = {"namespaces": ["lab"], "usernames": ["alice"], "maxLifetime": "1h"}
    world.cluster(auth={"tokens": [grant]})
    cluster = {"name": "slurm", "namespace": "ns"}
    world.token("a", "lab", clusterRef=cluster, username="alice", lifetime="1m", secretRef={"name": "b", "key": "c"})
    asyncio.run(world.step("a", "lab"))
    assert world.ready("a", "lab")[0] == "True"


def ask_for_a_job() -> None:
    """Look at what SlurmJobs of another namespace may do, with every field set."""
    lists = {"accounts": ["physics"], "partitions": ["night"], "qos": ["fast"]}
    tenant = {"namespaces": ["lab"], "namespaceLabels": {"a": "b"}, "user": "alice", **lists}
    label = {"name": "site/gpu", "value": "10", "partition": "night", "features": "gpu"}
    sylabs = {"labels": [label], "runtime": "Apptainer", "folder": "/scratch", "sharedFolder": True}
    sylabs["sharedVolume"] = {"claimName": "data", "mountPath": "/data"}
    sylabs["logs"] = True
    virtual = {"host": "site", "sylabsPods": True}
    cluster = Cluster.parse(cluster_object({"jobs": {"tenants": [tenant], "sylabs": sylabs, "virtualNodes": virtual}}))
    found = clusters.candidate(cluster, ("*",))
    assert found is not None
    about = NamespaceFacts(sylabs_cluster=found.title)
    assert isinstance(clusters.choose([found], "lab", about, ()), clusters.Chosen)
    assert tenants.needs_labels(cluster)
    assert isinstance(tenants.grant(cluster, "lab", {}, None), tenants.Grant)


def wish_for_nodes() -> None:
    """Look at what a Cluster wants of virtual Nodes."""
    cluster = Cluster.parse(cluster_object({"jobs": {"virtualNodes": {"host": "site"}}}))
    assert refusal_of(cluster, [], ()) is not None
    assert cluster.spec.jobs.virtual_nodes is not None
    wanted, problems = wanted_of(cluster.spec.jobs.virtual_nodes)
    assert (wanted.host, problems) == ("site", ())


def wish_for_a_bridge() -> None:
    """Look at what a Cluster wants of Kubernetes Nodes."""
    gpus = {"deviceClass": "gpus", "driver": "gpu.example.com", "attributes": {"type": "gpu"}, "gres": "gpu"}
    bridge = {"nodeLabels": {"slurm": "yes"}, "gres": [{"resource": "example.com/fpga", "gres": "fpga"}, gpus]}
    cluster = Cluster.parse(cluster_object({"jobs": {"bridge": bridge}}))
    assert cluster.spec.jobs.bridge is not None
    wanted = bridge_wishes.wanted_of(cluster.spec.jobs.bridge)
    assert (wanted.name, wanted.kinds) == ("bridge", {"example.com/fpga": "fpga"})
    assert [(one.driver, one.attributes) for one in wanted.classes] == [("gpu.example.com", {"type": "gpu"})]


def run_a_pod() -> None:
    """Translate a pod on a virtual Node, which has an image and a claim."""
    runtime = {"runtime": "Apptainer", "folder": "/scratch", "sharedFolder": True}
    claim = {"sharedVolume": {"claimName": "data", "mountPath": "/data"}}
    cluster = Cluster.parse(cluster_object({"jobs": {"virtualNodes": {"host": "site", **runtime, **claim}}}))
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    container = {"name": "main", "image": "alpine:3", "volumeMounts": [{"name": "v", "mountPath": "/in"}]}
    pod = {
        "metadata": {"name": "p", "annotations": {"virtual-node.slinky.slurm.net/nodes": "2"}},
        "spec": {"restartPolicy": "Never", "containers": [container], "volumes": [volume]},
    }
    assert cluster.spec.jobs.virtual_nodes is not None
    script = translate(pod, "main", cluster.spec.jobs.virtual_nodes, {}).fields["script"]
    assert "/scratch/" in script
    assert "--bind=/data:/in" in script


def test_every_field_of_a_cluster_is_read_or_said_to_be_not_supported(reads: Reads) -> None:
    for spec in (MANAGED, *MANAGED_OTHERWISE, *ELSEWHERE):
        world = World(cluster_object(spec), secrets={"key": {"file": b"k"}})
        world.add(node_set_object("compute"))
        for _ in range(12):
            world.step()
        # What is read only when it ends.
        world.raw["metadata"]["deletionTimestamp"] = "2026-11-22T12:00:00Z"
        world.plan()
        names_of_sources(Cluster.parse(world.raw).spec)
        build_pod(world.raw, node_set_object("compute", {"template": WHOLE}))
        build_pod(cluster_object(ELSEWHERE[1]), node_set_object("compute"))
    ask_for_a_token()
    ask_for_a_job()
    wish_for_nodes()
    wish_for_a_bridge()
    run_a_pod()
    assert silent(ClusterSpec, reads) == []


def test_every_field_of_a_nodeset_is_read(reads: Reads) -> None:
    world = World(cluster_object())
    world.add(node_set_object("compute"))
    for _ in range(12):
        world.step()
    with asyncio.Runner() as runner:
        for on_hosts in (False, True):
            begin = runner.run(settling.begin(keeps_instance=False, on_hosts=on_hosts))
            for life in (TOO_LATE, REPLACED):
                words = [one.partition(":") for one in life.split()]
                runner.run(settling.live(begin, [(step, int(number or 0)) for step, _, number in words]))
            for seed in range(HISTORIES // 2):
                runner.run(settling.live(begin, history(seed, on_hosts=on_hosts, of_health=True)))
    scaled = AutoscaledWorld()
    scaled.nodeset("compute")
    asyncio.run(scaled.step())
    build_pod(cluster_object(), node_set_object("compute", SHAPED))
    build_pod(cluster_object(), node_set_object("compute", SSH))
    assert selector(NodeSet.parse(node_set_object("compute", SHAPED)))
    check: dict[str, Any] = {"timeoutSeconds": 5, "contexts": ["Prolog"], "parameters": {"A": "1"}, "onFail": "Nothing"}
    checks = [checked.own("own", **check), {"name": "disk", "use": "Disk"}]
    assert checked.chosen(checked.seen(checks, [""], known=StoredChecks())).begins
    assert silent(NodeSetSpec, reads) == []


def test_every_field_of_a_token_is_read(reads: Reads) -> None:
    ask_for_a_token()
    assert silent(TokenSpec, reads) == []


def test_every_field_of_a_loginset_is_read(reads: Reads) -> None:
    world = loginsets.World(
        resources={"limits": {"cpu": "1"}},
        service={"labels": {"a": "b"}},
        authorizedKeysRef={"name": "front-ssh-host-keys"},
        sshHostKeysRef={"name": "front-ssh-host-keys"},
    )
    with asyncio.Runner() as runner:
        runner.run(world.settle())
    assert silent(LoginSetSpec, reads) == []


UNSUPPORTED: dict[str, dict[str, Any]] = {
    "clusterName": {**ELSEWHERE[0], "clusterName": "theirs"},
    "caBundle": {**ELSEWHERE[0], "caBundle": certificate()},
    "auth.jwtKeyRef": {**ELSEWHERE[0], "auth": {"jwtKeyRef": KEY}},
    "auth.tokenLifetime": {**ELSEWHERE[0], "auth": {"tokenLifetime": "1h"}},
    "auth.jwksRef": {**ELSEWHERE[0], "auth": {"jwksRef": KEY}},
    "auth.signingKeyRef": {**ELSEWHERE[0], "auth": {"signingKeyRef": KEY}},
    "auth.tokens": {**ELSEWHERE[0], "auth": {"tokens": [{"usernames": ["alice"]}]}},
}


def test_every_field_that_is_not_supported_is_tested() -> None:
    assert UNSUPPORTED.keys() == NOT_SUPPORTED.keys()


@pytest.mark.parametrize("field", UNSUPPORTED)
def test_a_field_that_is_not_supported_degrades_a_cluster_that_serves(field: str) -> None:
    meant_for = {"key": str(ELSEWHERE[0]["server"])}
    world = World(cluster_object(UNSUPPORTED[field]), secrets={"key": {"file": b"token"}}, meant_for=meant_for)
    log = world.settle()
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "NotSupported")
    assert f"spec.{field} (" in degraded["message"]
    assert world.condition("Ready")["status"] == "True"
    told = [one for one in log if isinstance(one, EmitEvent) and one.reason == "NotSupported"]
    assert [one.type for one in told] == [EventType.WARNING]
    # Neither later passes nor another operator tell it again; it ends with the field.
    world.memory = Memory("cluster-uid")
    assert not any(isinstance(one, EmitEvent) and one.reason == "NotSupported" for one in world.settle())
    world.raw["spec"] = ELSEWHERE[0]
    world.settle()
    assert world.condition("Degraded")["status"] == "False"


SWITCHED: dict[str, dict[str, Any]] = {
    "jobs.tenants": {"jobs": {"tenants": [{"namespaces": ["lab"], "user": "alice"}]}},
    "jobs.sylabs": {"jobs": {"sylabs": {}}},
    "jobs.virtualNodes": {"jobs": {"virtualNodes": {"host": "site"}}},
    "jobs.bridge": {"jobs": {"bridge": {"nodeLabels": {"slurm": "yes"}}}},
}


def test_every_field_that_may_be_switched_off_is_tested() -> None:
    assert SWITCHED.keys() == SWITCHED_OFF.keys()


@pytest.mark.parametrize("field", SWITCHED)
@pytest.mark.parametrize("server", [{}, ELSEWHERE[0]], ids=["managed", "elsewhere"])
def test_a_field_that_the_operator_has_switched_off_degrades_a_cluster_that_serves(
    field: str, server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "ENVIRONMENT", replace(worlds.ENVIRONMENT, off=tuple(SWITCHED_OFF)))
    meant_for = {"key": str(ELSEWHERE[0]["server"])}
    world = World(
        cluster_object({**server, **SWITCHED[field]}), secrets={"key": {"file": b"token"}}, meant_for=meant_for
    )
    log = world.settle()
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "NotSupported")
    assert degraded["message"].startswith(f"without effect in this Cluster: spec.{field} (this operator does not run")
    assert [one.type for one in log if isinstance(one, EmitEvent) and one.reason == "NotSupported"] == ["Warning"]
    monkeypatch.setattr(worlds, "ENVIRONMENT", replace(worlds.ENVIRONMENT, off=()))
    world.settle()
    assert world.condition("Degraded")["status"] == "False"


@pytest.mark.parametrize(
    ("flags", "off"),
    [
        ({}, ["jobs.tenants", "jobs.sylabs", "jobs.virtualNodes", "jobs.bridge"]),
        ({"slurmjobs": True}, ["jobs.sylabs", "jobs.virtualNodes", "jobs.bridge"]),
        (
            {"slurmjobs": True, "watch_nodes": True, "bridge_clusters": ("*",)},
            ["jobs.sylabs", "jobs.virtualNodes"],
        ),
        (
            {"slurmjobs": True, "virtual_nodes_clusters": ("*",), "virtual_nodes_address": "10.0.0.1"},
            ["jobs.sylabs", "jobs.bridge"],
        ),
    ],
)
def test_the_settings_say_what_is_switched_off(flags: dict[str, Any], off: list[str]) -> None:
    assert list(switched_off(Settings(**flags))) == off


def test_what_is_off_needs_no_support() -> None:
    off = {"accounting": {"enabled": False}, "metrics": {"serviceMonitor": {"enabled": False}}, "login": []}
    assert not_supported(Cluster.parse(cluster_object(off)).spec) == ""


def test_a_field_that_nobody_reads_is_found(reads: Reads) -> None:
    nodeset = NodeSet.parse(node_set_object("compute"))
    before = silent(NodeSetSpec, reads)
    assert nodeset.spec.drain.timeout is None
    assert set(before) - set(silent(NodeSetSpec, reads)) == {"drain.timeout"}
    assert not_supported(Cluster.parse(cluster_object()).spec) == ""
