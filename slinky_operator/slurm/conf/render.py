"""Templates to files, and the hash over them.

Decisions this module makes, beside those of `merge`:

- Each NodeSet has a line `NodeSet=<name> Feature=<name>`, and, unless `partition.enabled` is false, a partition of its
  name over exactly its nodes.
- There is always a partition `all` over all nodes, so that a job without a partition has somewhere to go. It is the
  default unless another partition says `Default=YES`; it stays when one does, for removing a partition ends its jobs.
- A partition that is no longer wanted but in use can be kept: it is then `State=INACTIVE`, which lets jobs run on and
  takes none, and not the default. What is wanted wins over what is kept under the same name.
- A NodeSet that a partition of the Cluster names but that does not exist yet is declared all the same: Slurm takes
  a NodeSet without nodes, and a partition must not lose its nodes because of the order of two manifests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from slinky_api.errors import Problem
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.directives import Directive, TextProblem, parse_lines, parse_words
from slinky_operator.slurm.conf.inputs import ConfInputs, NodeSetConf, is_node_of
from slinky_operator.slurm.conf.merge import check_extra, merge
from slinky_operator.slurm.conf.parsed import Line, parse

SLURM_CONF: Final = "slurm.conf"
CGROUP_CONF: Final = "cgroup.conf"

ALL_PARTITION: Final = "all"

INACTIVE: Final = "INACTIVE"
"""State of a partition that takes no job, not even into its queue, while those in it run on."""

LARGEST: Final = 900_000
"""Bytes of all files together: a ConfigMap holds a mebibyte, keys and bookkeeping included."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A NodeSet whose part of the configuration cannot be used."""

    node_set: str
    problem: Problem
    """Field of the NodeSet, and reason."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """What came of the inputs."""

    files: Mapping[str, str]
    hash: str
    """Over all files, names included; the same for the same configuration, however it was ordered in the spec."""

    partitions: Mapping[str, str]
    """Every partition and what its `Nodes=` says, so that a running slurmctld can be compared."""

    node_sets: tuple[str, ...]
    """NodeSets that take part."""

    problems: tuple[Problem, ...] = ()
    """What is wrong with the Cluster's own part; with any, nothing of this may be applied."""

    refused: tuple[Refused, ...] = ()
    """NodeSets that were left out, or whose running lines were kept."""

    undefined: tuple[str, ...] = ()
    """NodeSets that partitions name and that do not exist."""


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    lines: tuple[str, ...]


def render(inputs: ConfInputs, running: str = "") -> Rendered:
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
    node_sets, refused = _admit(inputs, running)
    partitions, defaults = _cluster_partitions(inputs, problems)
    lines: list[str] = []
    shown: dict[str, str] = {}
    for one in node_sets:
        if one.kept is not None:
            lines += one.kept
            shown |= _partitions_in(one.kept)
            continue
        lines.append(f"NodeSet={one.name} Feature={one.name}")
        if one.partition is not None:
            words = parse_words(one.partition)
            assert not isinstance(words, TextProblem)  # noqa: S101 - `_admit` has looked
            lines.append(_partition_line(one.name, one.name, words))
            shown[one.name] = one.name
    known = {one.name for one in node_sets}
    undefined = sorted({name for one in inputs.partitions for name in one.node_sets if name not in known | {"ALL"}})
    declared = {*undefined, *inputs.kept_node_sets} - known
    lines += [f"NodeSet={name} Feature={name}" for name in sorted(declared)]
    nodes = _static_nodes(inputs, problems)
    main, rest = _keys(inputs, problems, node_sets)
    default = any(_is_default(line) for line in lines) or defaults
    everything = f"PartitionName={ALL_PARTITION} Nodes=ALL Default={'NO' if default else 'YES'} State=UP"
    shown |= {ALL_PARTITION: "ALL"} | {name: where for name, where, _ in partitions}
    kept = _kept_partitions(inputs, shown)
    shown |= {name: line.get("Nodes") for name, line in kept.items()}
    sections = [
        _Section("The cluster", tuple(map(str, main))),
        _Section("From extraConf", tuple(map(str, rest))),
        _Section("Nodes outside Kubernetes", tuple(nodes)),
        _Section("NodeSets and their partitions", tuple(lines)),
        _Section("Partitions", (everything, *(line for _, _, line in partitions))),
        _Section("No longer wanted, but in use", tuple(map(str, kept.values()))),
    ]
    files = {
        **inputs.files,
        SLURM_CONF: _template(SLURM_CONF).render(sections=[one for one in sections if one.lines]),
    }
    if CGROUP_CONF not in files:
        files[CGROUP_CONF] = _template(CGROUP_CONF).render(plugin="disabled")
    if sum(len(name) + len(text.encode()) for name, text in files.items()) > LARGEST:
        problems.append(Problem("spec.configFiles", f"all files together must have at most {LARGEST} bytes"))
    return Rendered(
        files=files,
        hash=hash_of(files),
        partitions=shown,
        node_sets=tuple(one.name for one in node_sets),
        problems=tuple(problems),
        refused=tuple(refused),
        undefined=tuple(undefined),
    )


