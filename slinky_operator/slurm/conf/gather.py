"""The user's files and scripts, from the Cluster itself and from the ConfigMaps it names.

Each text keeps the field it came from, so that whatever is wrong with it is told where the user can mend it. Nothing is
read here: ConfigMaps are given as they were last seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from slinky_api.errors import Problem
from slinky_api.v1alpha1.cluster_spec import ClusterSpec
from slinky_api.v1alpha1.common import ConfigMapRef
from slinky_operator.slurm.conf.files import FileConf, check_files
from slinky_operator.slurm.conf.scripts import KINDS, ScriptConf, check_scripts

LARGEST: Final = 900_000
"""Bytes of all files together: a ConfigMap holds a mebibyte, keys and bookkeeping included."""


@dataclass(frozen=True, slots=True)
class TextSource:
    """A ConfigMap of the user's as it was last read."""

    name: str
    exists: bool
    texts: Mapping[str, str] = field(default_factory=dict)
    """By key."""

    not_text: tuple[str, ...] = ()
    """Keys whose value is no text in UTF-8."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """All there is."""

    files: tuple[FileConf, ...] = ()
    scripts: tuple[ScriptConf, ...] = ()
    problems: tuple[Problem, ...] = ()
    """What keeps a text from being one."""

    missing: tuple[Problem, ...] = ()
    """ConfigMaps that do not exist."""


def names_of_sources(spec: ClusterSpec) -> tuple[str, ...]:
    """Names of all ConfigMaps that the Cluster's configuration is made from, each once."""
    refs = [*spec.config_file_refs, *(ref for kind in KINDS for ref in kind.of(spec)[1])]
    return tuple(dict.fromkeys(ref.name for ref in refs))


def gather(spec: ClusterSpec, sources: Mapping[str, TextSource]) -> Gathered:
    """Put together what the spec holds and what its ConfigMaps hold.

    Parameters
    ----------
    spec
        Of a managed Cluster.
    sources
        ConfigMaps by name; one that is not in here is taken for missing.
    """
    problems: list[Problem] = []
    missing: list[Problem] = []

    def texts(name: str, inline: Mapping[str, str], refs_name: str, refs: Sequence[ConfigMapRef]) -> Iterator[FileConf]:
        for key, text in sorted(inline.items()):
            yield FileConf(key, text, f"spec.{name}[{key}]")
        for index, ref in enumerate(refs):
            where = f"spec.{refs_name}[{index}]"
            source = sources.get(ref.name)
            if source is None or not source.exists:
                missing.append(Problem(where, f"there is no ConfigMap {ref.name}"))
                continue
            label = f"ConfigMap {ref.name}"
            problems.extend(Problem(where, f"{label}: {key} is not text in UTF-8") for key in source.not_text)
            for key, text in sorted(source.texts.items()):
                yield FileConf(key, text, where, label)

    files = tuple(texts("configFiles", spec.config_files, "configFileRefs", spec.config_file_refs))
    scripts = tuple(
        ScriptConf(kind, file)
        for kind in KINDS
        for file in texts(kind.field, kind.of(spec)[0], kind.refs, kind.of(spec)[1])
    )
    return Gathered(files, scripts, tuple(problems), tuple(missing))


def contents(texts: Gathered) -> dict[str, str]:
    """Content of each file beside slurm.conf; of several of the same name the first."""
    return {name: file.text for name, file in reversed(list(_named(texts)))}


def check(texts: Gathered) -> list[Problem]:
    """Find what is wrong with files and scripts, each and together."""
    problems = [*texts.missing, *texts.problems, *check_files(texts.files), *check_scripts(texts.scripts)]
    first: dict[str, FileConf] = {}
    for name, file in _named(texts):
        other = first.setdefault(name, file)
        if other is not file:
            where = f"{other.field} ({other.source})" if other.source else other.field
            problems.append(file.problem(f"{name} is given by {where} already"))
    return problems


def check_size(files: Mapping[str, str], texts: Gathered) -> list[Problem]:
    """Find out whether all files fit into one ConfigMap, ours included.

    Parameters
    ----------
    files
        All, by name.
    texts
        Those of the user's: the biggest of them is named.
    """
    sizes = {name: len(name) + len(text.encode()) for name, text in files.items()}
    total = sum(sizes.values())
    if total <= LARGEST:
        return []
    given = dict(_named(texts))
    biggest = max(sizes, key=lambda name: (name in given, sizes[name]))
    reason = f"{biggest} has {sizes[biggest]} bytes; all files together have {total}, and may have {LARGEST}"
    return [given[biggest].problem(reason) if biggest in given else Problem("spec", reason)]


def _named(texts: Gathered) -> Iterator[tuple[str, FileConf]]:
    yield from ((one.name, one) for one in texts.files)
    yield from ((one.file_name, one.file) for one in texts.scripts)
