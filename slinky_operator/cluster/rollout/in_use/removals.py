"""What a change of the configuration would end, and what therefore stays for now. Pure.

Slurm ends jobs without asking when a line they depend on is removed (measured, or from Slurm's manual):

==========================  =======================================================================================
what is removed             what Slurm does with jobs
==========================  =======================================================================================
a partition                 running and pending jobs of it end as NODE_FAIL
a node outside Kubernetes   jobs on it end, and jobs that require it by name, wherever they run: see `static_nodes`
a license                   pending jobs start without it, or are held; reservations with it go: see `licenses`
room for nodes              with `MaxNodeCount` below the number of nodes, it drops some, and their jobs
room for job records        with `MaxJobCount` at or below their number, it drops some, even running jobs
keys of slurm.conf          some end or hang running jobs: see `slinky_operator.slurm.conf.keys.rules`
a kind of GRES              jobs that hold it lose it
a line of gres.conf         nodes with a job that holds such a device are drained
==========================  =======================================================================================

A partition is removed in two steps, so that no job can start between the query and the write: first it stays as
`State=INACTIVE`, which accepts none; once Slurm shows that, and neither a job nor a reservation in it, it is deleted.
The others have no such state. They are removed when no job uses them; a job that starts in the seconds until the change
is live is not prevented.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from slinky_api.conditions import Reason
from slinky_operator.cluster.rollout.in_use import licenses, static_nodes
from slinky_operator.cluster.rollout.in_use.licenses import Wish
from slinky_operator.cluster.rollout.in_use.parameters import JobsThere, keys_that_stay, quoted, users
from slinky_operator.cluster.rollout.in_use.static_nodes import Named, OnNodes
from slinky_operator.slurm.conf import ConfInputs, StaticNodeConf, future_nodes
from slinky_operator.slurm.conf.derive import GRES_CONF
from slinky_operator.slurm.conf.render import INACTIVE
from slinky_operator.slurm.conf.syntax.directives import TextProblem, parse_words
from slinky_operator.slurm.conf.syntax.parsed import ConfFiles, Line, Parsed
from slurm_client.notation import hostlist


@dataclass(frozen=True, slots=True)
class JobUse:
    """What one job that has not ended uses."""

    id: int
    partitions: frozenset[str]
    nodes: frozenset[str]
    gres: frozenset[str]
    """Kinds of generic resources it requested or has."""

    holding: bool = False
    """Whether it has started: its processes, running, stopped or ending, are on its nodes."""

    named: str = ""
    """Nodes that it requires or excludes by name, in Slurm's notation."""

    features: str = ""
    """The constraint of a pending job."""

    licenses: str = ""
    """The request of a pending job."""


@dataclass(frozen=True, slots=True)
class ReservationUse:
    """What one reservation uses."""

    name: str
    partition: str
    nodes: frozenset[str]
    licenses: str = ""


@dataclass(frozen=True, slots=True)
class Use:
    """Slurm's answer about what is in use."""

    asked_at: float
    """Monotonic seconds."""

    hash: str
    """Of the configuration that was live then."""

    jobs: tuple[JobUse, ...] = ()
    reservations: tuple[ReservationUse, ...] = ()
    records: int = 0
    """Job records, including finished jobs and each task of an array."""

    states: Mapping[str, str] = field(default_factory=dict)
    """State of each existing partition, queried before the jobs."""

    shortened: int = 0
    """Arrays of which Slurm has listed only the first tasks; each counts as one record."""

    why: str = ""
    """Why there is no answer; then everything counts as used."""

    cost: float = 0.0
    """Seconds the answer took."""

    @property
    def answered_at(self) -> float:
        """Monotonic seconds: an answer may take minutes, and an error is noted when it came."""
        return self.asked_at if self.why else self.asked_at + self.cost


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays although it is no longer wanted."""

    partitions: tuple[Line, ...] = ()
    node_sets: tuple[str, ...] = ()
    nodes: tuple[StaticNodeConf, ...] = ()
    max_node_count: int = 0
    """0 if the spec's may be used."""

    gres: tuple[str, ...] = ()
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys, in lower case, with their values in the running file."""

    files: Mapping[str, str] = field(default_factory=dict)
    reason: Reason = Reason.AS_EXPECTED
    why: tuple[str, ...] = ()
    """For people: what stays, and for which jobs and reservations."""

    asks: bool = False
    """Whether it depends on Slurm's answer."""

    def over(self, inputs: ConfInputs) -> ConfInputs:
        """The inputs with what stays."""
        taken = {name for one in self.nodes for name in one.names or ()}
        # What is wanted under a name that stays is added later, too.
        nodes = [one for one in inputs.nodes if taken.isdisjoint(one.names or ())]
        return replace(
            inputs,
            kept_partitions=self.partitions,
            kept_node_sets=self.node_sets,
            kept_gres=self.gres,
            nodes=(*nodes, *self.nodes),
            max_node_count=self.max_node_count or inputs.max_node_count,
            kept_files=self.files,
            kept_keys=self.keys,
        )


