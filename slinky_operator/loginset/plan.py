"""The plan for a LoginSet: snapshot and time in; actions, status and requeue time out. No I/O.

What is missing holds back the pods' template, and nothing else: a set can always be scaled. A configuration of sshd
reaches the ConfigMap, and so running pods, after a trial has accepted it with the image that they have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.loginset import LoginSetStatus
from slinky_operator.identity.pod import SssdImage
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODDISRUPTIONBUDGETS, PODS, Resource
from slinky_operator.loginset import names, needs, report, trial
from slinky_operator.loginset.bodies import objects, pod, sshd_config
from slinky_operator.loginset.bodies.slurm_access import Slurm
from slinky_operator.loginset.needs import HostKeys, LoginTrouble
from slinky_operator.loginset.observe import Snapshot
from slinky_operator.loginset.trial import TrialResult
from slinky_operator.reconcile.writes.children import Child, is_current
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import home_folders
from slinky_operator.slurm.pod_templates.templates import RefusedFragment

LOOK_AGAIN: Final = 60.0
"""Seconds until the next pass if nothing happens: Secrets are read again by then."""

LOOK_AGAIN_IN_TROUBLE: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The operator's settings."""

    image: str
    pull_policy: str = ""
    sssd: SssdImage = SssdImage("slinky/sssd")  # noqa: RUF009 - frozen
    agent: str = ""
    """The operator's own image, for what runs beside sackd."""


@dataclass(frozen=True, slots=True)
class MakeHostKeys:
    """Create the Secret with SSH host keys, unless it exists."""

    name: str


@dataclass(frozen=True, slots=True)
class Write:
    """Apply an object."""

    child: Child
    live: Object | None


@dataclass(frozen=True, slots=True)
class Create:
    """Create a pod, unless it exists."""

    body: Object


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an object."""

    resource: Resource
    name: str
    uid: str


Action: TypeAlias = MakeHostKeys | Write | Create | Remove


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a pass."""

    actions: tuple[Action, ...] = ()
    status: LoginSetStatus | None = None
    """None if it is not to be written."""
    wake_up: float | None = None
    """Seconds until the next pass at the latest."""


@dataclass(slots=True)
class _Progress:
    """What the steps of one plan have found."""

    actions: list[Action] = field(default_factory=list)
    troubles: list[LoginTrouble] = field(default_factory=list)
    config: LoginTrouble | None = None

    def write(self, child: Child, live: Object | None) -> None:
        if live is None or not is_current(child.body, live):
            self.actions.append(Write(child, live))


def plan(snapshot: Snapshot, defaults: Defaults, wall: datetime) -> Plan:
    """Plan one pass, at the time of day `wall`."""
    loginset = snapshot.loginset
    if loginset.deleting:
        # Its objects are its own: the garbage collector deletes them, and preStop lets sessions end.
        return Plan()
    progress = _Progress()
    taken = needs.taken(snapshot)
    keys = needs.ssh_host_keys(snapshot)
    if taken is not None:
        progress.troubles.append(taken)
    else:
        _keep(snapshot, defaults, keys, progress, wall)
    status = report.status(snapshot, progress.troubles, progress.config, keys.fingerprints, wall)
    troubled = bool(progress.troubles) or progress.config is not None
    return Plan(tuple(progress.actions), status, LOOK_AGAIN_IN_TROUBLE if troubled else LOOK_AGAIN)


def _keep(snapshot: Snapshot, defaults: Defaults, keys: HostKeys, progress: _Progress, wall: datetime) -> None:
    """Keep the objects as the spec asks, as far as what they need is there."""
    loginset, slurm = snapshot.loginset, needs.slurm(snapshot)
    if keys.missing:
        progress.actions.append(MakeHostKeys(pod.host_key_secret(loginset)))
        return
    progress.write(objects.service(loginset), snapshot.service)
    _keep_budget(snapshot, progress)
    users = needs.authorized_keys(snapshot)
    found = (slurm if isinstance(slurm, LoginTrouble) else None, keys.trouble, users)
    progress.troubles += [one for one in found if one is not None]
    template, image = None, None
    if isinstance(slurm, Slurm) and snapshot.cluster is not None and keys.trouble is None and users is None:
        image = objects.image_of(loginset, snapshot.cluster, snapshot.deployment, defaults.image, defaults.pull_policy)
        try:
            template = pod.template(loginset, snapshot.cluster, slurm, image, defaults.sssd, _agent(snapshot, defaults))
        except RefusedFragment as error:
            progress.troubles.append(LoginTrouble(Reason.TEMPLATE_REFUSED, f"spec.template.{error}"))
    if template is None or image is None or not isinstance(slurm, Slurm) or snapshot.cluster is None:
        _scale(snapshot, progress)
        return
    if not _try_config(snapshot, snapshot.cluster, keys, template, progress, wall):
        _scale(snapshot, progress)
        return
    made = (objects.inputs, objects.inputs_before)
    wanted = [digest(loginset, snapshot.cluster, slurm, image) for digest in made]
    live = snapshot.deployment
    noted = "" if live is None else _notes(live).get(objects.ANNOTATION_INPUTS, "")
    notes = {
        objects.ANNOTATION_IMAGE_FROM: "default" if loginset.spec.image is None else "spec",
        objects.ANNOTATION_INPUTS: noted if noted in wanted else wanted[0],
    }
    if live is not None and noted in wanted:
        template = live["spec"]["template"]
    progress.write(objects.deployment(loginset, template, notes), live)