def hash_of(files: Mapping[str, str]) -> str:
    """Hash over files and their names, in hexadecimal, 32 digits."""
    return hashlib.sha256(json.dumps(dict(files), sort_keys=True).encode()).hexdigest()[:32]


def lines_of(node_set: str, running: str) -> tuple[str, ...] | None:
    """A NodeSet's lines in a slurm.conf we have rendered, or `None` if it is not in there."""
    found = parse(running)
    declared, partition = found.node_sets.get(node_set), found.partitions.get(node_set)
    if declared is None:
        return None
    own = partition is not None and partition.get("Nodes") == node_set
    return (str(declared), str(partition)) if own else (str(declared),)


# NodeSets


def _admit(inputs: ConfInputs, running: str) -> tuple[list[NodeSetConf], list[Refused]]:
    """Decide which NodeSets take part, and with what."""
    admitted: list[NodeSetConf] = []
    refused: list[Refused] = []
    taken = {one.name.lower() for one in inputs.partitions} | {ALL_PARTITION}
    names = [one.name for one in inputs.node_sets]
    default = _default_owner(inputs, running)
    for one in inputs.node_sets:
        problem = _problem(one, names, taken, default)
        if problem is None:
            admitted.append(one)
            continue
        refused.append(Refused(one.name, problem))
        kept = lines_of(one.name, running)
        # Lines that clash with the Cluster's own would be refused by slurmctld, however long they have been there.
        if kept is not None and not any(name.lower() in taken for name in _partitions_in(kept)):
            if default != one.name:
                kept = tuple(map(_not_default, kept))
            admitted.append(NodeSetConf(one.name, gres=one.gres, kept=kept))
    return admitted, refused


def _problem(one: NodeSetConf, names: Sequence[str], taken: set[str], default: str | None) -> Problem | None:
    clash = next((other for other in names if is_node_of(one.name, other)), None)
    if clash is not None:
        return Problem("metadata.name", f"a node of NodeSet {clash} could have this name, which Slurm refuses")
    if one.partition is None:
        return None
    words = parse_words(one.partition, forbidden=("PartitionName", "Nodes", "NodeName", "NodeSet", "Include"))
    if isinstance(words, TextProblem):
        return Problem("spec.partition.config", words.reason)
    if one.name.lower() in taken:
        return Problem("spec.partition.enabled", "the Cluster has a partition of this name; set it to false")
    if _says_default(words) and default != one.name:
        return Problem("spec.partition.config", f"Default=YES: partition {default} is the default already")
    return None


def _default_owner(inputs: ConfInputs, running: str) -> str | None:
    """Name of the partition that may say Default=YES: the Cluster's, else the one that has it, else the first."""
    for partition in inputs.partitions:
        words = parse_words(partition.config)
        if not isinstance(words, TextProblem) and _says_default(words):
            return partition.name
    claims = []
    for one in inputs.node_sets:
        words = parse_words(one.partition or "")
        unusable = isinstance(words, TextProblem)
        if isinstance(words, TextProblem) or _says_default(words):
            # Where the new text is unusable, the running one goes on to count.
            if any(_is_default(line) for line in lines_of(one.name, running) or ()):
                return one.name
            claims += [] if unusable else [one.name]
    return claims[0] if claims else None


def _not_default(line: str) -> str:
    """The same line without a claim to be the default."""
    words = parse_words(line)
    if isinstance(words, TextProblem):
        return line
    return " ".join(str(Directive(word.key, "NO") if word.folded == "default" else word) for word in words)


def _says_default(words: Iterable[Directive]) -> bool:
    return any(word.folded == "default" and word.value.lower() in {"yes", "true", "1"} for word in words)


def _is_default(line: str) -> bool:
    words = parse_words(line)
    return not isinstance(words, TextProblem) and _says_default(words)


