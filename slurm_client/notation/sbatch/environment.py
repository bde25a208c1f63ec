"""
Options that say something to the environment of a job: ``--export``, ``--get-user-env``, ``--mem-bind``, ``--hint``.

sbatch passes on the variables and limits of the shell that runs it. No shell submits here: a variable whose value is
not given is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurm_client.notation.sbatch.words import one_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurm_client.notation.sbatch.draft import Draft
    from slurm_client.notation.sbatch.options import Directive

_BINDINGS = {"none": "NONE", "no": "NONE", "rank": "RANK", "local": "LOCAL"}


def memory_binding(draft: Draft, directive: Directive) -> None:
    """``--mem-bind``; ``srun`` in the script hears of it by its environment, as from sbatch."""
    words = re.split(r",(?![0-9])", (directive.value or "").lower())
    found: dict[str, None] = {}
    listed = ""
    for word in words:
        map_of = re.fullmatch(r"(map|mask)_?mem[:=]([0-9a-fx,*]+)", word)
        if word in {"v", "verbose"}:
            found["VERBOSE"] = None
        elif word in {"q", "quiet"}:
            found.pop("VERBOSE", None)
        elif word in {"p", "prefer"}:
            found["PREFER"] = None
        elif word in _BINDINGS or map_of:
            found = {each: None for each in found if each in {"VERBOSE", "PREFER"}}
            found[map_of[1].upper() if map_of else _BINDINGS[word]] = None
            listed = map_of[2] if map_of else ""
        else:
            raise ValueError(f"{word[:40]!r} is no binding of memory such as local or map_mem:0,1")
    draft.set("memory_binding_type", tuple(found), directive)
    if listed:
        draft.set("memory_binding", listed, directive)
    else:
        draft.unset("memory_binding")
    draft.variable("SLURM_MEM_BIND", ",".join(words), directive)


_HINTS: Mapping[str, Mapping[str, int | None]] = {
    "compute_bound": {"sockets_per_node": None, "cores_per_socket": None, "threads_per_core": 1},
    "memory_bound": {"cores_per_socket": 1, "threads_per_core": 1},
    "multithread": {"threads_per_core": None, "tasks_per_core": 2**16 - 1},
    "nomultithread": {"threads_per_core": 1},
}
"""What each hint sets, and what it takes away from those before it."""


def hint(draft: Draft, directive: Directive) -> None:
    """``--hint``."""
    words = (directive.value or "").lower().split(",")
    for word in words:
        for name, value in one_of(word, _HINTS).items():
            if value is None:
                draft.unset(name)
            else:
                draft.set(name, value, directive)
    draft.variable("SLURM_HINT", directive.value, directive)


def exported(draft: Draft, directive: Directive) -> None:
    """``--export``: there is no shell of a user here whose variables could be passed on."""
    text = directive.value or ""
    if text.upper() == "ALL":
        draft.exported = None
        draft.idle[directive] = "the variables of the shell that submits are passed on, and there is no such shell here"
        return
    if text.upper() == "NIL":
        draft.exported = (directive, {})
        return
    environment: dict[str, str] = {}
    if text.upper() != "NONE":
        if set("\"'") & set(text):
            raise ValueError("has quotes inside a value: set this variable in the script")
        # A word that is there twice says nothing new, and each ALL is as long as the environment.
        for word in filter(None, dict.fromkeys(text.split(","))):
            name, equals, value = word.partition("=")
            if name.upper() == "ALL" and not equals:
                environment.update(draft.surroundings.environment)
            elif equals and name:
                environment[name] = value
            elif name in draft.surroundings.environment:
                environment[name] = draft.surroundings.environment[name]
            else:
                raise ValueError(f"{name[:40]!r} would come from the shell that submits: write {name[:40]}=value")
    environment |= {"SLURM_GET_USER_ENV": "1", "SLURM_EXPORT_ENV": text}
    draft.exported = (directive, environment)


def user_environment(draft: Draft, directive: Directive) -> None:
    """``--get-user-env``."""
    draft.variable("SLURM_GET_USER_ENV", 1, directive)


def propagate(draft: Draft, directive: Directive) -> None:
    """``--propagate``: limits of the process that submits, which are none here."""
    if (directive.value or "ALL").upper() != "NONE":
        raise ValueError("limits of the shell that submits would be passed on, and there is no such shell here")
    draft.idle[directive] = "no limits are passed on in any case"
