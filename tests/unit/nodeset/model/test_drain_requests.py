"""What is read of NVSentinel's requests to drain, and how long each is in force."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.nodeset.model import drain_requests
from slinky_operator.nodeset.model.drain_requests import STATE_LABEL, DrainRequest
from slinky_operator.nodeset.model.kubernetes_nodes import LONGEST_REASON, KubernetesNode


def request(name: str = "one", status: Any = None, metadata: dict[str, Any] | None = None, **spec: Any) -> Any:
    given = {"name": name, "namespace": "nv", "uid": f"uid-{name}", **(metadata or {})}
    return {"metadata": given, "spec": {"nodeName": "m-1", **spec}, "status": status}


def done(status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": "Other", "status": "True"}, {"type": "DrainComplete", "status": status}]}


def read(obj: Any) -> DrainRequest:
    found = drain_requests.read(obj)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "[NVSentinel] - health check failed"),
        ({"checkName": "GpuMemWatch"}, "[NVSentinel] - GpuMemWatch"),
        ({"checkName": "c", "reason": "two\nlines", "errorCode": ["79", "48"]}, "[NVSentinel] 79,48 - two lines"),
        (
            {"reason": "r", "entitiesImpacted": [{"type": "GPU", "value": str(number)} for number in range(5)]},
            "[NVSentinel] GPU:0,GPU:1,GPU:2,+2 more - r",
        ),
        ({"reason": "r", "errorCode": [{"a": 1}], "entitiesImpacted": "all"}, "[NVSentinel] - r"),
    ],
)
def test_the_reason_says_what_the_request_says_on_one_line(spec: dict[str, Any], words: str) -> None:
    assert read(request(**spec)).words == words


def test_a_long_reason_is_cut() -> None:
    assert len(read(request(reason="x" * 10_000)).words) == LONGEST_REASON


@pytest.mark.parametrize(
    "obj", [request(nodeName=""), request(nodeName=7), request(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})]
)
def test_one_that_goes_or_names_no_node_asks_for_nothing(obj: Any) -> None:
    assert drain_requests.read(obj) is None


@pytest.mark.parametrize(
    ("status", "is_complete"), [(None, False), ({}, False), (done("False"), False), (done(), True)]
)
def test_complete_is_the_condition(status: Any, is_complete: bool) -> None:
    assert read(request(status=status)).is_complete is is_complete


def test_it_is_in_force_until_complete_and_then_while_nvsentinel_works_on_the_node() -> None:
    free, busy = KubernetesNode("m-1"), KubernetesNode("m-1", labels={STATE_LABEL: "draining"})

    assert read(request()).is_in_force(None)
    assert read(request(status=done())).is_in_force(busy)
    assert not read(request(status=done())).is_in_force(free)
    assert not read(request(status=done())).is_in_force(None)


def test_of_several_for_a_node_one_that_is_not_complete_counts() -> None:
    found = [read(request("a", done())), read(request("c")), read(request("b")), read(request("d", nodeName="m-2"))]

    assert {host: one.name for host, one in drain_requests.by_host(found).items()} == {"m-1": "b", "m-2": "d"}
