"""In which order daemons get other images: slurmdbd, slurmctld, slurmrestd, login pods. Pure.

Slurm's daemons talk to those of older releases, never to newer ones, so what others call is upgraded first. Nothing
begins before each image has said its release (`asking`) and slurmctld's next pod has been tried
(`preflight.replacement`). A daemon then waits until those before it have their image and answer: their readiness probes
ask the daemon itself. If one does not come up, or is refused, nothing after it is touched.

slurmrestd's old pods answer until new ones do, so one that does not come up stops what follows and loses nothing. As
long as there are pods of both images, the upgrade is under way: NodeSets wait for it too.

Only images wait, and only those of daemons that work: another setting is applied at once, and a daemon that does not
answer may need the very change. slurmrestd still waits for a slurmctld that gets another image: one of the older
release refuses whatever a newer slurmrestd asks. Login pods wait with their image alone; what their LoginSets do with
it is their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from slinky_operator.cluster.daemons import default_images
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts import daemons
from slinky_operator.cluster.parts.accounting.slurmdbd import SLURMDBD
from slinky_operator.cluster.parts.slurmctld.manifests import SLURMCTLD
from slinky_operator.cluster.parts.slurmrestd.manifests import SLURMRESTD
from slinky_operator.cluster.parts.upgrade import rules
from slinky_operator.cluster.parts.upgrade.asking import Answers
from slinky_operator.cluster.rollout.preflight import running_release
from slinky_operator.cluster.rollout.preflight.replacement import Replacement, Stage
from slinky_operator.cluster.trials.version_pod import LOGIN, Question
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import LOGINSETS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm.releases import Release


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What is known of an upgrade; empty if there is none.

    Parameters
    ----------
    held
        Kind and name of the workloads that keep their pods for now, and of the LoginSets that keep their image.
    message
        Which daemon gets its image, and which wait for it.
    refused
        Why daemons do not get their images before somebody changes the spec.
    """

    held: frozenset[tuple[str, str]] = frozenset()
    message: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class _Change:
    """A daemon or LoginSet that exists."""

    child: Child
    name: str
    """For messages."""

    program: str
    field: str
    """Where its image is set."""

    old: str
    new: str
    is_rolled_out: bool
    is_free: bool = False
    """Whether it does not work, so that there is nothing to protect."""

    left: str = ""
    """Image of a pod that runs until others, with the image that the daemon has, are ready; empty if none does."""

    @property
    def is_one(self) -> bool:
        """Whether it is to get another image."""
        return self.new != self.old

    def question(self, image: str) -> Question:
        """What to ask an image of it."""
        return Question(self.program, image)


def questions(snapshot: Snapshot, children: Iterable[Child]) -> Iterator[Question]:
    """The images whose releases decide about this upgrade; none if no image changes.

    slurmctld's is asked by the trial of its pod.
    """
    found = list(_changes(snapshot, children))
    changing = {one.program for one in found if one.is_one and not one.is_free}
    for one in found:
        if one.program == SLURMDBD.daemon and not one.is_free and changing & {SLURMDBD.daemon, SLURMCTLD.daemon}:
            yield one.question(one.old)
        needed = one.is_one and not one.is_free and one.new and one.program != SLURMCTLD.daemon
        if needed or (one.program == SLURMDBD.daemon and SLURMCTLD.daemon in changing):
            yield one.question(one.new)


def pull_secrets(children: Iterable[Child]) -> frozenset[str]:
    """Names of the pull secrets of all daemons and login pods."""
    specs = [(((one.body.get("spec") or {}).get("template") or {}).get("spec") or {}) for one in children]
    return frozenset(str(one["name"]) for spec in specs for one in spec.get("imagePullSecrets") or ())


def in_order(snapshot: Snapshot, children: Iterable[Child], answers: Answers, tried: Replacement) -> Upgrade:
    """Decide which daemons may get their images now.

    Parameters
    ----------
    children
        The wanted objects. A daemon without one, because its template is refused, keeps its image; so do those after
        it if it does not work.
    answers
        The releases of images, by `questions`.
    tried
        What is known of slurmctld's next pod.
    """
    made = _Decisions(snapshot, answers, tried)
    found = list(_changes(snapshot, children))
    tries = any(one.program == SLURMCTLD.daemon and one.is_one for one in found) and tried.stage is not Stage.FREE
    asks = any(one.is_one and one.question(image).key in answers.asked for one in found for image in (one.old, one.new))
    if default_images.lost(snapshot):
        # It comes back with the image that it had, and no image is asked before: whatever changes waits for that.
        made.before, made.is_slurmctld_changing = "slurmctld's StatefulSet is there again", True
    for one in found:
        made.decide(one, "its images have said their releases" if asks else "", tries=tries)
    return Upgrade(frozenset(made.held), "" if made.refused else "; ".join(made.words), "; ".join(made.refused))


def keeping_images(snapshot: Snapshot, held: frozenset[tuple[str, str]], child: Child) -> Child:
    """A LoginSet that is held with the image that it has; anything else unchanged."""
    live = snapshot.children.get(child.key)
    if child.resource is not LOGINSETS or live is None or child.key not in held:
        return child
    spec = {key: value for key, value in child.body["spec"].items() if key != "image"}
    has = live["spec"].get("image")
    return Child(child.resource, {**child.body, "spec": {**spec, **({"image": has} if has else {})}})


