"""Write the tables of the operator's limits into the documentation: ``python -m hack.documents.tables.limits``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from slinky_operator.settings import Settings

PROJECT: Final = Path(__file__).parents[3]
PAGE: Final = PROJECT / "docs" / "limits.md"
BEGIN: Final = "<!-- written by python -m hack.documents.tables.limits: {} -->\n"
END: Final = "\n<!-- end -->"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: a constant of the code, or the default of a setting, and what it means.

    Parameters
    ----------
    constant
        ``module:NAME``; ``settings:name`` for a setting. A module of the Cluster is named without its folders, by which
        others do not know it either.
    what
        What is limited.
    unit
        Of the value.
    beyond
        What happens beyond it.
    """

    constant: str
    what: str
    unit: str
    beyond: str

    def value(self) -> Any:
        """The value that the code has."""
        module, _, name = self.constant.partition(":")
        if module == "settings":
            return Settings.model_fields[name].default
        return getattr(import_module(module if "." in module else _of_a_cluster(module)), name)


def _of_a_cluster(module: str) -> str:
    """The full name of the one module of that name."""
    (path,) = (PROJECT / "slinky_operator" / "cluster").rglob(f"{module}.py")
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts)


_CACHE: Final = "slinky_operator.kube.cache"
_JOBLOGS: Final = "slinky_operator.pod_programs.joblogs"
_AUTOSCALING: Final = "slinky_operator.autoscaling.rules"
_BUDGET: Final = "slurm_exporter.samples.budget"
_KINDS: Final = "slinky_api.v1alpha1"

