"""``kubectl slurm preflight``: what applying a file would do, without doing it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from kubectl_slurm.access import slurmrestd
from kubectl_slurm.access.kinds import CLUSTERS, NODESETS, PODS, Kind
from kubectl_slurm.access.tokens import ADMINISTRATOR
from kubectl_slurm.commands.preflight.trial import Changes, trials
from kubectl_slurm.commands.shared.files import read
from kubectl_slurm.commands.shared.options import Options, shared
from kubectl_slurm.commands.shared.session import Session, open_session
from kubectl_slurm.errors import FAILED, OK, KubectlFailed, NoCluster, ObjectNotFound, Refused
from kubectl_slurm.facts import reading
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.changes import preflight as rules
from kubectl_slurm.rules.changes import trial as trial_rules
from kubectl_slurm.screen.blocks import Section
from slinky_api import labels

MOST_OBJECTS = 200
KINDS = {kind.name: kind for kind in (CLUSTERS, NODESETS)}

Json = Mapping[str, Any]


@click.command()
@click.option(
    "-f",
    "--filename",
    required=True,
    type=click.Path(exists=True, allow_dash=True, dir_okay=False),
    metavar="FILE",
    help="Manifests; - for standard input.",
)
@click.option("--trial/--no-trial", default=True, show_default=True, help="Let Slurm try the configuration in a pod.")
@click.option(
    "--timeout", type=click.IntRange(1, 600), default=120, show_default=True, help="Seconds for each pod of the trial."
)
@shared
def preflight(options: Options, *, filename: str, trial: bool, timeout: int) -> int:
    """Say whether a file would be taken, and which jobs would end.

    Each Cluster and NodeSet is tried by the API server without being stored. What becomes of nodes and jobs follows
    from the difference to what is there; Slurm is asked as the user slurm, who sees all jobs. A changed configuration
    is then tried by a slurmctld and a slurmd in a disposable pod, the one by which the operator would try it. Exit code
    1 if something is refused, a job would end, or it is not known what follows.

    Not tried: devices, names that only slurmdbd has, and what slurmctld does to running jobs when it loads the
    configuration, for which the operator starts one with a copy of its state before it replaces anything.

    \b
    kubectl slurm preflight -f cluster.yaml --namespace slurm
    kustomize build . | kubectl slurm preflight -f -
    """  # noqa: D301 - as in `status`
    objects = _read(filename)
    with open_session(options) as session:
        pictures = _Pictures(session)
        sections: list[Section] = []
        ends: list[str] = []
        changes = Changes()
        refused = unknown = False
        for obj in objects:
            kind = KINDS.get(str(obj.get("kind")))
            what = f"{obj.get('kind')} {_name(obj)}"
            if kind is None or obj.get("apiVersion") != kind.api_version:
                is_source = changes.add_source(obj)
                where = "looked at only as a part of configurations" if is_source else "not looked at"
                sections.append(Section(f"{what}: {where}, since it is no Cluster and no NodeSet"))
                continue
            old, (new, refusal) = _stored(session, kind, _name(obj)), _tried(session, obj)
            findings = list(_findings(session, kind, old, new, pictures)) if new is not None else []
            changes.add(kind, old, new)
            sections.append(rules.section(what, refusal, findings))
            ends += rules.ended(findings)
            refused, unknown = refused or bool(refusal), unknown or rules.unsure(findings)
        tried = list(trials(session, changes, pictures.of, timeout)) if trial and not refused else []
        if options.is_json:
            found = {"objects": sections, "jobsThatWouldEnd": ends, "refused": refused, "unknown": unknown}
            options.printer.json({**found, "trials": tried})
        else:
            options.printer.show((*sections, *map(trial_rules.section, tried)))
        return FAILED if refused or ends or unknown or not trial_rules.passes(tried) else OK


class _Pictures:
    """What Slurm has of each Cluster that an object of the file belongs to, read once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[str, tuple[SlurmPicture, str]] = {}

    def of(self, name: str) -> tuple[SlurmPicture, str]:
        """What Slurm has, read as the administrator, and a warning if it hides jobs; nothing without the Cluster."""
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> tuple[SlurmPicture, str]:
        session = self._session
        try:
            cluster = session.cluster(name)
        except (NoCluster, ObjectNotFound):
            return SlurmPicture(now=session.now()), ""
        slurm = session.slurm(cluster, ADMINISTRATOR)
        seen = session.ask(cluster, lambda: slurmrestd.picture(slurm, session.now(), places=True))
        return seen, rules.hidden(cluster.running, seen)


