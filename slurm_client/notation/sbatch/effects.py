"""
What single options do, in order; what several of them mean together is in :mod:`slurm_client.notation.sbatch.rules`.

All functions take the draft and the option. A ValueError says what is wrong with its value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.notation import hostlist
from slurm_client.notation.sbatch import moments, values

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurm_client.notation.sbatch.draft import Draft
    from slurm_client.notation.sbatch.options import Directive

    Effect = Callable[[Draft, Directive], None]


def plain(name: str, read: Callable[[str], Any] = str) -> Effect:
    """Return what sets one field to the value."""

    def effect(draft: Draft, directive: Directive) -> None:
        draft.set(name, read(directive.value or ""), directive)

    return effect


def raw(read: Callable[[str], Any] = str) -> Effect:
    """Return what keeps the value until all options are known."""

    def effect(draft: Draft, directive: Directive) -> None:
        draft.raw[directive.option] = read(directive.value or "")

    return effect


def constant(name: str, value: Any) -> Effect:
    """Return what sets one field to the same value always."""
    return lambda draft, directive: draft.set(name, value, directive)


def flagged(word: str) -> Effect:
    """Return what adds one of the job's flags."""
    return lambda draft, directive: draft.flag(word, directive)


def refused(reason: str) -> Effect:
    """Return what refuses an option."""

    def effect(_: Draft, directive: Directive) -> None:
        raise directive.refused(reason)

    return effect


def idle(reason: str) -> Effect:
    """Return what notes that an option changes nothing about the job."""

    def effect(draft: Draft, directive: Directive) -> None:
        draft.idle[directive] = reason

    return effect


def path(text: str) -> str:
    """Return the name of a file; ``none`` is the null device."""
    return "/dev/null" if text.lower() == "none" else text


def chdir(draft: Draft, directive: Directive) -> None:
    """``--chdir``."""
    directory = directive.value or ""
    if not directory.startswith("/"):
        raise ValueError(f"{directory[:40]!r} would begin where sbatch runs, and nothing runs here: give a full path")
    draft.set("working_directory", directory, directive)


def when(name: str) -> Effect:
    """``--begin`` and ``--deadline``."""

    def effect(draft: Draft, directive: Directive) -> None:
        at = moments.moment(directive.value or "", now=draft.surroundings.now, zone=draft.surroundings.zone)
        draft.set(name, at, directive)

    return effect


def node_names(draft: Draft, directive: Directive) -> None:
    """``--nodelist`` and ``--exclude``, whose names are written out when the last of each is known."""
    text = directive.value or ""
    if "/" in text:
        raise ValueError(f"{text[:40]!r} is a file of names, which is read where sbatch runs: name the nodes")
    if hostlist.size(text) > hostlist.LIMIT:
        raise ValueError(f"{text[:40]!r} are more than {hostlist.LIMIT} nodes")
    draft.raw[directive.option] = text


def priority(draft: Draft, directive: Directive) -> None:
    """``--priority``."""
    text = directive.value or ""
    largest = 2**32 - 3
    draft.set("priority", largest if text.upper() == "TOP" else values.integer(text, least=0, most=largest), directive)


def nice(draft: Draft, directive: Directive) -> None:
    """``--nice``."""
    most = 2**31 - 3
    given = directive.value
    draft.set("nice", 100 if given is None else values.integer(given, least=-most, most=most), directive)


def requeue(draft: Draft, directive: Directive) -> None:
    """``--requeue``."""
    draft.set("requeue", value=True, source=directive)
    if directive.value:
        if directive.value.lower() != "expedite":
            raise ValueError(f"{directive.value[:40]!r} is not 'expedite'")
        draft.flag("EXPEDITED_REQUEUE", directive)


def switches(draft: Draft, directive: Directive) -> None:
    """``--switches``: ``count[@longest wait]``."""
    count, at, wait = (directive.value or "").partition("@")
    draft.set("switches", values.integer(count), directive)
    if at:
        draft.set("switch_wait", values.finite(wait), directive)


def memory_update(draft: Draft, directive: Directive) -> None:
    """``--mem-update``: ``percents@minutes``."""
    margin, at, delay = (directive.value or "").partition("@")
    if not at:
        raise ValueError("needs percents and a time, such as 10@5")
    draft.set("memory_update_margin", values.integer(margin, most=2**16 - 1), directive)
    minutes = -(-int(values.finite(delay).total_seconds()) // 60)
    draft.set("memory_update_delay", values.integer(str(minutes), most=2**16 - 1), directive)


def oom_kill_step(draft: Draft, directive: Directive) -> None:
    """``--oom-kill-step``."""
    given = directive.value
    draft.set("oom_kill_step", 1 if given is None else values.integer(given, least=0, most=1), directive)


def wait_all_nodes(draft: Draft, directive: Directive) -> None:
    """``--wait-all-nodes``."""
    draft.set("wait_all_nodes", values.integer(directive.value or "", least=0, most=1) == 1, directive)


def node_info(draft: Draft, directive: Directive) -> None:
    """``--extra-node-info``: sockets, cores and threads, each of which may be ``*``."""
    parts = (directive.value or "").split(":")
    if len(parts) > len(_LAYOUT):
        raise ValueError(f"{(directive.value or '')[:40]!r} is more than sockets:cores:threads")
    for name, part in zip(_LAYOUT, parts, strict=False):
        if part in {"", "*"}:
            continue
        if "-" in part:
            raise ValueError(f"{part[:40]!r} has a maximum, which Slurm does not keep: give the least alone")
        draft.set(name, values.integer(part), directive)


_LAYOUT = ("sockets_per_node", "cores_per_socket", "threads_per_core")
