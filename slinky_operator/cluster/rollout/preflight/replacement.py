"""The part of the plan about slurmctld's pod: whether it may be replaced by one from another template. Pure.

Changing the StatefulSet ends the running slurmctld. Whether the next one starts depends on the settings of the user or
of another version of the operator: an image, a claim, a Secret, a Node. So a disposable pod from the new template is
created first (`trials.rehearsal_pod`), and the StatefulSet is changed once that has started. Until then slurmctld
stays unchanged, and the condition shows the message of the scheduler, the kubelet or slurmctld about the other pod.

State in an `emptyDir` ends with the pod, and jobs with it. Such a pod is replaced while there are jobs only if somebody
has changed its settings in the spec, never because another version of the operator has other settings: the
StatefulSet's annotation `pod-spec` distinguishes the two.

A slurmctld of another image then starts with a copy of the state (`state_copy`).

No pod ends while slurmctld could not save its state (`state_room`), not even for keys that are read at start only.

There is nothing to protect if slurmctld has never run, or if its current pod does not start: the change may be the
correction. A slurmctld that has ended in order, and that the kubelet starts again after a pause, is protected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any, Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import Action, EndPreflight, Remove, TrialObjects
from slinky_operator.cluster.daemons import shared_objects
from slinky_operator.cluster.memory.rollout import Outcome, Verdict
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.job_counts.question import JobsQuestion
from slinky_operator.cluster.parts.slurmctld import pod as slurmctld_pod
from slinky_operator.cluster.rollout.preflight import running_release, state_copy, state_room
from slinky_operator.cluster.secrets.checks import check
from slinky_operator.cluster.trials import engine, pods, problems
from slinky_operator.cluster.trials.engine import Remembered, Rules, Trial
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.cluster.trials.rehearsal_pod import NO_COMMAND, claims, rehearsal
from slinky_operator.cluster.trials.scripts import REFUSED, UNTRIED
from slinky_operator.cluster.view import View
from slinky_operator.identity import pod as identity
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.children import Child, has_settled, shows
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.contact import ContactState
from slinky_operator.slurm.pod_templates.shapes import spec_of
from slinky_operator.slurm.pods.exit_messages import ended, ended_in_order, held_up, stuck
from slinky_operator.slurm.releases import Release

ALONE: Final = timedelta(seconds=60)
"""How long changes of the configuration wait for a rehearsal without trouble; a slow pull may take longer."""


COUNTED: Final = 30.0
"""Seconds for which a count of jobs proves that there are none."""

LOOK_FOR_JOBS: Final = 5.0
"""Seconds until the next check while jobs prevent the replacement of slurmctld's pod."""


class Stage(Enum):
    """Whether slurmctld's StatefulSet may be written."""

    FREE = auto()
    TRYING = auto()
    HELD = auto()
    """The new pod has not started: somebody's help is needed."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """What is known of the pod that will replace slurmctld's."""

    stage: Stage = Stage.FREE
    message: str = ""
    actions: tuple[Action, ...] = ()
    wake_up: float | None = None
    release: str = ""
    """What `slurmctld -V` said in the new pod, once that has started."""

    untried: str = ""
    """Why slurmctld may be replaced without a trial on a copy of its state."""

    restarts: bool = True
    """Whether a pod that stays as it is may be restarted for keys that slurmctld reads only at start."""

    ends_pod: bool = False
    """Whether the pod ends for another template once the StatefulSet is written."""


def replacement(view: View, wanted: Child | None) -> Replacement:
    """Decide whether the wanted StatefulSet may be written.

    Parameters
    ----------
    wanted
        The StatefulSet; `None` if it cannot be built, so that it stays unchanged.
    """
    if shared_objects.intact(_config_map(view.snapshot)) is None:
        return without_files(view.snapshot)
    found = _tried(view, wanted)
    live = None if wanted is None else view.snapshot.children.get(wanted.key)
    if wanted is None or live is None or not _protected(view.snapshot):
        return found
    ends = found.ends_pod or slurmctld_pod.restart_of(wanted.body) != slurmctld_pod.restart_of(live)
    if not ends and found.stage is not Stage.TRYING:
        return found
    room = state_room.room(view, wanted.body["spec"]["template"], live["spec"]["template"])
    due = min((one for one in (found.wake_up, room.wake_up) if one is not None), default=None)
    asked = replace(found, actions=(*found.actions, *room.actions), wake_up=due)
    if not ends or room.stage is engine.Stage.PASSED:
        return asked
    full = room.stage is engine.Stage.REFUSED
    stage = Stage.HELD if full or found.stage is Stage.HELD else Stage.TRYING
    message = found.message or f"slurmctld's pod stays as it is: {room.message}"
    if full and found.message:
        message = f"{found.message}. It is not restarted for its keys either: {room.message}"
    # What its trial found is for the write that brings it, and not for one that keeps the running pod.
    return Replacement(stage, message, asked.actions, due, restarts=False)


