"""Which limit holds a job back, how much of it is used and by whom. Pure.

Slurm's reason says what kind of limit it is, not whose, nor how high. Both follow from the associations and QOS of
slurmdbd, and the use from the jobs that run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.screen.blocks import Line, Mood, Part, Row, table
from kubectl_slurm.screen.words import clip, number
from slurm_client.cli.text import length, memory
from slurm_client.models import INFINITE, Job
from slurm_client.models.database.accounts import Association
from slurm_client.notation.tres import Tres

MOST_USERS: Final = 5
DEEPEST: Final = 50
"""Accounts above each other that are looked at."""

_REASON: Final = re.compile(
    r"(?P<where>Assoc|QOS)(?P<kind>Grp|Max|Min)"
    r"(?P<what>Cpu|CPU|Memory|Mem|Node|GRES|Gres|Billing|License|Energy|BB|SubmitJobs?|Jobs?|Wall)"
    r"(?:Duration)?(?P<run>Run)?(?P<minutes>Minutes|Mins)?"
    r"(?P<per>PerJob|PerNode|PerUser|PerAccount|PerAcct)?(?:Limit|NotSatisfied)?"
)
_TRES: Final = {
    "cpu": "cpu", "memory": "mem", "mem": "mem", "node": "node", "gres": "gres", "billing": "billing",
    "license": "license", "energy": "energy", "bb": "bb",
}  # fmt: skip
_UNITS: Final = {"cpu": "CPUs", "mem": "memory", "node": "nodes", "gres": "generic resources", "jobs": "jobs"}


@dataclass(frozen=True, slots=True)
class Kind:
    """What kind of limit a reason names.

    Attributes
    ----------
    of_qos
        Whether it is a limit of a QOS, and not of an association.
    what
        ``cpu``, ``mem``, ``node``, ``gres``, ``jobs``, ``submit``, ``wall`` …
    field
        The limit's name in the client's models; empty for one that cannot be compared here.
    per
        For whom it is counted: ``group``, ``user``, ``account`` or ``job``.
    """

    of_qos: bool
    what: str
    field: str
    per: str


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a limit, how high it is, and whose jobs count."""

    text: str
    limit: Any
    counts: Callable[[Job], bool]


def kind(reason: str) -> Kind | None:
    """The kind of limit that one of Slurm's words names; None if it names none."""
    match = _REASON.fullmatch(reason)
    if match is None:
        return None
    of_qos, group = match["where"] == "QOS", match["kind"] == "Grp"
    word = match["what"].lower().removesuffix("s") if match["what"] not in {"GRES", "Gres"} else "gres"
    what = _TRES.get(word) or {"job": "jobs", "submitjob": "submit", "wall": "wall"}.get(word, word)
    suffix = {None: "", "PerJob": "job", "PerNode": "node", "PerUser": "user", "PerAccount": "account"}
    per = (
        "group"
        if group
        else suffix.get(match["per"], "account") or ("job" if what == "wall" or match["kind"] == "Min" else "user")
    )
    return Kind(of_qos, what, _field(match, what, per, of_qos=of_qos), per)


def _field(match: re.Match[str], what: str, per: str, *, of_qos: bool) -> str:
    least = match["kind"] == "Min"
    if match["minutes"] or what == "submit" or (least and not of_qos):
        return ""
    if per == "group":
        return {"wall": "group_wall", "jobs": "group_jobs"}.get(what, "group_tres")
    if what == "jobs":
        return f"max_jobs_per_{per}" if of_qos else "max_jobs"
    if not of_qos and per == "user":
        per = "job"
    return "min_tres_per_job" if least else "max_wall_per_job" if what == "wall" else f"max_tres_per_{per}"


def parts(job: Job, reason: str, slurm: SlurmPicture) -> tuple[Part, ...]:
    """What to say of the limit behind a reason; nothing if the reason is none."""
    found = kind(reason)
    if found is None:
        return ()
    holders = _holders(job, found, slurm)
    running = [one for one in slurm.jobs if one.holds_nodes]
    if not holders:
        known = (slurm.qos if found.of_qos else slurm.associations) is not None
        text = (
            "No limit of this kind is in slurmdbd any more: Slurm looks again at its next scheduling cycle."
            if known and found.field
            else "How high the limit is cannot be told: slurmdbd was not asked, or does not say."
        )
        counts = _counts(job, found, "")
        return (Line(text, Mood.QUIET), *_users(found, [one for one in running if counts(one)]))
    best = max(holders, key=lambda one: _excess(job, found, one, running))
    mine = [one for one in running if best.counts(one)]
    limit, used, asks = (
        _amount(best.limit, found.what),
        sum(_use(one, found.what) for one in mine),
        _use(job, found.what),
    )
    if found.per == "job" or found.what == "wall":
        wall = length(job.time_limit) if found.what == "wall" else _shown(asks, found.what)
        bound = "wants at least" if found.field == "min_tres_per_job" else "allows"
        allowed = length(best.limit) if found.what == "wall" else _shown(limit, found.what)
        return (Line(f"{best.text} {bound} {allowed} for each job; this one asks for {wall}.", Mood.BAD),)
    text = (
        f"{best.text} may use {_shown(limit, found.what)} at a time: {_shown(used, found.what)} in use by"
        f" {number(len(mine), 'job')}, and this job asks for {_shown(asks, found.what)} more."
    )
    never = asks > limit
    tail = (Line("It asks for more than the limit: it will not start as it is.", Mood.BAD),) if never else ()
    return (Line(text, Mood.WARNING), *tail, *_users(found, mine))