def _read(filename: str) -> list[Json]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Reads times as texts, as Kubernetes does."""

        yaml_implicit_resolvers = {  # noqa: RUF012 - as the class above has it
            first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
            for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        # SafeLoader makes nothing but plain values.
        documents = list(yaml.load_all(read(filename), Loader))
        documents = json.loads(json.dumps(documents))
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise Refused(f"{filename} is no YAML that Kubernetes reads: {error}") from error
    found: list[Json] = []
    for one in documents:
        items = one.get("items") if isinstance(one, Mapping) and one.get("kind") == "List" else [one]
        for each in items if isinstance(items, list) else [items]:
            if each is None:
                continue
            if not isinstance(each, Mapping):
                raise Refused(f"{filename} has {json.dumps(each)[:80]} where an object is expected")
            found.append(each)
    if len(found) > MOST_OBJECTS:
        raise Refused(f"{filename} has {len(found)} objects, and may have {MOST_OBJECTS}")
    return found


def _name(obj: Json) -> str:
    meta = obj.get("metadata")
    return str(meta.get("name") or "") if isinstance(meta, Mapping) else ""


def _tried(session: Session, obj: Json) -> tuple[Json | None, str]:
    """The object as it would be stored, or why it would not be."""
    arguments = ("apply", f"--namespace={session.kube.namespace}", "--dry-run=server", "--output=json", "--filename=-")
    try:
        return json.loads(session.kubectl.run(*arguments, stdin=json.dumps(obj))), ""
    except KubectlFailed as error:
        right = session.kube.missing_right(str(error))
        return None, str(right or error)


def _stored(session: Session, kind: Kind, name: str) -> Json | None:
    """The object that is there; None if there is none."""
    if not name:
        return None
    try:
        return session.kube.get(kind, name)
    except ObjectNotFound:
        return None


def _findings(
    session: Session, kind: Kind, stored: Json | None, new: Json, pictures: _Pictures
) -> Iterator[rules.Finding]:
    name, spec = str(new["metadata"]["name"]), new.get("spec") or {}
    if stored is None:
        nothing = SlurmPicture(now=session.now())
        yield from (rules.cluster(None, spec, nothing) if kind is CLUSTERS else rules.nodeset(None, spec, nothing, ()))
        return
    old: Json = stored.get("spec") or {}
    if kind is CLUSTERS:
        seen, warning = pictures.of(name)
        found = rules.cluster(old, spec, seen, _nodesets(session, name))
    else:
        seen, warning = pictures.of(reading.nodeset(new).cluster)
        found = rules.nodeset(old, spec, seen, _pods(session, name))
    if found and warning:
        yield rules.Finding(warning, unknown=rules.blind(seen))
    yield from found


def _nodesets(session: Session, cluster: str) -> list[rules.Pods]:
    """All NodeSets of a Cluster with their pods."""
    read_ones = [(reading.nodeset(obj), obj.get("spec") or {}) for obj in session.kube.objects(NODESETS)]
    mine = [(one.name, spec) for one, spec in read_ones if one.cluster == cluster]
    return [rules.Pods(name, spec, _pods(session, name)) for name, spec in mine]


def _pods(session: Session, nodeset: str) -> set[str]:
    """Nodes of a NodeSet, by their names in Slurm."""
    selector = f"{labels.LABEL_NODESET_NAME}={nodeset}"
    return {reading.pod(pod).slurm_node for pod in session.kube.objects(PODS, selector=selector)}
