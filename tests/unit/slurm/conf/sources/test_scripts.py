"""Prolog and epilog scripts: which line each becomes, and what Slurm would notice only when a job starts."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.slurm.conf.sources.scripts import KINDS
from tests.unit.slurm.conf.goldens import PROLOG, Case


def problems(spec: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one.field, one.reason) for one in Case(spec).render().problems]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        (" \n\n", "empty"),
        ("echo hello\n", "#!"),
        ("\n#!/bin/sh\n", "#!"),
        ("\ufeff#!/bin/sh\n", "#!"),
        ("#!sh\n", "#!"),
        ("#! \n", "#!"),
        ("#!/bin/sh\r\necho\r\n", "CR LF"),
        ("#!/bin/sh\n\x00", "NUL"),
    ],
)
@pytest.mark.parametrize("kind", KINDS, ids=[kind.key for kind in KINDS])
def test_a_script_that_cannot_be_started_is_refused(kind: Any, text: str, word: str) -> None:
    ((field, reason),) = problems({kind.field: {"mine": text}})
    assert field == f"spec.{kind.field}[mine]"
    assert word in reason


@pytest.mark.parametrize("text", ["#!/bin/sh", "#! /usr/bin/env python3\n", "#!/usr/bin/env -S python3 -I\n\x1b"])
def test_a_script_may_be_in_any_language(text: str) -> None:
    assert not problems({"prologScripts": {"mine": text}})


def test_slurmds_scripts_have_no_path_and_slurmctlds_have_one() -> None:
    text = Case({kind.field: {"b": PROLOG, "a": PROLOG} for kind in KINDS}).render().files["slurm.conf"]
    lines = [line for line in text.split("\n") if line.startswith(("Prolog", "Epilog"))]
    assert lines == [
        "Prolog=prolog-a",
        "Prolog=prolog-b",
        "Epilog=epilog-a",
        "Epilog=epilog-b",
        "PrologSlurmctld=/etc/slurm/prologslurmctld-a",
        "PrologSlurmctld=/etc/slurm/prologslurmctld-b",
        "EpilogSlurmctld=/etc/slurm/epilogslurmctld-a",
        "EpilogSlurmctld=/etc/slurm/epilogslurmctld-b",
    ]


def test_scripts_of_extra_conf_come_after_those_of_the_spec() -> None:
    text = Case({"prologScripts": {"a": PROLOG}, "extraConf": "Prolog=/x"}).render().files["slurm.conf"]
    assert text.index("Prolog=prolog-a\n") < text.index("Prolog=/x\n")


@pytest.mark.parametrize(
    ("extra", "word"),
    [
        ("Prolog=nosuch", "not given"),
        ("Prolog=a Prolog=b Epilog=nosuch", "not given"),
        ("TaskProlog=nosuch", "not given"),
        ("Prolog=./a", "whole path"),
        ("PrologSlurmctld=a", "needs a path"),
        ("EpilogSlurmctld=/etc/slurm/nosuch", "not given"),
    ],
)
def test_extra_conf_names_no_script_that_is_not_there(extra: str, word: str) -> None:
    ((field, reason),) = problems({"extraConf": extra, "configFiles": {"a": PROLOG, "b": PROLOG}})
    assert field == "spec.extraConf"
    assert word in reason


@pytest.mark.parametrize("extra", ["Prolog=/opt/prolog", "Prolog=a", "TaskEpilog=a", "PrologSlurmctld=/etc/slurm/a"])
def test_extra_conf_may_name_what_is_there_or_in_the_image(extra: str) -> None:
    assert not problems({"extraConf": extra, "configFiles": {"a": PROLOG}})


def test_the_longest_name_leaves_room_for_what_slurmd_appends() -> None:
    ((_, reason),) = problems({"epilogSlurmctldScripts": {"a" * 240: PROLOG}})
    assert "at most" in reason
