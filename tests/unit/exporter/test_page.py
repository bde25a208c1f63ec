"""The page is Prometheus's text format, and the documentation has all of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from hack.documents.tables.metrics import PAGE, with_tables
from slurm_exporter.families.catalogue import GROUPS
from slurm_exporter.page.server import written
from slurm_exporter.samples.family import Family, Kind, Samples, counter, gauge

ALL = [family for families in GROUPS.values() for family in families]


@given(st.text(), st.text())
def test_any_label_comes_out_as_it_went_in(value: str, other: str) -> None:
    family = gauge("things", "Things.", "nowhere", ["name"])
    text = written(Samples(family, {(value,): 1.5}), {"site": other}).decode()
    ((sample,),) = [each.samples for each in text_string_to_metric_families(text)]
    assert sample.name == "slurm_cluster_things"
    assert sample.value == 1.5
    assert sample.labels.keys() == {"name", "site"}


def test_counters_are_counters_and_gauges_are_gauges() -> None:
    assert b"# TYPE slurm_cluster_x_total counter\nslurm_cluster_x_total 2.0" in written(
        Samples(counter("x", "X.", "-"), {(): 2}), {}
    )
    assert b"# TYPE slurm_cluster_x gauge" in written(Samples(gauge("x", "X.", "-"), {(): 2}), {})


def test_a_family_without_samples_is_not_on_the_page() -> None:
    assert written(Samples(gauge("x", "X.", "-")), {}) == b""


@pytest.mark.parametrize("family", ALL, ids=lambda family: family.name)
def test_names_follow_prometheus(family: Family) -> None:
    assert re.fullmatch("slurm_(cluster|exporter)_[a-z_]*[a-z]", family.name)
    assert family.name.endswith("_total") == (family.kind is Kind.COUNTER)
    unit = family.name.removesuffix("_total").rpartition("_")[2]
    assert (unit if unit in {"bytes", "seconds"} else "1") == family.unit
    assert family.text.endswith((".", "default."))


def test_no_name_is_used_twice() -> None:
    assert len({family.name for family in ALL}) == len(ALL)


def test_the_documented_tables_are_those_in_use() -> None:
    page = PAGE.read_text()
    assert page == with_tables(page), "python -m hack.documents.tables.metrics"