def keep(running: ConfFiles, wanted: ConfFiles, use: Use | None, nodes: int | None, *, live: bool) -> Kept:
    """Decide what stays.

    Parameters
    ----------
    running
        Files slurmctld has, or is about to get.
    wanted
        Files according to the spec alone.
    use
        Slurm's answer about `running`; `None` if it was not queried.
    nodes
        How many nodes Slurm has; `None` while it does not answer.
    live
        Whether `running` is what slurmctld has loaded.
    """
    if not running.files:
        return Kept()
    old, new = running.lines, wanted.lines
    answer = use if use is not None and not use.why else None
    silence = "" if use is None else use.why
    why: list[str] = []
    partitions, busy = _partitions(old, new, answer, why, silence, live=live)
    kept = [old.partitions[name] for name in partitions]
    items = {item for line in kept for item in line.nodes}
    named = frozenset(name for item in items - old.node_sets.keys() for name in hostlist.expand(item))
    lines = static_nodes.changed_lines(old, new)
    changed = static_nodes.lines_that_stay(lines, None if answer is None else _on_nodes(answer), why, silence, named)
    room = _room(old, new, nodes, why)
    changed_kinds = changed_gres(running, wanted)
    gres, files = _gres(running, changed_kinds, answer, why, silence)
    keys = keys_that_stay(old, new, None if answer is None else _there(answer), silence)
    why += keys.why
    wish = None if answer is None else _wish(answer)
    lowered = licenses.lowered(old, new)
    held = {**keys.values, **licenses.licenses_that_stay(lowered, old, new, wish, silence, why)}
    closed = live and any(old.partitions[name].state == INACTIVE for name in _gone(old, new))
    return Kept(
        partitions=tuple(kept),
        node_sets=tuple(sorted((items & old.node_sets.keys()) - new.node_sets.keys())),
        nodes=tuple(StaticNodeConf.of(key, old.nodes[key].words[1:]) for key in changed),
        max_node_count=room,
        gres=tuple(gres),
        keys=held,
        files=files,
        reason=_reason(
            partitions=busy,
            nodes=bool(changed) and answer is not None,
            room=bool(room) and nodes is not None,
            gres=bool(gres or files) and answer is not None,
            keys=bool(held) and answer is not None,
        ),
        why=tuple(why),
        asks=closed or bool(lines) or any(changed_kinds) or keys.asks or bool(lowered),
    )


def all_of_unknown(use: Use | None) -> Kept:
    """Decide what stays if nothing shows what slurmctld runs: all, as long as there is any job or reservation.

    Parameters
    ----------
    use
        Slurm's answer; `None` if it was not queried.
    """
    if use is None or use.why:
        until, reason = f"until Slurm says what is in use{quoted(use.why if use else '')}", Reason.CONFIG_PENDING
    elif use.jobs or use.reservations:
        using = users([job.id for job in use.jobs], [one.name for one in use.reservations])
        until, reason = f"until there is neither a job nor a reservation ({using})", Reason.WAITING_FOR_JOBS
    else:
        return Kept(asks=True)
    words = (
        "the ConfigMaps with what slurmctld runs are gone, and any change could end any job: it waits, and slurmctld's "
        f"pod stays as it is, {until}"
    )
    return Kept(reason=reason, why=(words,), asks=True)


def _room(old: Parsed, new: Parsed, nodes: int | None, why: list[str]) -> int:
    # Future nodes have no slurmd: what counts is the room beside them.
    before, after = (int(one.value("MaxNodeCount", "0")) - future_nodes.count_in(one) for one in (old, new))
    if after >= before or (nodes is not None and nodes <= after):
        return 0
    for_what = "until Slurm says how many nodes there are" if nodes is None else f"while there are {nodes} nodes"
    why.append(f"MaxNodeCount stays {before} {for_what}")
    return before


