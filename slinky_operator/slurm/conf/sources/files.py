"""Files of the user's beside slurm.conf: their names, what is checked in them, and what they ask of slurm.conf.

Slurm finds them by name beside slurm.conf, and slurmctld hands some of them on to slurmd and to clients. Their content
is the user's; a real slurmctld judges it before it goes live. Here stands what that would not notice, or notices too
late:

- `Include`: slurmctld distributes only files beside slurm.conf, included by their bare name. For any other it tries for
  a minute, or shows lines of a file in its log that were not meant to be seen.
- A plugin that reads its file from here is named in slurm.conf, unless the user names it: else the file is not read.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slinky_api.errors import Problem
from slinky_operator.slurm.conf.syntax.directives import logical_lines
from slinky_operator.slurm.tokens import key_set

OWN: Final = frozenset({"slurm.conf", "slurmdbd.conf", key_set.FILE})
"""Files that the operator writes."""

LONGEST_NAME: Final = 250
"""Characters of a file's name: slurmd appends `.new` while it writes its copy, and the file system stops at 255."""

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
# Tabs, line ends of both kinds, and form feeds are found in files that people write; the rest is a mistake or worse.
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]")
_INCLUDE: Final = re.compile(r"\s*include\s+(?P<file>\S+)", re.IGNORECASE | re.ASCII)
_OTHER_SYNTAX: Final = (".lua", ".yaml", ".yml", ".json")
_PLUGSTACK: Final = "plugstack.conf"
# Where the images have SPANK plugins and their lines for plugstack.conf.
_PLUGSTACK_ROOTS: Final = ("/usr/", "/opt/", "/etc/slurm/")


@dataclass(frozen=True, slots=True)
class FileConf:
    """A file as it was given."""

    name: str
    text: str
    field: str
    """Where the user has given it, for instance `spec.configFiles[gres.conf]`."""

    source: str = ""
    """The ConfigMap that holds it, for messages; empty for one in the spec itself."""

    def problem(self, reason: str) -> Problem:
        """What is wrong with it."""
        return Problem(self.field, f"{self.source}: {reason}" if self.source else reason)


def check_files(files: Sequence[FileConf]) -> list[Problem]:
    """Find what is wrong with the user's files, taken together.

    Parameters
    ----------
    files
        All that are to stand beside slurm.conf, scripts apart.
    """
    problems = [one.problem(reason) for one in files if (reason := name_problem(one.name)) is not None]
    problems += [one.problem(reason) for one in files if (reason := text_problem(one)) is not None]
    names = {one.name for one in files}
    for one in files:
        if one.name.endswith(_OTHER_SYNTAX):
            continue
        for included in _includes(one.text):
            reason = _include_problem(one.name, included, names)
            if reason is not None:
                problems.append(one.problem(reason))
    return problems


def name_problem(name: str) -> str | None:
    """Why a file cannot have this name."""
    if name in OWN:
        instead = "auth.jwksRef" if name == key_set.FILE else "extraConf"
        return f"{name} is written by the operator; use {instead}"
    if _NAME.fullmatch(name) is None:
        return f"{name!r} must be letters, digits, '_', '.' and '-', not beginning with '.' or '-'"
    if len(name) > LONGEST_NAME:
        return f"{name[:40]}… must have at most {LONGEST_NAME} characters"
    return None


def text_problem(file: FileConf) -> str | None:
    """Why this text cannot be a file."""
    found = _CONTROL.search(file.text)
    if found is None:
        return None
    line = file.text.count("\n", 0, found.start()) + 1
    return f"{file.name} has the control character {found[0]!r} in line {line}"


def implied_keys(files: Mapping[str, str]) -> dict[str, str]:
    """What slurm.conf says where the user does not, so that these files are read."""
    keys = {}
    # With a topology.yaml slurmctld looks at neither the key nor topology.conf.
    if "topology.conf" in files and "topology.yaml" not in files:
        words = files["topology.conf"].lower()
        keys["TopologyPlugin"] = "topology/block" if "blockname" in words else "topology/tree"
    if "job_submit.lua" in files:
        keys["JobSubmitPlugins"] = "lua"
    if "cli_filter.lua" in files:
        keys["CliFilterPlugins"] = "cli_filter/lua"
    return keys


def _includes(text: str) -> list[str]:
    # Only a joined line could have the word where the text has not.
    if "\\" not in text and "include" not in text.lower():
        return []
    found = (_INCLUDE.match(line) for _, line in logical_lines(text))
    return [match["file"] for match in found if match is not None]


def _include_problem(name: str, included: str, names: set[str]) -> str | None:
    if "/" not in included:
        if included in names:
            return None
        return f"{name} includes {included}, which is not given"
    if name == _PLUGSTACK and posixpath.normpath(included).startswith(_PLUGSTACK_ROOTS):
        return None
    return f"{name} includes {included}: only files that are given here can be included, by name without a path"
