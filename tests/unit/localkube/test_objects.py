"""Which arguments of ``kubectl get`` are supported without kubectl."""

from __future__ import annotations

import pytest

from hack.localkube.objects import Query, query


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (("nodes",), Query(("nodes",))),
        (("node", "node-1"), Query(("node",), name="node-1")),
        (("--namespace", "a", "pods"), Query(("pods",), namespace="a")),
        (("pod", "p", "-n", "a"), Query(("pod",), name="p", namespace="a")),
        (("pod", "p", "--namespace=a"), Query(("pod",), name="p", namespace="a")),
        (("nodesets.slinky.slurm.net,pods", "--all-namespaces"), Query(("nodesets.slinky.slurm.net", "pods"), "", "")),
        (
            ("pods", "--selector=a=b,c!=d", "--field-selector=metadata.name=x"),
            Query(("pods",), label_selector="a=b,c!=d", field_selector="metadata.name=x"),
        ),
    ],
)
def test_what_is_simply_asked_for_is_understood(arguments: tuple[str, ...], asked: Query) -> None:
    assert query(arguments) == asked


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("pod/p",),
        ("pod", "p", "q"),
        ("pods,nodes", "p"),
        ("pod", "p", "--ignore-not-found"),
        ("pods", "--sort-by=.metadata.name"),
        ("--raw=/version",),
    ],
)
def test_what_says_more_is_left_to_kubectl(arguments: tuple[str, ...]) -> None:
    assert query(arguments) is None
