"""The exporter of a Cluster: written with a token of its own, reported, and taken away."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import jwt
import pytest

from slinky_api import labels
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import EmitEvent
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.parts.deletion.part import tear_down
from slinky_operator.cluster.parts.exporter import manifests as exporter
from slinky_operator.kube.resources import CONFIGMAPS, TOKENS
from slinky_operator.token import grants
from slurm_exporter import settings
from tests.unit.api.test_models import certificate
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import ENVIRONMENT, World, cluster_object

NAME = "slurm-exporter"
TOKEN, SERVICE, DEPLOYMENT = ("Token", NAME), ("Service", NAME), ("Deployment", NAME)
CERTIFICATES, MONITORED = ("ConfigMap", NAME), ("Service", f"{NAME}-metrics")
SERVER = "https://there:6820"
JWT = jwt.encode({"sun": "metrics", "exp": 4_000_000_000}, "k" * 32, algorithm="HS256").encode()


def spec(**fields: Any) -> dict[str, Any]:
    return {"metrics": {"exporter": {"enabled": True, **fields}}}


def elsewhere(**fields: Any) -> dict[str, Any]:
    return {"server": SERVER, "token": {"secretRef": "own"}, **spec(tokenRef={"name": "reader"}, **fields)}


def issued(world: World) -> World:
    """The Token controller has made a token."""
    world.children[TOKEN]["status"] = {"secretName": NAME, "issuedAt": "2026-01-01T00:00:00Z", "username": "nobody"}
    world.settle()
    return world


def exporter_of(world: World) -> set[tuple[str, str]]:
    return {key for key in world.children if key[1].startswith(NAME)}


def pod_of(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.children[DEPLOYMENT]["spec"]["template"]["spec"]
    return found


def shown(world: World) -> tuple[str, str, str]:
    found = world.condition("ExporterReady")
    return found["status"], found["reason"], found.get("message", "")


def is_shown(world: World) -> bool:
    return any(one["type"] == "ExporterReady" for one in world.raw["status"]["conditions"])


def test_a_cluster_has_none_unless_it_asks() -> None:
    world = settled({"metrics": {"exporter": {"users": 5}}})
    assert not exporter_of(world)
    assert not is_shown(world)


def test_it_starts_once_it_has_a_token_of_its_own_and_is_ready_with_its_pod() -> None:
    world = settled(spec())
    assert exporter_of(world) == {TOKEN, SERVICE}
    assert world.children[TOKEN]["spec"] == {"clusterRef": {"name": "slurm"}, "username": "nobody"}
    assert shown(world)[1:] == ("DaemonsStarting", f"waits for its token (kubectl get token {NAME} says why)")
    issued(world)
    assert exporter_of(world) == {TOKEN, SERVICE, DEPLOYMENT}
    assert shown(world)[:2] == ("False", "DaemonsStarting")
    assert world.condition("Ready")["status"] == "True"
    assert world.condition("Degraded")["status"] == "False"
    world.children[DEPLOYMENT]["status"] = {"readyReplicas": 1}
    world.settle()
    assert shown(world) == ("True", "AsExpected", f"Service {NAME} serves metrics on port 8080, path /metrics")


def test_its_pod_has_no_key_of_slurm_and_no_privilege() -> None:
    pod = pod_of(issued(settled(spec())))
    (container,) = pod["containers"]
    secrets = [one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one]
    assert (secrets, container["image"]) == ([NAME], "agent:1")
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_its_arguments_are_those_of_the_program() -> None:
    own = {"interval": "1m30s", "nodes": 0, "users": 50, "accounts": 7, "callUsers": 3}
    (container,) = pod_of(issued(settled(spec(**own))))["containers"]
    assert container["command"] == ["slurm-exporter"]
    found = settings.load(container["args"], {})
    assert found.server == "http://slurm-restapi.here.svc:6820"
    assert (found.cadence.interval, found.cadence.slow_interval, found.cadence.stale_after) == (90.0, 90.0, 270.0)
    budgets = found.budgets
    assert (budgets.nodes, budgets.users, budgets.accounts, budgets.call_users) == (0, 50, 7, 3)
    assert (found.labels, found.accounting, found.port) == ({"slurm_cluster": "slurm"}, False, 8080)


def test_by_default_slurm_is_asked_every_ten_seconds_and_for_accounting_if_there_is_any() -> None:
    world = World(cluster_object({**spec(), "accounting": {"external": {"host": "there"}}}))
    world.settle()
    (container,) = pod_of(issued(world))["containers"]
    found = settings.load(container["args"], {})
    assert (found.cadence.interval, found.cadence.slow_interval, found.cadence.stale_after) == (10.0, 60.0, 120.0)
    assert found.accounting


@pytest.mark.parametrize("later", [{}, {"metrics": {"exporter": {"enabled": False}}}])
def test_everything_goes_when_it_is_no_longer_wanted(later: dict[str, Any]) -> None:
    world = issued(settled(spec(serviceMonitor={"enabled": True})))
    assert exporter_of(world) == {TOKEN, SERVICE, MONITORED, DEPLOYMENT}
    world.raw["spec"] = later
    world.settle()
    assert not exporter_of(world)
    assert not is_shown(world)


def test_its_objects_belong_to_the_cluster_and_go_with_it() -> None:
    world = issued(settled(spec(serviceMonitor={"enabled": True})))
    for key in exporter_of(world):
        (owner,) = world.children[key]["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner.get("blockOwnerDeletion")) == ("Cluster", "cluster-uid", None)
    assert (TOKENS, NAME, f"uid-of-{NAME}") in tear_down(world.snapshot()).children


def test_a_monitor_selects_its_own_service_only() -> None:
    both = {"enabled": True, "serviceMonitor": {"enabled": True}}
    world = issued(settled({"metrics": {**both, "exporter": {**both, "service": {"labels": {"a": "b"}}}}}))
    assert world.monitor is not None
    assert [one["path"] for one in world.monitor["spec"]["endpoints"]] == ["/metrics"]
    wanted = world.monitor["spec"]["selector"]["matchLabels"].items()
    found = [key for key, one in world.children.items() if wanted <= one["metadata"].get("labels", {}).items()]
    assert found == [MONITORED]
    assert world.monitor["metadata"]["ownerReferences"][0]["name"] == MONITORED[1]
    assert world.memory.writes.monitors.keys() == {"slurm-controller-metrics", MONITORED[1]}


def test_a_monitor_that_cannot_be_written_is_told() -> None:
    world = settled(spec(serviceMonitor={"enabled": True}))
    world.memory.writes.denied["ServiceMonitor", MONITORED[1]] = Denied("", "no such kind", world.now)
    world.step()
    assert world.condition("Degraded")["message"] == f"ServiceMonitor {MONITORED[1]}: no such kind"


def test_a_template_that_is_refused_leaves_the_pod_and_is_told() -> None:
    world = issued(settled(spec()))
    world.raw["spec"] = spec(template={"spec": {"hostname": "x"}})
    world.settle()
    assert DEPLOYMENT in world.children
    assert shown(world)[:2] == ("False", "ChildRefused")
    assert "spec.metrics.exporter.template.spec.hostname" in shown(world)[2]
    assert world.condition("Degraded")["message"].count("spec.metrics.exporter.template.spec.hostname") == 1


def test_an_object_of_somebody_else_is_told_by_the_condition() -> None:
    world = settled(spec())
    world.memory.writes.denied[TOKEN] = Denied("", "one exists already", world.now)
    del world.children[TOKEN]
    world.step()
    assert shown(world) == ("False", "ChildRefused", f"Token {NAME}: one exists already")


def test_a_token_that_is_refused_is_told_with_an_event_and_keeps_the_pod_back() -> None:
    world = settled(spec())
    ready = {"type": "Ready", "status": "False", "reason": "TooManyTokens", "message": "there are 250"}
    world.children[TOKEN]["status"] = {"conditions": [ready]}
    log = world.settle()
    assert shown(world) == ("False", "TooManyTokens", f"Token {NAME}: there are 250")
    assert DEPLOYMENT not in world.children
    assert [one.reason for one in log if isinstance(one, EmitEvent)] == ["TooManyTokens"]
    assert world.condition("Degraded")["message"] == f"ExporterReady: Token {NAME}: there are 250"


@pytest.mark.parametrize("nonsense", [{"conditions": ["x"]}, {"conditions": [{"type": "Ready", "status": "False"}]}])
def test_a_status_that_somebody_has_written_into_the_token_breaks_nothing(nonsense: dict[str, Any]) -> None:
    world = settled(spec())
    world.children[TOKEN]["status"] = nonsense
    world.settle()
    assert shown(world)[:2] == ("False", "DaemonsStarting")


def test_a_pod_that_does_not_start_is_told() -> None:
    world = issued(settled(spec()))
    waiting = {"name": "exporter", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}}
    about = {"name": f"{NAME}-0", "namespace": "here", "creationTimestamp": "2025-01-01T00:00:00Z"}
    world.daemon_pods["exporter"] = ({"metadata": about, "status": {"containerStatuses": [waiting]}},)
    world.settle()
    assert shown(world)[:2] == ("False", "DaemonStuck")
    assert world.condition("Ready")["status"] == "True"


def test_the_user_is_granted_to_the_clusters_own_namespace_and_no_other() -> None:
    cluster = Cluster.parse(cluster_object({**spec(username="metrics"), "auth": {"tokens": [{"usernames": ["bob"]}]}}))
    assert grants.longest_life(cluster, "here", "metrics") == timedelta(hours=24)
    assert grants.longest_life(cluster, "other", "metrics") is None
    assert grants.longest_life(cluster, "here", "nobody") is None
    off = Cluster.parse(cluster_object({"metrics": {"exporter": {"username": "metrics"}}}))
    assert grants.longest_life(off, "here", "metrics") is None


@pytest.mark.parametrize("user", ["root", "slurm", "Root", "SLURM", "0"])
def test_a_user_who_rules_slurm_is_refused(user: str) -> None:
    with pytest.raises(InvalidObjectError, match="must"):
        Cluster.parse(cluster_object(spec(username=user)))


# A Slurm that runs elsewhere


def there(secret: dict[str, bytes] | None, spec: dict[str, Any]) -> World:
    secrets = {"own": {"auth-token": JWT}} | ({"reader": secret} if secret is not None else {})
    world = World(cluster_object(spec), secrets=secrets, server=SERVER)
    world.settle()
    return world


def test_it_works_elsewhere_with_the_token_that_it_is_given() -> None:
    world = there({"auth-token": JWT}, {**elsewhere(), "caBundle": certificate()})
    assert exporter_of(world) == {SERVICE, DEPLOYMENT, CERTIFICATES}
    pod = pod_of(world)
    (secret,) = [one["secret"] for one in pod["volumes"] if "secret" in one]
    assert (secret["secretName"], [one["key"] for one in secret["items"]]) == ("reader", ["auth-token"])
    found = settings.load(pod["containers"][0]["args"], {})
    assert (found.server, found.accounting) == (SERVER, True)
    assert found.ca_bundle == "/run/slurm-exporter/ca/ca.pem"
    assert "BEGIN CERTIFICATE" in world.children[CERTIFICATES]["data"]["ca.pem"]
    world.raw["spec"] = {key: value for key, value in world.raw["spec"].items() if key != "metrics"}
    world.settle()
    assert not exporter_of(world)


def test_without_tls_it_has_no_certificates() -> None:
    spec = {**elsewhere(), "server": "http://there:6820", "caBundle": certificate()}
    cluster = Cluster.parse(cluster_object(spec))
    assert [child for child in exporter.objects(cluster) if child.resource == CONFIGMAPS] == []
    shown = json.dumps(exporter.deployment(cluster, ENVIRONMENT.images))
    assert exporter.CA_FOLDER not in shown
    assert exporter.ANNOTATION_CA not in shown


@pytest.mark.parametrize(
    ("secret", "reason", "words"),
    [
        (None, "SecretNotFound", "token of the exporter: there is no Secret reader"),
        ({"other": b"x"}, "SecretKeyNotFound", "Secret reader has no key auth-token"),
        ({"auth-token": b"not a token"}, "SecretNotAllowed", "does not say that it is meant for https://there:6820"),
    ],
)
def test_a_secret_that_may_not_be_sent_there_is_told_and_not_mounted(
    secret: dict[str, bytes] | None, reason: str, words: str
) -> None:
    world = there(secret, elsewhere())
    assert DEPLOYMENT not in world.children
    assert shown(world)[:2] == ("False", reason)
    assert words in shown(world)[2]
    assert world.condition("Degraded")["reason"] == reason
    assert world.condition("Ready")["status"] == "True"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({**elsewhere(), **spec()}, "metrics.exporter.tokenRef is required with server"),
        (elsewhere(username="metrics"), "metrics.exporter.username cannot be set with server"),
        ({**elsewhere(), "metrics": {"enabled": True}}, "metrics.enabled cannot be set with server"),
        (spec(tokenRef={"name": "reader"}), "metrics.exporter.tokenRef requires server"),
        (spec(interval="500ms"), "must be between 1s and 1h"),
    ],
)
def test_what_does_not_fit_is_refused(raw: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidObjectError, match=words):
        Cluster.parse(cluster_object(raw))


def test_new_certificates_replace_the_pod() -> None:
    world = there({"auth-token": JWT}, {**elsewhere(), "caBundle": certificate()})
    before = world.children[DEPLOYMENT]["spec"]["template"]["metadata"]["annotations"]
    world.raw["spec"] = {**world.raw["spec"], "caBundle": certificate() + certificate()}
    world.settle()
    after = world.children[DEPLOYMENT]["spec"]["template"]["metadata"]["annotations"]
    assert before.keys() == after.keys() == {f"{labels.CLUSTER_PREFIX}ca"}
    assert before != after
