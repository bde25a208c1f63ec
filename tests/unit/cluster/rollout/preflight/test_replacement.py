"""slurmctld's pod is replaced only once one from the new template has started; if it cannot, the cause is reported."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from slinky_api.crd.definition import definition
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import CLUSTER, Cluster
from slinky_api.v1alpha1.cluster.status import JobCounts
from slinky_operator.cluster.actions import EmitEvent, EndPreflight, StartPreflight, Write
from slinky_operator.cluster.memory.rollout import Outcome
from slinky_operator.cluster.parts.job_counts.question import Jobs, JobsQuestion
from slinky_operator.cluster.parts.slurmctld import pod as slurmctld_pod
from slinky_operator.identity import pod as identity
from tests.support.from_schema import values
from tests.unit.cluster.parts.keys.lifecycle.worlds import generated
from tests.unit.cluster.rollout_stories import settled, until
from tests.unit.cluster.world import WALL, World, cluster_object

CLAIM = {"name": "more", "persistentVolumeClaim": {"claimName": "unbound"}}
CLUSTERS = definition(CLUSTER, Cluster)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
AT_REST = settled()
PASSING = {"controller": {"persistence": {"enabled": False}}}
SSSD = {"identity": {"sssd": {"confRef": {"name": "directory"}}}}
LONG_AGO = "2025-01-01T00:00:00Z"
UNSCHEDULED = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "message": "pod has unbound immediate claims"}],
}


def template(**spec: Any) -> dict[str, Any]:
    return {"controller": {"template": {"spec": spec}}}


def stateful_set(world: World) -> dict[str, Any]:
    return world.children["StatefulSet", "slurm-controller"]


def rehearsed(spec: dict[str, Any], before: dict[str, Any] | None = None) -> tuple[World, dict[str, Any]]:
    """A Cluster whose slurmctld is to be replaced, and the spec of the pod that is tried first."""
    world = settled(before)
    world.raw["spec"] = spec
    return world, until(world, StartPreflight).preflight.pod.body["spec"]


def show(world: World, status: dict[str, Any], created: str = WALL.isoformat()) -> None:
    pod = next(iter(world.preflights.values()))
    pod["status"], pod["metadata"]["creationTimestamp"] = status, created


def containers(world: World, **states: dict[str, Any]) -> dict[str, Any]:
    names = [one["name"] for one in next(iter(world.preflights.values()))["spec"]["containers"]]
    absent = {
        "terminated": {
            "exitCode": 128,
            "reason": "StartError",
            "message": "stat /no-fault-this-trial-runs-slurmctld-only",
        }
    }
    found = dict.fromkeys(names, absent) | {"slurmctld": {"terminated": {"exitCode": 0}}} | states
    return {"phase": "Running", "containerStatuses": [{"name": name, "state": one} for name, one in found.items()]}


def test_a_template_is_tried_before_the_statefulset_changes() -> None:
    world, spec = rehearsed(template(volumes=[CLAIM]))
    assert {"name": "more", "persistentVolumeClaim": {"claimName": "unbound", "readOnly": True}} in spec["volumes"]
    assert not any(one["name"] == "more" for container in spec["containers"] for one in container["volumeMounts"])
    world.step()
    assert CLAIM not in stateful_set(world)["spec"]["template"]["spec"]["volumes"]
    world.settle()
    assert CLAIM in stateful_set(world)["spec"]["template"]["spec"]["volumes"]
    assert not world.preflights


def test_what_the_scheduler_says_of_it_is_told_and_slurmctld_stays() -> None:
    world, _ = rehearsed(template(volumes=[CLAIM]))
    world.step()
    show(world, UNSCHEDULED)
    for _ in range(4):
        world.step()
    assert CLAIM not in stateful_set(world)["spec"]["template"]["spec"]["volumes"]
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ReplacementHeldBack")
    assert "spec.controller.template" in degraded["message"]
    assert "pod has unbound immediate claims" in degraded["message"]
    assert world.condition("Ready")["status"] == "True"
    assert any(isinstance(one, EmitEvent) and one.reason == "ReplacementHeldBack" for one in world.log)


def test_a_configuration_goes_on_beside_it_with_slurmctld_as_it_runs() -> None:
    world, _ = rehearsed({"controller": {"image": "nowhere:1"}})
    world.step()
    show(world, UNSCHEDULED)
    world.raw["spec"] = {"controller": {"image": "nowhere:1"}, "extraConf": "KillWait=5"}
    for _ in range(12):
        for pod in world.preflights.values():
            if "-preflight-r" in pod["metadata"]["name"]:
                pod["status"] = UNSCHEDULED
        world.step()
    assert "KillWait=5" in world.slurm_conf
    assert stateful_set(world)["spec"]["template"]["spec"]["containers"][0]["image"] == "slurmctld:1"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"terminated": {"exitCode": 1, "message": "slurmctld: fatal: no such plugin"}}, "fatal: no such plugin"),
        ({"terminated": {"exitCode": 3, "message": "slurmctld: not found"}}, "slurmctld: not found"),
        ({"terminated": {"exitCode": 128, "reason": "StartError", "message": "exec: /bin/sh"}}, "exec: /bin/sh"),
        ({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, "OOMKilled"),
        ({"waiting": {"reason": "ErrImagePull", "message": "not found"}}, "ErrImagePull: not found"),
    ],
)
def test_an_image_that_does_not_run_replaces_nothing(state: dict[str, Any], words: str) -> None:
    world, _ = rehearsed({"controller": {"image": "nowhere:1"}})
    world.step()
    show(world, containers(world, slurmctld=state))
    for _ in range(4):
        world.step()
    assert stateful_set(world)["spec"]["template"]["spec"]["containers"][0]["image"] == "slurmctld:1"
    message = world.condition("Degraded")["message"]
    assert "spec.controller.image" in message
    assert words in message


def test_what_neither_comes_up_nor_says_why_is_told_with_what_it_may_lack() -> None:
    world, _ = rehearsed(template(volumes=[{"name": "more", "secret": {"secretName": "nosuch"}}]))
    world.step()
    show(world, containers(world, slurmctld={"waiting": {"reason": "ContainerCreating"}}), LONG_AGO)
    until(world, EndPreflight)
    for _ in range(3):
        world.step()
    assert "Secret nosuch" in world.condition("Degraded")["message"]


def test_other_containers_are_started_and_do_nothing() -> None:
    side = {"name": "side", "image": "side:1", "command": ["rm", "-rf", "/"], "volumeMounts": []}
    world, spec = rehearsed(template(containers=[side], initContainers=[{"name": "first", "image": "first:1"}]))
    by_name = {one["name"]: one for one in spec["containers"]}
    assert set(by_name) == {"slurmctld", "agent", "side", "first"}
    # The kubelet's Warning about it has the command, and so says that it is no fault.
    assert {tuple(one["command"]) for name, one in by_name.items() if name != "slurmctld"} == {
        ("/no-fault-this-trial-runs-slurmctld-only",)
    }
    assert "initContainers" not in spec
    world.step()
    (about,) = [pod["metadata"]["annotations"]["kubernetes.io/description"] for pod in world.preflights.values()]
    assert about.startswith("slurm-operator tries a new pod of slurmctld for Cluster slurm in this pod")
    show(world, containers(world))
    world.settle()
    assert any(one["name"] == "side" for one in stateful_set(world)["spec"]["template"]["spec"]["containers"])


def test_a_runtime_that_looks_for_the_command_earlier_is_no_trouble() -> None:
    world, _ = rehearsed({"controller": {"image": "mine:2"}})
    world.step()
    said = "executable file `/no-fault-this-trial-runs-slurmctld-only` not found"
    waiting = {"reason": "CreateContainerError", "message": said}
    show(world, containers(world, agent={"waiting": waiting}))
    world.settle()
    assert stateful_set(world)["spec"]["template"]["spec"]["containers"][0]["image"] == "mine:2"


def test_a_sidecar_that_cannot_be_started_replaces_nothing() -> None:
    world, _ = rehearsed(template(containers=[{"name": "side", "image": "side:1"}]))
    world.step()
    end = {"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such device"}}
    show(world, containers(world, side=end))
    for _ in range(4):
        world.step()
    assert "side: its container cannot be started: no such device" in world.condition("Degraded")["message"]


def test_sssd_is_started_without_its_source_and_does_not_excuse_slurmctld() -> None:
    world, spec = rehearsed(SSSD)
    assert {one["name"] for one in spec["containers"]} == {"slurmctld", "agent", "sssd"}
    assert identity.VOLUMES.isdisjoint(one["name"] for one in spec["volumes"])
    world.step()
    show(world, containers(world, slurmctld={"terminated": {"exitCode": 1, "message": "fatal: not like this"}}))
    ended = until(world, EndPreflight)
    assert (ended.verdict.outcome, ended.verdict.why) == (Outcome.REFUSED, "slurmctld: fatal: not like this")


def test_a_pod_whose_sssd_fails_is_not_replaced_without_a_trial() -> None:
    world = settled(SSSD)
    assert world.controller_pod is not None
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
    world.controller_pod["status"] |= {
        "initContainerStatuses": [{"name": "sssd", "state": waiting}],
        "containerStatuses": [{"name": "slurmctld", "state": {"running": {}}}],
    }
    world.raw["spec"] = {"identity": {"sssd": {"confRef": {"name": "directory"}, "image": "mine:1"}}}
    assert until(world, StartPreflight)
    assert "sssd:1" in str(stateful_set(world))


@pytest.mark.parametrize(("code", "is_tried"), [(0, True), (1, False)])
def test_a_slurmctld_that_is_only_started_again_is_not_replaced_without_a_trial(code: int, is_tried: bool) -> None:
    world = settled({})
    assert world.controller_pod is not None
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
    ended = {"terminated": {"exitCode": code}}
    world.controller_pod["status"]["containerStatuses"] = [{"name": "slurmctld", "state": waiting, "lastState": ended}]
    world.raw["spec"] = {"controller": {"image": "nowhere:1"}}
    actions = world.step().actions
    assert any(isinstance(one, StartPreflight) for one in actions) == is_tried
    assert ("nowhere:1" in str(stateful_set(world))) != is_tried


def test_it_has_neither_state_nor_keys_nor_the_claims_that_run() -> None:
    world, spec = rehearsed(template(volumes=[CLAIM, {"name": "next", "persistentVolumeClaim": {"claimName": "b"}}]))
    names = {one["name"] for one in spec["volumes"]}
    assert not names & {"state", "keys"}
    world.settle()
    both = template(volumes=[CLAIM, {"name": "third", "persistentVolumeClaim": {"claimName": "c"}}])
    world.raw["spec"] = both
    again = until(world, StartPreflight).preflight.pod.body["spec"]
    assert [one["name"] for one in again["volumes"] if "persistentVolumeClaim" in one] == ["third"]


def test_another_claim_for_the_state_has_to_be_bound_first() -> None:
    before = {"controller": {"persistence": {"existingClaim": "old"}}}
    _, spec = rehearsed({"controller": {"persistence": {"existingClaim": "new"}}}, before)
    claims = [one["persistentVolumeClaim"] for one in spec["volumes"] if "persistentVolumeClaim" in one]
    assert claims == [{"claimName": "new", "readOnly": True}]


def test_it_requests_what_the_new_pod_wants_beyond_the_running_one() -> None:
    before = {"controller": {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}}
    _, spec = rehearsed({"controller": {"resources": {"requests": {"cpu": "500", "memory": "1Gi"}}}}, before)
    requests = [one.get("resources", {}).get("requests", {}) for one in spec["containers"][1:]]
    assert requests == [{"cpu": "498"}]


def test_nothing_is_tried_where_slurmctld_does_not_come_up_anyway() -> None:
    world = settled({"controller": {"image": "nowhere:1"}})
    assert world.controller_pod is not None
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    world.controller_pod["status"]["containerStatuses"] = [{"name": "slurmctld", "state": {"waiting": waiting}}]
    world.raw["spec"] = {"controller": {"image": "mine:2"}}
    writes = [one for one in world.plan().actions if isinstance(one, Write)]
    assert [one.child.name for one in writes] == ["slurm-controller"]


def test_a_secret_that_is_not_there_replaces_nothing() -> None:
    world = generated("slurm.key")
    world.raw["spec"] = {"auth": {"slurmKeyRef": {"name": "nosuch", "key": "slurm.key"}}}
    for _ in range(4):
        world.step()
    assert "slurm-auth-accepted" not in str(stateful_set(world))
    assert "there is no Secret nosuch" in world.condition("Degraded")["message"]
    world.secrets["nosuch"] = {"slurm.key": b"k" * 128}
    world.settle()
    # What pods mount has the key that is in it, and not the Secret itself.
    assert "slurm-auth-accepted" in str(stateful_set(world))
    assert "nosuch" not in str(stateful_set(world))
    assert world.secrets["slurm-auth-accepted"] == world.secrets["nosuch"]


def test_a_key_that_needs_a_restart_gets_it_while_a_template_is_held_back() -> None:
    world, _ = rehearsed({"controller": {"image": "nowhere:1"}})
    world.step()
    world.raw["spec"] = {"controller": {"image": "nowhere:1"}, "extraConf": "CommunicationParameters=EnableIPv6"}
    for _ in range(14):
        for pod in world.preflights.values():
            if "-preflight-r" in pod["metadata"]["name"]:
                pod["status"] = UNSCHEDULED
        world.step()
    made = stateful_set(world)["spec"]["template"]
    assert made["spec"]["containers"][0]["image"] == "slurmctld:1"
    assert "enableipv6" in str(made["metadata"]["annotations"]).lower()


def test_a_new_cluster_says_what_the_scheduler_says_of_its_pod() -> None:
    world = World(cluster_object(template(volumes=[CLAIM])))
    # Two of them make the keys, and write down which.
    for _ in range(8):
        world.step()
    assert world.controller_pod is not None
    world.controller_pod["metadata"]["creationTimestamp"] = LONG_AGO
    world.controller_pod["status"] = UNSCHEDULED
    world.slurm = None
    world.server = ""
    world.step()
    ready = world.condition("Ready")
    assert ready["reason"] == "DaemonStuck"
    assert "slurm-controller-0 does not start: not scheduled: pod has unbound immediate claims" in ready["message"]
    assert world.condition("Degraded")["status"] == "True"


def test_a_restart_for_a_key_is_not_tried_again() -> None:
    world = settled()
    world.raw["spec"] = {"extraConf": "CommunicationParameters=EnableIPv6"}
    names = [one.preflight.name for one in world.settle() if isinstance(one, StartPreflight)]
    assert len(names) == 1
    assert "-preflight-r" not in names[0]


def in_an_empty_dir(jobs: int | None, *, noted: bool) -> World:
    """A Cluster with its state in an emptyDir whose operator has just been replaced by one with another template."""
    world = settled(PASSING)
    stateful_set(world)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 31
    if not noted:
        del stateful_set(world)["metadata"]["annotations"][slurmctld_pod.ANNOTATION_POD_SPEC]
    several(world, jobs)
    return world


def several(world: World, jobs: int | None) -> list[Any]:
    """Passes while Slurm has a number of jobs, or does not tell it; returns what was done."""
    world.log = []
    for _ in range(12):
        counts = None if jobs is None else JobCounts(total=jobs, running=jobs)
        world.memory.answers.note(JobsQuestion, Jobs(world.now, 0.0, counts))
        world.step()
    return world.log


def grace(world: World) -> int:
    return int(stateful_set(world)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"])


@pytest.mark.parametrize("noted", [True, False])
@pytest.mark.parametrize(
    ("jobs", "words"), [(1, "1 job with it"), (2, "2 jobs with it"), (None, "has not answered yet")]
)
def test_an_upgrade_replaces_no_slurmctld_that_would_lose_jobs(jobs: int | None, words: str, *, noted: bool) -> None:
    world = in_an_empty_dir(jobs, noted=noted)
    assert grace(world) == 31
    degraded = world.condition("Degraded")
    assert degraded["reason"] == "ReplacementHeldBack"
    assert "emptyDir" in degraded["message"]
    assert words in degraded["message"]
    assert not world.preflights
    # When the last of them has ended.
    several(world, 0)
    assert grace(world) == 30
    assert world.condition("Degraded")["status"] == "False"


@pytest.mark.parametrize("noted", [True, False])
def test_whoever_changes_the_pod_in_the_spec_has_asked_for_it(*, noted: bool) -> None:
    world = in_an_empty_dir(2, noted=noted)
    world.raw["spec"] = {**PASSING, "extraConf": "KillWait=5"}
    several(world, 2)
    assert "KillWait=5" in world.slurm_conf
    assert grace(world) == 31
    metadata = {"annotations": {"example.com/now": "yes"}}
    world.raw["spec"] = {"controller": {**PASSING["controller"], "template": {"metadata": metadata}}}
    done = several(world, 2)
    assert any(isinstance(one, StartPreflight) and "-preflight-r" in one.preflight.name for one in done)
    assert grace(world) == 30


def test_state_on_a_claim_is_replaced_while_there_are_jobs() -> None:
    world = settled()
    stateful_set(world)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 31
    several(world, 2)
    assert grace(world) == 30


@pytest.mark.parametrize("agent", ["agent:1", "agent:0"])
def test_the_patience_of_an_older_operator_is_no_reason_to_replace_slurmctld(agent: str) -> None:
    world = settled()
    own, beside = stateful_set(world)["spec"]["template"]["spec"]["containers"]
    own["startupProbe"]["failureThreshold"], beside["image"] = 300, agent
    assert not any(isinstance(one, (StartPreflight, Write)) for one in world.settle())
    # What replaces it for another reason brings it along.
    world.raw["spec"] = {"controller": {"image": "mine:2"}}
    world.settle()
    own, beside = stateful_set(world)["spec"]["template"]["spec"]["containers"]
    assert (own["image"], own["startupProbe"]["failureThreshold"], beside["image"]) == ("mine:2", 1_000_000, "agent:1")


@settings(max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck), deadline=None)
@given(spec=values(CLUSTERS["spec"]["properties"]["controller"]))
def test_whatever_the_schema_lets_through_ends_in_a_status(spec: dict[str, Any]) -> None:
    world = copy.deepcopy(AT_REST)
    world.raw["spec"] = {"controller": {key: value for key, value in spec.items() if key != "external"}}
    try:
        Cluster.parse(world.raw)
    except InvalidObjectError:
        return
    for _ in range(3):
        assert world.step().status is not None
