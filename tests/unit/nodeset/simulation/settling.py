"""The end of a history: faults are over, and everything must come to what is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tests.unit.nodeset.simulation.checks import check, mounts_checks
from tests.unit.nodeset.simulation.hardware import TAKES
from tests.unit.nodeset.simulation.harness import Run, Violated
from tests.unit.nodeset.simulation.kube_orders import says_empty
from tests.unit.nodeset.simulation.objects import BAD, HOSTS, LOW, MISFIT, OURS, REGISTERED, TAG, Object
from tests.unit.nodeset.simulation.steps import Step
from tests.unit.nodeset.simulation.users import STRATEGIES
from tests.unit.nodeset.simulation.world import World

ROUNDS = 80
"""Looks at a world that comes to its end: bad nodes are replaced one after the other, each several times."""


async def settle(run: Run) -> None:
    """No more faults: everything comes to its end, and the NodeSet to what it is to be.

    A controller that nothing wakes up stays asleep.
    """
    world = run.world
    world.slurm_fault, world.lose_slurm, world.lose_kube, world.fail_kube = "", 0, 0, 0
    world.lacks_rights, world.refusal, world.dies_in = False, "", 0
    world.tenants.clear()
    calm(run.world)
    if world.windows:
        # What waits for maintenance goes on once that has begun, and nobody but the clock says so.
        world.windows = [world.window(200, 600)]
        run.see_cluster()
    for _ in range(ROUNDS):
        run.awake |= give_back_hosts(world)
        if run.awake:
            await run.one_pass()
        run.check()
        for index in range(4):
            for happening in ("schedule", "start", "report", "register", "kubelet_ends"):
                getattr(world, f"do_{happening}")(index)
        for job in (*world.jobs, *world.lost_jobs):
            if job.holds or job.state == "PENDING":
                job.end("COMPLETED")
        world.do_reconfigure(0)
        world.do_node_returns(0)
        world.do_slurmds_report(0)
        world.do_reregister(0)
        world.do_neighbour_goes(0)
        world.do_pods_collected(0)
        world.do_collect(0)
        world.do_claims_go(0)
        world.do_machines_work(0)
        take_back_marks(world)
        if world.asked_ever:
            # Another machine takes the place of one that was deleted.
            world.do_host_comes(0)
        world.do_checks_run(1)
        world.do_time(3)
        world.do_poll(0)
        run.see(len(world.log))
        run.hear_slurm()
        if await settled(run):
            return
    raise Violated(f"never settled{'' if run.awake else ', and asleep'}: {run.describe()}")


def take_back_marks(world: World) -> None:
    """The administrator does as a condition says about Nodes whose machines are not asked for after all.

    An operator has ended between its mark and its request, and nobody knows; or the request is complete, and the
    machine has not started again.
    """
    for name, host in world.hosts.items():
        words = world.mark_of(host).split(" ")
        if words[-1] != "sent" or world.is_to_come(name):
            continue
        if (world.now - datetime.fromisoformat(words[3])).total_seconds() >= TAKES:
            world.take_back(name)


def calm(world: World) -> None:
    """What stands in the way of an end is cleared away."""
    world.do_neighbour_goes(0)
    for host in HOSTS:
        if host not in world.hosts:
            world.end_machine(host)
            world.lose_nodes_of(host)
    calm_users(world)
    for name, pod in list(world.pods.items()):
        if not world.is_ours(pod) and not world.is_neighbours(pod):
            world.remove_pod(name)
    world.claims = {name: one for name, one in world.claims.items() if "labels" in one["metadata"]}
    for pod in world.pods.values():
        (pod["metadata"].get("annotations") or {}).pop("nodeset.slinky.slurm.net/pod-cordon", None)
        world.tell("pods", "MODIFIED", pod)
    give_back_lost_words(world)
    # Those that are not recreated, since a person keeps them from it or they had registered, come up after all.
    kept = {
        world.uid_of(name)
        for name, pod in world.pods.items()
        if world.node_of(name) in world.foreign or (world.is_recorded(name) and world.uid_of(name) in world.ever_known)
    }
    world.stuck, world.next_stuck = world.stuck - kept, 0
    for index, host in enumerate(HOSTS):
        if world.condition_of(host) == "Unknown":
            world.do_recover(index)
    for name in list(world.pods):
        # Nodes that slurmctld has forgotten come back when their slurmd is restarted.
        if world.node_of(name) not in world.records:
            world.known.discard(world.uid_of(name))


def calm_users(world: World) -> None:
    """The spec holds nothing back, and can be fulfilled.

    A spec that is so already is not written again: that would wake up a controller that sleeps.
    """
    if world.nodeset is None:
        return
    spec = world.nodeset["spec"]
    if spec.get("updateStrategy", STRATEGIES[0]) != STRATEGIES[0]:
        world.do_hold_back(0)
    if set(spec["persistentVolumeClaimRetentionPolicy"].values()) != {"Delete"}:
        world.do_retain(0)
    if spec["image"] in {BAD, MISFIT}:
        world.do_edit(0)
    world.broken.clear()
    world.hung.clear()
    if world.wants_checks() and spec["health"]["checks"] != [check("")]:
        world.do_check(0)


def give_back_lost_words(world: World) -> None:
    """Where Slurm wrote its words over a drain that had just been taken back, unseen, somebody does so again."""
    for name, pod in world.pods.items():
        record = world.records.get(world.node_of(name))
        if record is not None and record.reason == LOW and tells_of_a_foreign_drain(pod):
            record.drain = record.invalid = False


def give_back_hosts(world: World) -> bool:
    """Cordons stay, unless a pod waits to be replaced: the nodes they keep drained are missing from the budget.

    Returns whether a request to drain has gone, of which the controller learns at once.
    """
    image = world.nodeset["spec"]["image"] if world.nodeset is not None else ""
    images = {pod["spec"].get("containers", [{}])[0].get("image") for pod in world.pods.values()}
    ours = [pod for pod in world.pods.values() if world.is_ours(pod)]
    is_fit = all(mounts_checks(pod) == world.wants_checks() for pod in ours)
    if is_fit and images <= {image} and not any(world.uid_of(name) in world.stuck for name in world.pods):
        return False
    had, world.requests = bool(world.requests), set()
    for index, name in enumerate(HOSTS):
        host = world.hosts.get(name)
        if host is not None and host["spec"].pop("unschedulable", None):
            world.tell("nodes", "MODIFIED", host)
        if world.condition_of(name) == "True":
            world.do_recover(index)
    return had


async def settled(run: Run) -> bool:
    """Whether all is as wanted and a further pass changes nothing."""
    world = run.world
    if world.nodeset is None:
        return not any(world.is_ours(pod) for pod in world.pods.values())
    if not (records_are_settled(world) and pods_are_settled(world) and claims_are_settled(world)):
        return False
    if not checks_are_settled(world) or not health_is_settled(world) or not states_are_settled(world):
        return False
    before, slept = world.counter, not run.awake
    await run.one_pass()
    if slept and world.counter != before:
        raise Violated(f"slept over what was to do: {run.describe()}")
    return world.counter == before


def records_are_settled(world: World) -> bool:
    """Whether each record of ours has a pod, and is drained and has features as its pod's machine wants it."""
    for record in (record for record in world.records.values() if record.extra == TAG):
        name = world.pod_of(record.name)
        if name is None and record.name not in world.foreign:
            return False
        pod = world.pods.get(name or "")
        machine = pod["spec"].get("nodeName") if pod is not None else None
        drained_by_us = record.drain and record.reason.startswith(OURS)
        # How many of those the budget has room for, `health_is_settled` counts.
        is_sick = has_rule(world) and world.condition_of(machine) == "True" and world.is_held(record.name)
        is_kept = world.is_cordoned(machine) or machine in world.requests
        is_wanted = pod is not None and (is_kept or (drained_by_us and is_sick))
        if drained_by_us != is_wanted and record.name not in world.foreign:
            return False
        features, topology = world.traits_of(machine)
        if pod is not None and {one for one in record.features if one.startswith("k8s/")} != features:
            return False
        if pod is not None and world.keeps_instance and topology is not None and record.topology != topology:
            return False
    return True