def _partitions_in(lines: Iterable[str]) -> dict[str, str]:
    """Partitions of rendered lines, with their nodes."""
    return {name: line.get("Nodes") for name, line in parse("\n".join(lines)).partitions.items()}


def _partition_line(name: str, nodes: str, words: Sequence[Directive]) -> str:
    # Stated where the user says nothing: a partition without it is down until somebody raises it.
    state = () if any(word.folded == "state" for word in words) else (Directive("State", "UP"),)
    where = (Directive("Nodes", nodes),) if nodes else ()
    return " ".join(map(str, (Directive("PartitionName", name), *where, *words, *state)))


# The Cluster's own


def _cluster_partitions(inputs: ConfInputs, problems: list[Problem]) -> tuple[list[tuple[str, str, str]], bool]:
    """Name, nodes and line of each partition, in order of name; and whether one of them is the default."""
    found: list[tuple[str, str, str]] = []
    names: set[str] = set()
    default: str | None = None
    indexed = sorted(enumerate(inputs.partitions), key=lambda pair: pair[1].name)
    for index, one in indexed:
        field = f"spec.partitions[{index}]"
        words = parse_words(one.config, forbidden=("PartitionName", "Nodes", "NodeName", "NodeSet", "Include"))
        if isinstance(words, TextProblem):
            problems.append(Problem(f"{field}.config", words.reason))
            continue
        if one.name.lower() in names or one.name.lower() in {ALL_PARTITION, "default"}:
            problems.append(Problem(f"{field}.name", f"there is a partition {one.name} already"))
            continue
        names.add(one.name.lower())
        if _says_default(words):
            if default is not None:
                problems.append(Problem(f"{field}.config", f"Default=YES: partition {default} is the default already"))
                continue
            default = one.name
        if any(character.isspace() or character in '"#=\\' for name in one.nodes for character in name):
            problems.append(Problem(f"{field}.nodes", "must be node names or hostlists"))
            continue
        nodes = ",".join((*sorted(set(one.node_sets)), *one.nodes))
        found.append((one.name, nodes, _partition_line(one.name, nodes, words)))
    return found, default is not None


def _kept_partitions(inputs: ConfInputs, wanted: Iterable[str]) -> dict[str, Line]:
    taken = {name.lower() for name in wanted}
    found = parse("\n".join(inputs.kept_partitions)).partitions
    return {
        name: line.replaced(State=INACTIVE, Default="NO")
        for name, line in sorted(found.items())
        if name.lower() not in taken
    }


def _static_nodes(inputs: ConfInputs, problems: list[Problem]) -> list[str]:
    lines = []
    wanted = {one.name for one in inputs.nodes}
    kept = sorted(parse("\n".join(inputs.kept_nodes)).nodes.items())
    for index, one in sorted(enumerate(inputs.nodes), key=lambda pair: pair[1].name):
        words = parse_words(one.config, forbidden=("NodeName", "NodeSet", "PartitionName", "Include"))
        if isinstance(words, TextProblem):
            problems.append(Problem(f"spec.nodes[{index}].config", words.reason))
            continue
        lines.append(" ".join(map(str, (Directive("NodeName", one.name), *words))))
    return [*lines, *(str(line) for name, line in kept if name not in wanted)]


def _keys(
    inputs: ConfInputs, problems: list[Problem], node_sets: Sequence[NodeSetConf]
) -> tuple[tuple[Directive, ...], tuple[Directive, ...]]:
    extra = parse_lines(inputs.extra_conf)
    trouble = extra if isinstance(extra, TextProblem) else check_extra(extra)
    if trouble is not None:
        problems.append(Problem("spec.extraConf", trouble.reason))
        extra = ()
    assert not isinstance(extra, TextProblem)  # noqa: S101 - replaced above
    return merge(_own_keys(inputs, node_sets), extra)


def _own_keys(inputs: ConfInputs, node_sets: Sequence[NodeSetConf]) -> list[Directive]:
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
        "AuthAltParameters": f"jwt_key={naming.KEY_FOLDER}/{naming.JWT_KEY}",
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
    kinds = sorted({item.split(":", 1)[0] for one in node_sets for item in one.gres.split(",") if item})
    if kinds:
        pairs["GresTypes"] = ",".join(kinds)
    if inputs.metrics:
        pairs["MetricsType"] = "metrics/openmetrics"
    return [Directive(key, value) for key, value in pairs.items()]


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
