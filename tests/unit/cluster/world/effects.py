"""What becomes of an action: each has its effect at once, and what the operator remembers of it is remembered.

The API server, the controllers and kubelets of Kubernetes, and the daemons do here what a test of one pass needs. What
pods look like then is in `objects`, the answers to questions are in `answers`.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from slinky_api import labels
from slinky_operator.cluster.actions import (
    Action,
    AdoptKey,
    Ask,
    Connect,
    Disconnect,
    EmitEvent,
    EndPreflight,
    ExcludeSlurmdKinds,
    GrowClaim,
    HoldBackNodeSets,
    KeepKeys,
    KeepMonitor,
    MakeKey,
    MakePassword,
    PutKeyBack,
    ReadKeys,
    Reload,
    Remove,
    ReplacePod,
    SealKey,
    SetFinalizer,
    StartPreflight,
    TearDown,
    TouchPod,
    UseReplicas,
    UseSlurmKey,
    Write,
)
from slinky_operator.cluster.memory.rollout import Loaded
from slinky_operator.cluster.memory.writes import ClaimSize
from slinky_operator.cluster.observe import SlurmView
from slinky_operator.cluster.parts.keys.sets import key_sets
from slinky_operator.reconcile.writes.children import quantity
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.contact import Contact, ContactState
from tests.unit.cluster.world.answers import answer
from tests.unit.cluster.world.objects import WALL, controller_pod, pod_of_a_trial, pod_of_images
from tests.unit.cluster.world.state import State


def take_effect(world: State, action: Action) -> None:  # noqa: C901, PLR0912, PLR0915 - one each
    """Let an action happen."""
    match action:
        case SetFinalizer():
            _finalized(world, action)
        case MakeKey():
            key = b"k" * action.size
            is_set = action.key == naming.SLURM_JWKS
            _secret(world, action.body, {action.key: key_sets.of_one("generated", key) if is_set else key})
        case MakePassword():
            _secret(world, action.body, {action.key: b"p" * 48})
        case AdoptKey():
            world.owners[action.name] = world.raw["metadata"]["uid"]
        case PutKeyBack():
            _secret(world, action.body, {action.key: action.value})
        case KeepKeys():
            _secret(world, action.body, {key: base64.b64decode(value) for key, value in action.body["data"].items()})
        case SealKey():
            world.sealed.add(action.secret)
        case ReadKeys():
            world.read_before, world.memory.keys.asked = 0.0, (action.purpose, world.now)
        case Write():
            _written(world, action)
        case KeepMonitor():
            world.monitor = action.child.body
            world.memory.writes.monitors[action.child.name] = action.child.digest, world.now
        case Connect():
            contact = Contact(ContactState.READY, WALL, "")
            replicas = frozenset(action.replicas)
            world.slurm = SlurmView(
                contact, action.fingerprint, {}, WALL, "26.05.5", "v0.0.45", replicas, action.slurm_key
            )
        case UseReplicas():
            assert world.slurm is not None
            world.slurm = replace(world.slurm, replicas=frozenset(action.urls))
        case UseSlurmKey():
            assert world.slurm is not None
            world.slurm = replace(world.slurm, slurm_key=action.key)
        case Disconnect():
            world.slurm = None
        case GrowClaim():
            _looked_at(world, action)
        case TouchPod():
            world.memory.rollout.touched = action.hash, world.now
            assert world.controller_pod is not None
            annotations = world.controller_pod["metadata"].setdefault("annotations", {})
            annotations[labels.ANNOTATION_CONFIG_TOUCH] = action.value
        case ReplacePod():
            world.memory.rollout.replaced |= {(action.component, action.hash)}
        case StartPreflight():
            start_trial(world, action)
        case EndPreflight():
            world.memory.rollout.judge(action.name, action.verdict)
        case ExcludeSlurmdKinds():
            world.memory.rollout.left_out = dict(action.left_out)
        case Remove():
            world.preflights.pop(action.name, None)
            world.children.pop((action.resource.kind, action.name), None)
        case HoldBackNodeSets():
            world.memory.rollout.held, world.memory.rollout.held_for = dict(action.held), action.held_for
        case Reload():
            world.memory.rollout.loaded = Loaded(action.pod_uid, action.change, world.now, proven=True, since=world.now)
            world.reconfigured()
        case EmitEvent() if action.obj["kind"] == "NodeSet":
            world.memory.rollout.reported_nodesets |= {(action.obj["metadata"]["name"], action.message)}
        case EmitEvent():
            world.memory.last_events[action.reason] = action.message
        case TearDown():
            world.torn_down = True
        case Ask():
            answer(world, action.question)
        case _:
            pass


def start_trial(world: State, action: StartPreflight) -> None:
    """Let a pod try a configuration, or its images say their releases; it has ended when it is seen."""
    name, body = action.preflight.name, action.preflight.pod.body
    about = body["metadata"]["annotations"]["kubernetes.io/description"]
    assert "in this pod, beside the running daemons" in about, "the pod of a trial must say what it is"
    if action.preflight.config_map is None:
        running = world.slurm.slurm_version if world.slurm else "24.11.5"
        world.preflights[name] = pod_of_images(body, world.releases, running)
        return
    config_map = copy.deepcopy(action.preflight.config_map.body)
    config_map["metadata"]["uid"] = f"uid-of-{name}"
    world.children["ConfigMap", name] = config_map
    text = config_map["data"]["slurm.conf"]
    world.tried.append(text)
    world.preflights[name] = pod_of_a_trial(body, world.refuses(text), world.version)


def _finalized(world: State, action: SetFinalizer) -> None:
    """A NodeSet that is being deleted is gone with its last finalizer."""
    metadata = action.obj["metadata"]
    found = [one for one in metadata.get("finalizers") or [] if one != action.finalizer]
    metadata["finalizers"] = [*found, *([action.finalizer] if action.present else [])]
    if metadata.get("deletionTimestamp") and not metadata["finalizers"]:
        world.node_sets.pop(metadata["name"], None)


def _written(world: State, action: Write) -> None:
    body = {"kind": action.child.resource.kind, **copy.deepcopy(action.child.body)}
    world.versions += 1
    body["metadata"] |= {"uid": f"uid-of-{action.child.name}", "resourceVersion": str(world.versions)}
    world.children[action.child.key] = body
    if action.child.key == ("StatefulSet", "slurm-controller") and world.controller_pod is None:
        world.controller_pod = controller_pod(body)


def _secret(world: State, body: Mapping[str, Any], data: Mapping[str, bytes]) -> None:
    name = body["metadata"]["name"]
    world.secrets[name], world.owners[name] = dict(data), body["metadata"]["labels"][labels.LABEL_CLUSTER_UID]
    world.sealed.discard(name)
    if body.get("immutable"):
        world.sealed.add(name)


def _looked_at(world: State, action: GrowClaim) -> None:
    """A claim is looked at, and grows unless the world is `rigid`."""
    before = world.memory.writes.claims.get(action.name)
    has, grown = (before.size, before.grown) if before is not None else (_first_size(world, action.name), "")
    why = ""
    if (quantity(action.size) or 0) > (quantity(has) or 0):
        has, grown, why = (has, grown, world.rigid) if world.rigid else (action.size, action.size, "")
    capacity = world.capacity or has
    world.memory.writes.claims[action.name] = ClaimSize(action.size, has, world.now, capacity, grown, why=why)


def _first_size(world: State, claim: str) -> str:
    """The size that a claim is made with."""
    for (kind, name), obj in world.children.items():
        for template in obj["spec"].get("volumeClaimTemplates") or () if kind == "StatefulSet" else ():
            if claim == f"{template['metadata']['name']}-{name}-0":
                return str(template["spec"]["resources"]["requests"]["storage"])
    return ""