def _there(use: Use) -> JobsThere:
    return JobsThere(tuple(job.id for job in use.jobs if job.holding), use.records, use.shortened)


def _on_nodes(use: Use) -> Named:
    jobs = {job.id: OnNodes(job.nodes, job.named, job.features) for job in use.jobs}
    return Named(jobs, {one.name: one.nodes for one in use.reservations})


def _wish(use: Use) -> Wish:
    return Wish(
        {job.id: job.licenses for job in use.jobs if job.licenses},
        {one.name: one.licenses for one in use.reservations if one.licenses},
    )


def _reason(*, partitions: bool, nodes: bool, room: bool, gres: bool, keys: bool) -> Reason:
    """What is known to be in use; if nothing is, the change is merely in progress."""
    if partitions:
        return Reason.PARTITION_IN_USE
    if nodes or room:
        return Reason.NODES_IN_USE
    if gres:
        return Reason.GRES_IN_USE
    return Reason.WAITING_FOR_JOBS if keys else Reason.CONFIG_PENDING


def _gone(old: Parsed, new: Parsed) -> list[str]:
    # As in Slurm: names are case-sensitive.
    return [name for name in old.partitions if name not in new.partitions]


def _partitions(
    old: Parsed, new: Parsed, use: Use | None, why: list[str], silence: str, *, live: bool
) -> tuple[list[str], bool]:
    """Partitions that stay, and whether any of them is known to be in use, or open for jobs."""
    kept, busy = [], False
    for name in _gone(old, new):
        if not live or old.partitions[name].state != INACTIVE:
            why.append(f"partition {name} is closed to new jobs before it goes")
        elif use is None:
            why.append(f"partition {name} stays until Slurm says what is in it{quoted(silence)}")
        elif use.states.get(name, INACTIVE) != INACTIVE:
            # A flag, or an administrator, has opened it: a job could start in it after any check.
            close = f"`scontrol update PartitionName={name} State={INACTIVE}` closes it"
            busy = True
            why.append(f"partition {name} stays: Slurm shows it {use.states[name]}, though it is to be closed; {close}")
        else:
            jobs = [job.id for job in use.jobs if name in job.partitions]
            reservations = [one.name for one in use.reservations if one.partition == name]
            if not jobs and not reservations:
                continue
            busy = True
            why.append(f"partition {name} stays, closed to new jobs, for {users(jobs, reservations)}")
        kept.append(name)
    return kept, busy


def changed_gres(running: ConfFiles, wanted: ConfFiles) -> tuple[set[str], set[str]]:
    """Kinds that are removed from GresTypes, and kinds whose lines in gres.conf are removed or changed."""
    types = _items(running.lines.value("GresTypes")) - _items(wanted.lines.value("GresTypes"))
    before, after = (_gres_lines(one.files.get(GRES_CONF, "")) for one in (running, wanted))
    return types, {kind for kind, line in before if (kind, line) not in after}


def _gres(
    running: ConfFiles, changed: tuple[set[str], set[str]], use: Use | None, why: list[str], silence: str
) -> tuple[list[str], dict[str, str]]:
    types, lines = changed
    # One loop over the jobs: a text may name thousands of kinds.
    held: dict[str, list[int]] = {kind: [] for kind in types | lines}
    for job in use.jobs if use else ():
        for kind in {*job.gres, *([""] if job.gres else ())} & held.keys():
            held[kind].append(job.id)
    kept = [kind for kind in sorted(types) if use is None or held[kind]]
    stays = any(use is None or held[kind] for kind in lines)
    for kind in sorted({*kept, *(kind for kind in lines if use is None or held[kind])}):
        whom = users(held[kind], []) if use is not None else f"an answer of Slurm{quoted(silence)}"
        why.append(f"GRES {kind or 'of every kind'} stays as it is for {whom}")
    return kept, {GRES_CONF: running.files[GRES_CONF]} if stays else {}


def _gres_lines(text: str) -> set[tuple[str, str]]:
    """Kind and text of each line; the kind is empty for a line without one, which is about all."""
    found = set()
    for line in text.split("\n"):
        bare = line.split("#", 1)[0].strip()
        if not bare:
            continue
        words = parse_words(bare)
        names = [] if isinstance(words, TextProblem) else [word.value for word in words if word.folded == "name"]
        found.add((names[0] if names else "", " ".join(bare.split())))
    return found


def _items(text: str) -> set[str]:
    return {item for item in text.split(",") if item}
