"""Accounting of a Cluster: its daemons come in order, slurm.conf names slurmdbd at the right time, Secrets are kept."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from slinky_operator.cluster.actions import EmitEvent, MakePassword, PutKeyBack, Write, asks
from slinky_operator.cluster.parts.accounting import in_conf
from slinky_operator.cluster.parts.accounting.question import AccountingAnswer, AccountingQuestion
from slinky_operator.slurm.conf import parse
from tests.unit.cluster.parts.keys.key_model import EXPIRES, key_set
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import WALL, World, cluster_object

DBD, DATABASE = ("StatefulSet", "slurm-accounting"), ("StatefulSet", "slurm-database")
PASSWORD, STATEMENTS, CONF = "slurm-database-password", "slurm-database", "slurm-accounting"
ELSEWHERE = {"accounting": {"database": {"host": "db.there", "name": "acct", "passwordRef": {"name": "mine"}}}}


def make_ready(world: World, *keys: tuple[str, str]) -> None:
    for key in keys:
        world.children[key]["status"] = {"readyReplicas": 1}


def running(spec: dict[str, Any]) -> World:
    """A Cluster that has run without accounting, and now gets it."""
    world = settled()
    world.raw = {**world.raw, "spec": spec}
    world.settle()
    return world


def conf(world: World) -> str:
    return world.secrets[CONF]["slurmdbd.conf"].decode()


def template(world: World, key: tuple[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = world.children[key]["spec"]["template"]
    return found


def accounting(world: World) -> tuple[str, str, str]:
    found = world.condition("AccountingReady")
    return found["status"], found["reason"], found.get("message", "")


def test_the_database_comes_first_then_slurmdbd() -> None:
    world = settled({"accounting": {}})
    assert DATABASE in world.children
    assert DBD not in world.children
    assert accounting(world)[:2] == ("False", "DaemonsStarting")
    make_ready(world, DATABASE)
    world.settle()
    assert DBD in world.children


def test_a_daemon_without_a_pod_is_told_with_where_to_look() -> None:
    world = settled({"accounting": {}})
    words = (
        "{} has no pod; if that lasts, kubectl -n here describe statefulset {} says why. A slurmctld that has reached"
    )
    assert accounting(world)[2].startswith(words.format("MariaDB", "slurm-database"))
    world.children[DATABASE]["status"] = {"replicas": 1}
    world.settle()
    assert accounting(world)[2].startswith("MariaDB is starting. ")
    make_ready(world, DATABASE)
    world.settle()
    assert accounting(world)[2].startswith(words.format("slurmdbd", "slurm-accounting"))
    world.children[DBD]["status"] = {"replicas": 1}
    world.settle()
    assert accounting(world)[:2] == ("False", "DaemonsStarting")
    assert accounting(world)[2].startswith("slurmdbd is starting. ")


def test_a_new_cluster_names_slurmdbd_from_its_first_file_on() -> None:
    world = settled({"accounting": {}})
    assert "AccountingStorageHost=slurm-accounting.here.svc" in world.slurm_conf
    assert "openapi/slurmdbd" in str(template(world, ("Deployment", "slurm-restapi")))


def test_slurmdbd_keeps_the_marks_of_slurmjobs_unless_extra_conf_says_otherwise() -> None:
    world = settled({"accounting": {}})
    assert "AccountingStoreFlags=job_extra" in world.slurm_conf.splitlines()
    world = settled({"accounting": {}, "extraConf": "AccountingStoreFlags=job_comment"})
    assert [line for line in world.slurm_conf.splitlines() if line.startswith("AccountingStoreFlags")] == [
        "AccountingStoreFlags=job_comment"
    ]
    assert "AccountingStoreFlags" not in settled({}).slurm_conf


def test_a_running_cluster_names_slurmdbd_once_that_is_ready() -> None:
    world = running({"accounting": {}})
    assert not in_conf.has_accounting(parse(world.slurm_conf))
    assert "openapi/slurmdbd" not in str(template(world, ("Deployment", "slurm-restapi")))
    make_ready(world, DATABASE)
    world.settle()
    assert not in_conf.has_accounting(parse(world.slurm_conf))
    make_ready(world, DBD)
    for _ in range(12):
        world.step()
    assert in_conf.has_accounting(parse(world.slurm_conf))
    # It stays when slurmdbd is away.
    world.children[DBD]["status"] = {}
    for _ in range(12):
        world.step()
    assert in_conf.has_accounting(parse(world.slurm_conf))


def test_a_slurmctld_with_an_id_of_its_own_is_restarted_and_not_reconfigured() -> None:
    world = running({"accounting": {}})
    controller = ("StatefulSet", "slurm-controller")
    assert "CLUSTER_ID_OF" not in str(template(world, controller))
    make_ready(world, DATABASE)
    world.settle()
    make_ready(world, DBD)
    for _ in range(12):
        world.step()
    assert {"name": "CLUSTER_ID_OF", "value": "mariadb://"} in template(world, controller)["spec"]["containers"][0][
        "env"
    ]
    assert "being replaced" in world.condition("ConfigApplied")["message"]
    # The pod that follows has started with them.
    assert world.controller_pod is not None
    notes = template(world, controller)["metadata"]["annotations"]
    world.controller_pod = {
        "metadata": {"name": "slurm-controller-0", "namespace": "here", "uid": "next", "annotations": dict(notes)},
        "status": {"podIP": "10.0.0.2"},
    }
    for _ in range(12):
        world.step()
    assert world.condition("ConfigApplied")["status"] == "True"


def test_a_slurmdbd_elsewhere_is_only_named() -> None:
    world = settled({"accounting": {"external": {"host": "dbd.there", "port": 7000}}})
    assert {"AccountingStorageHost=dbd.there", "AccountingStoragePort=7000"} <= set(world.slurm_conf.splitlines())
    assert not {DBD, DATABASE} & world.children.keys()
    assert not {PASSWORD, CONF} & world.secrets.keys()


@pytest.mark.parametrize("answer", [{"why": "slurmdbd: Unable to connect to database"}, {}])
def test_one_elsewhere_that_is_away_is_named_with_what_slurm_does_not_say(answer: dict[str, Any]) -> None:
    world = settled({"accounting": {"external": {"host": "dbd.there"}}})
    world.memory.answers.note(AccountingQuestion, AccountingAnswer(world.now, **answer))
    world.step()
    status, why, words = accounting(world)
    assert (status, why) == ("False", "AccountingDown")
    assert answer.get("why", "has not registered") in words
    assert "spec.accounting.external is dbd.there, port 6819: it must be reachable from the pods" in words


def test_a_database_elsewhere_has_the_password_of_its_secret() -> None:
    world = settled(ELSEWHERE)
    assert accounting(world)[:2] == ("False", "SecretNotFound")
    assert DBD not in world.children
    world.secrets["mine"] = {"password": b"hush\n"}
    world.settle()
    assert {"StorageHost=db.there", "StorageLoc=acct", "StoragePass=hush"} <= set(conf(world).splitlines())
    assert DBD in world.children
    assert DATABASE not in world.children
    before = copy.deepcopy(template(world, DBD))
    world.secrets["mine"] = {"password": b"other"}
    world.settle()
    assert "StoragePass=other" in conf(world)
    assert template(world, DBD) != before
    assert "hush" not in str(before)


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({**ELSEWHERE["accounting"], "extraConf": "StorageHost=x"}, "ConfigRefused", "spec.accounting.extraConf: "),
        ({"database": {"host": "h", "passwordRef": {"name": "bad"}}}, "SecretInvalid", "key password of Secret bad"),
        ({"database": {"host": "h", "passwordRef": {"name": "bad", "key": "x"}}}, "SecretKeyNotFound", "no key x"),
    ],
)
def test_settings_that_cannot_be_used_are_reported_by_field(spec: dict[str, Any], reason: str, words: str) -> None:
    world = World(
        cluster_object({"accounting": spec}), secrets={"bad": {"password": b'a"b'}, "mine": {"password": b"p"}}
    )
    world.settle()
    status, found, message = accounting(world)
    assert (status, found) == ("False", reason)
    assert words in message
    assert words in world.condition("Degraded")["message"]
    assert DBD not in world.children


def test_extra_conf_does_not_say_where_slurmdbd_is_beside_accounting() -> None:
    world = World(cluster_object({"accounting": {}, "extraConf": "AccountingStorageHost=there"}))
    for _ in range(8):
        world.step()
    assert "AccountingStorageHost is written by the operator" in world.condition("ConfigApplied")["message"]


# The password


def test_a_lost_password_is_put_back_and_a_lost_pair_is_made_again() -> None:
    world = settled({"accounting": {}})
    password = world.secrets.pop(PASSWORD)
    log = world.settle()
    assert [one.tell.reason for one in log if isinstance(one, PutKeyBack)] == ["PasswordRestored"]
    assert world.secrets[PASSWORD] == password
    for name in (PASSWORD, STATEMENTS):
        del world.secrets[name]
    log = world.settle()
    assert any(isinstance(one, MakePassword) for one in log)
    assert [one.reason for one in log if isinstance(one, EmitEvent)] == ["PasswordReplaced"]
    assert password["password"] in world.secrets[STATEMENTS]["init.sql"]


def test_another_password_in_the_secret_restarts_both_daemons_with_it() -> None:
    world = settled({"accounting": {}})
    make_ready(world, DATABASE)
    world.settle()
    before = [copy.deepcopy(template(world, key)) for key in (DATABASE, DBD)]
    world.secrets[PASSWORD] = {"password": b"mine-now"}
    world.settle()
    assert "StoragePass=mine-now" in conf(world)
    assert b"IDENTIFIED BY 'mine-now'" in world.secrets[STATEMENTS]["init.sql"]
    assert all(template(world, key) != one for key, one in zip((DATABASE, DBD), before, strict=True))


def started(spec: dict[str, Any], secrets: dict[str, dict[str, bytes]] | None = None) -> World:
    """A Cluster with both daemons of accounting."""
    world = World(cluster_object({"accounting": {}, **spec}), secrets=secrets or {})
    world.settle()
    make_ready(world, DATABASE)
    world.settle()
    assert DBD in world.children
    return world


@pytest.mark.parametrize("lost", ["slurm-auth-slurm", "slurm-auth-jwt", "slurm-auth-copy"])
def test_a_lost_key_restarts_neither_daemon(lost: str) -> None:
    world = started({})
    before = [copy.deepcopy(world.children[key]["spec"]["template"]) for key in (DATABASE, DBD)]
    written = world.secrets[CONF]
    del world.secrets[lost]
    # Every write of the passes in between counts: each one of a template is a restart.
    log = world.settle()
    assert not [one for one in log if isinstance(one, Write) and one.child.key in {DATABASE, DBD}]
    assert [template(world, key) for key in (DATABASE, DBD)] == before
    assert world.secrets[CONF] == written


def test_a_step_of_a_key_set_restarts_slurmdbd_if_it_must_have_the_key_and_never_the_database() -> None:
    spec = {"auth": {"slurmKeyRef": {"name": "mine", "key": "slurm.jwks"}}}
    world = started(spec, {"mine": {"slurm.jwks": key_set("A")}})
    templates = []
    for names in (("A",), ("A", "b"), ("a-", "B"), ("B",)):
        world.secrets["mine"] = {"slurm.jwks": key_set(*names)}
        world.wall = WALL if "B" not in names or "a-" in names else WALL + 2 * EXPIRES
        world.settle()
        assert world.secrets["slurm-auth-copy"]["slurm.key"] == key_set(*names)
        templates.append([copy.deepcopy(template(world, key)) for key in (DATABASE, DBD)])
    databases, dbds = zip(*templates, strict=True)
    assert all(one == databases[0] for one in databases)
    assert dbds[0] != dbds[1] != dbds[2]
    assert dbds[3] == dbds[2]


def test_a_key_of_tokens_reaches_slurmctld_then_slurmdbd_and_the_database_never_restarts() -> None:
    world = started({"auth": {"jwtKeyRef": {"name": "mine"}}}, {"mine": {"jwt_hs256.key": b"j" * 32}})
    before = [copy.deepcopy(template(world, key)) for key in (DATABASE, DBD)]
    pod = {"metadata": {"name": "slurm-accounting-0", "annotations": before[1]["metadata"]["annotations"]}}
    world.daemon_pods = {"accounting": (pod,)}
    world.accepts, world.secrets["mine"] = b"j" * 32, {"jwt_hs256.key": b"n" * 32}
    for _ in range(40):
        world.step()
    assert [template(world, key) for key in (DATABASE, DBD)] == before
    found = world.condition("Progressing")
    assert found["reason"] == "KeyPending"
    assert "tokens signed with it were refused, the last with: Protocol authentication error" in found["message"]
    world.accepts = b"n" * 32
    world.now += 60
    for _ in range(40):
        world.step()
    assert world.secrets["slurm-auth-copy"]["jwt.key"] == b"n" * 32
    database, dbd = (template(world, key) for key in (DATABASE, DBD))
    assert database == before[0]
    assert dbd != before[1]
    assert "slurmctld has read the new jwt_hs256.key" in world.condition("Progressing")["message"]
    pod["metadata"]["annotations"] = dbd["metadata"]["annotations"]
    world.step()
    assert world.condition("Progressing")["reason"] != "KeyPending"


def test_an_operator_of_an_earlier_release_has_left_no_salt_and_nothing_restarts() -> None:
    world = started({})
    before = [copy.deepcopy(template(world, key)) for key in (DATABASE, DBD)]
    for name in ("mounts-salt", "mounts-keys"):
        del world.secrets["slurm-auth-copy"][name]
    world.memory.keys.known = {}
    log = world.settle()
    assert not [one for one in log if isinstance(one, Write) and one.child.key in {DATABASE, DBD}]
    assert [template(world, key) for key in (DATABASE, DBD)] == before
    # What it must not rest on is somebody else's text there.
    world.secrets["slurm-auth-copy"]["mounts-salt"] = b"[1]"
    world.settle()
    assert [template(world, key) for key in (DATABASE, DBD)] == before


def test_nothing_is_written_again_when_all_is_there() -> None:
    world = settled({"accounting": {}})
    make_ready(world, DATABASE)
    world.settle()
    assert not [one for one in world.settle() if isinstance(one, Write)]


# What Slurm says


def answered(**answer: Any) -> World:
    world = settled({"accounting": {}})
    make_ready(world, DATABASE)
    world.settle()
    make_ready(world, DBD)
    for _ in range(4):
        world.step()
    world.memory.answers.note(AccountingQuestion, AccountingAnswer(world.now, **answer))
    for _ in range(4):
        world.step()
    return world


def test_it_is_ready_once_its_slurmctld_has_registered() -> None:
    assert accounting(answered(controller="10.0.0.1"))[0] == "True"
    assert accounting(answered())[:2] == ("False", "AccountingDown")


def answers(world: World, controller: str) -> tuple[str, str, str]:
    """What is said after an answer of slurmdbd."""
    before = world.memory.answers.of(AccountingQuestion)
    again = before is not None and before.controller == controller
    world.memory.answers.note(AccountingQuestion, AccountingAnswer(world.now, controller, again=again))
    world.step()
    return accounting(world)


def moved(world: World, address: str) -> World:
    """Give slurmctld's pod another address, as an eviction does."""
    assert world.controller_pod is not None
    world.controller_pod = {**world.controller_pod, "status": {"podIP": address}}
    return world


