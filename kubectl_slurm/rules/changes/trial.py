"""What Slurm says of a changed configuration: what is asked in a disposable pod, and what its answer means. Pure.

The question goes to `slurm-operator preview` in a pod of the operator's image, which renders the configuration as the
operator would and builds the pod by which the operator would try it; then that pod is run. Creating, watching and
deleting both is left to `access.disposable`.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.screen.blocks import Line, Mood, Section
from kubectl_slurm.screen.words import clip, named
from slinky_api import labels
from slinky_operator.slurm.pods.exit_messages import ended, short, stuck
from slurm_client.models import Job

LARGEST: Final = 900_000
"""Bytes of the question: it is in a ConfigMap."""

MARK: Final = "preview: "
"""In front of each line of the answer."""

LASTS: Final = 600
"""Seconds after which the kubelet ends a pod that nobody has deleted."""

LABELS: Final = {"app.kubernetes.io/managed-by": "kubectl-slurm", "app.kubernetes.io/component": "preflight"}
INPUT: Final = "input"
CONTAINER: Final = "preview"
AGENT: Final = "agent"
"""Container of slurmctld's pod with the operator's image."""

SLURMCTLD: Final = "slurmctld"
REFUSED: Final = 1
"""Exit code of a daemon's container in the trial if the daemon refuses the configuration."""

CAPTION: Final = {
    "accepted": ("would take the configuration", Mood.GOOD),
    "refused": ("would refuse the configuration", Mood.BAD),
    "unchanged": ("keeps its configuration", Mood.GOOD),
    "not tried": ("was not asked about the configuration", Mood.WARNING),
}

_NOT_IN_CONFIGURATION: Final = frozenset({"replicas", "drain", "updateStrategy"})
"""Fields of a NodeSet that no file of Slurm has."""

_OF_JOBS: Final = (
    "partition", "nodes", "gres_detail", "tres_requested", "tres_allocated", "tres_per_job", "tres_per_node",
    "tres_per_socket", "tres_per_task", "required_nodes", "excluded_nodes", "features", "licenses",
)  # fmt: skip
"""What a job may refer to in slurm.conf."""

_HELD: Final = "spec.partition.config: "
"""In front of the reason why the operator holds a NodeSet back."""

Json = Mapping[str, Any]


class Verdict(StrEnum):
    """What came of it."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNCHANGED = "unchanged"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Trial:
    """What Slurm says of a Cluster's changed configuration.

    Attributes
    ----------
    message
        Why it is refused, or not tried.
    stays
        What stays for jobs at first, and for which ones.
    left_out
        NodeSets whose part would be left out, and why.
    unknown
        Whether it should have been tried, and was not.
    """

    cluster: str
    verdict: Verdict
    message: str = ""
    stays: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    unknown: bool = False


def concerns(old: Json | None, new: Json) -> bool:
    """Whether a change of a Cluster's or a NodeSet's spec may change files of Slurm."""
    before = old or {}
    return old is None or any(before.get(name) != new.get(name) for name in {*before, *new} - _NOT_IN_CONFIGURATION)


def sources(cluster: Json) -> tuple[str, ...]:
    """Names of the ConfigMaps that a Cluster's configuration is made of."""
    spec = cluster.get("spec") or {}
    refs = [ref for name, value in spec.items() if name.endswith("Refs") for ref in value or ()]
    refs.append((spec.get("auth") or {}).get("jwksRef") or {})
    return tuple(dict.fromkeys(str(one["name"]) for one in refs if isinstance(one, Mapping) and one.get("name")))


def held_back(cluster: Json, edited: Collection[str]) -> dict[str, str]:
    """NodeSets whose change Slurm has refused, and why, as the operator reports them; without those that a file has."""
    refused = ((cluster.get("status") or {}).get("config") or {}).get("refused") or ()
    found = {str(one.get("name")): str(one.get("message") or "") for one in refused}
    return {
        name: message.removeprefix(_HELD)
        for name, message in found.items()
        if name not in edited and message.startswith(_HELD)
    }


def in_slurm(seen: SlurmPicture) -> dict[str, Any]:
    """What the rules of the operator need of jobs, reservations, partitions and nodes."""
    return {
        "jobs": [_job(one) for one in seen.jobs if not one.is_finished],
        "records": len(seen.jobs),
        "reservations": [
            {"name": one.name, "partition": one.partition, "nodes": list(one.nodes), "licenses": one.licenses}
            for one in seen.reservations
        ],
        "states": {one.name: one.state.base for one in seen.partitions},
        "nodes": len(seen.nodes),
    }


def slurmds(pods: Iterable[Json]) -> list[Json]:
    """Of pods that run slurmd alike one each, with what distinguishes them."""
    found: dict[str, Json] = {}
    for pod in pods:
        meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
        own = [one for one in spec.get("containers") or () if one.get("name") == "slurmd"]
        name = (meta.get("labels") or {}).get(labels.LABEL_NODESET_NAME, "")
        known = {key: spec[key] for key in ("nodeName", "imagePullSecrets") if key in spec}
        ways = [(one.get("image"), one.get("securityContext")) for one in own]
        pruned = {
            "metadata": {"name": meta["name"], "labels": {labels.LABEL_NODESET_NAME: name}},
            "spec": {**known, "containers": own},
            "status": {key: status[key] for key in ("phase", "conditions") if key in status},
        }
        found.setdefault(json.dumps([name, ways, "nodeName" in spec]), pruned)
    return list(found.values())