def without_files(snapshot: Snapshot) -> Replacement:
    """What becomes of slurmctld's pod while nothing can be tried: it stays.

    So it is while no ConfigMap holds what it mounts, and another pod could not start; and in a Cluster that is being
    deleted.
    """
    is_there = ("StatefulSet", naming.controller(snapshot.cluster.name)) in snapshot.children
    stays = is_there and _protected(snapshot)
    return Replacement(Stage.TRYING if stays else Stage.FREE, "", leftovers(snapshot), restarts=not stays)


def leftovers(snapshot: Snapshot) -> tuple[Remove, ...]:
    """Pods and ConfigMaps of all trials of slurmctld's next pod."""
    return tuple(one for kind in (pods.REHEARSAL, pods.STATE) for one in engine.leftovers(snapshot, kind))


def _tried(view: View, wanted: Child | None) -> Replacement:
    """Whether the wanted StatefulSet may be written, by the trials of its pod."""
    snapshot = view.snapshot
    live = None if wanted is None else snapshot.children.get(wanted.key)
    config = shared_objects.intact(_config_map(snapshot))
    stale = leftovers(snapshot)
    free = Replacement(Stage.FREE, "", stale)
    if wanted is None or live is None or config is None or not _protected(snapshot):
        return free
    if slurmctld_pod.same_pod(wanted.body, live) or has_settled(
        wanted, live, snapshot.memory.writes.settled.get(wanted.key)
    ):
        return free
    trouble = _key_trouble(snapshot)
    if trouble:
        return Replacement(Stage.HELD, f"slurmctld's pod stays as it is: {trouble}", stale)
    template, running = wanted.body["spec"]["template"]["spec"], live["spec"]["template"]["spec"]
    where = " and ".join(differences(snapshot.cluster, template, running)) or "the operator's own part of its template"
    jobs = _jobs_at_risk(snapshot, wanted.body, live, view.now)
    if jobs:
        words = (
            f"slurmctld's pod stays as it is: one that follows {where} would lose slurmctld's state, which is in an "
            f"emptyDir, and {jobs}. It is replaced once there are no jobs, or at the next change of spec.controller "
            f"that concerns the pod (an annotation in template.metadata is enough)"
        )
        return Replacement(Stage.HELD, words, stale, LOOK_FOR_JOBS)
    node = ((snapshot.pods.controller or {}).get("spec") or {}).get("nodeName", "")
    files = config["data"]
    tried = rehearsal(TrialInput(snapshot.cluster, view.images, files, template, running, node=node))
    found = _look(view, tried, template)
    starts = found.stage is Stage.FREE
    if starts:
        found = _with_state(found, state_copy.trial(view, wanted, live, files))
    else:
        found = replace(found, actions=(*found.actions, *engine.leftovers(snapshot, pods.STATE)))
    if found.stage is Stage.FREE:
        return replace(found, ends_pod=True)
    kind = "is tried first"
    if found.stage is Stage.HELD:
        kind = "is refused" if found.release else "does not start"
        kind = "does not start with a copy of slurmctld's state" if starts else kind
    words = f"slurmctld's pod stays as it is: one that follows {where} {kind}"
    return Replacement(found.stage, f"{words}: {found.message}", found.actions, found.wake_up)


def _with_state(found: Replacement, state: Trial) -> Replacement:
    """What is known of a pod that starts, with the trial of its slurmctld on a copy of the state."""
    if state.stage is engine.Stage.PASSED:
        return replace(found, actions=(*found.actions, *state.actions), untried=state.message)
    stage = Stage.HELD if state.stage is engine.Stage.REFUSED else Stage.TRYING
    return Replacement(stage, state.message, (*found.actions, *state.actions), state.wake_up)


def _key_trouble(snapshot: Snapshot) -> str:
    """Why a new pod would wait for its keys; the running one has them."""
    for key in (naming.mounted_key(snapshot.cluster), naming.jwt_key(snapshot.cluster)):
        if key is not None:
            found = check(snapshot.sources.get(key.secret), key.secret, key.key, "a new one could not mount its keys")
            if found is not None:
                return found.message
    return ""


