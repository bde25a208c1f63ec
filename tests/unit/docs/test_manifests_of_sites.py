"""Manifests in the pages about users, login pods and maintenance: the kinds that they show take them as they are."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from slinky_api.v1alpha1 import Cluster, LoginSet, NodeSet
from slinky_api.v1alpha1.common import ApiObject
from slinky_operator.identity import entries
from tests.support.documents import Action, blocks

KINDS: dict[str, type[ApiObject]] = {"Cluster": Cluster, "LoginSet": LoginSet, "NodeSet": NodeSet}
SHOWN = [
    pytest.param(obj, id=block.place)
    for page in ("docs/login.md", "docs/identity.md", "docs/maintenance.md")
    for block in blocks(page)
    if block.language == "yaml"
    for obj in yaml.safe_load_all(block.text)
]


@pytest.mark.parametrize("obj", SHOWN)
def test_a_manifest_is_taken_as_it_is(obj: dict[str, Any]) -> None:
    kind = obj.get("kind", "LoginSet")
    if kind in KINDS:
        # What has no kind is a part of a LoginSet.
        spec = obj["spec"] if "kind" in obj else {"clusterName": "slurm", **obj["spec"]}
        read = KINDS[kind].parse({"metadata": {"name": "front"}, **obj, "spec": spec})
        # A field that nobody knows would be left out.
        known = read.model_dump(by_alias=True, exclude_unset=True)["spec"]
        assert known.keys() == spec.keys()
    else:
        assert kind == "Secret"


def test_the_lines_of_passwd_and_group_are_taken_as_they_are() -> None:
    files = {block.words: block.text for block in blocks("docs/identity.md") if block.action is Action.FILE}
    found = entries.read(files["passwd"], files["group"])
    assert found.problems == ()
    assert "alice:*:1000:2001" in found.texts["passwd"]