def has_rule(world: World) -> bool:
    """Whether nodes are drained for the condition that Nodes have."""
    health = (world.nodeset or {"spec": {}})["spec"].get("health")
    return bool(health and health.get("nodeConditions"))


def health_is_settled(world: World) -> bool:
    """Whether as many nodes of bad Nodes are drained as the budget has room for."""
    assert world.nodeset is not None
    health = world.nodeset["spec"].get("health")
    nodes = {world.node_of(name): pod["spec"].get("nodeName") for name, pod in world.pods.items()}
    held = sum(1 for node in nodes if world.is_held(node))
    if not has_rule(world):
        return held == 0
    waiting = [
        node
        for node, host in nodes.items()
        if world.condition_of(host) == "True"
        and not world.is_cordoned(host)
        and host not in world.requests
        and not world.is_held(node)
        and node not in world.foreign
    ]
    return not waiting or held >= world.health_budget(health, world.wanted())


def checks_are_settled(world: World) -> bool:
    """Whether all nodes run the checks of the spec, if one could try them."""
    assert world.nodeset is not None
    able = [one for one in world.records.values() if one.extra == TAG and not one.drain and world.pod_of(one.name)]
    if not world.wants_checks() or not able:
        return True
    data = (world.checks or {"data": {}})["data"]
    return "trial" not in data and world.checks_of(data, "")[1] == ""


