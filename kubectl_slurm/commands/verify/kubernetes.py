"""Checks of `verify` beside jobs: users in all daemons, cordons, drains that pods show, tokens of other namespaces.

Each undoes what it does, also if the user interrupts, and is skipped with a reason where a right, a node or an option
is missing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kubectl_slurm.access import tokens
from kubectl_slurm.access.kinds import PODS
from kubectl_slurm.commands.shared.session import Session
from kubectl_slurm.errors import KubectlFailed, NoToken, PluginError
from kubectl_slurm.facts import reading
from kubectl_slurm.facts.objects import ClusterFacts, PodFacts
from kubectl_slurm.rules import verification
from kubectl_slurm.rules.verification import Result, Verdict
from kubectl_slurm.screen.words import clip
from slinky_api import labels
from slurm_client import SlurmError

PAUSE: Final = 0.5
DAEMONS: Final = {"controller": "slurmctld", "restapi": "slurmrestd", "login": "login"}
"""Components with users, and the container that has them."""

SLURMD: Final = "slurmd"
LOOK_UP: Final = 'getent passwd "$1" || echo none; id -G "$1" 2>/dev/null || echo none'
CORDON: Final = "a cordoned pod's node is drained, and comes back"
NODE_CORDON: Final = "a cordoned Kubernetes node drains its Slurm nodes, and back"
VISIBLE: Final = "a drain in Slurm shows on its pod"
USERS: Final = "all daemons know a user alike"
ELSEWHERE: Final = "another namespace gets no token that is not granted"

Json = Mapping[str, Any]
States = Callable[[], Mapping[str, bool]]
"""Whether each node is drained, by name."""


def users(session: Session, cluster: ClusterFacts, slurmds: Sequence[PodFacts], user: str) -> Result:
    """What slurmctld, slurmrestd, login pods and a slurmd of each NodeSet know of a user, by commands in their pods."""
    selector = f"{labels.LABEL_CLUSTER_NAME}={cluster.name}"
    places: dict[str, tuple[str, str]] = {}
    for component, container in DAEMONS.items():
        one = f"{selector},{labels.LABEL_APP_COMPONENT}={component}"
        ready = [pod for pod in map(reading.pod, session.kube.objects(PODS, selector=one, most=20)) if pod.ready]
        if ready:
            places[container] = (ready[0].name, container)
    for pod in slurmds:
        if pod.ready and not pod.deleting:
            places.setdefault(f"slurmd of {pod.nodeset}", (pod.name, SLURMD))
    if len(places) < 2:  # noqa: PLR2004 - one agrees with itself
        return Result(USERS, Verdict.SKIPPED, "fewer than two daemons have a ready pod")
    found: dict[str, verification.User] = {}
    for name, (pod_name, container) in places.items():
        command = ("exec", f"--namespace={session.kube.namespace}", pod_name, f"--container={container}", "--")
        try:
            said = session.kubectl.run(*command, "sh", "-c", LOOK_UP, "sh", user)
        except KubectlFailed as error:
            return Result(USERS, Verdict.SKIPPED, f"{name} was not asked: {error}")
        found[name] = verification.user_of(said)
    return verification.alike(USERS, user, found)


def cordoned_pod(session: Session, pods: Sequence[PodFacts], idle: str, drained: States, timeout: int) -> Result:
    """The operator drains the node of a pod that is cordoned by its annotation, and undrains it afterwards."""
    pod = next((one for one in pods if one.slurm_node == idle and one.ready), None)
    if pod is None:
        return Result(CORDON, Verdict.SKIPPED, "no idle node has a pod of a NodeSet")
    try:
        try:
            _annotate(session, pod.name, labels.ANNOTATION_POD_CORDON, "true")
            shown = _until(lambda: drained().get(idle, False), timeout)
        finally:
            _annotate(session, pod.name, labels.ANNOTATION_POD_CORDON, None)
        back = _until(lambda: not drained().get(idle, True), timeout)
    except (SlurmError, PluginError) as error:
        return Result(CORDON, Verdict.FAILED, f"{idle}: {error}")
    return _verdict(CORDON, idle, timeout, shown=shown, back=back)


def cordoned_node(session: Session, pods: Sequence[PodFacts], name: str, drained: States, timeout: int) -> Result:
    """The operator drains the nodes of all pods on a Kubernetes Node that is cordoned, and undrains them afterwards."""
    if not name:
        text = "name a Kubernetes node with --cordon-node; it needs the right to patch nodes"
        return Result(NODE_CORDON, Verdict.SKIPPED, text)
    states = drained()
    mine = [one.slurm_node for one in pods if one.node == name and states.get(one.slurm_node) is False]
    if not mine:
        return Result(NODE_CORDON, Verdict.SKIPPED, f"no undrained node of this Cluster runs on {name}")
    try:
        spec = json.loads(session.kubectl.run("get", "node", name, "--output=json")).get("spec") or {}
        if spec.get("unschedulable"):
            return Result(NODE_CORDON, Verdict.SKIPPED, f"{name} is cordoned already")
        session.kubectl.run("cordon", name)
    except KubectlFailed as error:
        return Result(NODE_CORDON, Verdict.SKIPPED, str(error))
    try:
        try:
            shown = _until(lambda: all(drained().get(one, False) for one in mine), timeout)
        finally:
            session.kubectl.run("uncordon", name)
        back = _until(lambda: not any(drained().get(one, True) for one in mine), timeout)
    except (SlurmError, PluginError) as error:
        return Result(NODE_CORDON, Verdict.FAILED, f"{name}: {error}")
    return _verdict(NODE_CORDON, name, timeout, shown=shown, back=back)


def shown_on_pod(session: Session, pods: Sequence[PodFacts], node: str, timeout: int) -> Result:
    """While a node is drained in Slurm, the operator says so on its pod, with the reason."""
    pod = next((one for one in pods if one.slurm_node == node), None)
    if pod is None:
        return Result(VISIBLE, Verdict.SKIPPED, f"{node} is no pod of a NodeSet")

    def shown() -> bool:
        found = reading.pod(session.kube.get(PODS, pod.name)).conditions
        # Its status is about deleting the pod, which a drain of others may not allow.
        return any(one.type == verification.DRAINED and verification.REASON in one.message for one in found)

    try:
        seen = _until(shown, timeout)
    except PluginError as error:
        return Result(VISIBLE, Verdict.FAILED, str(error))
    missing = f"the condition {verification.DRAINED} of pod {pod.name} does not name the drain after {timeout} s"
    return Result(VISIBLE, Verdict.PASSED if seen else Verdict.FAILED, pod.name if seen else missing)


def token_elsewhere(session: Session, cluster: ClusterFacts, namespace: str) -> Result:
    """The operator gives another namespace no token of the user slurm, unless the Cluster grants it."""
    if not namespace:
        text = "name another namespace where you may create Tokens with --other-namespace"
        return Result(ELSEWHERE, Verdict.SKIPPED, text)
    if namespace == cluster.namespace:
        return Result(ELSEWHERE, Verdict.SKIPPED, f"{namespace} is the Cluster's own namespace")
    if (namespace, tokens.ADMINISTRATOR) in cluster.grants:
        return Result(ELSEWHERE, Verdict.SKIPPED, f"spec.auth.tokens grants {tokens.ADMINISTRATOR} to {namespace}")
    clock = tokens.Clock(session.now)
    try:
        with (
            session.kube_in(namespace) as kube,
            tokens.made(kube, cluster, tokens.ADMINISTRATOR, clock),
        ):
            why = f"namespace {namespace} was given a token of {tokens.ADMINISTRATOR}"
            return Result(ELSEWHERE, Verdict.FAILED, why)
    except tokens.NotGranted as error:
        return Result(ELSEWHERE, Verdict.PASSED, clip(str(error)))
    except (NoToken, PluginError) as error:
        return Result(ELSEWHERE, Verdict.SKIPPED, str(error))


def _annotate(session: Session, pod: str, name: str, value: str | None) -> None:
    patch = json.dumps({"metadata": {"annotations": {name: value}}})
    where = f"--namespace={session.kube.namespace}"
    session.kubectl.run("patch", "pod", pod, where, "--type=merge", f"--patch={patch}")


def _until(holds: Callable[[], bool], timeout: int) -> bool:
    """Wait until something holds; whether it does in time."""
    end = time.monotonic() + timeout
    while not holds():
        if time.monotonic() >= end:
            return False
        time.sleep(PAUSE)
    return True


def _verdict(title: str, name: str, timeout: int, *, shown: bool, back: bool) -> Result:
    if not shown:
        return Result(title, Verdict.FAILED, f"{name}: not drained after {timeout} s")
    if not back:
        return Result(title, Verdict.FAILED, f"{name}: still drained {timeout} s after the cordon has ended")
    return Result(title, Verdict.PASSED, name)


__all__ = ["cordoned_node", "cordoned_pod", "shown_on_pod", "token_elsewhere", "users"]
