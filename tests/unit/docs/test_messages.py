"""Messages that pages quote are those that the code makes, as far as its texts show it.

Formats of messages have places for names, and pages have names there, so words are compared in fours: three plain words
in a row of which the code knows none in their surroundings are a sentence that it does not say. What Slurm, Kubernetes
and other programs say is listed here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import pytest

from hack.localkube.paths import PROJECT
from tests.unit.docs.test_links import prose

PAGES = (
    *("accounting", "accounts", "alerts", "autoscaling", "configuration", "containers", "hybrid", "identity"),
    *("install", "job-logs", "jobs", "kubernetes-nodes", "login", "metrics", "node-labels", "tokens"),
    *("troubleshooting", "upgrade"),
)

SOURCES = ("api", "containers", "hack", "helm", "slinky_operator", "slurm_client", "slurm_exporter")
TEXTS = frozenset({".json", ".pl", ".py", ".sh", ".tpl", ".txt", ".yaml", ""})
"""Endings of files that are read as they are: scripts, templates, schemas with the messages of rules."""

SHORTEST = 5
"""Words of the shortest quotation that is taken for a message."""
TOGETHER, MISSING = 4, 3

WORD = re.compile(r"[A-Za-z0-9_/.'\[\]-]*[A-Za-z0-9_'\]]")
PLAIN = re.compile(r"[a-z]{2,}")
QUOTED = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
PLACE = re.compile("\0|{[^{}\n]*}|%s")
PLACE_IN_SCRIPT = re.compile(r"\$\{?\w+\}?|%s|\\n|\{\{[^}]*\}\}")
SAMPLES = frozenset({"people", "physics", "nodeset", "pods", "text"})
"""Plain words that pages have in the place of a name, and one of which the code has two forms."""
CODE = re.compile(
    r"^(kubectl|helm|python|sacct|sacctmgr|salloc|sbatch|scancel|scontrol|sinfo|squeue|srun|ldap_\w+"
    r"|metrics\.exporter:|\[bash|slurm_operator_\S+) "
)
"""How commands, settings and expressions begin."""

OF_OTHERS = (
    # helm, and templates of charts.
    "exists and cannot be imported into the current release",
    "error calling lookup",
    "the CRDs in the cluster are older than this chart, and lack these fields",
    # Slurm.
    "Rejecting authentication of user nobody or group nobody",
    "Parsing error at unrecognized key",
    'error: Bad value "banana" for MaxTime',
    "cannot create cgroup context for",
    "options are mutually exclusive",
    "/run/slurm exists but is owned by",
    "not in group permitted to use this partition",
    "Incomplete job state save file",
    "state, incompatible version",
    "Duplicated NodeName compute-1 in the config file",
    "May be reserved for other job",
    "or reserved for jobs in higher priority partitions",
    "Duplicated NodeName gpu-0 in the config file",
    "Temporary failure in name resolution",
    "group not permitted to use this partition",
    "failed to load configs",
    "lookup failure for node",
    "find node record for",
    "has authentication error",
    "Access denied by pam_slurm_adopt: you have no active jobs on this node",
    "slurm: another user has changed the container of this step",
    # MariaDB.
    "Access denied for user",
    "connect to server on",
    "Lost connection to server during query",
    # Kubernetes, its scheduler and its kubelets.
    "cannot delete resource",
    "no matches for kind",
    "is forbidden: exceeded quota",
    "nodes are available",
    "pod has unbound immediate PersistentVolumeClaims",
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
    "storage is (re)initializing",
    "Cannot evict pod as it would violate the pod's disruption budget",
    # HTTP clients and shells.
    "All connection attempts failed",
    "No such file or directory",
    "mount `proc` to `proc`",
    "jq: not found",
    "cgroups in hybrid mode not supported",
    # A reason that an administrator wrote.
    "disk is full",
)
"""Sentences that pages quote, alone or within ours."""


def literal(node: ast.AST) -> str | None:
    """Return the text of an expression, with a mark where it puts a value in; None if it is not a text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(one.value) if isinstance(one, ast.Constant) else "\0" for one in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = literal(node.left), literal(node.right)
        return None if sides == (None, None) else "".join("\0" if side is None else side for side in sides)
    return None