def _keep_budget(snapshot: Snapshot, progress: _Progress) -> None:
    """Write the budget of several pods, and delete that of a single one, whatever else is missing."""
    loginset, live = snapshot.loginset, snapshot.budget
    if loginset.spec.replicas > 1:
        progress.write(objects.budget(loginset), live)
    elif live is not None and not live["metadata"].get("deletionTimestamp"):
        about = live["metadata"]
        progress.actions.append(Remove(PODDISRUPTIONBUDGETS, about["name"], about["uid"]))


def _scale(snapshot: Snapshot, progress: _Progress) -> None:
    """Keep the pods as they are, but for their number."""
    live = snapshot.deployment
    if live is not None and live["spec"].get("replicas") != snapshot.loginset.spec.replicas:
        kept = {key: value for key, value in _notes(live).items() if key.startswith("loginset.slinky.slurm.net/")}
        child = objects.deployment(snapshot.loginset, live["spec"]["template"], kept)
        progress.write(child, live)


def _try_config(
    snapshot: Snapshot,
    cluster: Cluster,
    keys: HostKeys,
    template: Mapping[str, Any],
    progress: _Progress,
    wall: datetime,
) -> bool:
    """Let sshd check the configuration, and write it once it is accepted; returns whether pods may be as wanted."""
    loginset, live = snapshot.loginset, snapshot.config_map
    extra = loginset.spec.extra_sshd_config
    identity, root = cluster.spec.identity, bool(loginset.spec.root_ssh_authorized_keys.strip())
    sssd = identity is not None and identity.sssd is not None
    config = sshd_config.compose(extra, host_keys=keys.names, root=root, sssd=sssd)
    wanted = trial.digest(config.text, template)
    name = names.trial(loginset.name, wanted)
    accepted = live is not None and _notes(live).get(trial.ANNOTATION_TRIED) == wanted
    for other, obj in sorted(snapshot.trials.items()):
        if (other != name or accepted) and not obj["metadata"].get("deletionTimestamp"):
            progress.actions.append(Remove(PODS, other, obj["metadata"]["uid"]))
    if not accepted:
        found = snapshot.trials.get(name)
        if found is None:
            progress.actions.append(Create(trial.body(loginset, cluster, template, config.text, wanted)))
        progress.config = _refusal(snapshot, found, config, progress, wall)
        if progress.config is not None:
            return False
    homes = home_folders.folder_of(cluster.spec)
    progress.write(objects.config_map(loginset, config.text, {trial.ANNOTATION_TRIED: wanted}, homes), live)
    return True


def _refusal(
    snapshot: Snapshot, found: Object | None, config: sshd_config.SshdConfig, progress: _Progress, wall: datetime
) -> LoginTrouble | None:
    """Why the configuration cannot be applied, or not yet; None if its trial has accepted it."""
    under_way = LoginTrouble(Reason.SSHD_CONFIG_UNTRIED, "the sshd configuration is being tested", waits=True)
    if found is None:
        return under_way
    verdict = trial.verdict(found, wall)
    match verdict.outcome:
        case TrialResult.ACCEPTED:
            return None
        case TrialResult.REFUSED:
            said = sshd_config.explained(verdict.words, config, snapshot.loginset.spec.extra_sshd_config)
            kept = "running pods keep their configuration" if snapshot.deployment is not None else "no pod is created"
            message = f"sshd rejects the configuration, and {kept}. spec.extraSshdConfig: {said}"
            return LoginTrouble(Reason.SSHD_CONFIG_REFUSED, message)
        case TrialResult.LOST:
            progress.actions.append(Remove(PODS, found["metadata"]["name"], found["metadata"]["uid"]))
            return under_way
        case TrialResult.UNDECIDED:
            return LoginTrouble(Reason.SSHD_CONFIG_UNTRIED, verdict.words) if verdict.words else under_way


def _agent(snapshot: Snapshot, defaults: Defaults) -> dict[str, str]:
    """The image of the program that proves which keys sackd has; none where no keys are replaced one by one."""
    cluster = snapshot.cluster
    key = None if cluster is None or cluster.spec.external else naming.mounted_key(cluster)
    if key is None or key.file != naming.SLURM_JWKS or not defaults.agent:
        return {}
    return {"image": defaults.agent, **({"imagePullPolicy": defaults.pull_policy} if defaults.pull_policy else {})}


def _notes(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}
