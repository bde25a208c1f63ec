"""Merging templates where it differs from kubectl on purpose; the rest is compared with kubectl itself."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.slurm.pod_templates.templates import POD_SPEC, RefusedFragment, merge


def test_new_items_follow_those_that_were_generated() -> None:
    base = {"containers": [{"name": "slurmd", "env": [{"name": "POD_NAME", "value": "x"}]}]}
    over = {
        "containers": [
            {"name": "first", "image": "i"},
            {"name": "slurmd", "env": [{"name": "LOG", "value": "$(POD_NAME).log"}]},
        ]
    }

    merged = merge(base, over, POD_SPEC)

    assert [item["name"] for item in merged["containers"]] == ["slurmd", "first"]
    assert [item["name"] for item in merged["containers"][0]["env"]] == ["POD_NAME", "LOG"]


def test_another_source_takes_the_place_of_the_generated_one() -> None:
    base = {
        "containers": [{"name": "slurmd", "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}],
        "volumes": [{"name": "spool", "emptyDir": {}}, {"name": "key", "secret": {"secretName": "s", "items": [1]}}],
    }
    over = {
        "containers": [{"name": "slurmd", "env": [{"name": "A", "value": "2"}]}],
        "volumes": [{"name": "spool", "hostPath": {"path": "/x"}}, {"name": "key", "secret": {"defaultMode": 256}}],
    }

    merged = merge(base, over, POD_SPEC)

    assert merged["containers"][0]["env"] == [{"name": "A", "value": "2"}]
    assert merged["volumes"] == [
        {"name": "spool", "hostPath": {"path": "/x"}},
        {"name": "key", "secret": {"secretName": "s", "items": [1], "defaultMode": 256}},
    ]


def test_merging_changes_neither_side() -> None:
    base = {"spec": {"containers": [{"name": "a", "args": ["1"]}]}, "gone": 1}
    over = {"spec": {"containers": [{"name": "a", "args": ["2"]}]}, "gone": None}

    merged = merge(base, over)
    merged["spec"]["containers"][0]["args"].append("3")

    assert base == {"spec": {"containers": [{"name": "a", "args": ["1"]}]}, "gone": 1}
    assert over == {"spec": {"containers": [{"name": "a", "args": ["2"]}]}, "gone": None}


@pytest.mark.parametrize(
    ("fragment", "field"),
    [
        ({"spec": {"$setElementOrder/containers": [{"name": "a"}]}}, "spec.$setElementOrder/containers"),
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.containers[0]"),
        ({"spec": {"containers": ["slurmd"]}}, "spec.containers[0]"),
        (
            {"spec": {"containers": [{"name": "a", "resources": {"$patch": "x"}}]}},
            "spec.containers[0].resources.$patch",
        ),
        ({"spec": {"tolerations": [{"$patch": "replace"}]}}, "spec.tolerations[0].$patch"),
        ({"spec": {"$deleteFromPrimitiveList/containers": ["a"]}}, "spec.$deleteFromPrimitiveList/containers"),
    ],
)
def test_what_cannot_be_merged_is_refused_by_field(fragment: dict[str, Any], field: str) -> None:
    with pytest.raises(RefusedFragment) as caught:
        merge({}, fragment)

    assert caught.value.field == field