def texts(path: Path) -> Iterator[str]:
    """Texts in a file of source."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from (text for node in ast.walk(ast.parse(content)) if (text := literal(node)))
    else:
        yield PLACE_IN_SCRIPT.sub("\0", content)


def pieces(text: str) -> Iterator[tuple[str, ...]]:
    """Words of a text between the values that are put into it."""
    return (tuple(WORD.findall(piece)) for piece in PLACE.split(text))


def rows(words: tuple[str, ...], length: int) -> Iterator[tuple[str, ...]]:
    """Words in rows of a length; one row if they are fewer."""
    return (words[at : at + length] for at in range(max(1, len(words) - length + 1)))


@dataclass(frozen=True, slots=True)
class Said:
    """What the code says.

    Attributes
    ----------
    rows
        Four words in a row, or all those between two values, if they are fewer.
    cut
        Two or three words in a row, as they are left where a page leaves words out.
    """

    rows: frozenset[tuple[str, ...]]
    cut: frozenset[tuple[str, ...]]

    @classmethod
    def by(cls, found: Iterable[str]) -> Self:
        """Take what these texts say."""
        words = {piece for text in found for piece in pieces(text)}
        long = {piece for piece in words if len(piece) >= TOGETHER}
        cut = {row for piece in long for length in range(2, TOGETHER) for row in rows(piece, length)}
        return cls(frozenset(row for piece in words for row in rows(piece, TOGETHER)), frozenset(cut))

    def covers(self, words: tuple[str, ...]) -> set[int]:
        """Return the places of words that the code says in this surrounding."""
        covered: set[int] = set()
        for length in range(2, TOGETHER + 1):
            for at in range(len(words) - length + 1):
                row = words[at : at + length]
                at_an_end = at == 0 or at + length == len(words)
                if row in self.rows or (at_an_end and row in self.cut):
                    covered.update(range(at, at + length))
        return covered


@cache
def said() -> Said:
    """Return what the code says."""
    files = (path for top in SOURCES for path in (PROJECT / top).rglob("*") if "__pycache__" not in path.parts)
    return Said.by(text for path in files if path.is_file() and path.suffix in TEXTS for text in texts(path))


def unsaid(message: str, known: Said) -> Iterator[str]:
    """Runs of plain words in a message that the code does not say."""
    for other in OF_OTHERS:
        message = message.replace(other, "…")
    for piece in message.split("…"):
        words = tuple(WORD.findall(piece))
        covered = known.covers(words)
        run: list[str] = []
        for at, word in enumerate((*words, "")):
            if at not in covered and PLAIN.fullmatch(word) and word not in SAMPLES:
                run.append(word)
                continue
            if len(run) >= MISSING:
                yield " ".join(run)
            run = []


def messages(page: Path) -> Iterator[tuple[int, str]]:
    """What a page quotes and is long enough for a message, with the number of its line."""
    for number, line in prose(page):
        for _, quoted in QUOTED.findall(line):
            if len(WORD.findall(quoted)) >= SHORTEST and not CODE.match(quoted):
                yield number, quoted


@pytest.mark.parametrize("name", PAGES)
def test_messages_that_a_page_quotes_are_in_the_code(name: str) -> None:
    page = PROJECT / "docs" / f"{name}.md"
    wrong = [
        f"{page.name}:{number}: the code does not say `{words}`: {quoted}"
        for number, quoted in messages(page)
        for words in unsaid(quoted, said())
    ]
    assert not wrong, "\n".join(wrong)


def test_a_message_in_other_words_than_the_codes_is_told() -> None:
    code = 'f"pod {name} waits: its image {image} is not on Node {node} yet; " + f"look at the Events of {name}"'
    found = literal(ast.parse(code, mode="eval").body)
    assert found is not None
    known = Said.by([found])
    assert not list(unsaid("pod compute-0 waits: its image a/b:1 is not on Node a yet; look at the Events of …", known))
    assert list(unsaid("pod compute-0 waits: image a/b:1 has not been pulled; look at the Events of x", known)) == [
        "has not been pulled"
    ]
    assert not list(unsaid("pod compute-0 waits: its image a/b:1: No such file or directory", known))


def test_every_sentence_of_others_is_on_a_page() -> None:
    quoted = "\n".join(message for name in PAGES for _, message in messages(PROJECT / "docs" / f"{name}.md"))
    assert [other for other in OF_OTHERS if other not in quoted] == []
