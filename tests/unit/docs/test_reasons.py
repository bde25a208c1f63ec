"""Conditions, reasons and Events that the pages name are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slinky_operator.nodeset.health.node_states import WORDS
from slinky_operator.nodeset.model.pods.pod_facts import NODE_STATE

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("slinky_operator", "api", "slurm_exporter", "slurm_client")
PAGES = sorted((ROOT / "docs").glob("**/*.md"))

WORD = re.compile(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`")

OF_OTHERS = frozenset(
    {
        # Keys of slurm.conf and its family that the code passes on without looking at them.
        *("AllowAccounts", "AllowGroups", "AllowQos", "BlockName", "MaxNodes", "NoInAddrAny", "OverSubscribe"),
        "TotalNodes",
        # Slinky's and Kubernetes' own.
        *(
            "ScheduledUpdate",
            "OwnerReferencesPermissionEnforcement",
            "ReadWriteMany",
            "ReadWriteOncePod",
            "SchedulingGated",
        ),
        # JobSet's.
        "BlockingRecreate",
    }
)


@pytest.fixture(scope="module")
def known() -> frozenset[str]:
    """All capitalised words of the sources."""
    texts = (path.read_text() for top in SOURCES for path in (ROOT / top).rglob("*.py"))
    states = {f"{NODE_STATE}{word}" for word in WORDS.values()}
    return frozenset(word for text in texts for word in re.findall(r"\b[A-Z]\w+", text)) | OF_OTHERS | states


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_written_like_a_reason_is_in_the_code(page: Path, known: frozenset[str]) -> None:
    named = {word for line in page.read_text().splitlines() for word in WORD.findall(line)}
    assert named <= known, sorted(named - known)
