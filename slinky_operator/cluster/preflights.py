"""The part of the plan about preflights: whether a configuration has been tried, and what came of it. Pure.

A preflight is made once for each configuration. Its outcome is remembered, and its pod goes as soon as it is known;
after a restart of the operator it is simply made again. A pod that could not say anything (never scheduled, evicted,
too slow) decides nothing: it is made again later, and nothing is applied until one has said yes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any, Final

from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.cluster.actions import Action, EndPreflight, LeaveOut, Remove, StartPreflight
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.daemons.preflight import REFUSED, UNTRIED, SlurmdKind, preflight
from slinky_operator.cluster.memory import Outcome, Verdict
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.words import short
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, PODS
from slinky_operator.slurm import naming, security
from slinky_operator.slurm.conf import Rendered
from slinky_operator.slurm.templates import merge

TRY_AGAIN: Final = 30.0
"""Seconds until a configuration is tried again whose preflight has decided nothing."""

PATIENCE: Final = timedelta(seconds=90)
"""How long a preflight's pod may take until it is given up."""


UNUSABLE_FOR: Final = 300.0
"""Seconds for which an image is left out of which no slurmd came."""

IMAGE_TROUBLE: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
"""Reasons by which a kubelet says that it has no image."""


class Stage(Enum):
    """How far the trial of a configuration is."""

    UNDER_WAY = auto()
    PASSED = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Trial:
    """What is known of a configuration's preflight, and what is to be done."""

    stage: Stage
    message: str = ""
    actions: tuple[Action, ...] = ()
    wake_up: float | None = None


def kinds(
    node_sets: Sequence[NodeSet], images: Images, unusable: Collection[str] = frozenset()
) -> tuple[SlurmdKind, ...]:
    """The ways in which NodeSets run slurmd, each once, in an order of their own; one at least.

    Parameters
    ----------
    unusable
        Images that are left out, since no slurmd comes out of them.
    """
    found: dict[str, SlurmdKind] = {}
    for one in node_sets:
        containers = ((one.spec.template or {}).get("spec") or {}).get("containers") or ()
        own: Mapping[str, Any] = next((item for item in containers if item.get("name") == "slurmd"), {})
        given = own.get("securityContext")
        context = security.agreeing(merge(security.slurmd(), given), given) if given else None
        image = own.get("image") or one.spec.image or images.slurmd
        if image in unusable:
            continue
        key = json.dumps([image, context], sort_keys=True)
        known = found.get(key)
        found[key] = SlurmdKind(image, context, (*(known.node_sets if known else ()), one.name))
    return tuple(kind for _, kind in sorted(found.items())) or (SlurmdKind(images.slurmd),)


def trial(  # noqa: PLR0911 - one for each stage
    snapshot: Snapshot, images: Images, rendered: Rendered, now: float, wall: datetime
) -> Trial:
    """Look for the outcome of a configuration's preflight, or begin one."""
    members = [one for one, _ in snapshot.node_sets if one.name in rendered.node_sets]
    unusable = {image for image, at in snapshot.memory.unusable.items() if now - at < UNUSABLE_FOR}
    tried = kinds(members, images, unusable)
    wanted = preflight(snapshot.cluster, images, tried, rendered.files, rendered.hash)
    stale = leftovers(snapshot, wanted.name)
    verdict = snapshot.memory.verdicts.get(wanted.name)
    if verdict is not None and verdict.outcome is not Outcome.UNDECIDED:
        stage = Stage.PASSED if verdict.outcome is Outcome.PASSED else Stage.REFUSED
        return Trial(stage, verdict.why, leftovers(snapshot))
    if verdict is not None and now - verdict.at < TRY_AGAIN:
        words = f"a preflight has decided nothing, and is made again: {verdict.why}"
        return Trial(Stage.UNDER_WAY, words, leftovers(snapshot), TRY_AGAIN - (now - verdict.at))
    known = snapshot.memory.denied
    denied = known.get(wanted.config_map.key) or known.get(wanted.pod.key)
    if denied is not None and now - denied.at < TRY_AGAIN:
        words = f"the preflight cannot be made: {denied.why}"
        return Trial(Stage.UNDER_WAY, words, stale, TRY_AGAIN - (now - denied.at))
    pod = snapshot.preflights.get(wanted.name)
    if pod is None:
        return Trial(Stage.UNDER_WAY, "slurmctld and slurmd try it", (*stale, StartPreflight(wanted)), 1.0)
    bad = _unusable(pod, tried)
    if bad:
        # A pod of its NodeSets cannot start either; what the others would say is worth knowing.
        words = f"no slurmd comes out of image {', '.join(sorted(bad))}; the others are tried"
        return Trial(Stage.UNDER_WAY, words, (LeaveOut(tuple(sorted(bad))),))
    if pod["metadata"].get("deletionTimestamp"):
        return Trial(Stage.UNDER_WAY, "an earlier preflight is ending", stale, 1.0)
    outcome = _outcome(pod, tried, now, wall)
    if outcome is None:
        return Trial(Stage.UNDER_WAY, f"slurmctld and slurmd try it{_stuck(pod)}", stale, 5.0)
    return Trial(Stage.UNDER_WAY, "slurmctld and slurmd have tried it", (*stale, EndPreflight(wanted.name, outcome)))


