"""Templates to files, and the hash over them.

Decisions this module makes, beside those of `merge`:

- Each NodeSet has a line `NodeSet=<name> Feature=<name>`, and, unless `partition.enabled` is false, a partition of its
  name over exactly its nodes.
- There is always a partition `all` over all nodes, so that a job without a partition has somewhere to go. It is the
  default unless another partition says `Default=YES`; it stays when one does, for removing a partition ends its jobs.
- A partition that is no longer wanted but in use can be kept: it is then `State=INACTIVE`, which lets jobs run on and
  takes none, and not the default. What is wanted wins over what is kept under the same name.
- A state that an administrator has given a partition by `scontrol` stays (`states`).
- A NodeSet may have nodes of the future, which only make jobs possible (`future_nodes`).
- A NodeSet that a partition of the Cluster names but that does not exist yet is still declared: Slurm takes
  a NodeSet without nodes, and a partition must not lose its nodes because of the order of two manifests.
- The name of Kubernetes Nodes that are nodes (`spec.jobs.bridge`) is declared like that of a NodeSet: it is a feature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from slinky_api.errors import Problem
from slinky_api.v1alpha1.fields import MAX_ORDINALS
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import containers, future_nodes, home_folders, states
from slinky_operator.slurm.conf.admit import ALL_PARTITION, Refused, admit
from slinky_operator.slurm.conf.inputs import ConfInputs, NodeSetConf
from slinky_operator.slurm.conf.keys.merge import check_accounting, check_extra, merge, with_kept, without_states
from slinky_operator.slurm.conf.nodes import static_nodes
from slinky_operator.slurm.conf.sources.files import implied_keys
from slinky_operator.slurm.conf.sources.gather import check, check_size, contents
from slinky_operator.slurm.conf.sources.scripts import in_order
from slinky_operator.slurm.conf.syntax import set_states
from slinky_operator.slurm.conf.syntax.directives import Directive, TextProblem
from slinky_operator.slurm.conf.syntax.parsed import ConfFiles, Line, Parsed, parse, says_default
from slinky_operator.slurm.health_checks import programs as health_checks
from slinky_operator.slurm.tokens import key_set

SLURM_CONF: Final = "slurm.conf"
CGROUP_CONF: Final = "cgroup.conf"

INACTIVE: Final = "INACTIVE"
"""State of a partition that takes no job, not even into its queue, while those in it run on."""


@dataclass(frozen=True, slots=True)
class Rendered(ConfFiles):
    """What came of the inputs."""

    hash: str = ""
    """Over all files, names included; the same for the same configuration, however it was ordered in the spec."""

    partitions: Mapping[str, str] = field(default_factory=dict)
    """Every partition and what its `Nodes=` says, so that a running slurmctld can be compared."""

    node_sets: tuple[str, ...] = ()
    """NodeSets that take part."""

    problems: tuple[Problem, ...] = ()
    """What is wrong with the Cluster's own part; with any, nothing of this may be applied."""

    missing: tuple[Problem, ...] = ()
    """Those of the problems that are about ConfigMaps that do not exist."""

    refused: tuple[Refused, ...] = ()
    """NodeSets that were left out, or whose running lines were kept."""

    undefined: tuple[str, ...] = ()
    """NodeSets that partitions name and that do not exist."""

    by_hand: Mapping[str, set_states.SetState] = field(default_factory=dict)
    """Partitions whose state an administrator has set, and that keep it."""


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    lines: tuple[str, ...]


