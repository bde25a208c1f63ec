"""
Options whose values are words out of a list: ``--exclusive=user``, ``--mail-type=END,FAIL``, ``--signal=B:USR1@60``.

All functions take the draft and the option. A ValueError says what is wrong with its value.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurm_client.notation.sbatch.draft import Draft
    from slurm_client.notation.sbatch.options import Directive


def one_of(word: str, known: Mapping[str, Any]) -> Any:
    """Return what a word means."""
    if word.lower() not in known:
        raise ValueError(f"{word[:40]!r} is none of {', '.join(known)}")
    return known[word.lower()]


def exclusive(draft: Draft, directive: Directive) -> None:
    """``--exclusive``."""
    draft.set("shared", one_of(directive.value or "exclusive", _EXCLUSIVE), directive)


_EXCLUSIVE = {
    "exclusive": "none", "allocation": "none", "oversubscribe": "oversubscribe", "user": "user", "mcs": "mcs",
    "topo": "topo",
}  # fmt: skip


_FREQUENCY = re.compile(r"(?:(?:task|energy|network|filesystem)=)?[0-9]{1,9}", re.IGNORECASE)
_SPREAD = r"(?:\*|block|cyclic|fcyclic)"
_DISTRIBUTION = re.compile(
    rf"plane=[1-9][0-9]{{0,8}}|(?:no)?pack|(?:arbitrary|hostfile|(?:\*|block|cyclic)(?::{_SPREAD}){{0,2}})(?:,(?:no)?pack)?",
    re.IGNORECASE,
)


def frequencies(text: str) -> str:
    """``--acctg-freq``: seconds between samples, of all or of each kind."""
    for word in text.split(","):
        if not _FREQUENCY.fullmatch(word):
            raise ValueError(f"{word[:40]!r} is no frequency such as 30 or task=30")
    return text


def distribution(text: str) -> str:
    """``--distribution``."""
    if not _DISTRIBUTION.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no distribution such as block:cyclic, plane=4 or arbitrary")
    return text


def no_kill(draft: Draft, directive: Directive) -> None:
    """``--no-kill``."""
    kills = one_of(directive.value or "set", {"set": False, "off": True, "no": True})
    if kills:
        draft.unset("kill_on_node_fail")
        draft.idle[directive] = "a job ends when one of its nodes fails, unless --no-kill says otherwise"
    else:
        draft.set("kill_on_node_fail", value=False, source=directive)


def open_mode(draft: Draft, directive: Directive) -> None:
    """``--open-mode``: only the first letter counts."""
    draft.set("open_mode", one_of((directive.value or "")[:1], {"a": "APPEND", "t": "TRUNCATE"}), directive)


def invalid_dependency(draft: Draft, directive: Directive) -> None:
    """``--kill-on-invalid-dep``."""
    pair = ("KILL_INVALID_DEPENDENCY", "NO_KILL_INVALID_DEPENDENCY")
    draft.flag(one_of(directive.value or "", {"yes": pair[0], "no": pair[1]}), directive, instead_of=pair)


def gres_flags(draft: Draft, directive: Directive) -> None:
    """``--gres-flags``."""
    known = {"disable-binding": "GRES_BINDING_DISABLED", "enforce-binding": "GRES_BINDING_ENFORCED"}
    words = [word.lower() for word in (directive.value or "").split(",") if word]
    for word in words:
        if word in {"multiple-tasks-per-sharing", "one-task-per-sharing"}:
            raise ValueError(f"slurmrestd has no word for {word}")
        if word not in known:
            raise ValueError(f"{word[:40]!r} is none of {', '.join(known)}")
    if len(set(words)) > 1:
        raise ValueError("disable-binding and enforce-binding contradict each other")
    for word in words:
        draft.flag(known[word], directive, instead_of=tuple(known.values()))


_MAIL = {
    "ARRAY_TASKS": ("ARRAY_TASKS",),
    "BEGIN": ("BEGIN",),
    "END": ("END",),
    "FAIL": ("FAIL",),
    "INVALID_DEPEND": ("INVALID_DEPENDENCY",),
    "REQUEUE": ("REQUEUE",),
    "STAGE_OUT": ("STAGE_OUT",),
    "TIME_LIMIT": ("TIME=100%",),
    "TIME_LIMIT_90": ("TIME=90%",),
    "TIME_LIMIT_80": ("TIME=80%",),
    "TIME_LIMIT_50": ("TIME=50%",),
    "ALL": ("INVALID_DEPENDENCY", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT"),
}


def mail_type(draft: Draft, directive: Directive) -> None:
    """``--mail-type``."""
    words = [word.upper() for word in (directive.value or "").split(",") if word]
    if "NONE" in words:
        draft.unset("mail_type")
        draft.idle[directive] = "no mail is what a job has without it"
        return
    for word in words or ["nothing"]:
        if word not in _MAIL:
            raise ValueError(f"{word[:40]!r} is none of NONE, {', '.join(_MAIL)}")
    draft.set("mail_type", tuple(dict.fromkeys(each for word in words for each in _MAIL[word])), directive)


def profile(draft: Draft, directive: Directive) -> None:
    """``--profile``."""
    known = ("ENERGY", "LUSTRE", "NETWORK", "TASK")
    words = [word.upper() for word in (directive.value or "").split(",") if word]
    if words == ["ALL"]:
        words = list(known)
    if words != ["NONE"] and (not words or not set(words) <= set(known)):
        raise ValueError(f"{(directive.value or '')[:40]!r} is none of all, none, {', '.join(known).lower()}")
    draft.set("profile", tuple(dict.fromkeys(words)), directive)


_SIGNAL = re.compile(r"(?P<flags>[RB]{0,2}):?(?P<signal>[^@]+)(?:@(?P<time>[0-9]{1,5}))?", re.IGNORECASE)
_SIGNALS = frozenset(
    "HUP INT QUIT ABRT KILL ALRM TERM USR1 USR2 URG CONT STOP TSTP TTIN TTOU XCPU".split()  # noqa: SIM905 - a list of names
)


def signal(draft: Draft, directive: Directive) -> None:
    """``--signal``: ``[R][B:]SIGNAL[@seconds]``."""
    match = _SIGNAL.fullmatch(directive.value or "")
    name = "" if match is None else match["signal"].strip().upper().removeprefix("SIG")
    if match is None or (name not in _SIGNALS and not re.fullmatch(r"[1-9]|[1-5][0-9]|6[0-4]", name)):
        raise ValueError(f"{(directive.value or '')[:40]!r} is no signal with its time, such as B:USR1@60")
    seconds = int(match["time"] or 60)
    if seconds > 2**16 - 1:
        raise ValueError(f"{seconds} s are more than {2**16 - 1}")
    flags = match["flags"].upper()
    draft.set("warning_signal", name, directive)
    draft.set("warning_time", timedelta(seconds=seconds), directive)
    words = tuple(word for letter, word in (("B", "BATCH_JOB"), ("R", "RESERVATION_JOB")) if letter in flags)
    if words:
        draft.set("warning_flags", words, directive)
    else:
        draft.unset("warning_flags")
