"""Values of slurmrestd's fields as the values of sbatch's options.

All functions raise ValueError with what is wrong. Numbers may be written plainly, or as slurmrestd shows them, with
``set`` and ``infinite``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

LONGEST: Final = 4096
"""Most characters of a text."""

MOST: Final = 65_536
"""Most names in a list, and most characters of all of them."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_GPU: Final = "gres/gpu"


def text(value: Any) -> str:
    """One line of text."""
    if not isinstance(value, str) or not value:
        raise ValueError("must be a text")
    if len(value) > LONGEST:
        raise ValueError(f"has more than {LONGEST} characters")
    if _CONTROL.search(value):
        raise ValueError("must be one line, without control characters")
    return value


def boolean(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")  # noqa: TRY004 - a wrong value, whatever its type
    return value


def integer(value: Any) -> str:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise ValueError("must be a whole number")
    return str(value)


def count(value: Any) -> str:
    """A whole number from 0 on."""
    found = integer(value)
    if value < 0:
        raise ValueError("must not be negative")
    return found


def number(value: Any) -> str:
    """A number that slurmrestd marks as set."""
    found = _unmarked(value)
    if found is None:
        raise ValueError("has no limit, which sbatch cannot say here")
    return found


def minutes(value: Any) -> str:
    """Minutes, or no limit."""
    return _unmarked(value) or "UNLIMITED"


def _unmarked(value: Any) -> str | None:
    """Return a number without its marks; None for one that is infinite."""
    if not isinstance(value, Mapping):
        return count(value)
    if value.keys() - {"set", "infinite", "number"}:
        raise ValueError("must be a whole number, or one with set, infinite and number")
    if value.get("infinite") is True:
        return None
    if value.get("set") is not True:
        raise ValueError("is a number that is not set: leave it out")
    return count(value.get("number"))


def seconds(value: Any) -> str:
    """Seconds, as a length of time."""
    return f"0:{count(value)}"


def moment(value: Any) -> str:
    """Seconds since 1970, as a point in time."""
    found = number(value)
    if not 7 <= len(found) <= 12:  # noqa: PLR2004 - what sbatch takes
        raise ValueError("must be a time in seconds since 1970")
    return f"uts{found}"


def words(value: Any, known: Iterable[str]) -> tuple[str, ...]:
    """Words out of a list, each once."""
    listed = [value] if isinstance(value, str) else value
    known = tuple(known)
    if not isinstance(listed, list) or not listed or len(listed) > MOST:
        raise ValueError(f"must be a list of {', '.join(known)}")
    for word in listed:
        if word not in known:
            raise ValueError(f"{str(word)[:40]!r} is none of {', '.join(known)}")
    return tuple(dict.fromkeys(listed))


def names(value: Any) -> str:
    """Names of nodes, in a list or in Slurm's notation."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not listed or not all(isinstance(name, str) and name for name in listed):
        raise ValueError("must be a list of names of nodes")
    found = ",".join(listed)
    if len(found) > MOST:
        raise ValueError(f"has more than {MOST} characters")
    if _CONTROL.search(found):
        raise ValueError("must be names of nodes, without control characters")
    return found


def gpus(value: Any) -> str:
    """GPUs, of which sbatch counts those of a job and of a socket."""
    return ",".join(_after(f"{_GPU}:", word) for word in text(value).split(","))


def of_gpu(value: Any) -> str:
    """A number for each GPU: ``gres/gpu:4``."""
    found = _after(f"{_GPU}:", text(value))
    if not re.fullmatch("[0-9]{1,15}", found):
        raise ValueError(f"must be such as {_GPU}:4")
    return found


def frequency(value: Any) -> str:
    """The clock of GPUs: ``gpu:high``."""
    return _after("gpu:", text(value))


def _after(beginning: str, word: str) -> str:
    word = word.replace(f"{_GPU}=", f"{_GPU}:", 1)
    if not word.startswith(beginning) or word == beginning:
        raise ValueError(f"must begin with {beginning}: sbatch has no option for another resource here")
    return word.removeprefix(beginning)


_MAIL: Final = {
    "ARRAY_TASKS": "ARRAY_TASKS", "BEGIN": "BEGIN", "END": "END", "FAIL": "FAIL",
    "INVALID_DEPENDENCY": "INVALID_DEPEND", "REQUEUE": "REQUEUE", "STAGE_OUT": "STAGE_OUT", "TIME=100%": "TIME_LIMIT",
    "TIME=90%": "TIME_LIMIT_90", "TIME=80%": "TIME_LIMIT_80", "TIME=50%": "TIME_LIMIT_50",
}  # fmt: skip


def mail(value: Any) -> str:
    """When to send mail."""
    return ",".join(_MAIL[word] for word in words(value, _MAIL))


def open_mode(value: Any) -> str:
    """What becomes of output that is there already."""
    (found,) = _single(value, ("APPEND", "TRUNCATE"))
    return found.lower()


def profile(value: Any) -> str:
    """What is profiled."""
    return ",".join(words(value, ("ENERGY", "LUSTRE", "NETWORK", "NONE", "TASK"))).lower()


def _single(value: Any, known: Iterable[str]) -> tuple[str]:
    known = tuple(known)
    found = words(value, known)
    if len(found) > 1:
        raise ValueError(f"must be one of {', '.join(known)}")
    return (found[0],)


def signal(given: Mapping[str, Any]) -> str:
    """The signal before the time limit, how long before, and to whom."""
    flags = words(given.get("kill_warning_flags", []) or ["none"], ("BATCH_JOB", "RESERVATION_JOB", "none"))
    letters = "".join(letter for word, letter in (("RESERVATION_JOB", "R"), ("BATCH_JOB", "B")) if word in flags)
    delay = f"@{number(given['kill_warning_delay'])}" if "kill_warning_delay" in given else ""
    return f"{letters}{':' if letters else ''}{text(given['kill_warning_signal'])}{delay}"


def switches(given: Mapping[str, Any]) -> str:
    """Most switches, and how long to wait for so few."""
    wait = f"@{seconds(given['wait_for_switch'])}" if "wait_for_switch" in given else ""
    return f"{number(given['required_switches'])}{wait}"


def memory_update(given: Mapping[str, Any]) -> str:
    """Percents above what is used, and minutes, after which memory is cut to that."""
    if "memory_update_delay" not in given:
        raise ValueError("means nothing without memory_update_delay")
    return f"{count(given['memory_update_margin'])}@{count(given['memory_update_delay'])}"


def memory_binding(given: Mapping[str, Any]) -> str:
    """How memory is bound."""
    known = ("LOCAL", "MAP", "MASK", "NONE", "PREFER", "RANK", "VERBOSE")
    found = words(given["memory_binding_type"], known)
    listed = text(given["memory_binding"]) if "memory_binding" in given else ""
    if bool(listed) != bool({"MAP", "MASK"} & set(found)):
        raise ValueError("must be MAP or MASK where memory_binding lists something, and only there")
    return ",".join(f"{word.lower()}_mem:{listed}" if word in {"MAP", "MASK"} else word.lower() for word in found)