def _jobs_at_risk(snapshot: Snapshot, wanted: Object, live: Object, now: float) -> str:
    """Which jobs a replacement that nobody has requested would end; empty if none."""
    if slurmctld_pod.keeps_state(live["spec"]["template"]):
        return ""
    note = slurmctld_pod.ANNOTATION_POD_SPEC
    before = (live["metadata"].get("annotations") or {}).get(note)
    if before is not None and before != wanted["metadata"]["annotations"][note]:
        return ""
    slurm, jobs = snapshot.slurm, snapshot.memory.answers.of(JobsQuestion)
    answers = slurm is not None and slurm.contact.state is ContactState.READY
    if not answers or jobs is None or jobs.counts is None or now - jobs.at > COUNTED:
        return "Slurm has not answered yet whether there are jobs"
    total = jobs.counts.total
    return f"{total} job{'' if total == 1 else 's'} with it" if total else ""


def _config_map(snapshot: Snapshot) -> Object | None:
    return snapshot.children.get(("ConfigMap", naming.config(snapshot.cluster.name)))


def _protected(snapshot: Snapshot) -> bool:
    pod = snapshot.pods.controller
    if pod is not None:
        return not stuck(pod) or _pauses(pod)
    stored = snapshot.cluster.status.config
    return stored is not None and bool(stored.applied_hash)