def packed(question: Json) -> bytes:
    """The question as the pod reads it."""
    return gzip.compress(json.dumps(question).encode(), mtime=0)


def question_map(name: str, data: bytes) -> dict[str, Any]:
    """The ConfigMap with the question."""
    return {
        "metadata": {"name": name, "labels": LABELS},
        "binaryData": {INPUT: base64.b64encode(data).decode()},
        "immutable": True,
    }


def question_pod(name: str, slurmctld: Json) -> dict[str, Any]:
    """The pod that answers it: placed as slurmctld's, within the restricted Pod Security level, without rights.

    Parameters
    ----------
    slurmctld
        Spec of slurmctld's pod, which has a container with the operator's image.
    """
    agent = next(one for one in slurmctld["containers"] if one["name"] == AGENT)
    image = {key: agent[key] for key in ("image", "imagePullPolicy") if key in agent}
    kept = ("imagePullSecrets", "nodeSelector", "tolerations", "priorityClassName", "schedulerName")
    nobody = 65534
    return {
        "metadata": {"name": name, "labels": LABELS},
        "spec": {
            **{key: slurmctld[key] for key in kept if key in slurmctld},
            "restartPolicy": "Never",
            "activeDeadlineSeconds": LASTS,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": nobody,
                "runAsGroup": nobody,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": CONTAINER,
                    **image,
                    "command": ["python", "-m", "slinky_operator", "preview", f"/{INPUT}/{INPUT}"],
                    "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "volumeMounts": [{"name": INPUT, "mountPath": f"/{INPUT}", "readOnly": True}],
                }
            ],
            "volumes": [{"name": INPUT, "configMap": {"name": name}}],
        },
    }


def answer(lines: Iterable[str]) -> dict[str, Any] | None:
    """The answer in the lines of the pod's log; None if there is none."""
    text = "".join(line.removeprefix(MARK) for line in lines if line.startswith(MARK))
    try:
        found = json.loads(gzip.decompress(base64.b64decode(text, validate=True)))
    except (OSError, EOFError, zlib.error, ValueError, binascii.Error):
        return None
    return found if isinstance(found, dict) else None


def unanswered(pod: Json) -> str:
    """Why a pod that was to answer has not."""
    ends = ended(dict(pod))
    said = str((ends.get(CONTAINER) or {}).get("message") or "")
    last = [line for line in said.splitlines() if line.strip()][-1:]
    return clip(last[0] if last else stuck(dict(pod)) or "it printed nothing", 400)


def before_the_trial(cluster: str, found: Json) -> Trial | None:
    """What the answer says if nothing is to be tried; None if there is a trial."""
    problems = tuple(map(str, found.get("problems") or ()))
    if problems:
        return Trial(cluster, Verdict.REFUSED, "; ".join(problems), _stays(found), _left_out(found))
    if not found.get("pod"):
        return Trial(cluster, Verdict.UNCHANGED, "", _stays(found), _left_out(found))
    return None


def after_the_trial(cluster: str, found: Json, pod: Json) -> Trial:
    """What a pod that has tried the configuration shows."""
    ends, status = ended(dict(pod)), pod.get("status") or {}
    stays, left_out = _stays(found), _left_out(found)
    # slurmctld comes first: what it refuses, slurmd never reads.
    for name in sorted(ends, key=lambda one: (one != SLURMCTLD, one)):
        if ends[name].get("exitCode") == REFUSED:
            sets = (found.get("slurmds") or {}).get(name) or ()
            who = name if name == SLURMCTLD else f"slurmd of NodeSet {named(list(sets))}" if sets else "slurmd"
            words = short(str(ends[name].get("message") or "")) or "it has ended without a word"
            return Trial(cluster, Verdict.REFUSED, f"{who}: {words}", stays, left_out)
    if status.get("phase") == "Succeeded":
        return Trial(cluster, Verdict.ACCEPTED, "", stays, left_out)
    told = [f"{name}: {short(str(end.get('message') or '')) or 'no word'}" for name, end in sorted(ends.items())]
    why = stuck(dict(pod)) or "; ".join(told) or str(status.get("message") or status.get("reason") or "no result")
    return Trial(
        cluster, Verdict.NOT_TRIED, f"the pod of the trial gave no result: {why}", stays, left_out, unknown=True
    )


def section(trial: Trial) -> Section:
    """What to say of a trial."""
    caption, mood = CAPTION[trial.verdict.value]
    lines = [Line(clip(trial.message, 1000), mood)] if trial.message else []
    lines += [Line(f"NodeSet left out: {clip(one, 400)}", Mood.BAD) for one in trial.left_out]
    lines += [Line(f"Stays for jobs at first: {clip(one, 400)}", Mood.WARNING) for one in trial.stays]
    return Section(f"Slurm of Cluster {trial.cluster} {caption}", tuple(lines), mood)


def passes(trials: Sequence[Trial]) -> bool:
    """Whether nothing is refused, left out or unknown."""
    return not any(one.verdict is Verdict.REFUSED or one.left_out or one.unknown for one in trials)


def _stays(found: Json) -> tuple[str, ...]:
    return tuple(map(str, found.get("stays") or ()))


def _left_out(found: Json) -> tuple[str, ...]:
    return tuple(f"{one['nodeSet']}: {one['why']}" for one in found.get("refused") or ())


def _job(job: Job) -> dict[str, Any]:
    values = {name: getattr(job, name) for name in _OF_JOBS}
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value}
    return {"id": job.id, "state": [job.state.base, *sorted(job.state.flags)], **given}