def _holders(job: Job, found: Kind, slurm: SlurmPicture) -> list[Holder]:
    if not found.field:
        return []
    if found.of_qos:
        names = {job.qos, *(one.qos for one in slurm.partitions if one.name in job.partition.split(","))} - {""}
        return [
            Holder(f"QOS {clip(qos.name, 60)}{_for(job, found)}", limit, _counts(job, found, qos.name))
            for qos in slurm.qos or ()
            if qos.name in names and _is_set(limit := getattr(qos.limits, found.field, None), found.what)
        ]
    holders = []
    for association, below in _lineage(job, slurm.associations or ()):
        limit = getattr(association.limits, found.field, None)
        if _is_set(limit, found.what):
            who = f"user {clip(association.user, 40)} in account" if association.user else "account"
            name = f"{who} {clip(association.account, 60)}"
            holders.append(Holder(name[0].upper() + name[1:], limit, _of(association, below)))
    return holders


def _for(job: Job, found: Kind) -> str:
    whose = {"user": f" for user {clip(job.user, 40)}", "account": f" for account {clip(job.account, 40)}"}
    return whose.get(found.per, "")


def _counts(job: Job, found: Kind, qos: str) -> Callable[[Job], bool]:
    """Whose running jobs count against a limit of a QOS, or against one that is not known."""

    def counts(one: Job) -> bool:
        if found.of_qos and one.qos != (qos or job.qos):
            return False
        if found.per == "user" and one.user != job.user:
            return False
        return one.account == job.account or (found.of_qos and found.per != "account")

    return counts


def _of(association: Association, below: frozenset[str]) -> Callable[[Job], bool]:
    if association.user:
        return lambda one: (one.user, one.account) == (association.user, association.account)
    return lambda one: one.account in below


def _lineage(job: Job, associations: Sequence[Association]) -> list[tuple[Association, frozenset[str]]]:
    """The associations that bind a job, its own first, each with the accounts below it."""
    accounts = {one.account: one for one in associations if not one.user and not one.partition}
    children: dict[str, list[str]] = {}
    for one in accounts.values():
        children.setdefault(one.parent_account, []).append(one.account)
    own = [one for one in associations if (one.user, one.account) == (job.user, job.account)]
    found = [(one, frozenset({one.account})) for one in own if one.partition in {"", job.partition}]
    name = job.account
    for _ in range(DEEPEST):
        account = accounts.get(name)
        if account is None:
            break
        found.append((account, _below(name, children)))
        name = account.parent_account
    return found


def _below(name: str, children: dict[str, list[str]]) -> frozenset[str]:
    found, waiting = set[str](), [name]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += children.get(each, ())
    return frozenset(found)


def _is_set(limit: Any, what: str) -> bool:
    if limit is None or limit is INFINITE:
        return False
    return not isinstance(limit, Tres) or any(one.type == what for one in limit)


def _amount(limit: Any, what: str) -> int:
    """A limit as a number."""
    if isinstance(limit, Tres):
        return min((one.count for one in limit if one.type == what), default=0)
    return limit if isinstance(limit, int) else 0


def _use(job: Job, what: str) -> int:
    """What a job counts for."""
    if what == "jobs":
        return 1
    try:
        tres = Tres.parse(job.tres_allocated if job.holds_nodes else job.tres_requested)
    except ValueError:
        tres = Tres()
    if what == "gres":
        return tres.gpus or sum(one.count for one in tres if one.type == "gres" and not one.subtype)
    known = {"cpu": job.cpus, "node": job.node_count}
    return tres[what] or known.get(what) or 0


def _excess(job: Job, found: Kind, holder: Holder, running: Iterable[Job]) -> float:
    """By how much a job would exceed a limit."""
    if found.what == "wall":
        return 0.0
    used = sum(_use(one, found.what) for one in running if holder.counts(one)) if found.per != "job" else 0
    return used + _use(job, found.what) - _amount(holder.limit, found.what)


def _shown(count: int, what: str) -> str:
    return (memory(count) or "0 MiB") if what == "mem" else f"{count} {_UNITS.get(what, what)}"


def _users(found: Kind, jobs: Sequence[Job]) -> tuple[Part, ...]:
    """Who uses a limit, those first who use most."""
    if not jobs:
        return ()
    amounts: dict[tuple[str, str], list[Job]] = {}
    for one in jobs:
        amounts.setdefault((one.user or "(hidden)", one.account), []).append(one)
    ordered = sorted(amounts.items(), key=lambda each: (-sum(_use(one, found.what) for one in each[1]), each[0]))
    rows = [
        Row((user, account, str(len(some)), _shown(sum(_use(one, found.what) for one in some), found.what)))
        for (user, account), some in ordered
    ]
    head = ("USED BY", "ACCOUNT", "JOBS", "AMOUNT")
    return (table(head, rows, "users", numbers=("JOBS", "AMOUNT"), most=MOST_USERS),)
