"""Stories of upgrades, keys and accounting."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from slinky_api import labels
from slinky_operator.kube import resources
from slurm_client import errors
from tests.support.account_database import AccountDatabase
from tests.support.memory_kube import name_of
from tests.unit.cluster.stories.lives import KEY
from tests.unit.cluster.stories.seeded import Story
from tests.unit.cluster.stories.site import ACCOUNTING, CONTROLLER, DATABASE, NAME, NAMESPACE, Site
from tests.unit.cluster.stories.slurm import job

OLD, NEW = "24.11.5", "26.05.5"
TREE: dict[str, Any] = {
    "qos": [{"name": "fast", "preempts": ["normal"]}],
    "accounts": [{"name": "physics", "qos": ["fast"], "users": ["alice"]}, {"name": "chemistry", "parent": "physics"}],
    "users": [{"name": "bob", "defaultAccount": "physics", "associations": [{"account": "physics"}]}],
}


def images(tag: str, **parts: str) -> dict[str, Any]:
    """A Cluster whose daemons have images of one release, but for some."""
    tags = {"controller": tag, "restapi": tag, "accounting": tag, **parts}
    daemons = {"controller": "slurmctld", "restapi": "slurmrestd", "accounting": "slurmdbd"}
    return {part: {"image": f"{daemons[part]}:{one}"} for part, one in tags.items() if one}


async def upgraded(site: Site, before: Mapping[str, Any], after: Mapping[str, Any], *, kills: int = 0) -> None:
    """All daemons get other images, one after the other."""
    site.edit(before)
    site.slurm.release = OLD
    site.node_set("compute")
    await site.runs()
    site.edit(after)
    await site.with_kills(kills)
    await site.settle(60)


async def daemon_hangs(site: Site) -> None:
    """slurmdbd of the new release does not come up; then the spec is taken back."""
    site.edit(images(OLD))
    site.slurm.release = OLD
    await site.runs()
    site.starting.add(ACCOUNTING)
    site.edit(images(NEW))
    await site.settle(12)
    site.edit(images(OLD))
    await site.settle(12)
    site.starting.clear()
    await site.settle()


async def refused_upgrade(site: Site, trial: str, end: tuple[int, str]) -> None:
    """A trial refuses the new slurmctld, or has no result; then it ends well."""
    site.edit(images(OLD, accounting=""))
    site.slurm.release = OLD
    await site.runs()
    site.ends = lambda mark, container, pod: end if mark == trial else (0, "")
    site.edit(images(NEW, accounting=""))
    await site.settle(16)
    site.restart()
    await site.settle(8)
    site.ends = lambda mark, container, pod: (0, "")
    site.wait(310)
    await site.settle()


async def other_template(site: Site) -> None:
    """The pod of slurmctld gets other settings, which are rehearsed; one cannot be merged."""
    await site.runs()
    site.edit({"controller": {"template": {"spec": {"priorityClassName": "high"}}}})
    await site.settle()
    site.edit({"controller": {"template": {"spec": {"containers": "none"}}}})
    await site.settle(8)
    site.edit({"controller": {"resources": {"limits": {"cpu": "3"}}}, "restapi": {"replicas": 2}})
    await site.settle()


async def unseen(site: Site) -> None:
    """No cache shows slurmctld's StatefulSet, whose label somebody has changed; its pod is to be another."""
    await site.runs()
    found = site.kube.find(resources.STATEFULSETS, CONTROLLER, NAMESPACE)
    assert found is not None
    own = {**found["metadata"]["labels"], labels.LABEL_APP_MANAGED_BY: "somebody"}
    changed = site.kube.put(resources.STATEFULSETS, {**found, "metadata": {**found["metadata"], "labels": own}})
    site.kube.caches[name_of(resources.STATEFULSETS)].remove(changed)
    site.say("its StatefulSet is shown no more")
    site.edit({"controller": {"template": {"metadata": {"annotations": {"a": "b"}}}}})
    await site.settle()


async def lost_key(site: Site, name: str, copy: str = "") -> None:
    """A Secret with a key is deleted, and then its copy too."""
    site.node_set("compute")
    await site.runs()
    site.slurmd("compute-0")
    for one in filter(None, (name, copy)):
        site.say(f"Secret {one} is deleted")
        site.kube.end(resources.SECRETS, one, NAMESPACE)
    site.wait(61)
    await site.settle()
    site.restart()
    await site.settle(8)


async def other_key(site: Site, name: str, key: str) -> None:
    """Somebody puts another key into a Secret of the operator's, and takes it back."""
    await site.runs()
    secret = site.kube.find(resources.SECRETS, name, NAMESPACE)
    assert secret is not None
    site.say(f"Secret {name} has another key")
    other = {**secret["data"], key: base64.b64encode(b"other" * 10).decode()}
    site.kube.put(resources.SECRETS, {**secret, "data": other})
    site.wait(61)
    await site.settle(16)
    site.say("the key is back")
    site.kube.put(resources.SECRETS, {**secret, "data": secret["data"]})
    site.wait(61)
    await site.settle(16)