def render(inputs: ConfInputs, running: Parsed = Parsed()) -> Rendered:  # noqa: B008 - frozen
    """Render all files.

    Parameters
    ----------
    inputs
        What they are made of.
    running
        The slurm.conf that is in use: a NodeSet whose new text is refused keeps its lines from there, since
        taking them away would end its jobs.

    Returns
    -------
    Rendered
        With `problems`, if the Cluster's own part is unusable; the files are then as far as they could be made.
    """
    problems: list[Problem] = []
    outside = static_nodes(inputs.nodes, inputs.node_sets, running, inputs.future)
    problems += outside.problems
    admitted, refused = admit(inputs, outside.names, running)
    node_sets = [one.node_set for one in admitted]
    own, has_default = _cluster_partitions(inputs, problems)
    specs = {name: one.spec for name, one in running.set_states.items()}
    lines: list[Line] = []
    for given in admitted:
        one = given.node_set
        if one.kept is not None:
            lines += (line.stated(specs) for line in one.kept)
            continue
        lines.append(Line.of(NodeSet=one.name, Feature=one.name))
        if one.future is not None:
            lines.append(one.future.line)
        if given.partition is not None:
            lines.append(Line.of_partition(one.name, one.name, given.partition))
    known = {one.name for one in node_sets}
    bridged = {inputs.bridge.name} if inputs.bridge is not None else set[str]()
    undefined = sorted(
        {
            name
            for partition in inputs.partitions
            for name in partition.node_sets
            if name not in known | bridged | {"ALL"}
        }
    )
    declared = {*undefined, *bridged, *inputs.kept_node_sets} - known
    lines += [Line.of(NodeSet=name, Feature=name) for name in sorted(declared)]
    default = "NO" if has_default or any(says_default(line.words) for line in lines) else "YES"
    everything = Line.of(PartitionName=ALL_PARTITION, Nodes="ALL", Default=default, State="UP")
    made = Parsed.of((*lines, everything, *own))
    has_checks = any(one.checks for one in node_sets)
    files = _files(inputs, problems, has_checks=has_checks)
    main, rest = _keys(_with_room(inputs, made), problems, node_sets, files)
    by_hand = states.set_by_hand(made.partitions, running, inputs.states)
    stay = {name: one.state for name, one in by_hand.items()}
    kept = _kept_partitions(inputs, made.partitions)
    if kept or states.move(made.partitions, by_hand, running, settled=inputs.settled):
        main, rest = without_states(main), without_states(rest)
    sections = [
        _Section("The cluster", tuple(map(str, main))),
        _Section("Scripts", tuple(map(str, _scripts(inputs, has_checks=has_checks)))),
        _Section("From extraConf", tuple(map(str, rest))),
        _Section("Nodes outside Kubernetes", tuple(map(str, outside.lines))),
        _Section("NodeSets and their partitions", tuple(str(line.stated(stay)) for line in lines)),
        _Section("Partitions", tuple(str(line.stated(stay)) for line in (everything, *own))),
        _Section("States that an administrator has set", set_states.comments(by_hand)),
        _Section("No longer wanted, but in use", tuple(map(str, kept))),
    ]
    files[SLURM_CONF] = _template(SLURM_CONF).render(sections=[section for section in sections if section.lines])
    if CGROUP_CONF not in files:
        files[CGROUP_CONF] = _template(CGROUP_CONF).render(plugin="disabled")
    problems += check_size(files, inputs.texts)
    return Rendered(
        files=files,
        lines=parse(files[SLURM_CONF]),
        hash=hash_of(files),
        partitions={line.partition: line.get("Nodes") for line in (*made.partitions.values(), *kept)},
        node_sets=tuple(one.name for one in node_sets),
        problems=tuple(problems),
        missing=(*inputs.texts.missing, *inputs.token_keys.missing),
        refused=tuple(refused),
        undefined=tuple(undefined),
        by_hand=by_hand,
    )


def hash_of(files: Mapping[str, str]) -> str:
    """Hash over files and their names, in hexadecimal, 32 digits."""
    return hashlib.sha256(json.dumps(dict(files), sort_keys=True).encode()).hexdigest()[:32]


def _files(inputs: ConfInputs, problems: list[Problem], *, has_checks: bool) -> dict[str, str]:
    """The files beside slurm.conf by name, but for those of templates."""
    files = contents(inputs.texts) | dict(inputs.kept_files)
    problems += (*check(inputs.texts), *inputs.token_keys.missing, *inputs.token_keys.problems)
    if inputs.token_keys.text:
        files[key_set.FILE] = inputs.token_keys.text
    if inputs.containers is not None:
        if containers.OCI_CONF in files:
            problems.append(Problem("spec.containers", containers.TWICE))
        files[containers.OCI_CONF] = containers.text(inputs.containers)
    if inputs.homes:
        if home_folders.PROLOG in files:
            problems.append(Problem("spec.identity.homes.create", home_folders.TWICE))
        files[home_folders.PROLOG] = home_folders.program(inputs.homes)
    if has_checks:
        if not {health_checks.PROLOG, health_checks.EPILOG}.isdisjoint(files):
            problems.append(Problem("spec.configFiles", health_checks.TWICE))
        files |= dict.fromkeys((health_checks.PROLOG, health_checks.EPILOG), health_checks.program())
    return files


def _scripts(inputs: ConfInputs, *, has_checks: bool) -> list[Directive]:
    own = [home_folders.LINE] if inputs.homes else []
    own += health_checks.LINES if has_checks else ()
    return [*own, *(one.directive for one in in_order(inputs.texts.scripts))]


# The Cluster's own


def _cluster_partitions(inputs: ConfInputs, problems: list[Problem]) -> tuple[list[Line], bool]:
    """The line of each partition, in order of name; and whether one of them is the default."""
    found: list[Line] = []
    names: set[str] = set()
    default: str | None = None
    indexed = sorted(enumerate(inputs.partitions), key=lambda pair: pair[1].name)
    for index, one in indexed:
        field = f"spec.partitions[{index}]"
        if isinstance(one.words, TextProblem):
            problems.append(Problem(f"{field}.config", one.words.reason))
            continue
        if one.name.lower() in names or one.name.lower() in {ALL_PARTITION, "default"}:
            problems.append(Problem(f"{field}.name", f"there is a partition {one.name} already"))
            continue
        names.add(one.name.lower())
        if says_default(one.words):
            if default is not None:
                problems.append(Problem(f"{field}.config", f"Default=YES: partition {default} is the default already"))
                continue
            default = one.name
        if any(character.isspace() or character in '"#=\\' for name in one.nodes for character in name):
            problems.append(Problem(f"{field}.nodes", "must be node names or hostlists"))
            continue
        nodes = ",".join((*sorted(set(one.node_sets)), *one.nodes))
        found.append(Line.of_partition(one.name, nodes, one.words))
    return found, default is not None