def test_slurmctld_of_another_cluster_of_the_name_is_reported() -> None:
    world = answered(controller="10.0.0.1")
    # The cache may show an earlier pod than slurmdbd does.
    assert answers(world, "10.9.9.9")[:2] == ("False", "DaemonsStarting")
    status, reason, message = answers(world, "10.9.9.9")
    assert (status, reason) == ("False", "ClusterNameTaken")
    assert "10.9.9.9" in message
    assert "another clusterName" not in message
    assert world.condition("Ready")["status"] == "True"
    assert answers(world, "10.0.0.1")[0] == "True"


@pytest.mark.parametrize("is_restarted", [False, True])
def test_an_earlier_address_of_slurmctld_is_not_that_of_another_cluster(is_restarted: bool) -> None:
    world = moved(answered(controller="10.0.0.1"), "10.0.0.2")
    if is_restarted:
        world.memory.answers.note(AccountingQuestion, None)
    for _ in range(4):
        status, reason, message = answers(world, "10.0.0.1")
        assert (status, reason) == ("False", "DaemonsStarting")
        assert "from its address 10.0.0.2 yet; slurmdbd has 10.0.0.1, that of an earlier pod" in message
    assert answers(world, "10.0.0.2")[0] == "True"
    assert world.raw["status"]["slurmctldAddresses"] == ["10.0.0.2", "10.0.0.1"]


