"""Every key of slurm.conf is classified, and the documentation shows the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hack.documents.tables.key_rules import PAGE, with_table
from slinky_operator.slurm.conf.keys.daemons import RESTART_KEYS
from slinky_operator.slurm.conf.keys.merge import check_extra
from slinky_operator.slurm.conf.keys.rules import RULES, Kind, keys_of, rule_of
from slinky_operator.slurm.conf.syntax.directives import parse_lines

KEYS = {path.stem: path.read_text().split() for path in sorted(Path(__file__).parent.glob("*.txt"))}
"""What slurm.conf may hold in each release: the parser's own list."""


@pytest.mark.parametrize("release", KEYS)
def test_every_key_of_a_release_has_a_rule(release: str) -> None:
    assert len(KEYS[release]) > 200
    assert [key for key in KEYS[release] if rule_of(key) is None] == []


def test_no_rule_is_about_a_key_that_no_release_has_and_none_is_there_twice() -> None:
    known = {key.lower() for keys in KEYS.values() for key in keys} | {"include"}
    found = Counter(key.lower() for rule in RULES for key in rule.keys)
    assert found.keys() == known
    assert {key for key, count in found.items() if count > 1} == set()


def test_the_documented_table_is_the_one_that_is_used() -> None:
    page = PAGE.read_text()
    assert page == with_table(page), "python -m hack.documents.tables.key_rules"


@pytest.mark.parametrize("key", sorted(keys_of(Kind.OWN, Kind.LINE, Kind.FIXED)))
def test_what_is_refused_is_refused_by_name(key: str) -> None:
    words = parse_lines(f"{key}=1")
    assert isinstance(words, tuple)
    assert key in str(check_extra(words, ()))


def test_what_needs_a_restart_is_the_operators_or_said_to() -> None:
    assert {key.name.lower() for key in RESTART_KEYS} <= keys_of(Kind.RESTART, Kind.OWN)


@pytest.mark.parametrize(
    ("key", "before", "after", "waits"),
    [
        ("SelectTypeParameters", "", "CR_Core_Memory", False),
        ("SelectTypeParameters", "", "CR_Core", True),
        ("SelectTypeParameters", "CR_CPU", "CR_Core", False),
        ("SelectTypeParameters", "CR_CPU", "", True),
        ("MaxStepCount", "", "39999", True),
        ("MaxStepCount", "100", "", False),
        ("OverTimeLimit", "5", "", True),
        ("OverTimeLimit", "5", "UNLIMITED", False),
        ("OverTimeLimit", "UNLIMITED", "60", True),
        ("JobAcctGatherParams", "UsePss", "UsePss,OverMemoryKill", True),
        ("JobAcctGatherParams", "OverMemoryKill", "", False),
        ("PreemptMode", "", "SUSPEND,GANG", False),
        ("PreemptMode", "SUSPEND,GANG", "", True),
        ("ProctrackType", "proctrack/linuxproc", "proctrack/pgid", True),
        ("NamespaceType", "", "namespace/none", False),
        ("PrologFlags", "", "Alloc", True),
    ],
)
def test_only_changes_that_harm_jobs_wait(key: str, before: str, after: str, *, waits: bool) -> None:
    rule = rule_of(key)
    assert rule is not None
    assert rule.kind is Kind.WAITS
    assert rule.concerns(before, after) is waits