async def jwt_rotated(site: Site) -> None:
    """The user's key of auth/jwt changes; slurmctld takes it at the second trial."""
    site.secret("key", {"file": b"k" * 40})
    site.edit({"auth": {"jwtKeyRef": KEY}})
    await site.runs()
    site.slurm.refused_tokens = 1
    site.say("the key changes")
    site.secret("key", {"file": b"n" * 40})
    site.wait(61)
    await site.settle(20)


def key_set(*names: str) -> dict[str, bytes]:
    """A key set by names; the default in upper case."""
    keys = []
    for name in names:
        kid = name.lower()
        one = {"kty": "oct", "alg": "HS256", "kid": kid, "k": base64.b64encode(kid.encode() * 32).decode()}
        keys.append(one | ({"use": "default"} if name.isupper() else {}))
    return {"slurm.jwks": json.dumps({"keys": keys}).encode()}


async def set_rotated(site: Site, *steps: tuple[str, ...], lacks: str = "") -> None:
    """A key set of the user's is replaced step by step; some daemons lack a key for a while."""
    site.secret("mine", key_set("A"))
    site.edit({"auth": {"slurmKeyRef": {"name": "mine", "key": "slurm.jwks"}}})
    site.node_set("compute")
    await site.runs()
    site.slurmd("compute-0")
    for number, step in enumerate(steps):
        site.say(f"the keys are {', '.join(step)}")
        site.slurm.lacks_keys = frozenset(lacks)
        site.secret("mine", key_set(*step), annotations={"version": str(number)})
        site.wait(61)
        await site.settle(8)
        site.say("every daemon has them")
        site.slurm.lacks_keys = frozenset()
        for seconds in (70, 70, 10):
            site.wait(seconds)
            await site.rounds(3)


async def set_killed(site: Site) -> None:
    """The same with an operator that is killed after each write."""
    site.secret("mine", key_set("A"))
    site.edit({"auth": {"slurmKeyRef": {"name": "mine", "key": "slurm.jwks"}}})
    await site.runs()
    site.secret("mine", key_set("A", "b"))
    site.say("the keys are A, b")
    site.wait(61)
    await site.with_kills(6)
    site.wait(120)
    await site.with_kills(4)
    site.wait(10)
    await site.settle()


async def accounted(site: Site) -> None:
    """MariaDB comes first, then slurmdbd; slurmdbd is away, and forgets its slurmctld."""
    site.edit({})
    await site.runs()
    site.starting.add(DATABASE)
    site.edit({"accounting": {}})
    await site.settle(10)
    site.starting.clear()
    site.starting.add(ACCOUNTING)
    await site.settle(10)
    site.starting.clear()
    await site.settle(30)
    site.say("slurmdbd is away")
    site.slurm.database.down = errors.ServerError("Unable to connect to the database")
    site.wait(31)
    await site.settle(8)
    site.slurm.database.down = None
    site.say("it knows no slurmctld, and then another one")
    for address in ("", "10.0.0.99", "10.0.0.1"):
        site.slurm.registered = address
        site.wait(31)
        await site.settle(6)
    site.edit({})
    await site.settle(20)


async def database_refused(site: Site) -> None:
    """slurmdbd does not take its next slurmdbd.conf."""
    site.edit({"accounting": {}})
    await site.runs()
    site.ends = lambda mark, container, pod: (1, "slurmdbd: fatal: Bogus") if mark == "s" else (0, "")
    site.edit({"accounting": {"extraConf": "PurgeJobAfter=12months"}})
    await site.settle(12)
    site.restart()
    await site.settle(8)
    site.ends = lambda mark, container, pod: (0, "")
    site.wait(310)
    await site.settle()


async def password_lost(site: Site) -> None:
    """The password of MariaDB is lost, alone and with its copies."""
    site.edit({"accounting": {}})
    await site.runs()
    for names in ((f"{DATABASE}-password",), (f"{DATABASE}-password", DATABASE), (ACCOUNTING,)):
        for name in names:
            site.say(f"Secret {name} is deleted")
            site.kube.end(resources.SECRETS, name, NAMESPACE)
        site.wait(61)
        await site.settle()


async def databases(site: Site) -> None:
    """Accounting moves from MariaDB in Kubernetes to a database, and to a slurmdbd elsewhere."""
    site.secret("key", {"file": b"password"})
    site.edit({"accounting": {}})
    await site.runs()
    site.edit({"accounting": {"database": {"host": "there", "passwordRef": KEY}}})
    await site.settle(30)
    site.edit({"accounting": {"external": {"host": "there"}}})
    await site.settle(30)


