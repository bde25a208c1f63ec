"""What has to follow when Slurm brings a new data parser: each test names a place that would be forgotten."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import slurm_client
from slurm_client import wire
from slurm_client.decode import nodes
from slurm_client.decode.job_details import LEFT_OUT, detailed_job
from slurm_client.operations.database import associations, qos
from slurm_client.testing import World
from slurm_client.testing.answers import encode
from tests.unit.slurm_client.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(slurm_client.__file__).parent
NEWEST = wire.PARSERS[-1]
PARSER = re.compile(r"v0\.0\.[0-9]+")
WITH_LISTS = {
    "wire/__init__.py": "the one list of parsers",
    "testing/server.py": "which release serves which parsers, compared with that list by another test",
}
"""Modules that name the newest parser in a list, with the reason."""


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Every module that is written by hand."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(("wire/v0_", "sync/")):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def listed(tree: ast.AST) -> Iterator[ast.AST]:
    """Give each list that has the newest parser, and each question whether a parser is just that one."""
    for node in ast.walk(tree):
        found: list[Any] = []
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            texts = [each.value for each in node.elts if isinstance(each, ast.Constant)]
            parsers = [each for each in texts if isinstance(each, str) and PARSER.fullmatch(each)]
            # A pair such as ("job", "exclusive", "v0.0.45") says since when there is something.
            found = parsers if len(parsers) == len(node.elts) else []
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            found = [each.value for each in node.comparators if isinstance(each, ast.Constant)]
        if NEWEST in found:
            yield node


def test_no_list_of_parsers_ends_with_the_newest() -> None:
    """The next one would not be in it: ask ``wire.fields``, or list those that differ."""
    found = {name for name, tree in sources() if any(True for _ in listed(tree))}
    assert found == WITH_LISTS.keys()


def test_such_a_list_is_seen() -> None:
    for line in (f"A = ('v0.0.43', '{NEWEST}')", f"A = frozenset({{'{NEWEST}'}})", f"version == '{NEWEST}'"):
        assert any(True for _ in listed(ast.parse(line))), line
    for line in (f"version >= '{NEWEST}'", "A = ('v0.0.41', 'v0.0.42')", f"('job', 'x', '{NEWEST}')"):
        assert not any(True for _ in listed(ast.parse(line))), line


def test_a_parser_that_is_not_there_yet_has_what_its_specification_has(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = wire.fields
    monkeypatch.setattr(wire, "PARSERS", (*wire.PARSERS, "v0.0.99"))
    monkeypatch.setattr(wire, "fields", lambda parser, model: fields(NEWEST if parser == "v0.0.99" else parser, model))
    assert qos._with_minutes() == tuple(parser for parser in wire.PARSERS if parser >= "v0.0.42")
    assert associations._with_ids() == tuple(parser for parser in wire.PARSERS if parser not in {"v0.0.41", "v0.0.42"})


def test_what_is_sent_is_typed_as_the_newest_parser_has_it() -> None:
    named = {
        node.module
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("slurm_client.wire.v0_")
    }
    assert named == {f"slurm_client.wire.{NEWEST.replace('.', '_')}"}


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_pages_name_all_parsers(page: str) -> None:
    text = (PACKAGE / page).read_text(encoding="utf-8")
    spans = re.findall(r"(v0\.0\.[0-9]+) to (v0\.0\.[0-9]+)", text)
    assert spans
    assert {*spans} == {(wire.PARSERS[0], NEWEST)}


def read_job() -> Recorder:
    """Return a record after it was read; some keys are asked for only beside others."""
    raw = Recorder(job_id=1, het_job_id=1)
    detailed_job(raw)
    return raw


def forgotten(known: frozenset[str]) -> set[str]:
    """Return the keys of a job's record that nothing reads, and for which no reason is given."""
    raw = read_job()
    return set(known) - raw.asked - LEFT_OUT.keys()


@pytest.mark.parametrize("version", wire.PARSERS)
def test_every_key_of_a_job_is_read_or_left_out_with_a_reason(version: str) -> None:
    assert forgotten(wire.fields(version, "JobInfo")) == set()


def test_a_key_that_nobody_reads_is_seen() -> None:
    assert forgotten(wire.fields(NEWEST, "JobInfo") | {"brand_new"}) == {"brand_new"}


def test_nothing_is_left_out_that_is_read_or_that_no_parser_has() -> None:
    raw = read_job()
    assert not LEFT_OUT.keys() & raw.asked
    assert LEFT_OUT.keys() <= {key for version in wire.PARSERS for key in wire.fields(version, "JobInfo")}


@pytest.mark.parametrize("version", wire.PARSERS)
def test_every_key_of_a_node_is_read_or_left_out_with_a_reason(version: str) -> None:
    raw = Recorder(name="n")
    nodes.node(raw)
    assert wire.fields(version, "Node") - raw.asked - nodes.LEFT_OUT.keys() == set()
    assert not raw.asked & nodes.LEFT_OUT.keys()


@pytest.mark.parametrize("version", wire.PARSERS)
def test_the_fake_writes_every_key_of_a_job_and_of_a_node(version: str) -> None:
    world = World()
    node, job = world.add_node("w-0"), world.add_job(nodes=["w-0"])
    assert encode.node(node, version).keys() == wire.fields(version, "Node")
    assert encode.job(job, version).keys() == wire.fields(version, "JobInfo")