def test_an_address_that_was_never_seen_is_no_proof_before_slurmctld_has_registered() -> None:
    """An operator that was away has not seen each of slurmctld's pods."""
    world = moved(answered(controller="10.0.0.1"), "10.0.0.3")
    for _ in range(4):
        assert answers(world, "10.0.0.2")[:2] == ("False", "DaemonsStarting")
    assert answers(world, "10.0.0.3")[0] == "True"


def test_slurmctld_is_known_by_each_of_its_addresses() -> None:
    world = answered(controller="10.0.0.1")
    assert world.controller_pod is not None
    both = {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}
    world.controller_pod = {**world.controller_pod, "status": both}
    assert answers(world, "fd00::1")[0] == "True"


def test_few_addresses_are_kept() -> None:
    world = answered(controller="10.0.0.1")
    for number in range(2, 20):
        answers(moved(world, f"10.0.0.{number}"), f"10.0.0.{number}")
    assert world.raw["status"]["slurmctldAddresses"] == [f"10.0.0.{number}" for number in range(19, 11, -1)]


def test_a_slurmdbd_that_does_not_answer_makes_no_cluster_unready() -> None:
    world = answered(why="slurmdbd: it is away")
    assert accounting(world)[:2] == ("False", "AccountingDown")
    assert "it is away. A slurmctld that has reached" in world.condition("Degraded")["message"]
    assert world.condition("Ready")["status"] == "True"


def test_it_is_asked_again_sooner_while_it_does_not_answer() -> None:
    for why, pause in (("away", 5.0), ("", 30.0)):
        world = answered(why=why, controller="" if why else "10.0.0.1")
        world.memory.answers.note(AccountingQuestion, AccountingAnswer(world.now, "" if why else "10.0.0.1", why))
        world.now += pause - 0.1
        assert not any(asks(one, AccountingQuestion) for one in world.plan().actions)
        world.now += 0.2
        assert any(asks(one, AccountingQuestion) for one in world.plan().actions)


def test_accounting_that_is_switched_off_goes_and_its_data_stay() -> None:
    world = settled({"accounting": {}})
    make_ready(world, DATABASE)
    world.settle()
    assert template(world, DATABASE)["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] == "/var/lib/mysql"
    policy = world.children[DATABASE]["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert set(policy.values()) == {"Retain"}
    world.raw = {**world.raw, "spec": {}}
    for _ in range(8):
        world.step()
    assert not {DBD, DATABASE, ("Service", "slurm-accounting")} & world.children.keys()
    assert not in_conf.has_accounting(parse(world.slurm_conf))
