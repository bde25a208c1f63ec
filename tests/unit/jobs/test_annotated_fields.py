"""Annotations of pods have each field of a job, or say why not; the pages name those that they have."""

from __future__ import annotations

import re
from collections.abc import Collection

import pytest

from hack.localkube.paths import PROJECT
from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.bridge.pods.model.translation import job_annotations as of_bridge
from slinky_operator.virtual_nodes.pods.translation import job_annotations as of_virtual_nodes

FIELDS = {field.alias or name for name, field in SlurmJobSpec.model_fields.items()}
OF_THE_OBJECT = {"user"}
"""Fields of a SlurmJob that its job alone does not have."""

KNOWN: list[tuple[str, Collection[str], Collection[str]]] = [
    ("pods-on-virtual-nodes.md", of_virtual_nodes.FIELDS, of_virtual_nodes.OTHERS),
    ("bridge.md", of_bridge.FIELDS.fields, of_bridge.FIELDS.others),
]


@pytest.mark.parametrize(("page", "fields", "others"), KNOWN, ids=lambda one: one if isinstance(one, str) else "")
def test_each_field_can_be_asked_for_or_has_a_reason_why_not(
    page: str, fields: Collection[str], others: Collection[str]
) -> None:
    _ = page
    assert set(fields) - OF_THE_OBJECT <= FIELDS
    assert set(fields) - OF_THE_OBJECT | set(others) == FIELDS


@pytest.mark.parametrize(("page", "fields", "others"), KNOWN, ids=lambda one: one if isinstance(one, str) else "")
def test_its_page_names_each(page: str, fields: Collection[str], others: Collection[str]) -> None:
    _ = others
    text = (PROJECT / "docs" / page).read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if re.search(r"slinky\.slurm\.net/<field", line)]
    assert set(re.findall(r"`([A-Za-z]+)`", line)) == set(fields)