@dataclass(slots=True)
class _Decisions:
    """What is decided so far, from the first daemon to the last."""

    snapshot: Snapshot
    answers: Answers
    tried: Replacement
    held: set[tuple[str, str]] = field(default_factory=set)
    words: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    before: str = ""
    """What those after it wait for."""
    is_slurmctld_changing: bool = False
    """Whether slurmctld gets another image, or its pod may still have the one before."""

    slurmdbd: Release | None = None
    slurmctld: Release | None = None
    """The releases that they have, or get."""

    def decide(self, one: _Change, asks: str, *, tries: bool) -> None:
        """Decide about the next one."""
        old, new = (self.answers.releases.get(one.question(image).key) for image in (one.old, one.new))
        if one.program == SLURMCTLD.daemon:
            old = running_release.running(self.snapshot)
            new = Release.read(self.tried.release) if one.is_one else old
        why = self._refusal(one, old, new) if one.is_one else ""
        if why:
            self.refused.append(f"{one.name} keeps {one.old}: {why}")
        is_free = one.is_free and not (one.program == SLURMRESTD.daemon and self.is_slurmctld_changing)
        if one.is_one and (why or (not is_free and self._waits(one, asks, tries=tries))):
            self.held.add(one.child.key)
        elif one.is_one:
            self.words.append(f"{one.name} gets {one.new}")
        elif one.left and not one.is_rolled_out:
            self.words.append(f"{one.name} gets {one.new}; its pods with {one.left} stay until others are ready")
        if not self.before and one.program != LOGIN and (one.is_one or not one.is_rolled_out):
            self.before = f"{one.name} is ready with {one.new}"
        kept = old if why else new
        if one.program == SLURMDBD.daemon:
            self.slurmdbd = kept
        elif one.program == SLURMCTLD.daemon:
            self.slurmctld, self.is_slurmctld_changing = kept, one.is_one or not one.is_rolled_out

    def _waits(self, one: _Change, asks: str, *, tries: bool) -> bool:
        """Whether it keeps its image for now."""
        trial = "slurmctld's next pod has been tried" if tries and one.program != SLURMCTLD.daemon else ""
        until = self.before or asks or trial
        if until:
            self.words.append(f"{one.name} keeps {one.old} until {until}")
        return bool(until or self.refused)

    def _refusal(self, one: _Change, old: Release | None, new: Release | None) -> str:
        if one.is_free and one.program != SLURMCTLD.daemon:
            return ""
        for image in (one.new, one.old):
            untold = self.answers.untold.get(one.question(image).key)
            if untold:
                return f"{one.field} cannot be asked for its release. {untold}. Name an image that has {one.program}"
        if new is None:
            return ""
        if one.program == SLURMDBD.daemon:
            return rules.of_slurmdbd(old, new, one.field)
        if one.program == SLURMCTLD.daemon:
            return rules.of_slurmctld(new, self.slurmdbd, rules.slurmds(self.snapshot))
        return rules.of_caller(one.program, new, self.slurmctld, one.field)


def _changes(snapshot: Snapshot, children: Iterable[Child]) -> Iterator[_Change]:
    """The daemons and LoginSets that exist, in their order."""
    wanted = {child.key: child for child in children}
    for daemon in daemons.with_releases(snapshot.cluster):
        key = daemon.key(snapshot.cluster)
        child, live = wanted.get(key), snapshot.children.get(key)
        if child is None or live is None:
            continue
        new, old = image(child.body, daemon.daemon), image(live, daemon.daemon)
        where = daemon.template_field.replace(".template", ".image")
        works = daemon.is_ready(snapshot)
        left = _left(daemon.pods(snapshot), daemon.daemon, old) if daemon is SLURMRESTD else ""
        yield _Change(child, daemon.daemon, daemon.daemon, where, old, new, has_rolled_out(live), not works, left)
    for child in wanted.values():
        live = snapshot.children.get(child.key)
        if child.resource is LOGINSETS and live is not None:
            new, old = (str(body["spec"].get("image") or "") for body in (child.body, live))
            where = f"spec.login[].image of LoginSet {child.name}"
            yield _Change(child, f"LoginSet {child.name}", LOGIN, where, old, new, is_rolled_out=True)


def _left(pods: Iterable[Object], container: str, has: str) -> str:
    """The image of a pod that has not the one of its workload yet; empty if there is none."""
    images = (_image(pod.get("spec") or {}, container) for pod in pods if not pod["metadata"].get("deletionTimestamp"))
    return next((one for one in images if one and one != has), "")


def image(body: Mapping[str, Any], container: str) -> str:
    """The image of a container in the pods of a workload; empty if there is no such container."""
    return _image(body["spec"]["template"]["spec"], container)


def _image(spec: Mapping[str, Any], container: str) -> str:
    containers = spec.get("containers") or ()
    return next((str(one.get("image") or "") for one in containers if one.get("name") == container), "")


def has_rolled_out(live: Object) -> bool:
    """Whether all pods of a workload are of its template, and ready."""
    status: Mapping[str, Any] = live.get("status") or {}
    replicas = live["spec"].get("replicas", 1)
    seen = status.get("observedGeneration", 0) >= live["metadata"].get("generation", 0)
    counts = [status.get(name) or 0 for name in ("replicas", "updatedReplicas", "readyReplicas")]
    return seen and all(count == replicas for count in counts)
