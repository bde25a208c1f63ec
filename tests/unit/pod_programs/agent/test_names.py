"""Which names the agent looks up, and what it reports about them."""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from slinky_operator.pod_programs.agent.hosts import MOST, expand, names_in
from slinky_operator.pod_programs.agent.resolver import WORKERS, Resolver
from slinky_operator.pod_programs.agent.server import answer
from slurm_client.notation import hostlist

CONF = """\
ClusterName=x
NodeName=metal[01-02] CPUs=4 NodeAddr=10.0.0.[1-2]
NodeName=rack[1-3] CPUs=4 State=FUTURE
NodeName=a,b NodeAddr=a.example,b.example Port=7000
NodeName=c NodeHostname=c.example
PartitionName=x Nodes=rack[1-3]
"""


class Names:
    """A name server that answers when the test lets it."""

    def __init__(self, *there: str) -> None:
        self.there = set(there)
        self.asked: queue.Queue[tuple[str, int]] = queue.Queue()
        self.open = threading.Event()
        self.open.set()
        self.now = 0.0
        self.resolver = Resolver(self._look_up, lambda: self.now)

    def _look_up(self, name: str, family: int) -> bool:
        self.asked.put((name, family))
        self.open.wait()
        return name in self.there

    def until(self, condition: Callable[[dict[str, list[str]]], bool], text: str = CONF) -> dict[str, list[str]]:
        while not condition(found := dict(self.resolver.names(text))):
            threading.Event().wait(0.01)
        return found


def test_slurmctld_looks_up_the_address_else_the_host_name_else_the_name() -> None:
    assert list(names_in(CONF)) == ["rack1", "rack2", "rack3", "a.example", "b.example", "c.example"]


@pytest.mark.parametrize("text", ["w-[0-2,07],login", "a", "a[1-2]b[3-4]", "x[,]", "x[5-2]", "x[1", "", "a,b,c"])
def test_host_lists_are_read_as_elsewhere(text: str) -> None:
    assert expand(text) == hostlist.expand(text)


def test_a_list_of_more_than_slurm_can_have_is_not_made() -> None:
    text = f"a[1-{MOST}]b[1-{MOST}]"
    assert expand(text) == (text,)


@pytest.mark.timeout(120)
def test_it_tells_what_was_found_and_what_was_not() -> None:
    names = Names("rack1", "a.example")
    assert names.resolver.names(CONF) == {"found": [], "missing": []}
    found = names.until(lambda told: sum(map(len, told.values())) == 6)
    assert found == {"found": ["a.example", "rack1"], "missing": ["b.example", "c.example", "rack2", "rack3"]}


@pytest.mark.timeout(120)
def test_what_was_not_found_is_looked_up_again_later_and_each_name_once_at_a_time() -> None:
    names = Names()
    names.until(lambda told: len(told["missing"]) == 6)
    assert names.asked.qsize() == 6
    names.resolver.names(CONF)
    assert names.asked.qsize() == 6, "nothing is due"
    names.there.add("rack2")
    names.now = 20.0
    assert names.until(lambda told: bool(told["found"]))["found"] == ["rack2"]


@pytest.mark.timeout(120)
def test_a_name_server_that_is_away_keeps_nobody_waiting(tmp_path: Path) -> None:
    names = Names()
    names.open.clear()
    (tmp_path / "slurm.conf").write_text(CONF)
    for _ in range(20):
        told = json.loads(answer(b"GET /names HTTP/1.1\r\n\r\n", tmp_path, names.resolver).split(b"\r\n\r\n", 1)[1])
        assert told == {"names": {"found": [], "missing": []}}
    assert names.asked.qsize() <= WORKERS
    names.open.set()


@pytest.mark.timeout(120)
def test_of_another_file_nothing_is_known_any_more() -> None:
    names = Names("rack1")
    names.until(lambda told: sum(map(len, told.values())) == 6)
    other = "NodeName=rack1 CPUs=1\nNodeName=new CPUs=1\n"
    assert names.until(lambda told: bool(told["missing"]), other) == {"found": ["rack1"], "missing": ["new"]}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("words", "family"),
    [
        ("", socket.AF_INET),
        ("CommunicationParameters=NoInAddrAny,EnableIPv6\n", socket.AF_UNSPEC),
        ("CommunicationParameters=EnableIPv6,DisableIPv4\n", socket.AF_INET6),
    ],
)
def test_it_looks_for_addresses_of_the_kind_that_slurmctld_uses(words: str, family: int) -> None:
    names = Names()
    names.resolver.names(words + "NodeName=a CPUs=1\n")
    assert names.asked.get() == ("a", family)


def test_a_file_that_is_not_mounted_is_an_answer_too(tmp_path: Path) -> None:
    assert answer(b"GET /names HTTP/1.1\r\n\r\n", tmp_path / "no", Resolver()).startswith(b"HTTP/1.1 503 ")
