"""The user's files and scripts, from the Cluster itself and from the ConfigMaps it names.

Each text keeps the field it came from, so that what is wrong with it is reported where the user can correct it.
Nothing is read here: ConfigMaps are given as they were last seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from slinky_api.errors import Problem
from slinky_api.v1alpha1.cluster.spec import ClusterSpec
from slinky_api.v1alpha1.common import ConfigMapRef
from slinky_operator.slurm.conf.sources.files import FileConf, check_files
from slinky_operator.slurm.conf.sources.scripts import KINDS, ScriptConf, check_scripts

LARGEST: Final = 900_000
"""Bytes of all files together: a ConfigMap holds a mebibyte, keys and bookkeeping included."""

MOST_KEYS: Final = 64
"""Keys of one ConfigMap, as many as there may be files in one field of the spec."""

MOST_SOURCES: Final = 64
"""ConfigMaps that one Cluster may name: each is watched, and held in memory."""


@dataclass(frozen=True, slots=True)
class TextSource:
    """A ConfigMap of the user's as it was last read."""

    name: str
    exists: bool
    texts: Mapping[str, str] = field(default_factory=dict)
    """By key."""

    not_text: tuple[str, ...] = ()
    """Keys whose value is no text in UTF-8."""

    refused: str = ""
    """Why nothing of it was kept; empty for one that was."""


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
    """Names of the ConfigMaps that the Cluster's configuration is made from, each once, `MOST_SOURCES` at most."""
    refs = [*spec.config_file_refs, *(ref for kind in KINDS for ref in kind.of(spec)[1])]
    keys = [spec.auth.jwks_ref.name] if spec.auth.jwks_ref is not None and not spec.external else []
    return tuple(dict.fromkeys([*keys, *(ref.name for ref in refs)]))[:MOST_SOURCES]


def refusal(data: Mapping[str, str], binary: Mapping[str, str]) -> str:
    """Why a ConfigMap is not to be kept at all; empty for one that is. Its texts alone could not be applied."""
    keys, size = len(data) + len(binary), sum(map(len, data.values())) + sum(map(len, binary.values()))
    if keys > MOST_KEYS:
        return f"has {keys} keys, and may have {MOST_KEYS}"
    if size > 2 * LARGEST:
        return f"has {size} characters, and all files together may have {LARGEST} bytes"
    return ""


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
    known = frozenset(names_of_sources(spec))

    def texts(name: str, inline: Mapping[str, str], refs_name: str, refs: Sequence[ConfigMapRef]) -> Iterator[FileConf]:
        for key, text in sorted(inline.items()):
            yield FileConf(key, text, f"spec.{name}[{key}]")
        for index, ref in enumerate(refs):
            where = f"spec.{refs_name}[{index}]"
            source = sources.get(ref.name)
            if ref.name not in known:
                problems.append(
                    Problem(where, f"ConfigMap {ref.name} is one more than the {MOST_SOURCES} there may be")
                )
                continue
            if source is not None and source.refused:
                problems.append(Problem(where, f"ConfigMap {ref.name} {source.refused}"))
                continue
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
    yield from ((script.file_name, script.file) for script in texts.scripts)