TABLES: Final[Mapping[str, tuple[Limit, ...]]] = {
    "names": (
        Limit(f"{_KINDS}.cluster.kind:MANAGED_NAME_LENGTH", "name of a managed Cluster", "characters", "refused"),
        Limit(
            f"{_KINDS}.nodeset.kind:NAME_LENGTH",
            "name of a NodeSet",
            "characters",
            "refused; an older one gets no pods",
        ),
        Limit(f"{_KINDS}.loginset:NAME_LENGTH", "name of a LoginSet", "characters", "refused"),
        Limit(f"{_KINDS}.fields:MAX_ORDINALS", "replicas of a NodeSet", "pods", "refused"),
        Limit(
            f"{_KINDS}.nodeset.spec:MAX_FUTURE_NODES", "nodes that jobs may wait for (autoscaling)", "nodes", "refused"
        ),
        Limit(f"{_KINDS}.nodeset.health:MAX_RULES", "rules of a NodeSet for conditions of Nodes", "rules", "refused"),
        Limit(f"{_KINDS}.nodeset.checks:MAX_CHECKS", "health checks of a NodeSet", "checks", "refused"),
        Limit(f"{_KINDS}.nodeset.checks:MAX_SCRIPT", "script of a health check", "characters", "refused"),
        Limit(f"{_KINDS}.nodeset.checks:MAX_TIMEOUT", "timeout of a health check", "seconds", "refused"),
        Limit(
            f"{_KINDS}.nodeset.status:MAX_REPLACEMENTS",
            "bad Nodes of a NodeSet whose tries are remembered",
            "Nodes",
            "others are not replaced until there is room; the condition says so",
        ),
        Limit(
            "slinky_operator.nodeset.model.kubernetes_nodes:MOST_CONDITIONS",
            "conditions of a Node",
            "conditions",
            "the others are not read",
        ),
        Limit(
            "slinky_operator.nodeset.model.kubernetes_nodes:LONGEST_REASON",
            "what a Node says in the reason of a Slurm node",
            "characters",
            "cut",
        ),
        Limit(
            "slinky_operator.nodeset.memory:STATE_WRITES_A_SECOND",
            "pods of a NodeSet on which states of nodes are written (`podConditions`)",
            "pods a second",
            "written later, problems first",
        ),
        Limit(f"{_KINDS}.slurmjob.submission:MAX_SCRIPT", "script of a SlurmJob", "characters", "refused"),
        Limit(
            "slurm_client.notation.sbatch.options:MOST",
            "`#SBATCH` options of a script",
            "options",
            "refused (`InvalidSpec`)",
        ),
        Limit(
            "slinky_operator.bridge.pods.model.steps:MOST_PODS", "pods of a group that Slurm places", "pods", "refused"
        ),
        Limit(
            "slinky_operator.bridge.devices:MOST",
            "devices of a Kubernetes Node that Slurm numbers",
            "devices",
            "those beyond are not used",
        ),
        Limit(
            "slinky_operator.bridge.pods.model.translation.device_requests:MOST",
            "devices that a ResourceClaim of a pod that Slurm places asks for",
            "devices",
            "refused",
        ),
        Limit(
            f"{_KINDS}.slurmjob.files:MAX_COPIES", "items in `prepare` or `results` of a SlurmJob", "items", "refused"
        ),
        Limit(
            f"{_KINDS}.slurmjob.kind:MAX_ALLOCATION",
            "nodes of a job without a script",
            "nodes",
            "cancelled (`AllocationTooLarge`)",
        ),
        Limit(
            f"{_KINDS}.slurmjob.kind:MAX_COMPONENTS", "components of a job without a script", "components", "refused"
        ),
        Limit("slinky_operator.jobs.environment:LARGEST", "environment of a SlurmJob", "characters", "refused"),
        Limit(
            "slinky_operator.slurm.slurmd.launch:LONGEST_COMMAND",
            "`command` and `args` of slurmd together",
            "characters",
            "refused",
        ),
        Limit(
            "slinky_operator.identity.users:LARGEST",
            "passwd and group of a Cluster together",
            "bytes",
            "refused; the earlier files stay",
        ),
        Limit(
            "slinky_operator.identity.entries:LONGEST_LINE",
            "a line of passwd or group",
            "characters",
            "the line is refused",
        ),
        Limit("slinky_operator.identity.users:LONGEST_CONF", "sssd.conf", "bytes", "refused"),
        Limit("key_sizes:BIGGEST", "a key of auth/slurm", "bytes", "not accepted"),
        Limit("key_sizes:MOST_KEYS", "keys of auth/slurm in a set", "keys", "not accepted"),
        Limit(
            "slinky_operator.slurm.tokens.key_set:MOST_KEYS",
            "keys of tokens in a set (`auth.jwksRef`)",
            "keys",
            "not accepted",
        ),
        Limit(
            "slinky_operator.node_labels.config_format:LONGEST_TEXT",
            "ConfigMap with labels of Nodes",
            "characters",
            "refused; labels stay",
        ),
        Limit(
            "slinky_operator.node_labels.config_format:MOST_LABELS",
            "labels of one Node by it, or by Slurm",
            "labels",
            "refused, or left out and named",
        ),
    ),
    "objects": (
        Limit(
            "settings:namespace_budget",
            "cached objects of one namespace: users' kinds, and the operator's, each",
            "MiB",
            "what does not fit is left out (`OverBudget`)",
        ),
        Limit(
            f"{_CACHE}.weight:MOST_VALUES", "values in one object", "values", "the object is reported and not acted on"
        ),
        Limit(
            f"{_CACHE}.weight:MOST_LEVELS", "levels of one object", "levels", "the object is reported and not acted on"
        ),
        Limit(
            "settings:external_clusters_per_namespace",
            "Clusters with `server` in one namespace",
            "Clusters",
            "the oldest are served (`TooManyClusters`)",
        ),
        Limit(
            "slinky_operator.token.plan:MOST",
            "Tokens of one Cluster in one namespace",
            "Tokens",
            "the oldest are served",
        ),
        Limit(
            "slinky_operator.reconcile.secrets:ROOM",
            "Secrets that are kept",
            "bytes",
            "the rest is read again when it is needed",
        ),
        Limit(
            "slinky_operator.reconcile.secrets:ROOM_OF_NAMESPACE",
            "Secrets of one namespace that are kept",
            "bytes",
            "the same",
        ),
        Limit(
            "slinky_operator.metrics.names:MOST_OBJECTS",
            "objects of one kind with metrics of their own",
            "objects",
            "the rest has none",
        ),
    ),
    "rates": (
        Limit(
            "slinky_operator.kube.calls.transport:MAX_IN_FLIGHT",
            "requests to the API server at once",
            "requests",
            "they wait",
        ),
        Limit("slinky_operator.kube.calls.reading:PAGE_SIZE", "objects in one page of a list", "objects", "more pages"),
        Limit(
            "slinky_operator.kube.events:BURST", "new Events of one object at once", "Events", "one further per minute"
        ),
        Limit("slinky_operator.kube.events:LONGEST_MESSAGE", "message of an Event", "characters", "cut"),
        Limit(
            "settings:slurmjob_resubmissions",
            "repeated submissions of one namespace in a minute",
            "submissions",
            "they wait",
        ),
        Limit(
            "slinky_operator.runtime.threads:MOST_OF_A_NAMESPACE",
            "calls of one namespace that wait for one pool of threads",
            "calls",
            "tried again later",
        ),
        Limit("settings:slurm_timeout", "one request to slurmrestd", "seconds", "no answer: nothing is deleted"),
    ),
    "slurm": (
        Limit(
            "settings:slurm_answer_limit",
            "one answer of slurmrestd",
            "MiB",
            "jobs are read one by one, or the answer is refused",
        ),
        Limit(
            "slinky_operator.slurm.releases:WIDEST",
            "releases that one upgrade of Slurm may be wide",
            "releases",
            "refused",
        ),
        Limit(
            "preflight_pod:MOST_SLURMDS",
            "kinds of slurmd in one preflight",
            "kinds",
            "the first ones are tried",
        ),
        Limit(
            "state_pod:MOST_MIB",
            "state of slurmctld that a trial copies",
            "MiB",
            "not copied; the trial says so",
        ),
        Limit(
            "names:MOST_NAMES",
            "names of nodes in jobs that one decision reads",
            "names",
            "further jobs count as naming every node",
        ),
        Limit(
            "job_counts/question:MOST_LISTED",
            "jobs up to which `status.jobs.waiting` is counted",
            "jobs",
            "absent",
        ),
        Limit(
            "pruning:FEW",
            "deletions of one kind that `tree.prune` makes unasked, if they are more than a quarter",
            "records",
            "`tree.pruneAtMost` confirms",
        ),
        Limit(
            f"{_AUTOSCALING}.reading:MOST_JOBS",
            "pending jobs that one count of autoscaling reads",
            "jobs",
            "those with the highest priority",
        ),
        Limit(f"{_AUTOSCALING}.reading:MOST_OF_A_USER", "the same, of one user", "jobs", "the same"),
        Limit(
            f"{_AUTOSCALING}.effort:STEPS",
            "steps of one count of autoscaling",
            "steps",
            "`CountIncomplete`; nothing is scaled down",
        ),
        Limit(f"{_AUTOSCALING}.effort:SECONDS", "time of one count of autoscaling", "seconds", "the same"),
        Limit(
            "slinky_operator.virtual_nodes.nodes.model.naming:MOST",
            "virtual Nodes of a Cluster, those that are to go too",
            "Nodes",
            "the other partitions have none (`TooManyPartitions`)",
        ),
        Limit(
            "slinky_operator.virtual_nodes.nodes.model.partitions:MOST_GRES",
            "GRES of a partition that its virtual Node offers",
            "GRES",
            "the others are not offered",
        ),
        Limit(
            "slinky_operator.sylabs.partitions:MOST_NAMES",
            "partitions of a Cluster that a node selector of the old kinds may name",
            "partitions",
            "the others are not found",
        ),
        Limit(
            "slinky_operator.node_labels.controller:MOST_REPORTED",
            "names of Slurm that Events report because they make no label",
            "names",
            "not reported",
        ),
        Limit(
            "slinky_operator.slurm.pods.volume_room:LOW",
            "room on a volume below which `VolumesHaveRoom` is False",
            "of the volume",
            "condition, Event, alert",
        ),
    ),
    "metrics": (
        Limit(f"{_BUDGET}:LONGEST", "label", "characters", "cut, or counted under `(others)`; of a node: no samples"),
        Limit(f"{_BUDGET}:PARTITIONS", "partitions", "partitions", "counted under `(others)`"),
        Limit("slurm_exporter.families.jobs:QOS", "QOS", "QOS", "counted under `(others)`"),
        Limit(f"{_BUDGET}:KINDS", "GRES by name and type", "kinds", "counted under `(others)`"),
        Limit("slurm_exporter.families.nodes:KINDS_OF_PARTITION", "the same, of one partition", "kinds", "the same"),
        Limit("slurm_exporter.families.nodes:KINDS_OF_NODE", "the same, of one node", "kinds", "the same"),
        Limit("slurm_exporter.families.jobs:REASONS", "reasons of pending jobs", "reasons", "counted under `(others)`"),
        Limit("slurm_exporter.families.calls:TYPES", "types of calls", "types", "counted under `(others)`"),
        Limit(
            "slurm_exporter.families.holdings:NAMES", "licenses, and reservations", "of each", "the rest has no samples"
        ),
        Limit("slurm_exporter.families.shares:ACCOUNTS", "accounts with fair share", "accounts", "the same"),
    ),
    "servers": (
        Limit("slinky_operator.pod_programs.agent.connections:LONGEST", "request to an agent", "bytes", "refused"),
        Limit(
            f"{_JOBLOGS}.server.listener:MAX_CONNECTIONS",
            "connections to one job log server",
            "connections",
            "they try again",
        ),
        Limit(f"{_JOBLOGS}.server.listener:MAX_PER_PEER", "the same, of one address", "connections", "they try again"),
        Limit(
            f"{_JOBLOGS}.server.listener:MAX_PER_USER",
            "the same, of one user of Slurm",
            "connections",
            "they try again",
        ),
        Limit(f"{_JOBLOGS}.copies.shares:MAX_COPIES", "copies of results from one node at once", "copies", "they wait"),
        Limit(f"{_JOBLOGS}.copies.shares:MAX_PER_USER", "the same, of one user", "copies", "they wait"),
        Limit(
            f"{_JOBLOGS}.copies.permits:MAX_ENTRIES", "files of one item of `prepare` or `results`", "files", "refused"
        ),
        Limit(
            f"{_JOBLOGS}.copies.places:MAX_DEPTH", "folders inside each other in a copy", "folders", "the copy fails"
        ),
        Limit(
            "slinky_operator.slurmjob.pods.copy_plan:MAX_ATTEMPTS",
            "pods for one list of copies",
            "pods",
            "`ResultsCollected` or `Prepared` says why",
        ),
    ),
}


def shown(limit: Limit) -> str:
    """The value with its unit, as people write it."""
    value = limit.value()
    if limit.unit == "bytes" and value % 2**20 == 0:
        return f"{value // 2**20} MiB"
    if limit.unit == "of the volume":
        return f"{value:.0%} {limit.unit}"
    number = f"{value:,.0f}" if value == int(value) else f"{value:,}"
    return f"{number} {limit.unit}"


def with_tables(text: str) -> str:
    """The page with the tables as they are to be."""
    for name, limits in TABLES.items():
        begin = BEGIN.format(name)
        before, rest = text.split(begin, 1)
        lines = ["| what | limit | beyond it |", "| --- | --- | --- |"]
        lines += [f"| {one.what} | {shown(one)} | {one.beyond} |" for one in limits]
        text = f"{before}{begin}" + "\n".join(lines) + f"{END}{rest.split(END, 1)[1]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