def leftovers(snapshot: Snapshot, current: str = "") -> tuple[Remove, ...]:
    """Pods and ConfigMaps of preflights other than this one."""
    pods = [
        Remove(PODS, name, pod["metadata"]["uid"])
        for name, pod in sorted(snapshot.preflights.items())
        if name != current and not pod["metadata"].get("deletionTimestamp")
    ]
    maps = [
        Remove(CONFIGMAPS, name, obj["metadata"]["uid"])
        for (kind, name), obj in sorted(snapshot.children.items())
        if kind == CONFIGMAPS.kind and name != current and _is_preflight(obj)
    ]
    return (*pods, *maps)


def _is_preflight(obj: Object) -> bool:
    component = (obj["metadata"].get("labels") or {}).get("app.kubernetes.io/component")
    return bool(component == naming.COMPONENT_PREFLIGHT)


def _outcome(pod: Object, tried: Sequence[SlurmdKind], now: float, wall: datetime) -> Verdict | None:
    """What a preflight's pod says; `None` while it says nothing."""
    status = pod.get("status") or {}
    ended = {
        one["name"]: one["state"]["terminated"]
        for one in status.get("containerStatuses") or ()
        if (one.get("state") or {}).get("terminated")
    }
    # slurmctld comes first: what it refuses, slurmd never sees.
    names = sorted(ended, key=lambda name: (name != naming.CONTROLLER_CONTAINER, name))
    for name in names:
        if ended[name].get("exitCode") == REFUSED:
            words = short(ended[name].get("message") or "") or "it has ended without a word"
            return Verdict(Outcome.REFUSED, f"{_named(name, tried)} refuses it: {words}", now)
    if status.get("phase") == "Succeeded":
        return Verdict(Outcome.PASSED, "", now)
    if status.get("phase") == "Failed":
        failed = [name for name in names if ended[name].get("exitCode")]
        words = "; ".join(f"{name}: {short(ended[name].get('message') or '') or 'no word'}" for name in failed)
        why = words or status.get("message") or status.get("reason") or "its pod was removed"
        return Verdict(Outcome.UNDECIDED, why, now)
    begun = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    if wall - begun > PATIENCE:
        return Verdict(Outcome.UNDECIDED, f"its pod has not ended in {PATIENCE.seconds} s{_stuck(pod)}", now)
    return None


def _named(container: str, tried: Sequence[SlurmdKind]) -> str:
    """A daemon as people know it: whose slurmd it is, where there are several kinds."""
    if container == naming.CONTROLLER_CONTAINER:
        return container
    kind = tried[int(container.rpartition("-")[2])]
    return "slurmd" if len(tried) == 1 else f"slurmd of NodeSet {', '.join(kind.node_sets)}"


def _unusable(pod: Object, tried: Sequence[SlurmdKind]) -> set[str]:
    """Images that cannot be had, or have no slurmd in them."""
    found = set()
    for one in (pod.get("status") or {}).get("containerStatuses") or ():
        if one["name"] == naming.CONTROLLER_CONTAINER:
            continue
        state = one.get("state") or {}
        code = (state.get("terminated") or {}).get("exitCode")
        if code == UNTRIED or (state.get("waiting") or {}).get("reason") in IMAGE_TROUBLE:
            found.add(tried[int(one["name"].rpartition("-")[2])].image)
    return found


def _stuck(pod: Object) -> str:
    """Why a pod does not get on, as its scheduler and kubelet say."""
    status = pod.get("status") or {}
    for one in status.get("containerStatuses") or ():
        waiting = (one.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in {None, "ContainerCreating", "PodInitializing"}:
            return f" ({one['name']}: {waiting['reason']}: {waiting.get('message', '')})"
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return f" ({one.get('message', 'not scheduled')})"
    return ""
