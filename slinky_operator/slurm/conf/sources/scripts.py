"""Prolog and epilog scripts: from name and text to a file beside slurm.conf and a line in it.

Measured with Slurm 24.11 and 26.05: slurmctld distributes to configless slurmds the scripts that are beside slurm.conf
and named there without a path, whatever their mode; each slurmd has a new one 0.1 s after a reconfigure, runs them in
the order of their lines, and a running job ends with the new epilog. If slurmctld does not have a script that
slurm.conf names, the node of the first job is drained. slurmctld's own scripts need a path, and to be executable.

Slurm starts a script as a program: without `#!` that fails, and the node is drained.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slinky_api.errors import Problem
from slinky_api.v1alpha1.cluster.spec import ClusterSpec
from slinky_api.v1alpha1.common import ConfigMapRef
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.sources.files import LONGEST_NAME, FileConf, name_problem
from slinky_operator.slurm.conf.syntax.directives import Directive

_SHEBANG: Final = re.compile(r"#![ \t]*/\S+([ \t]+\S.*)?", re.ASCII)


Given = tuple[Mapping[str, str], Sequence[ConfigMapRef]]
"""Scripts in the spec by name, and ConfigMaps with further ones."""


@dataclass(frozen=True, slots=True)
class ScriptKind:
    """Who runs a script, and when."""

    key: str
    """Key in slurm.conf; may occur several times."""

    of: Callable[[ClusterSpec], Given]
    by_slurmctld: bool = False

    @property
    def field(self) -> str:
        """Field of the spec with scripts by name."""
        return f"{self.key[0].lower()}{self.key[1:]}Scripts"

    @property
    def refs(self) -> str:
        """Field of the spec with ConfigMaps."""
        return self.field.removesuffix("s") + "Refs"

    @property
    def prefix(self) -> str:
        """What the names of their files begin with; no prefix begins another."""
        return f"{self.key.lower()}-"


KINDS: Final = (
    ScriptKind("Prolog", lambda spec: (spec.prolog_scripts, spec.prolog_script_refs)),
    ScriptKind("Epilog", lambda spec: (spec.epilog_scripts, spec.epilog_script_refs)),
    ScriptKind(
        "PrologSlurmctld",
        lambda spec: (spec.prolog_slurmctld_scripts, spec.prolog_slurmctld_script_refs),
        by_slurmctld=True,
    ),
    ScriptKind(
        "EpilogSlurmctld",
        lambda spec: (spec.epilog_slurmctld_scripts, spec.epilog_slurmctld_script_refs),
        by_slurmctld=True,
    ),
)
"""In the order of their lines."""

SCRIPT_KEYS: Final = frozenset(kind.key.lower() for kind in KINDS)


@dataclass(frozen=True, slots=True)
class ScriptConf:
    """A script as it was given."""

    kind: ScriptKind
    file: FileConf
    """With the name the user has given it."""

    @property
    def file_name(self) -> str:
        """Name of its file beside slurm.conf."""
        return f"{self.kind.prefix}{self.file.name}"

    @property
    def directive(self) -> Directive:
        """Its line in slurm.conf."""
        folder = f"{naming.CONF_FOLDER}/" if self.kind.by_slurmctld else ""
        return Directive(self.kind.key, f"{folder}{self.file_name}")


def in_order(scripts: Iterable[ScriptConf]) -> tuple[ScriptConf, ...]:
    """Scripts in the order in which they run: by kind, then by name."""
    return tuple(sorted(scripts, key=lambda one: (KINDS.index(one.kind), one.file.name)))


def check_scripts(scripts: Sequence[ScriptConf]) -> list[Problem]:
    """Find what is wrong with each script; whether two have the same name is looked at where all files are."""
    return [script.file.problem(reason) for script in scripts if (reason := _problem(script)) is not None]


def check_named(words: Iterable[Directive], files: Iterable[str]) -> str | None:
    """Whether the scripts that `extraConf` names are there, as far as the operator can see.

    A name without a path is one of the files here: slurmctld hands it on to slurmd. A path is one of the user's own
    image, and taken on trust, but for the folder that slurmctld has from us.
    """
    known = set(files)
    folder = f"{naming.CONF_FOLDER}/"
    for word in words:
        if word.folded not in SCRIPT_KEYS | {"taskprolog", "taskepilog"}:
            continue
        by_slurmctld = word.folded.endswith("slurmctld")
        if "/" not in word.value:
            if by_slurmctld:
                return f"{word.key}={word.value} needs a path; use the field of that name in the spec"
            if word.value not in known:
                return f"{word.key}={word.value} is not given; use spec.configFiles, or a path within the image"
        elif not word.value.startswith("/"):
            return f"{word.key}={word.value} must be a whole path, or the name of a file of spec.configFiles"
        elif by_slurmctld and word.value.startswith(folder) and word.value.removeprefix(folder) not in known:
            return f"{word.key}={word.value} is not given"
    return None


def _problem(script: ScriptConf) -> str | None:
    name, text = script.file.name, script.file.text
    first = text.split("\n", 1)[0]
    reasons = {
        f"must have at most {LONGEST_NAME - len(script.kind.prefix)} characters": len(script.file_name) > LONGEST_NAME,
        "is empty": not text.strip(),
        "has a NUL character": "\x00" in text,
        "has lines that end in CR LF, so that its interpreter would not be found": first.endswith("\r"),
        "must begin with a line #! and the whole path of an interpreter, such as #!/bin/sh": not _SHEBANG.fullmatch(
            first
        ),
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    return name_problem(name) or (None if reason is None else f"script {name} {reason}")
