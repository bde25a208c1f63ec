"""What pods answer has a bound on every route: by HTTP, by Slurm's protocol, and by the texts of their statuses.

No route is named twice: a reader of pods' answers by HTTP takes a `PodReader`, and has to be in `ASKED` to be tried
with every hostile answer; each kind of daemon is asked over a real connection; each function that reads what kubelets
say of containers has to be reached by `STATUS` with every hostile text. A new one fails the test until it is.
"""

from __future__ import annotations

import ast
import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from types import FrameType
from typing import Any, Final

import httpx
import pytest

from hack.localkube.paths import PROJECT
from slinky_operator.bridge import caches as bridge_caches
from slinky_operator.bridge.pods.model import slurmjobs
from slinky_operator.cluster.parts.accounting import condition as accounting
from slinky_operator.cluster.parts.accounting import slurmdbd
from slinky_operator.cluster.parts.identity import question as query_of_directory
from slinky_operator.cluster.parts.keys import stored_keys
from slinky_operator.cluster.parts.slurmctld import part as hang
from slinky_operator.cluster.parts.slurmrestd import manifests as slurmrestd
from slinky_operator.cluster.parts.upgrade import asking
from slinky_operator.cluster.parts.volumes import part as volumes
from slinky_operator.cluster.rollout import agent_questions
from slinky_operator.cluster.rollout.agent_questions import Agent
from slinky_operator.cluster.rollout.config import loading
from slinky_operator.cluster.rollout.preflight import pod_troubles, replacement
from slinky_operator.cluster.trials import problems
from slinky_operator.cluster.trials.preflight_pod import SlurmdKind
from slinky_operator.cluster.trials.version_pod import Question
from slinky_operator.loginset import trial
from slinky_operator.nodeset.model.pods import hindrance, pod_facts
from slinky_operator.reconcile import pod_trouble
from slinky_operator.slurm.connection import key_proof
from slinky_operator.slurm.connection import volume_query as query
from slinky_operator.slurm.connection.key_proof import Daemon, Verdict
from slinky_operator.slurm.connection.pod_reader import PodReader
from slinky_operator.slurm.connection.signed_messages import SharedKey
from slinky_operator.slurm.connection.volume_query import Looker
from slinky_operator.slurm.pods import exit_messages
from slinky_operator.slurmjob.pods import copy_pod, pod_state
from slinky_operator.virtual_nodes.kubelet.served_pods import ServedPod
from slinky_operator.virtual_nodes.pods import plan as virtual_pods
from slinky_operator.virtual_nodes.pods import projection
from slurm_client.connection.intake import Intake
from tests.support.hostile import WAYS, HostileServer
from tests.support.hostile_texts import measured, texts
from tests.support.listener import listening
from tests.unit.bounds.test_hostile_answers import too_much

NOW: Final = datetime(2026, 11, 24, 12, tzinfo=UTC)


