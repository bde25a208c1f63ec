"""A slurmdbd that runs gets no configuration that a disposable one has not accepted."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from typing_extensions import override

from slinky_operator.cluster.actions import EmitEvent, Remove, StartPreflight
from slinky_operator.cluster.memory.writes import Denied
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import WALL, World

DBD, DATABASE, CONF = ("StatefulSet", "slurm-accounting"), ("StatefulSet", "slurm-database"), "slurm-accounting"
GOOD, BAD = "PurgeJobAfter=12months", "Bogus=1"


class Trials(World):
    """What a trial of slurmdbd.conf shows, until a test lets it end."""

    end: dict[str, Any] | None = None
    status: dict[str, Any] | None = None

    @override
    def happen(self, action: Any) -> None:
        """Keep the pods of trials as the test wants them; everything else as ever."""
        read = action.preflight.config_map if isinstance(action, StartPreflight) else None
        if read is None or "slurmdbd.conf" not in read.body["data"]:
            return super().happen(action)
        name = action.preflight.name
        pod = copy.deepcopy(action.preflight.pod.body)
        pod["metadata"] |= {"uid": f"uid-of-{name}", "creationTimestamp": WALL.isoformat()}
        pod["status"] = self.status or {}
        self.preflights[name] = pod
        config_map = copy.deepcopy(read.body)
        config_map["metadata"]["uid"] = f"uid-of-{name}"
        self.children["ConfigMap", name] = config_map
        return None


def ended(code: int, words: str = "") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "message": words}}
    return {
        "phase": "Succeeded" if code == 0 else "Failed",
        "containerStatuses": [{"name": "slurmdbd", "state": state}],
    }


def world(spec: dict[str, Any] | None = None) -> Trials:
    """A Cluster whose slurmdbd runs."""
    found = settled({"accounting": spec or {}})
    found.__class__ = Trials
    assert isinstance(found, Trials)
    for key in (DATABASE, DBD):
        found.settle()
        found.children[key]["status"] = {"readyReplicas": 1}
    steps(found)
    return found


def change(of: World, **accounting: Any) -> None:
    of.raw = {**of.raw, "spec": {**of.raw["spec"], "accounting": accounting}}


def steps(of: World, number: int = 8) -> None:
    of.log = []
    for _ in range(number):
        of.step()


def conf(of: World) -> str:
    return of.secrets[CONF]["slurmdbd.conf"].decode()


def shown(of: World) -> tuple[str, str, str]:
    found = of.condition("AccountingReady")
    return found["status"], found["reason"], found.get("message", "")


def trials(of: World) -> list[str]:
    return [name for name in of.preflights if "-preflight-s" in name]


def test_what_is_being_tried_reaches_no_secret_and_no_pod() -> None:
    one = world()
    before, template = conf(one), copy.deepcopy(one.children[DBD]["spec"]["template"])
    change(one, extraConf=GOOD)
    steps(one)
    assert len(trials(one)) == 1
    assert conf(one) == before
    assert one.children[DBD]["spec"]["template"] == template
    assert shown(one)[0] == "True"


def test_what_it_accepts_is_written_and_its_objects_are_deleted() -> None:
    one = world()
    one.status = ended(0)
    before = copy.deepcopy(one.children[DBD]["spec"]["template"])
    change(one, extraConf=GOOD)
    steps(one)
    assert GOOD in conf(one)
    assert one.children[DBD]["spec"]["template"] != before
    assert not trials(one)
    assert not [name for _, name in one.children if "-preflight-s" in name]


def test_what_it_refuses_changes_nothing_and_is_shown_with_its_words() -> None:
    one = world()
    one.status = ended(1, "slurmdbd: error: _parse_next_key: Parsing error at unrecognized key: Bogus")
    before, template = conf(one), copy.deepcopy(one.children[DBD]["spec"]["template"])
    change(one, extraConf=BAD)
    steps(one, 40)
    assert conf(one) == before
    assert one.children[DBD]["spec"]["template"] == template
    status, reason, message = shown(one)
    assert (status, reason) == ("False", "ConfigRefused")
    assert "slurmdbd refuses it: error: _parse_next_key: Parsing error at unrecognized key: Bogus" in message
    assert "goes on with its earlier configuration" in message
    assert one.condition("Ready")["status"] == "True"
    assert [type(action) for action in one.log].count(StartPreflight) == 1
    assert [action.reason for action in one.log if isinstance(action, EmitEvent)] == ["ConfigRefused"]
    # What is corrected is tried, and written.
    one.status = ended(0)
    change(one, extraConf=GOOD)
    steps(one)
    assert GOOD in conf(one)
    assert shown(one)[1] == "DaemonsStarting"


def test_a_refused_text_that_is_taken_back_needs_no_trial() -> None:
    one = world()
    one.status = ended(1, "fatal: no")
    change(one, extraConf=BAD)
    steps(one)
    change(one)
    steps(one)
    assert shown(one)[0] == "True"
    assert not any(isinstance(action, StartPreflight) for action in one.log)


def test_a_slurmdbd_that_does_not_run_takes_its_correction_untried() -> None:
    one = world()
    one.children[DBD]["status"] = {}
    change(one, extraConf=GOOD)
    steps(one)
    assert GOOD in conf(one)
    assert not any(isinstance(action, StartPreflight) for action in one.log)


def test_a_change_of_the_password_alone_is_not_tried() -> None:
    one = world()
    one.secrets["slurm-database-password"] = {"password": b"another"}
    steps(one)
    assert "StoragePass=another" in conf(one)
    assert not any(isinstance(action, StartPreflight) for action in one.log)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (ended(2, "no word"), "its trial gave no result and is repeated: no word"),
        (ended(3, "sh: slurmdbd: not found"), "its image has no slurmdbd that can be run: sh: slurmdbd: not found"),
        ({"phase": "Failed", "reason": "Evicted"}, "is repeated: Evicted"),
    ],
)
def test_a_trial_without_a_result_decides_nothing_and_is_repeated(status: dict[str, Any], words: str) -> None:
    one = world()
    one.status = status
    before = conf(one)
    change(one, extraConf=GOOD)
    steps(one)
    assert conf(one) == before
    assert shown(one)[:2] == ("False", "ConfigUntried")
    assert words in shown(one)[2]
    assert not trials(one)
    one.now += 40
    one.status = ended(0)
    steps(one)
    assert GOOD in conf(one)


def test_a_trial_that_does_not_start_or_is_not_admitted_says_why() -> None:
    one = world()
    one.status = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no Node has room"}]}
    change(one, extraConf=GOOD)
    steps(one)
    assert "does not start: not scheduled: no Node has room" in shown(one)[2]
    (name,) = trials(one)
    one.memory.writes.denied["Pod", name] = Denied("", "a quota", one.now)
    steps(one, 4)
    assert "cannot be created: a quota" in shown(one)[2]


def test_its_pod_is_slurmdbds_next_one_without_claims_keys_and_password() -> None:
    mounts = [{"name": "archive", "mountPath": "/archive"}, {"name": "certs", "mountPath": "/certs"}]
    volumes = [
        {"name": "archive", "persistentVolumeClaim": {"claimName": "mine"}},
        {"name": "certs", "configMap": {"name": "certs"}},
    ]
    template = {
        "spec": {
            "priorityClassName": "high",
            "containers": [{"name": "slurmdbd", "volumeMounts": mounts}, {"name": "mine", "image": "mine:1"}],
            "volumes": volumes,
        }
    }
    one = world({"template": template})
    change(one, template=template, image="other:1", extraConf="ArchiveJobs=yes\nArchiveDir=/archive/jobs")
    steps(one)
    (name,) = trials(one)
    spec = one.preflights[name]["spec"]
    (container,) = spec["containers"]
    assert container["image"] == "other:1"
    assert spec["priorityClassName"] == "high"
    assert container["securityContext"]["readOnlyRootFilesystem"]
    kinds = [key for volume in spec["volumes"] for key in volume if key != "name"]
    assert set(kinds) == {"emptyDir", "configMap"}
    assert "/certs" in [one["mountPath"] for one in container["volumeMounts"]]
    text = one.children["ConfigMap", name]["data"]["slurmdbd.conf"]
    assert "ArchiveJobs=yes" in text
    assert "ArchiveDir" not in text
    assert "StoragePass" not in text


def test_what_containers_of_the_user_prepare_is_not_tried() -> None:
    template = {"spec": {"initContainers": [{"name": "prepare", "image": "mine:1"}], "containers": []}}
    one = world({"template": template})
    change(one, template=template, extraConf=GOOD)
    steps(one)
    assert GOOD in conf(one)


def test_trials_of_slurm_conf_and_of_slurmdbd_leave_each_other_alone() -> None:
    one = world()
    change(one, extraConf=GOOD)
    steps(one)
    (name,) = trials(one)
    one.raw = {**one.raw, "spec": {**one.raw["spec"], "extraConf": "MinJobAge=77"}}
    steps(one, 12)
    assert "MinJobAge=77" in one.slurm_conf
    assert trials(one) == [name]
    assert not [action for action in one.log if isinstance(action, Remove) and action.name == name]
