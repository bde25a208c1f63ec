"""oci.conf: nothing of a user's becomes more than a name in it."""

from __future__ import annotations

import re
import subprocess

import pytest

from slinky_operator.slurm.conf.containers import ContainerConf, text
from tests.unit.slurm.conf.goldens import Case

LONGEST = "/" + "a" * 127


def values(*mounts: str) -> dict[str, str]:
    lines = text(ContainerConf(mounts)).splitlines()[1:]
    found = [re.fullmatch(r'([A-Za-z]+)="([^"\\]*)"', line) for line in lines]
    assert all(found), lines
    return {match[1]: match[2] for match in found if match}


def test_slurm_can_read_every_line() -> None:
    assert all(len(line) < 4096 for line in text(ContainerConf((LONGEST,) * 8)).splitlines())
    known = set("@%bejmnprstuU")
    for value in values("/home").values():
        assert {found[1] for found in re.finditer("%(.)", value)} <= known


def test_no_command_of_roots_has_a_path_that_users_choose() -> None:
    # Slurm runs these as root, and %b is what a user gave to --container, %@ the command of the step.
    found = values("/home")
    for key in ("RunTimeQuery", "RunTimeKill", "RunTimeDelete"):
        assert not {"%b", "%r", "%e", "%@"} & set(re.findall("%.", found[key]))
    assert found["RunTimeDelete"].startswith("setpriv --reuid=%U --regid=65534 --clear-groups rm -rf %m/")


@pytest.mark.parametrize("mounts", [(), ("/home",), ("/home", "/scratch/a.b_c-d")])
def test_the_commands_are_what_a_shell_can_run(mounts: tuple[str, ...]) -> None:
    for key, value in values(*mounts).items():
        if key.startswith("RunTime") and key != "RunTimeEnvExclude":
            subprocess.run(["sh", "-n", "-c", value], check=True)


def test_an_oci_conf_of_the_users_stays_unless_the_operator_writes_one() -> None:
    own = {"oci.conf": "RunTimeRun=x\n"}
    assert Case({"configFiles": own}).render().files["oci.conf"] == own["oci.conf"]
    assert "oci.conf" not in Case().render().files
    both = Case({"configFiles": own, "containers": {}}).render()
    assert [(one.field, one.reason[:25]) for one in both.problems] == [("spec.containers", "oci.conf is given by conf")]


@pytest.mark.parametrize(
    "folder",
    [
        "",
        "/",
        "home",
        "/a b",
        "/a\n",
        "/..",
        "/a/../b",
        "/a/.b",
        "/a//b",
        "/a/",
        "/a'b",
        '/a"b',
        "/$HOME",
        "/a%b",
        "/é",
    ],
)
def test_a_folder_is_a_plain_absolute_path(folder: str) -> None:
    with pytest.raises(ValueError, match=r"mounts"):
        Case({"containers": {"mounts": [folder]}}).cluster()


def test_there_are_at_most_eight_folders() -> None:
    assert Case({"containers": {"mounts": [f"/{number}" for number in range(8)]}}).render().problems == ()
    with pytest.raises(ValueError, match=r"mounts"):
        Case({"containers": {"mounts": [f"/{number}" for number in range(9)]}}).cluster()
    with pytest.raises(ValueError, match=r"mounts"):
        Case({"containers": {"mounts": [LONGEST + "a"]}}).cluster()