async def accounts(site: Site) -> None:
    """A tree of accounts: made, changed by somebody else, refused, faulty, pruned, unanswered."""
    site.slurm.database = AccountDatabase(cluster="here_slurm")
    site.edit({"accounting": {"external": {"host": "there"}, "tree": TREE}})
    await site.settle()
    database = site.slurm.database
    site.say("somebody deletes an account")
    database.all_accounts.pop("chemistry", None)
    database.all_associations = {
        key: one for key, one in database.all_associations.items() if key.account != "chemistry"
    }
    site.wait(310)
    await site.settle()
    site.say("slurmdbd refuses an account")
    database.refuses = {"biology": errors.InvalidRequest("no")}
    more = {**TREE, "accounts": [*TREE["accounts"], {"name": "biology"}]}
    site.edit({"accounting": {"external": {"host": "there"}, "tree": more}})
    await site.settle()
    site.say("slurmdbd is away")
    database.down = errors.ServerError("Unable to connect to the database")
    site.edit({"accounting": {"external": {"host": "there"}, "tree": {**TREE, "prune": True}}})
    await site.settle(10)
    database.down, database.refuses = None, {}
    site.wait(61)
    await site.settle()
    site.edit({"accounting": {"external": {"host": "there"}, "tree": {"accounts": [{"name": "a", "parent": "b"}]}}})
    await site.settle(10)


async def failing_jobs(site: Site) -> None:
    """Jobs are counted; one fails since its file cannot be opened."""
    site.node_set("compute")
    await site.runs()
    site.slurm.jobs = (job(7), job(8, "PENDING"), job(9, "COMPLETED"))
    site.wait(6)
    await site.rounds(3)
    site.slurm.jobs = (job(7, "FAILED", standard_output="/nowhere/a", exit_code=None),)
    site.wait(6)
    await site.rounds(3)


STORIES: Mapping[str, Story] = {
    "upgrade": partial(upgraded, before=images(OLD), after=images(NEW)),
    "upgrade with a change": partial(upgraded, before=images(OLD), after={**images(NEW), "extraConf": "KillWait=7"}),
    "upgrade without accounting": partial(
        upgraded, before=images(OLD, accounting=""), after=images(NEW, accounting="")
    ),
    "upgrade by operators that are killed": partial(upgraded, before=images(OLD), after=images(NEW), kills=24),
    "downgrade": partial(upgraded, before=images(NEW, accounting=""), after=images(OLD, accounting="")),
    "too wide": partial(upgraded, before=images(OLD, accounting=""), after=images("27.11.0", accounting="")),
    "newer than slurmdbd": partial(upgraded, before=images(OLD), after=images(NEW, accounting=OLD)),
    "tags that say nothing": partial(upgraded, before=images(OLD), after=images("mine")),
    "daemon hangs": daemon_hangs,
    "rehearsal refused": partial(refused_upgrade, trial="r", end=(1, "slurmctld: fatal: no plugin")),
    "rehearsal without result": partial(refused_upgrade, trial="r", end=(137, "")),
    "state refused": partial(refused_upgrade, trial="t", end=(1, "slurmctld: fatal: Can not recover state")),
    "state not copied": partial(refused_upgrade, trial="t", end=(4, "it has 2048 MiB")),
    "no release": partial(refused_upgrade, trial="v", end=(127, "not found")),
    "other template": other_template,
    "unseen": unseen,
    "lost slurm key": partial(lost_key, name=f"{NAME}-auth-slurm"),
    "lost jwt key": partial(lost_key, name=f"{NAME}-auth-jwt"),
    "lost copy": partial(lost_key, name=f"{NAME}-auth-copy"),
    "lost key and copy": partial(lost_key, name=f"{NAME}-auth-slurm", copy=f"{NAME}-auth-copy"),
    "other slurm key": partial(other_key, name=f"{NAME}-auth-slurm", key="slurm.key"),
    "other jwt key": partial(other_key, name=f"{NAME}-auth-jwt", key="jwt.key"),
    "jwt key rotated": jwt_rotated,
    "key set rotated": lambda site: set_rotated(site, ("A", "b"), ("a", "B"), ("B",)),
    "key set with late daemons": lambda site: set_rotated(site, ("A", "b"), lacks="b"),
    "key set too fast": lambda site: set_rotated(site, ("B",), ("A", "b")),
    "key set by operators that are killed": set_killed,
    "accounting": accounted,
    "slurmdbd.conf refused": database_refused,
    "password lost": password_lost,
    "databases": databases,
    "accounts": accounts,
    "failing jobs": failing_jobs,
}
