"""No code of ours runs in a thread that nobody has thought about.

A call in the default executor of asyncio, a pool or a thread of its own needs a purpose and a reason why it ends, and
must not be begun twice for the same object: `slinky_operator.runtime.threads` sees to that in the operator. Code that
needs a thread elsewhere adds it here, with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from slinky_operator.runtime import threads

ROOT = Path(__file__).parents[3]
PACKAGES = ("slinky_operator", "slurm_client", "slurm_exporter", "api/slinky_api")

EXECUTORS = frozenset(
    {
        "to_thread",
        "run_in_executor",
        "run_sync",
        "set_default_executor",
        "ThreadPoolExecutor",
        "ProcessPoolExecutor",
        "Thread",
        "Timer",
        "start_new_thread",
    }
)

OWNERS = {
    "slinky_operator/runtime/threads.py": "the pools of the operator, each with a purpose and a bound",
    "slinky_operator/runtime/loop_lag.py": "one for the process, which watches the event loop and must not be in it",
    "slinky_operator/pod_programs/agent/resolver.py": "the agent's own process; a fixed number that look up names",
    "slinky_operator/pod_programs/agent/volumes.py": "the agent's own process; one a volume, since a look may hang",
    "slinky_operator/pod_programs/joblogs/command.py": "its own process; one that ends with its pod's other container",
    "slinky_operator/pod_programs/joblogs/server/listener.py": "its own process; one a connection, with a limit",
    "slurm_client/tokens.py": "one for each token file, in which one read runs at a time",
    "slurm_client/sync/base.py": "the event loop of the blocking client, one for each client",
    "slurm_client/testing/threaded.py": "the event loop of the fake slurmrestd in tests of users",
    "slurm_exporter/exporter.py": "one, in which one family of a page is written at a time; budgets bound it",
}


SPEC = "specs have a weight (`kube.cache.weight`)"
ANSWER = "answers of Slurm have a size and a number of objects (`slurm_client.connection.intake`)"
OURS = "a number that the operator itself decides"

WORK = {
    "slinky_operator/autoscaling/controller.py:self._count": "steps and a deadline (`autoscaling.rules.effort`)",
    "slinky_operator/cluster/controller.py:plan": SPEC,
    "slinky_operator/cluster/parts/accounts/apply.py:wanted.wanted": SPEC,
    "slinky_operator/cluster/parts/accounts/apply.py:pruning.is_needed": ANSWER,
    "slinky_operator/cluster/parts/accounts/apply.py:_compare": ANSWER,
    "slinky_operator/cluster/parts/accounts/apply.py:gather": ANSWER,
    "slinky_operator/cluster/parts/accounts/apply.py:lambda": ANSWER,
    "slinky_operator/kube/cache/parse_cache.py:self._parse_all": SPEC,
    "slinky_operator/loginset/execute.py:host_keys.generate": OURS,
    "slinky_operator/node_labels/config_map.py:parse": "a ConfigMap has a mebibyte, which administrators write",
    "slinky_operator/nodeset/controller.py:rules": f"{SPEC}, and {ANSWER}",
    "slinky_operator/slurm/nodes/reference_query.py:node_references.find": ANSWER,
    "slinky_operator/sylabs/controller.py:plan": SPEC,
    "slinky_operator/runtime/health.py:encode": OURS,
    "slinky_operator/virtual_nodes/kubelet/service.py:self._read_pair": OURS,
    "slinky_operator/virtual_nodes/kubelet/service.py:certificate.context": OURS,
    "slinky_operator/virtual_nodes/kubelet/service.py:self._stand_in": OURS,
    "slinky_operator/virtual_nodes/kubelet/service.py:certificate.read_file": OURS,
    "slinky_operator/virtual_nodes/nodes/observation.py:facts": ANSWER,
    "slinky_operator/slurm/jobs/job_list.py:remembered": ANSWER,
    "slinky_operator/slurmjob/model/slurm_records/reading.py:rule": ANSWER,
    "slinky_operator/slurmjob/translations.py:_translated": SPEC,
}
"""What runs in a thread of the operator, and why it ends."""

POOLS = {"RULES", "COUNTS", "JOBS", "PAGES", "KEYS", "CERTIFICATES"}
"""The pools of `runtime.threads`."""


def pooled(source: str) -> Iterator[str]:
    """Functions that a module has run in a pool."""
    tree = ast.parse(source)
    taken = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "slinky_operator.kube.cache.weight"
        for alias in node.names
        if alias.name == "run_in_thread"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in taken or (called.endswith(".run") and called.split(".")[-2] in POOLS):
                yield "lambda" if isinstance(node.args[1], ast.Lambda) else ast.unparse(node.args[1])


def uses(source: str) -> Iterator[str]:
    """Names in a module by which code gets into another thread."""
    for node in ast.walk(ast.parse(source)):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else [name]
        yield from EXECUTORS.intersection(names)


def modules() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def test_each_module_that_uses_threads_has_said_why() -> None:
    found = {name: sorted(set(uses(source))) for name, source in modules()}
    unknown = {name: used for name, used in found.items() if used and name not in OWNERS}
    assert not unknown, "run it in a pool of slinky_operator/runtime/threads.py, or add the module with its reason"
    assert {name for name in OWNERS if not found.get(name)} == set(), "these use no threads any more"


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasync def one():\n    await asyncio.to_thread(print)",
        "from asyncio import to_thread as elsewhere",
        "loop.run_in_executor(None, print)",
        "import concurrent.futures as f\nf.ThreadPoolExecutor()",
        "import anyio\nanyio.to_thread.run_sync(print)",
        "import threading\nthreading.Thread(target=print)",
    ],
)
def test_each_way_into_a_thread_is_found(source: str) -> None:
    assert list(uses(source))


def test_each_work_of_a_pool_has_said_why_it_ends() -> None:
    found = {f"{name}:{work}" for name, source in modules() for work in pooled(source)}
    # `decide` gives on what it is given.
    assert found - {"slinky_operator/kube/cache/weight.py:rules"} == WORK.keys()


def test_the_pools_are_made_in_one_place() -> None:
    made = {name: source.count("Pool(") for name, source in modules() if name.startswith("slinky_operator/")}
    assert {name for name, count in made.items() if count} == {"slinky_operator/runtime/threads.py"}
    assert {name for name in vars(threads) if isinstance(getattr(threads, name), threads.Pool)} == POOLS


def test_work_of_a_pool_is_found() -> None:
    source = (
        "from slinky_operator.kube.cache.weight import run_in_thread as off\nasync def f():\n    await off(k, rules, 1)"
    )
    assert list(pooled(source)) == ["rules"]
    assert list(pooled("async def f():\n    await threads.RULES.run(k, other.rules)")) == ["other.rules"]
