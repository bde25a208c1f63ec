"""``kubectl slurm preflight``: what applying a file would do, without doing it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from kubectl_slurm.access import slurmrestd
from kubectl_slurm.access.kinds import CLUSTERS, NODESETS, PODS, Kind
from kubectl_slurm.commands.options import Options, shared
from kubectl_slurm.commands.session import Session, open_session
from kubectl_slurm.errors import FAILED, OK, KubectlFailed, NoCluster, ObjectNotFound, Refused
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules import preflight as rules
from kubectl_slurm.screen.blocks import Section
from slinky_api import labels

LARGEST = 4 << 20
MOST_OBJECTS = 200
KINDS = {kind.name: kind for kind in (CLUSTERS, NODESETS)}

Json = Mapping[str, Any]


@click.command()
@click.option("-f", "--filename", required=True, metavar="FILE", help="Manifests; - for standard input.")
@shared
def preflight(options: Options, *, filename: str) -> int:
    """Say whether Kubernetes would take Clusters and NodeSets of a file, and which jobs would end.

    Each object is tried by the API server without being stored. What becomes of nodes and jobs follows from the
    difference to what is there. Exit code 1 if an object is refused or a job would end.

    \b
    kubectl slurm preflight -f cluster.yaml --namespace slurm
    kustomize build . | kubectl slurm preflight -f -
    """  # noqa: D301 - as in `status`
    objects = _read(filename)
    with open_session(options) as session:
        seen: SlurmPicture | None = None
        sections: list[Section] = []
        ends: list[str] = []
        refused = False
        for obj in objects:
            kind = KINDS.get(str(obj.get("kind")))
            what = f"{obj.get('kind')} {(obj.get('metadata') or {}).get('name')}"
            if kind is None or obj.get("apiVersion") != kind.api_version:
                sections.append(Section(f"{what}: not looked at, since it is no Cluster and no NodeSet"))
                continue
            new, refusal = _tried(session, obj)
            findings: list[rules.Finding] = []
            if new is not None:
                seen = seen or _picture(session)
                findings = list(_findings(session, kind, new, seen))
            sections.append(rules.section(what, refusal, findings))
            ends += rules.ended(findings)
            refused = refused or bool(refusal)
        if options.is_json:
            options.printer.json({"objects": sections, "jobsThatWouldEnd": ends, "refused": refused})
        else:
            options.printer.show(tuple(sections))
        return FAILED if refused or ends else OK


def _read(filename: str) -> list[Json]:
    import yaml

    text = sys.stdin.read(LARGEST + 1) if filename == "-" else Path(filename).read_text("utf-8")
    if len(text) > LARGEST:
        raise Refused(f"{filename} is larger than {LARGEST >> 20} MiB")
    try:
        found = [one for one in yaml.safe_load_all(text) if isinstance(one, Mapping)]
    except yaml.YAMLError as error:
        raise Refused(f"{filename} is no YAML: {error}") from error
    found = [each for one in found for each in (one.get("items") or () if one.get("kind") == "List" else (one,))]
    if len(found) > MOST_OBJECTS:
        raise Refused(f"{filename} has {len(found)} objects, and may have {MOST_OBJECTS}")
    return found


def _tried(session: Session, obj: Json) -> tuple[Json | None, str]:
    """The object as it would be stored, or why it would not be."""
    arguments = ("apply", f"--namespace={session.kube.namespace}", "--dry-run=server", "--output=json", "--filename=-")
    try:
        return json.loads(session.kubectl.run(*arguments, stdin=json.dumps(obj))), ""
    except KubectlFailed as error:
        return None, str(error)


def _picture(session: Session) -> SlurmPicture:
    """What Slurm has; nothing where there is no Cluster yet."""
    try:
        cluster = session.cluster()
    except NoCluster:
        return SlurmPicture(now=session.now())
    slurm = session.slurm(cluster)
    return session.ask(cluster, lambda: slurmrestd.picture(slurm, session.now()))


def _findings(session: Session, kind: Kind, new: Json, seen: SlurmPicture) -> Iterator[rules.Finding]:
    name, spec = str(new["metadata"]["name"]), new.get("spec") or {}
    try:
        old: Json | None = session.kube.get(kind, name).get("spec") or {}
    except ObjectNotFound:
        old = None
    if kind is CLUSTERS:
        yield from rules.cluster(old, spec, seen)
        return
    selector = f"{labels.LABEL_NODESET_NAME}={name}"
    pods = {str(pod["metadata"]["name"]) for pod in session.kube.objects(PODS, selector=selector)}
    yield from rules.nodeset(old, spec, seen, pods)