def states_are_settled(world: World) -> bool:
    """Whether pods show that their nodes are drained exactly where that is asked for, and are."""
    assert world.nodeset is not None
    health = world.nodeset["spec"].get("health") or {}
    for name, pod in world.pods.items():
        record = world.records.get(world.node_of(name))
        shown = any(one["type"] == "SlurmNodeStateDrain" and one["status"] == "True" for one in _conditions(pod))
        is_drained = record is not None and record.drain
        if shown != (is_drained and "podConditions" in health) or says_empty(pod) != shown:
            return False
    return True


def _conditions(pod: Object) -> Sequence[Object]:
    return pod["status"].get("conditions") or ()


def pods_are_settled(world: World) -> bool:
    """Whether there are as many pods as wanted, where they are wanted, registered, guarded, protected and counted."""
    wanted, guards = world.wanted(), {guard["metadata"]["uid"] for guard in world.maps.values()}
    status = (world.nodeset or {}).get("status") or {}
    return (
        len(world.pods) == wanted == status.get("replicas") == status.get("updatedReplicas")
        and len(world.revisions) == 1
        and all(
            has_registered(pod)
            and world.guards_of(name) == guards
            and world.is_protected(name) is not is_kept_free(world, name)
            and (not world.on_hosts or world.is_selected(pod["spec"].get("nodeName")))
            for name, pod in world.pods.items()
        )
    )


def is_kept_free(world: World, name: str) -> bool:
    """Whether the node of a pod is kept free of jobs by us, and the pod stays."""
    host = world.pods[name]["spec"].get("nodeName")
    return world.is_cordoned(host) or host in world.requests or world.is_held(world.node_of(name))


def claims_are_settled(world: World) -> bool:
    """Whether each pod has its claim, unmarked, and those that a scale-in under Delete has left are gone."""
    if not {f"data-{name}" for name in world.pods} <= set(world.claims):
        return False
    # What a scale-in has kept stays; what one under Delete has not, is gone, and a pod's claim says nothing.
    written = {name: world.retention_of(name) for name in world.claims}
    return "Delete" not in written.values() and not any(written[f"data-{name}"] for name in world.pods)


def has_registered(pod: Object) -> bool:
    """Whether it is written on a pod that Slurm knows its node."""
    return any(one["type"] == REGISTERED for one in pod["status"].get("conditions") or ())


def tells_of_a_foreign_drain(pod: Object) -> bool:
    """Whether it is written on a pod that somebody else has drained its node."""
    return any(one.get("reason") == "ForeignDrain" for one in pod["status"].get("conditions") or ())


async def begin(*, keeps_instance: bool = True, on_hosts: bool = False) -> World:
    """A world in which three nodes are up and idle."""
    world = World(keeps_instance=keeps_instance, on_hosts=on_hosts)
    world.do_scale(3)
    await settle(Run(world))
    return world


async def live(world: World, steps: Sequence[Step]) -> None:
    """Live through one history from a copy of a world on, and then settle."""
    run = Run(world.twin())
    await run.history(steps)
    await settle(run)
