"""The page about labels, annotations, finalizers and taints has every name of the code, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from hack.localkube.paths import PROJECT
from slinky_api import labels
from slinky_operator.nodeset.model.pods.scheduling import OUT_OF_REACH, TOLERATIONS

PAGE: Final = PROJECT / "docs" / "labels.md"
SOURCES: Final = ("api", "slinky_operator", "slurm_exporter")

NAME: Final = re.compile(
    r"(?:[a-z0-9-]+\.)*(?:slinky\.slurm\.net|sylabs\.io|kubernetes\.io|karpenter\.sh)/[A-Za-z](?:[\w.-]*\w)?"
)
IN_A_TEXT: Final = re.compile(rf"(?<![\w./-])(?:{NAME.pattern})(?![\w/-])")
VERSION: Final = re.compile(r"/v\d\w*$")
OF_0_1: Final = ("pod-delete", "pod-progressive-create")
"""Annotations that only Slinky 0.1 had: their prefix is the short one."""


def prefixes() -> dict[str, str]:
    return {name: value for name, value in vars(labels).items() if name.endswith("_PREFIX")}


def names_of(tree: ast.AST) -> Iterator[str]:
    """Names in a source: a prefix and a text, or a text by itself, or in the middle of a message."""
    known = prefixes()
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(left=ast.Name(id=prefix) | ast.Attribute(attr=prefix), right=ast.Constant(value=str(name))):
                if prefix in known and "=" not in name:
                    yield known[prefix] + name
            case ast.Constant(value=str(text)) if NAME.fullmatch(text):
                yield text
            case _:
                pass


def of_code() -> frozenset[str]:
    """Every name of the code, with those of labels that have no domain."""
    found = {labels.LABEL_REVISION}
    for path in (one for top in SOURCES for one in (PROJECT / top).rglob("*.py")):
        found |= set(names_of(ast.parse(path.read_text(encoding="utf-8"))))
    early = {labels.NODESET_PREFIX + name: labels.LEGACY_PREFIX + name for name in OF_0_1}
    return frozenset(early.get(name, name) for name in found if not VERSION.search(name))


def rows(text: str) -> Iterator[str]:
    """First columns of the page's tables."""
    for line in text.splitlines():
        if row := re.match(r"\| `([^`]+)` \|", line):
            yield row[1]


def test_the_page_has_every_name_once_and_no_other() -> None:
    told = list(rows(PAGE.read_text(encoding="utf-8")))
    code = of_code()
    assert not code - set(told), "missing on the page"
    assert not set(told) - code, "gone from the code"
    assert len(told) == len(set(told))


def test_every_constant_of_the_table_of_names_is_found() -> None:
    """So a name that is made in another way than with a prefix and a text does not slip through."""
    values = {
        value
        for name, value in vars(labels).items()
        if name.startswith(("ANNOTATION_", "FINALIZER_", "LABEL_", "NODE_HOSTNAME"))
    }
    assert len(values) > 50
    early = {labels.NODESET_PREFIX + name for name in OF_0_1}
    assert values - early <= of_code()


def test_every_toleration_is_told_with_its_effect() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for toleration in (*OUT_OF_REACH, *TOLERATIONS):
        assert f"| `{toleration['key']}` | {toleration['effect']} |" in text


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('A = labels.CLUSTER_PREFIX + "one"', ["cluster.slinky.slurm.net/one"]),
        ('A = TOKEN_PREFIX + "two"', ["token.slinky.slurm.net/two"]),
        ('a = {"kubectl.kubernetes.io/default-container": "x"}', ["kubectl.kubernetes.io/default-container"]),
        ('A = labels.SLURMJOB_PREFIX + "uid="', []),
        ('A = "a sentence about karpenter.sh/do-not-disrupt"', []),
    ],
)
def test_how_names_are_found(source: str, names: list[str]) -> None:
    assert list(names_of(ast.parse(source))) == names


def test_values_of_the_charts_are_names_of_the_page() -> None:
    """Templates and values of the charts write names as they are."""
    told = set(rows(PAGE.read_text(encoding="utf-8")))
    for path in charts():
        for name in IN_A_TEXT.findall(path.read_text(encoding="utf-8")):
            ours = "slinky.slurm.net/" in name and not VERSION.search(name)
            assert not ours or name in told, f"{path.relative_to(PROJECT)}: {name}"


def charts() -> Iterator[Path]:
    for path in (PROJECT / "helm").rglob("*"):
        if path.suffix in {".tpl", ".yaml"} and "crds" not in path.parts:
            yield path
