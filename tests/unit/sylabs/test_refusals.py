"""What does not become a job, and what the user reads about it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NAMESPACES, SLURMJOBS
from slinky_operator.sylabs.kinds import KINDS, OldKind
from slinky_operator.sylabs.plan import REFUSED_S
from tests.support.slurm_jobs import SCRIPT
from tests.unit.sylabs.worlds import IMAGE, OLDEST, WLM, OldWorld, old_world

CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "kept"}}


@pytest.fixture
async def world() -> AsyncIterator[OldWorld]:
    async with old_world() as one:
        yield one


async def refused(world: OldWorld, kind: OldKind, reason: str, namespace: str = "team") -> str:
    """Look at an object, which must be refused, and return the message."""
    await world.look(kind, namespace=namespace)
    shown = world.shown(kind, namespace=namespace)
    assert (shown["status"], shown["reason"]) == ("Failed", reason)
    assert world.child(kind, namespace=namespace) is None
    assert world.events.reasons() == [reason]
    await world.look(kind, namespace=namespace)
    assert world.events.reasons() == [reason]
    message: str = shown["message"]
    return message


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        (WLM, {"bacth": "x"}, "spec.bacth: "),
        (WLM, {"batch": "no script"}, "spec.batch: "),
        (WLM, {"batch": "#!/bin/sh\n#SBATCH --no-such-flag\n"}, "spec.batch: line 2: "),
        (WLM, {"nodeSelector": {"site/gpu": "a100"}}, "spec.nodeSelector[site/gpu]: "),
        (WLM, {"prepare": {"to": "/a", "mount": {"name": "a"}}}, "spec.prepare.mount.persistentVolumeClaim: "),
        (WLM, {"prepare": {"to": "../a", "mount": CLAIM}}, "spec.prepare.to: "),
        (WLM, {"results": {"from": "a", "mount": {"name": "a"}}}, "spec.results.mount.persistentVolumeClaim: "),
        (WLM, {"results": {"from": "../a", "mount": CLAIM}}, "spec.results.from: "),
        (IMAGE, {"image": "alpine"}, "spec.image: "),
        (IMAGE, {"resources": {"nodes": 2}}, "spec.resources.nodes: "),
        (IMAGE, {"options": {"ipc": True}}, "spec.options.ipc: "),
        (OLDEST, {"ssh": {"user": "me"}}, "spec.ssh: "),
        (OLDEST, {"resources": {"slurm.sylabs.io/cpu": 2}}, "spec.resources: "),
        (OLDEST, {"podSecurityContext": {"runAsUser": 0}}, "spec.podSecurityContext: "),
    ],
)
async def test_a_field_that_cannot_be_served_is_named(
    world: OldWorld, kind: OldKind, spec: dict[str, Any], field: str
) -> None:
    world.old(kind, **spec)
    assert (await refused(world, kind, "InvalidSpec")).startswith(field)


async def test_a_corrected_object_runs(world: OldWorld) -> None:
    world.old(WLM, batch="no script")
    await refused(world, WLM, "InvalidSpec")
    world.old(WLM, batch=SCRIPT)
    await world.runs(WLM)
    assert world.shown(WLM)["observedGeneration"] == 2


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        (WLM, {"batch": "#!/bin/sh\n#SBATCH --partition=gpu\n"}, "spec.batch"),
        (WLM, {"nodeSelector": {"wlm.sylabs.io/partition": "gpu"}}, "spec.nodeSelector"),
        (IMAGE, {"nodeSelector": {"wlm.sylabs.io/partition": "gpu"}}, "spec.nodeSelector"),
    ],
)
async def test_a_partition_of_another_tenant(world: OldWorld, kind: OldKind, spec: dict[str, Any], field: str) -> None:
    world.sylabs([{**world.tenants[0], "partitions": ["main"]}])
    world.old(kind, **spec)
    message = await refused(world, kind, "JobsNotAllowed")
    assert message.startswith(f"{field}: 'gpu' is not granted to this namespace, only main")


@pytest.mark.parametrize(("lists", "option"), [("accounts", "account"), ("qos", "qos")])
async def test_an_account_or_a_qos_of_another_tenant(world: OldWorld, lists: str, option: str) -> None:
    world.sylabs([{**world.tenants[0], lists: ["main"]}])
    world.old(WLM, batch=f"#!/bin/sh\n#SBATCH --{option}=other\n")
    assert (await refused(world, WLM, "JobsNotAllowed")).startswith("spec.batch: 'other' is not granted")


async def test_without_a_cluster_that_runs_such_jobs(world: OldWorld) -> None:
    world.cluster()
    world.old(WLM)
    assert "no Cluster runs jobs of this kind" in await refused(world, WLM, "JobsNotAllowed")
    world.sylabs()
    assert ("team", "hello") in list(
        world.controllers[WLM.name].triggers.cluster(None, world.clusters.get("ns", "slurm"))
    )
    await world.runs(WLM)


async def test_in_a_namespace_without_a_tenant(world: OldWorld) -> None:
    world.namespace("lab", wants="ns/slurm")
    world.old(WLM, namespace="lab")
    message = await refused(world, WLM, "JobsNotAllowed", "lab")
    assert message == ("namespace lab has no tenant in ns/slurm; the administrator decides that in spec.jobs.tenants")


async def test_a_cluster_takes_no_jobs_of_a_namespace_that_does_not_name_it(world: OldWorld) -> None:
    world.namespace("team")
    world.old(WLM)
    assert await refused(world, WLM, "JobsNotAllowed") == (
        "no Cluster may run jobs of namespace team: the Namespace names none. Its administrator names one: kubectl "
        "annotate namespace team cluster.slinky.slurm.net/sylabs-jobs=<namespace>/<name of the Cluster>"
    )
    world.namespace("team", wants="ns/slurm")
    await world.runs(WLM)


async def test_the_cluster_of_a_stranger_neither_takes_nor_stops_the_jobs_of_a_namespace(world: OldWorld) -> None:
    world.second_cluster(namespace="strangers")
    world.old(WLM)
    await world.runs(WLM)
    assert [job.user for job in world.in_slurm()] == ["alice"]


async def test_a_namespace_that_names_a_cluster_without_such_jobs(world: OldWorld) -> None:
    world.namespace("team", wants="ns/slurmm")
    world.old(WLM)
    assert await refused(world, WLM, "JobsNotAllowed") == (
        "namespace team names Cluster ns/slurmm in its annotation cluster.slinky.slurm.net/sylabs-jobs: there is no "
        "such Cluster with spec.jobs.sylabs"
    )


async def test_jobs_in_the_namespace_of_a_cluster_are_its_own(world: OldWorld) -> None:
    world.namespace("team")
    world.second_cluster(namespace="team")
    world.old(WLM)
    await world.until(lambda: world.child(WLM))
    assert (world.child(WLM) or {})["spec"]["clusterNamespace"] == "team"


async def test_clusters_that_the_settings_name_need_no_consent(world: OldWorld) -> None:
    world.namespace("team")
    world.trusted = frozenset({"ns/slurm"})
    await world.kill()
    world.old(WLM)
    await world.runs(WLM)


async def test_with_two_clusters_both_are_named(world: OldWorld) -> None:
    world.namespace("team")
    world.trusted = frozenset({"ns/slurm"})
    await world.kill()
    world.second_cluster(namespace="team")
    world.old(WLM)
    assert await refused(world, WLM, "JobsNotAllowed") == (
        "the Clusters ns/slurm, team/other all have spec.jobs.sylabs and may run jobs of namespace team: only one may. "
        "The annotation cluster.slinky.slurm.net/sylabs-jobs of the Namespace decides which"
    )
    world.namespace("team", wants="team/other")
    await world.until(lambda: world.child(WLM))
    assert (world.child(WLM) or {})["spec"]["clusterNamespace"] == "team"


async def test_an_invalid_cluster_counts_so_that_no_other_takes_its_jobs(world: OldWorld) -> None:
    world.namespace("team")
    world.trusted = frozenset({"ns/slurm"})
    await world.kill()
    world.second_cluster(namespace="team", sylabs={"folder": "relative"})
    world.old(WLM)
    assert "ns/slurm, team/other all have spec.jobs.sylabs" in await refused(world, WLM, "JobsNotAllowed")
    world.namespace("team", wants="team/other")
    await world.look(WLM)
    assert world.shown(WLM)["message"] == "Cluster team/other is invalid: its condition says why. The job waits for it"


async def test_a_cluster_that_is_being_deleted_runs_nothing_new_and_leaves_nothing_to_others(world: OldWorld) -> None:
    found = world.clusters.get("ns", "slurm")
    assert found is not None
    about = {**found["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    world.kube.put(CLUSTERS, {**found, "metadata": about})
    world.old(WLM)
    assert await refused(world, WLM, "JobsNotAllowed") == "Cluster ns/slurm is being deleted, and runs no new jobs"


async def test_a_second_cluster_for_other_namespaces_does_not_matter(world: OldWorld) -> None:
    world.second_cluster("lab")
    world.old(WLM)
    await world.runs(WLM)


async def test_a_job_stays_in_its_cluster_when_another_comes(world: OldWorld) -> None:
    world.old(WLM)
    number = await world.runs(WLM)
    world.second_cluster()
    world.slurm.world.exit_job(number, 0)
    await world.until(lambda: world.shown(WLM)["status"] == "Succeeded")


async def test_tenants_by_labels_of_namespaces(world: OldWorld) -> None:
    world.sylabs([{"namespaceLabels": {"team": "physics"}, "user": "carol"}])
    world.old(WLM)
    await world.runs(WLM)
    assert [job.user for job in world.in_slurm()] == ["carol"]


async def test_labels_that_cannot_be_read_are_said_and_looked_at_again(
    world: OldWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.sylabs([{"namespaceLabels": {"team": "physics"}, "user": "carol"}])
    get = world.kube.get

    async def forbidden(resource: Any, name: str, namespace: str | None = None) -> Any:
        if resource is NAMESPACES:
            raise errors.Forbidden(Target("get", "namespaces", None, name), "forbidden", status=403)
        return await get(resource, name, namespace)

    monkeypatch.setattr(world.kube, "get", forbidden)
    world.old(WLM)
    message = await refused(world, WLM, "JobsNotAllowed")
    assert "the labels and annotations of namespace team could not be read" in message
    assert "can name the Cluster in --sylabs-clusters" in message
    assert (await world.look(WLM)).requeue_after == REFUSED_S


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
async def test_a_slurmjob_of_somebody_else_is_left_alone(world: OldWorld, kind: OldKind) -> None:
    world.job(kind.child("hello"), suspend=True)
    before = world.child(kind)
    world.old(kind)
    await world.look(kind)
    assert (world.shown(kind)["status"], world.shown(kind)["reason"]) == ("Failed", "NameTaken")
    assert f"SlurmJob {kind.child('hello')} has another owner" in world.shown(kind)["message"]
    assert world.child(kind) == before
    world.delete(kind.child("hello"))
    await world.runs(kind)


async def test_a_slurmjob_that_somebody_else_has_created_just_now_is_left_alone(world: OldWorld) -> None:
    world.job(WLM.child("hello"), suspend=True)
    other = world.child(WLM)
    assert other is not None
    _ = world.jobs.remove(other)
    world.old(WLM)
    await world.look(WLM)
    assert world.child(WLM) == other
    assert world.shown(WLM) == {}


async def test_what_the_slurmjob_waits_for_is_shown(world: OldWorld) -> None:
    await world.clients.close("cluster-1")
    world.old(WLM)
    await world.until(lambda: world.shown(WLM).get("reason") == "ClusterNotReady")
    assert world.shown(WLM)["status"] == "Pending"
    assert "no connection to the Slurm of Cluster ns/slurm" in world.shown(WLM)["message"]
    await world.start()
    await world.runs(WLM)


async def test_an_object_that_is_no_such_job(world: OldWorld) -> None:
    world.old(WLM, batch=7)
    await world.look(WLM)
    assert (world.shown(WLM)["status"], world.shown(WLM)["reason"]) == ("Failed", "InvalidSpec")
    assert "spec.batch" in world.shown(WLM)["message"]
    assert world.child(WLM) is None


@pytest.mark.parametrize("word", ["Pending", "Running", "Unknown", "Completed"])
async def test_what_another_operator_may_have_run_is_not_run_again(world: OldWorld, word: str) -> None:
    world.old(WLM)
    world.kube.put(WLM.resource, {**found(world, WLM), "status": {"status": word}})
    for _ in range(3):
        await world.look(WLM)
    assert (world.shown(WLM)["status"], world.shown(WLM)["reason"]) == ("Unknown", "OtherOperator")
    assert world.child(WLM) is None


@pytest.mark.parametrize("word", ["Succeeded", "Failed"])
async def test_what_another_operator_has_finished_stays_as_it_is(world: OldWorld, word: str) -> None:
    world.old(WLM)
    world.kube.put(WLM.resource, {**found(world, WLM), "status": {"status": word}})
    for _ in range(3):
        await world.look(WLM)
    assert world.shown(WLM)["status"] == word
    assert world.child(WLM) is None


async def test_no_error_hides_that_another_operator_has_run_an_object(world: OldWorld) -> None:
    world.old(WLM)
    world.kube.put(WLM.resource, {**found(world, WLM), "status": {"status": "Running"}})
    error = errors.Forbidden(Target("patch", str(WLM.resource), "team", "hello"), "no", status=403)
    await world.controllers[WLM.name].tell(("team", "hello"), error)
    assert world.shown(WLM) == {"status": "Running"}
    assert world.events.reasons() == ["Forbidden"]
    world.old(WLM, batch=7)
    await world.look(WLM)
    world.old(WLM, batch=SCRIPT)
    await world.look(WLM)
    assert world.shown(WLM)["reason"] == "OtherOperator"
    assert world.child(WLM) is None


def found(world: OldWorld, kind: OldKind) -> Object:
    known = world.kube.find(kind.resource, "hello", "team")
    assert known is not None
    return known


async def test_the_error_of_a_pass_is_shown_in_the_old_status(world: OldWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def denied(resource: Any, body: Any, namespace: str | None = None) -> Any:
        raise errors.Forbidden(Target("create", str(SLURMJOBS), "team", "x"), "exceeded quota", status=403)

    with monkeypatch.context() as patch:
        patch.setattr(world.kube, "create", denied)
        world.old(WLM)
        with pytest.raises(errors.Forbidden) as error:
            await world.look(WLM)
        await world.controllers[WLM.name].tell(("team", "hello"), error.value)
    assert (world.shown(WLM)["status"], world.shown(WLM)["reason"]) == ("Pending", "Forbidden")
    assert "exceeded quota" in world.shown(WLM)["message"]
    assert "conditions" not in world.shown(WLM)
    await world.runs(WLM)