def parsed(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """Modules of the operator; those that have one of some words in them, if any are given."""
    for path in sorted((PROJECT / "slinky_operator").rglob("*.py")):
        text = path.read_text("utf-8")
        if not words or any(word in text for word in words):
            yield str(path.relative_to(PROJECT)), ast.parse(text)


# By HTTP

Asked = Callable[[PodReader, Agent], Awaitable[Any]]
ASKED: Final[Mapping[str, Asked]] = {
    "ask_files": lambda reader, agent: agent_questions.ask_files(reader, agent, lambda: 0.0),
    "ask_names": lambda reader, agent: agent_questions.ask_names(reader, agent, frozenset({"a"}), None, lambda: 0.0),
    "ask_volumes": lambda reader, agent: query.ask_volumes(
        reader, Looker(agent.url, "u", "ns"), ("slurmctld", "job-output"), lambda: 0.0
    ),
    "ask_directory": lambda reader, agent: query_of_directory.ask_directory(reader, agent, lambda: 0.0),
}
"""Every function that is given a `PodReader` and asks it."""


def readers(tree: ast.Module) -> Iterator[str]:
    """Functions that read an answer of a pod: they have a `PodReader` as a parameter, or are where one is called."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            taken = any("PodReader" in ast.unparse(one.annotation) for one in node.args.args if one.annotation)
            if taken and any(isinstance(one, ast.Await) for one in ast.walk(node)):
                yield node.name


def test_every_reader_by_http_is_tried() -> None:
    found = {name: path for path, tree in parsed() for name in readers(tree)}
    assert found.keys() == ASKED.keys()
    # Who only holds one, to give it on, reads nothing of it.
    holders = {
        path
        for path, tree in parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "read" and "http" in ast.unparse(node.value)
    }
    assert holders == set(), "a PodReader is asked by a function that is given it"


def agent_at(url: str) -> Agent:
    return Agent(url, "u", "ns", "c")


@cache
def keys_read() -> tuple[str, ...]:
    """Keys that readers of agents ask for."""
    nodes = [node for _, tree in parsed("PodReader") if any(readers(tree)) for node in ast.walk(tree)]
    called = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".get")]
    return tuple(sorted({str(one.args[0].value) for one in called if isinstance(one.args[0], ast.Constant)}))


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("way", WAYS)
async def test_a_hostile_agent_costs_its_reader_little_and_raises_nothing(name: str, way: str) -> None:
    intake = Intake()
    seconds = 0.3 if way == "drip" else 60.0
    async with HostileServer() as server, PodReader(intake, seconds=seconds) as reader:
        _ = await ASKED[name](reader, agent_at(server.url(way)))
    assert intake.taken == 0


def shapes(text: str) -> Iterator[Any]:
    """Answers of every shape in which an agent could give a text."""
    deep: Any = text
    for _ in range(60):
        deep = [{"a": deep}]
    values: tuple[Any, ...] = (
        text,
        [text] * 9,
        {text: text},
        [{text: [text]}],
        deep,
        1e308,
        -1,
        2**200,
        None,
        True,
        [[], {}],
    )
    for value in values:
        yield value
        for key in keys_read():
            yield {key: value}
            for outer in keys_read():
                yield {outer: {key: value, "found": [], "missing": []}}


@pytest.mark.parametrize("name", ASKED)
def test_no_text_of_an_agent_costs_its_reader_much(name: str) -> None:
    answers: list[bytes] = [
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b"\xff\xfe{}",
        b'{"\\ud800": "\\udfff"}',
        b'{"a": 1e999}',
    ]
    for text in (*texts(4096).values(), "\x00\x1b[2J\u202e", "NaN"):
        answers += [json.dumps(one).encode() for one in shapes(text)]
    given = iter(answers)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=next(given)))

    async def ask() -> list[Any]:
        async with PodReader(Intake(), transport=transport) as reader:
            return [await ASKED[name](reader, agent_at("http://10.0.0.1")) for _ in answers]

    with measured(traced=False) as cost:
        found = asyncio.run(ask())
    assert len(found) == len(answers)
    assert cost().seconds < 60.0


# By Slurm's protocol


@asynccontextmanager
async def daemon(pieces: Callable[[], AsyncIterator[bytes]]) -> AsyncIterator[int]:
    """Something in the place of a daemon, which sends these bytes to each caller."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for piece in pieces():
            writer.write(piece)
            await writer.drain()

    async with listening(serve) as port:
        yield port


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield b"\0\0\x0f\xff" + b"x" * 65_536


async def _longest() -> AsyncIterator[bytes]:
    yield b"\xff\xff\xff\xff"
    while True:
        yield b"\xff" * 65_536


async def _slow() -> AsyncIterator[bytes]:
    while True:
        yield b"\0"
        await asyncio.sleep(0.05)


async def _nested() -> AsyncIterator[bytes]:
    yield b"\0\0\x10\0" + b"\x2a\0" * 20 + b"[" * 4096


async def _nothing() -> AsyncIterator[bytes]:
    if PROTOCOL:
        return
    yield b""


async def _http() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"


PROTOCOL: Final = {
    "endless": _endless,
    "longest": _longest,
    "slow": _slow,
    "nested": _nested,
    "nothing": _nothing,
    "http": _http,
}


@pytest.mark.parametrize("kind", list(Daemon), ids=lambda kind: kind.name)
@pytest.mark.parametrize("way", PROTOCOL)
async def test_a_hostile_daemon_proves_no_key(kind: Daemon, way: str) -> None:
    async with daemon(PROTOCOL[way]) as port:
        found = await key_proof.ask(kind, "127.0.0.1", port, SharedKey("k", b"x" * 32), NOW.timestamp(), 0.5)
    assert found.verdict in {Verdict.UNKNOWN, Verdict.SILENT}
    assert len(found.why) < 300


# By the status of a pod

WORDS: Final = frozenset({"containerStatuses", "initContainerStatuses", "terminated", "waiting", "lastState"})
KIND: Final = SlurmdKind("image")
QUESTION: Final = Question("slurmctld", "image")
NAMES: Final = (
    "slurmctld",
    "slurmd",
    "slurmd-0",
    "slurmdbd",
    "slurmrestd",
    "asked-0",
    "sshd",
    "sssd",
    copy_pod.CONTAINER,
)

STATUS: Final[Mapping[str, Callable[[dict[str, Any]], Any]]] = {
    "exit_messages.last_words": lambda pod: exit_messages.last_words(pod["status"]["containerStatuses"], "slurmd"),
    "exit_messages.stuck": exit_messages.stuck,
    "pod_trouble": lambda pod: list(map(str, pod_trouble.of_pod("slurmctld", pod, NOW))),
    "pod_trouble.words": partial(pod_trouble.words, wall=NOW),
    "slurmdbd": lambda pod: slurmdbd._runs_since(pod, NOW),
    "slurmdbd.troubles": lambda pod: exit_messages.last_words(pod["status"]["containerStatuses"], "slurmdbd"),
    "slurmrestd": slurmrestd._unready_since,
    "keys": lambda pod: stored_keys._runs(pod, "slurmctld"),
    "accounting": accounting.lost_node,
    "volumes": volumes._is_up,
    "hang": lambda pod: hang.words(pod, NOW),
    "exit_messages.fault_of": lambda pod: exit_messages.fault_of(pod, "slurmctld"),
    "loading.waits": loading._waits_to_restart,
    "pod_troubles": lambda pod: pod_troubles.own(pod, [KIND], NOW),
    "problems.pulls": problems.pulls_slurmctld,
    "pod_troubles.passed": lambda pod: pod_troubles.passed(pod, 0),
    "replacement": lambda pod: replacement._verdict(pod, {}, 0.0, NOW),
    "replacement.slow": lambda pod: replacement._slow(pod, {}),
    "replacement.pauses": replacement._pauses,
    "asking": lambda pod: asking._verdict(pod, [QUESTION], 0.0, NOW),
    "asking.held_up": lambda pod: asking._held_up(pod, [QUESTION]),
    "loginset.trial": lambda pod: trial.verdict(pod, NOW),
    "hindrance": lambda pod: hindrance.read(pod, NOW),
    "pod_facts": lambda pod: pod_facts.read(pod, "a"),
    "copies": pod_state.copies_ended,
    "copies.waits": partial(pod_state.waiting_for, now=NOW),
    "pod_life": pod_state.end_message,
    "virtual_pods": lambda pod: projection._started(projection._container(pod)),
    "virtual_pods.ends": projection.shows_end,
    "virtual_pods.shown": virtual_pods._has_shown,
    "bridge_pods.ends": slurmjobs._exit,
    "bridge_pods.kept": lambda pod: bridge_caches.prune_pod({"metadata": {}, **pod}),
    "virtual_pods.waits": lambda pod: ServedPod(pod, None).waits_for,
}
"""What reads the status of a pod, each as a pass calls it."""

IN_A_CLUSTER: Final = {"slinky_operator/cluster/parts/accounting/slurmdbd.py:troubles"}
"""Functions that need a whole Cluster; what they read of the status is in `STATUS` by itself."""


MESSAGE: Final = 4096
"""Bytes of a termination message that a kubelet passes on."""

WORD: Final = 256
"""Characters of a reason, which kubelets give, and of an image."""

LONGEST: Final = 4 * MESSAGE
"""Characters of what a reader makes of a status; the rules that write conditions cut it further."""


def length(found: Any) -> int:
    """Characters of all texts in something."""
    if isinstance(found, str):
        return len(found)
    if is_dataclass(found):
        return sum(length(getattr(found, one.name)) for one in fields(found))
    if isinstance(found, Mapping):
        return sum(length(key) + length(value) for key, value in found.items())
    return sum(map(length, found)) if isinstance(found, (list, tuple, frozenset)) else 0


def state(kind: str, text: str) -> dict[str, Any]:
    ended = {"exitCode": 1, "reason": text[:WORD], "message": text[:MESSAGE], "startedAt": TIME, "finishedAt": TIME}
    states: dict[str, dict[str, Any]] = {
        "waiting": {"waiting": {"reason": text[:WORD], "message": text}},
        "crashing": {"waiting": {"reason": "CrashLoopBackOff", "message": text}},
        "running": {"running": {"startedAt": TIME}},
        "ended": {"terminated": ended},
        "passed": {"terminated": {**ended, "exitCode": 0}},
        "refused": {"terminated": {**ended, "exitCode": 9, "reason": "StartError"}},
    }
    return states[kind]


TIME: Final = (NOW - timedelta(hours=1)).isoformat()
KINDS: Final = ("waiting", "crashing", "running", "ended", "passed", "refused")
PHASES: Final = ("Pending", "Running", "Succeeded", "Failed")


def pods(text: str) -> Iterator[dict[str, Any]]:
    """Pods in every state, with a hostile text in each place where a program of the pod, or its image, has a say."""
    for kind in KINDS:
        for phase in PHASES:
            shown = [
                {
                    "name": name,
                    "image": text[:WORD],
                    "ready": False,
                    "restartCount": 9,
                    "state": state(kind, text),
                    "lastState": state("ended", text),
                }
                for name in NAMES
            ]
            unscheduled = [{"type": "PodScheduled", "status": "False", "message": text, "reason": "x"}]
            for conditions, said in itertools.product(([], unscheduled), (text, "")):
                yield {
                    "metadata": {
                        "name": "a-0",
                        "namespace": "ns",
                        "uid": "u",
                        "creationTimestamp": TIME,
                        "labels": {},
                        "annotations": {},
                    },
                    "spec": {"containers": [{"name": name} for name in NAMES], "volumes": []},
                    "status": {
                        "phase": phase,
                        "reason": said[:WORD] if phase == "Failed" else "",
                        "message": said[:MESSAGE],
                        "conditions": conditions,
                        "containerStatuses": shown,
                        "initContainerStatuses": shown[-1:],
                    },
                }


def functions_of_statuses() -> set[str]:
    """Functions that name a field in which kubelets tell what containers do."""
    return {
        f"{path}:{node.name}"
        for path, tree in parsed(*WORDS)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and not WORDS.isdisjoint(key for one in ast.walk(node) for key in keys(one))
    }


def keys(node: ast.AST) -> Iterator[Any]:
    """Keys that an expression looks up."""
    looked: list[ast.expr] = []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        looked = node.args[:1]
    elif isinstance(node, ast.Subscript):
        looked = [node.slice]
    elif isinstance(node, ast.Compare):
        looked = [node.left]
    yield from (one.value for one in looked if isinstance(one, ast.Constant))


@contextmanager
def calls() -> Iterator[set[str]]:
    """Functions of the operator that are called meanwhile."""
    found: set[str] = set()
    root = f"{PROJECT}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            found.add(f"{frame.f_code.co_filename.removeprefix(root)}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def test_every_reader_of_a_status_is_tried() -> None:
    with calls() as called:
        for pod in pods("a"):
            for reader in STATUS.values():
                reader(pod)
    assert functions_of_statuses() - called - IN_A_CLUSTER == set(), "add what calls it to STATUS"


TEXTS: Final = {
    **texts(65_536),
    "nested": "[" * 65_536,
    "objects": '{"a":' * 9_000,
    "lines": "error: a\n" * 8_000,
    "control": "\x00\x1b[2J\x07\u202e" * 9_000,
    "numbers": "9" * 65_536,
    "NaN": '[{"size": NaN, "files": 1e999, "why": -Infinity}]',
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", STATUS)
def test_no_text_of_a_pod_costs_a_reader_of_its_status_much(name: str) -> None:
    costs, long = {}, {}
    for kind, text in TEXTS.items():
        for place, pod in enumerate(pods(text)):
            with measured(traced=False) as cost:
                found = STATUS[name](pod)
            costs[f"{kind} {place}"] = cost()
            if len(str(found)) > LONGEST:
                long[f"{kind} {place}"] = len(str(found))
    assert too_much(costs) == {}
    assert long == {}