def _pauses(pod: Object) -> bool:
    """Whether the kubelet starts slurmctld again after an orderly end, and only waits with it: nothing is wrong."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    states = (one.get("state") or {} for one in statuses if one["name"] == naming.CONTROLLER_CONTAINER)
    return any("waiting" in one for one in states) and ended_in_order(pod, naming.CONTROLLER_CONTAINER)


def _look(view: View, tried: TrialObjects, template: Mapping[str, Any]) -> Replacement:
    """Check for the outcome of a rehearsal, or start it."""
    rules = Rules(
        kind=pods.REHEARSAL,
        words="it is being started",
        result=engine.remembered,
        denied=lambda why: Remembered(
            engine.Stage.STUCK, f"the API server refuses it: {why}", engine.TRY_AGAIN, keeps=True
        ),
        read=lambda pod, at, wall: _verdict(pod, template, at, wall),
        watched=lambda pod, so_far: _watched(pod, so_far, template, view.wall),
    )
    found = engine.follow(view, tried, rules)
    if found.stage is engine.Stage.PASSED:
        return _passed(view.snapshot, found.message, found.actions)
    for one in found.actions:
        # One that an earlier operator has left counts at once: what has followed from it stays, too.
        if isinstance(one, EndPreflight) and one.verdict.outcome is Outcome.PASSED:
            return _passed(view.snapshot, one.verdict.why, found.actions)
    stage = Stage.TRYING if found.stage is engine.Stage.UNDER_WAY else Stage.HELD
    return Replacement(stage, found.message, found.actions, found.wake_up)


def _watched(pod: Object, so_far: Trial, template: Mapping[str, Any], wall: datetime) -> Trial:
    trouble = stuck(pod)
    if trouble and NO_COMMAND not in trouble:
        return Trial(engine.Stage.STUCK, trouble, so_far.actions, 5.0)
    if problems.age(pod, wall) > ALONE:
        return Trial(engine.Stage.STUCK, _slow(pod, template), so_far.actions, 5.0)
    return replace(so_far, wake_up=engine.LOOK_AGAIN)


def _passed(snapshot: Snapshot, release: str, actions: tuple[Action, ...]) -> Replacement:
    """A pod that has started; it stays until the StatefulSet is written, so that another operator finds the result."""
    refused = running_release.refused(snapshot, release)
    return Replacement(Stage.HELD if refused else Stage.FREE, refused, actions, release=release)


def _verdict(  # noqa: PLR0911 - one for each end
    pod: Object, template: Mapping[str, Any], now: float, wall: datetime
) -> Verdict | None:
    """The result of a rehearsal; `None` while it runs."""
    ends = ended(pod)
    own = ends.get(naming.CONTROLLER_CONTAINER)
    others = {name: end for name, end in ends.items() if name != naming.CONTROLLER_CONTAINER}
    for name, end in others.items():
        if problems.not_started(end) and NO_COMMAND not in end.get("message", ""):
            return Verdict(Outcome.UNDECIDED, f"{name}: {problems.not_started(end)}", now)
    if own is not None and own.get("exitCode"):
        # If other containers prepare what slurmctld needs, it cannot be judged without them.
        judged = all(one["name"] == identity.SSSD for one in template.get("initContainers") or ())
        words = f"slurmctld: {problems.last_word(own)}"
        if own["exitCode"] in {REFUSED, UNTRIED} and judged:
            return Verdict(Outcome.REFUSED, words, now)
        if own["exitCode"] != REFUSED:
            return Verdict(Outcome.UNDECIDED, words, now)
    status = pod.get("status") or {}
    everybody = {one["name"] for one in pod["spec"]["containers"]}
    # Some container runtimes look for the command when they create a container, others when they start it.
    done = ends.keys() | {one["name"] for one in status.get("containerStatuses") or () if NO_COMMAND in held_up(one)}
    if status.get("phase") == "Succeeded" or (own is not None and everybody <= done):
        said = Release.read((own or {}).get("message") or "")
        return Verdict(Outcome.PASSED, "" if said is None else str(said), now)
    if status.get("phase") == "Failed":
        return Verdict(Outcome.UNDECIDED, problems.failed(pod, "it was removed"), now)
    if problems.age(pod, wall) > problems.PULLING:
        return Verdict(Outcome.UNDECIDED, stuck(pod) or _slow(pod, template), now)
    return None


def _slow(pod: Object, template: Mapping[str, Any]) -> str:
    """What a pod without a message waits for: the kubelet reports volumes only in Events."""
    states = {one["name"]: one.get("state") or {} for one in (pod.get("status") or {}).get("containerStatuses") or ()}
    waits = ", ".join(name for name, state in states.items() if state.get("waiting")) or "its containers"
    named = ", ".join(dict.fromkeys(_named_sources(template))) or "none of its own"
    return f"{waits}: not started after {ALONE.seconds} s; an image is being pulled, or a volume is missing ({named})"


def _named_sources(template: Mapping[str, Any]) -> Iterable[str]:
    ours = {slurmctld_pod.STATE, slurmctld_pod.CONFIG, slurmctld_pod.KEYS, slurmctld_pod.RUN}
    for one in template.get("volumes") or ():
        if one["name"] in ours:
            continue
        if "secret" in one:
            yield f"Secret {one['secret'].get('secretName')}"
        elif "configMap" in one:
            yield f"ConfigMap {one['configMap'].get('name')}"
        elif "persistentVolumeClaim" in one:
            yield f"claim {one['persistentVolumeClaim'].get('claimName')}"
        elif "emptyDir" not in one:
            yield f"volume {one['name']}"


def differences(cluster: Cluster, template: Mapping[str, Any], running: Mapping[str, Any]) -> Iterable[str]:
    """Fields of the Cluster in which slurmctld's next pod and the running one differ, as far as known.

    Parameters
    ----------
    template, running
        Specs of the two pods.
    """
    controller = cluster.spec.controller
    new, old = _own(template), _own(running)
    if new.get("image") != old.get("image"):
        in_template = any(one.get("image") for one in _own_fragments(controller.template))
        if not in_template:
            yield "spec.controller.image" if controller.image else "the operator's default image"
    if controller.resources is not None and not shows(new.get("resources") or {}, old.get("resources") or {}):
        yield "spec.controller.resources"
    if controller.persistence.existing_claim is not None and controller.persistence.existing_claim not in claims(
        running
    ):
        yield "spec.controller.persistence.existingClaim"
    if controller.template:
        yield "spec.controller.template"
    if _of_users(template) != _of_users(running):
        yield "spec.identity"


def _of_users(spec: Mapping[str, Any]) -> tuple[frozenset[str], str]:
    """Volumes with which slurmctld finds users, and the image of SSSD."""
    volumes = frozenset(one["name"] for one in spec.get("volumes") or ()) & identity.VOLUMES
    sidecars = (one.get("image") for one in spec.get("initContainers") or () if one["name"] == identity.SSSD)
    return volumes, next(sidecars, None) or ""


def _own(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(
        (one for one in spec["containers"] if one["name"] == naming.CONTROLLER_CONTAINER), {}
    )
    return found


def _own_fragments(template: Mapping[str, Any] | None) -> Iterable[Mapping[str, Any]]:
    containers = spec_of(template).get("containers") or ()
    return (one for one in containers if one.get("name") == naming.CONTROLLER_CONTAINER)