def _kept_partitions(inputs: ConfInputs, wanted: Collection[str]) -> list[Line]:
    kept = sorted(
        (line for line in inputs.kept_partitions if line.partition not in wanted), key=lambda one: one.partition
    )
    return [line.replaced(State=INACTIVE, Default="NO") for line in kept]


def _with_room(inputs: ConfInputs, made: Parsed) -> ConfInputs:
    """The inputs with room for the future nodes beside those that register."""
    room = inputs.max_node_count + future_nodes.count_in(made)
    return replace(inputs, max_node_count=min(room, max(inputs.max_node_count, MAX_ORDINALS)))


def _keys(
    inputs: ConfInputs, problems: list[Problem], node_sets: Sequence[NodeSetConf], files: Mapping[str, str]
) -> tuple[tuple[Directive, ...], tuple[Directive, ...]]:
    extra = inputs.extra
    reason = extra.reason if isinstance(extra, TextProblem) else check_extra(extra, files)
    if reason is None and inputs.owns_accounting and not isinstance(extra, TextProblem):
        reason = check_accounting(extra)
    if reason is not None:
        problems.append(Problem("spec.extraConf", reason))
        extra = ()
    assert not isinstance(extra, TextProblem)  # noqa: S101 - replaced above
    return with_kept(*merge(_own_keys(inputs, node_sets, files), extra), inputs.kept_keys)


def _own_keys(inputs: ConfInputs, node_sets: Sequence[NodeSetConf], files: Mapping[str, str]) -> list[Directive]:
    first, last = naming.SRUN_PORTS
    pairs = {
        "ClusterName": inputs.cluster_name,
        "SlurmctldHost": f"{inputs.controller_name}({inputs.controller_address})",
        "SlurmctldPort": str(naming.SLURMCTLD_PORT),
        "SlurmdPort": str(naming.SLURMD_PORT),
        "SlurmUser": "slurm",
        "AuthType": "auth/slurm",
        "CredType": "cred/slurm",
        "AuthInfo": "use_client_ids",
        "AuthAltTypes": "auth/jwt",
        "AuthAltParameters": ",".join(_token_keys(files)),
        "SlurmctldParameters": "enable_configless",
        "StateSaveLocation": naming.STATE_FOLDER,
        "SlurmdSpoolDir": naming.SPOOL_FOLDER,
        "SlurmctldPidFile": naming.SLURMCTLD_PID,
        "SlurmdPidFile": f"{naming.RUN_FOLDER}/slurmd.pid",
        "SlurmctldLogFile": naming.SLURMCTLD_LOG,
        "SlurmdLogFile": "/dev/stderr",
        "SelectType": "select/cons_tres",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "MaxNodeCount": str(inputs.max_node_count),
        "ReturnToService": "2",
        "SrunPortRange": f"{first}-{last}",
    }
    named = (item.split(":", 1)[0] for one in node_sets for item in one.gres.split(",") if item)
    kinds = sorted({*named, *inputs.kept_gres, *(inputs.bridge.kinds if inputs.bridge is not None else ())})
    if kinds:
        pairs["GresTypes"] = ",".join(kinds)
    if inputs.accounting is not None:
        host, port = inputs.accounting
        pairs |= {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": host,
            "AccountingStoragePort": str(port),
            # The mark of a SlurmJob: slurmdbd knows by it which job a submission has become whose answer was lost.
            "AccountingStoreFlags": "job_extra",
            # Reads /proc, as proctrack/linuxproc does: sacct shows memory and CPU time.
            "JobAcctGatherType": "jobacct_gather/linux",
        }
    if inputs.metrics:
        pairs["MetricsType"] = "metrics/openmetrics"
    if any(one.checks for one in node_sets):
        pairs |= health_checks.KEYS
    pairs |= implied_keys(files)
    return [Directive(key, value) for key, value in pairs.items()]


def _token_keys(files: Mapping[str, str]) -> Iterable[str]:
    """Where the keys are by which tokens are checked."""
    yield f"jwt_key={naming.KEY_FOLDER}/{naming.JWT_KEY}"
    if key_set.FILE in files:
        yield f"jwks={naming.CONF_FOLDER}/{key_set.FILE}"


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("slinky_operator.slurm", "conf"),
        undefined=StrictUndefined,
        # The files are no markup; what goes in has been read word by word.
        autoescape=False,  # noqa: S701
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(f"{name}.j2")
