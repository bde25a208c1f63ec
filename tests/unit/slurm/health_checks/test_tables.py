"""Tables: read as they were written, with files named after what is in them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.checks import PARAMETERS, BuiltInCheck, Check
from slinky_operator.slurm.health_checks import tables
from slinky_operator.slurm.health_checks.tables import Table
from tests.unit.slurm.health_checks.nodes import own


def table(*checks: dict[str, Any]) -> tuple[Table, dict[str, str]]:
    return tables.table(map(Check.model_validate, checks))


def test_a_table_is_read_as_it_was_written() -> None:
    found, files = table(
        own("b", "exit 0", contexts=["Epilog", "HealthCheck"], timeoutSeconds=7, parameters={"A": "x y", "B": ""}),
        {"name": "a", "use": "Disk"},
    )

    assert tables.read(found.text()) == (found, "")
    assert tables.read(found.text("a-0")) == (found, "a-0")
    assert list(found.lines) == ["a", "b"]
    assert found.lines["b"].startswith("HE 7 script-")
    assert found.files == files.keys()
    assert "A=x y\nB=\n" in files.values()


def test_what_is_not_a_table_is_read_as_an_empty_one() -> None:
    assert tables.read("") == (Table(), "")
    assert tables.read("nonsense\n\n") == (Table(), "")


@pytest.mark.parametrize(
    "other",
    [
        own("a", "exit 1"),
        own("b", "exit 0"),
        own("a", "exit 0", timeoutSeconds=21),
        own("a", "exit 0", contexts=["Prolog"]),
        own("a", "exit 0", parameters={"A": "1"}),
    ],
)
def test_a_revision_is_that_of_everything_that_runs(other: dict[str, Any]) -> None:
    assert table(own("a", "exit 0"))[0].revision != table(other)[0].revision


def test_neither_order_nor_what_follows_from_a_failure_makes_another_revision() -> None:
    one, other = own("a", "exit 0"), own("b", "exit 0")

    assert table(one, other) == table(other, {**one, "onFail": "Nothing"})


@pytest.mark.parametrize("use", BuiltInCheck)
def test_each_check_that_comes_with_the_operator_has_a_script_that_reads_its_parameters(use: BuiltInCheck) -> None:
    _, files = table({"name": "a", "use": use, "parameters": {"PATHS": "/a"} if use is BuiltInCheck.MOUNTS else {}})

    (script,) = [text for name, text in files.items() if name.startswith("script-")]
    assert script.startswith("#!/bin/sh\n")
    assert set(re.findall(r"CHECK_(\w+)", script)) == set(PARAMETERS[use])
