"""
What callers may hand over beside plain types: names, texts, words and references, each with its rule.

They are annotations of calls; :mod:`slurm_client.operations.checking` refuses what does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, SupportsIndex, TypeAlias
from urllib.parse import unquote

from slurm_client.models import Job, JobId, JobState

__all__ = [
    "BaseState",
    "Hosts",
    "HttpMethod",
    "JobRef",
    "Listed",
    "Name",
    "NodeName",
    "NodeNames",
    "PartitionStateWord",
    "Rule",
    "Signal",
    "Text",
    "UrlPath",
]


@dataclass(frozen=True, slots=True)
class Rule:
    """What a text must be beside a text."""

    wanted: str
    allows: Callable[[str], bool]


_NOT_IN_NAMES = re.compile(r"[/?#,\[\]\s\x00-\x1f\x7f]")


def _names_one(text: str) -> bool:
    return bool(text) and text not in {".", ".."} and _NOT_IN_NAMES.search(text) is None


def _names_one_node(text: str) -> bool:
    return _names_one(text) and text.upper() != "ALL"


NodeName: TypeAlias = Annotated[str, Rule("the name of one node", _names_one_node)]
"""Name of one node. Slurm takes ``ALL`` for every node, whatever is done to it; lists have commas and brackets."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """A hostlist, or a list of such; its check returns the names."""

    wanted: str = "a hostlist or a list of such"


NodeNames: TypeAlias = Annotated[str | Iterable[str], Hosts()]
"""Names of nodes: a hostlist (``w-[0-3],w-7``), or a list of names and hostlists. Each name is a :data:`NodeName`."""

Name: TypeAlias = Annotated[str, Rule("one name", _names_one)]
"""Name of one partition, reservation, user or account; an empty one would mean any."""

Text: TypeAlias = Annotated[str, Rule("a text that is not empty", lambda text: bool(text.strip()))]
"""A text that must say something."""

Listed: TypeAlias = Annotated[
    str, Rule("a text that is not empty and has no comma", lambda text: bool(text.strip()) and "," not in text)
]
"""A text that is sent as one of a list with commas."""

_SIGNAL = re.compile(
    "(SIG)?(HUP|INT|QUIT|ABRT|KILL|ALRM|TERM|USR1|USR2|URG|CONT|STOP|TSTP|TTIN|TTOU)|[1-9]|[1-5][0-9]|6[0-4]"
)

Signal: TypeAlias = Annotated[
    str, Rule("a signal such as TERM, SIGUSR1 or 15", lambda text: _SIGNAL.fullmatch(text.upper()) is not None)
]
"""A signal that Slurm knows: for any other, slurmrestd reports an error *and* cancels the job (24.11 and 26.05)."""

BaseState: TypeAlias = Annotated[
    str, Rule(f"one of {', '.join(sorted(JobState.BASES))}", lambda text: text.upper() in JobState.BASES)
]
"""
A base state of jobs.

For a word that it does not know, slurmrestd reports an error, drops the filter and ends the jobs that are left: all of
them, where there is no other filter (24.11 and 26.05).
"""

PartitionStateWord: TypeAlias = Annotated[
    str, Rule("UP, DOWN, DRAIN or INACTIVE", {"UP", "DOWN", "DRAIN", "INACTIVE"}.__contains__)
]
"""A state of partitions: for any other, slurmrestd reports an error *and* writes the partition without it (26.05)."""

JobRef: TypeAlias = Job | JobId | SupportsIndex | str
"""A job: as it was read, or by its id: a whole number of any type, or as text ``7``, ``7_3`` or ``7+1``."""

HttpMethod: TypeAlias = Annotated[str, Rule("GET, POST or DELETE", {"GET", "POST", "DELETE"}.__contains__)]
"""A method that slurmrestd serves."""

_PATH = re.compile(r"(/(\{version\}|[-A-Za-z0-9._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+)+/?")


def _is_path(text: str) -> bool:
    # Servers on the way may take such parts out: what arrives is another path.
    return _PATH.fullmatch(text) is not None and {".", ".."}.isdisjoint(unquote(text).split("/"))


UrlPath: TypeAlias = Annotated[
    str, Rule("a path such as /slurm/{version}/nodes/, quoted and without a query", _is_path)
]
"""A path on a server, which cannot become another one on the way."""
