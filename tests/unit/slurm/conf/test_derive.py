"""The files that disposable daemons read."""

from __future__ import annotations

from slinky_operator.slurm.conf.derive import derive
from slinky_operator.slurm.conf.syntax.parsed import parse

CONF = """\
# a comment
ClusterName=x SlurmctldHost=c-0(c-0.c.ns.svc)
StateSaveLocation=/var/spool/slurmctld
SlurmctldLogFile=/proc/1/fd/2
HealthCheckProgram=/usr/sbin/nhc
ResumeProgram=/bin/wake
AuthAltParameters=jwt_key=/etc/slurm-keys/jwt.key
Prolog=p.sh
NodeName=metal[1-2] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL
Bogus line without a key
"""


def test_nothing_real_is_written_called_or_pinged() -> None:
    text = derive({"slurm.conf": CONF}, "slurm")["slurm.conf"]
    found = parse(text)
    assert found.value("StateSaveLocation") == "/preflight/state"
    assert found.value("AuthAltParameters") == "jwt_key=/preflight/jwt.key"
    assert found.value("SlurmdUser") == "slurm"
    assert found.keys.keys().isdisjoint({"healthcheckprogram", "resumeprogram", "slurmctldlogfile"})
    assert found.nodes["metal[1-2]"].get("State") == "FUTURE"


def test_programs_for_jobs_are_tried_unless_there_are_jobs() -> None:
    text = CONF + "PrologSlurmctld=/bin/begin\nEpilogSlurmctld=/bin/end\nBurstBufferType=burst_buffer/lua\n"
    keys = {"prologslurmctld", "epilogslurmctld", "burstbuffertype"}
    assert parse(derive({"slurm.conf": text}, "slurm")["slurm.conf"]).keys.keys() >= keys
    found = parse(derive({"slurm.conf": text}, "slurm", finds_jobs=True)["slurm.conf"])
    assert found.keys.keys().isdisjoint(keys | {"resumeprogram"})
    assert found.value("Prolog") == "p.sh"


def test_nothing_needs_slurmdbd_or_reaches_it() -> None:
    text = (
        "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=dbd.here\n"
        "AccountingStorageEnforce=limits\nAccountingStorageTRES=gres/gpu\n"
        "PartitionName=p Nodes=ALL AllowQos=high QOS=p DenyAccounts=x AllowGroups=g\n"
    )
    found = parse(derive({"slurm.conf": text}, "slurm")["slurm.conf"])
    assert found.keys.keys().isdisjoint({"accountingstoragetype", "accountingstoragetres"})
    assert found.value("AccountingStorageEnforce") == "limits"
    assert str(found.partitions["p"]) == "PartitionName=p Nodes=ALL AllowGroups=g"


def test_a_plugin_of_accounting_that_does_not_exist_is_tried() -> None:
    text = derive({"slurm.conf": "AccountingStorageType=accounting_storage/bogus\n"}, "slurm")["slurm.conf"]
    assert "accounting_storage/bogus" in text


def test_what_slurm_is_to_judge_stays() -> None:
    text = derive({"slurm.conf": CONF}, "slurm")["slurm.conf"]
    assert "Bogus line without a key" in text
    assert "Prolog=p.sh" in text
    assert "SlurmctldHost=c-0(c-0.c.ns.svc)" in text
    assert "PartitionName=all Nodes=ALL" in text


def test_devices_are_left_out_and_the_rest_of_their_lines_is_not() -> None:
    gres = "AutoDetect=nvml\nName=gpu Type=a100 File=/dev/nvidia[0-3] Cores=0-7 # four\nBogus=1\n"
    lines = derive({"slurm.conf": "", "gres.conf": gres}, "slurm")["gres.conf"].split("\n")
    assert [" ".join(line.split()) for line in lines if line] == ["Name=gpu Type=a100 Cores=0-7", "Bogus=1"]


def test_lines_that_only_their_devices_tell_apart_become_one() -> None:
    gres = (
        "Name=gpu Type=a100 File=/dev/nvidia0 Cores=0-7\nName=gpu Type=A100 File=/dev/nvidia1 Cores=8-15\n"
        "Name=gpu Type=l4 File=/dev/nvidia2\nName=gpu Type=l4 File=/dev/nvidia3 Bogus=1\n"
        "Name=shard Count=2\nName=shard Count=2\n"
    )
    lines = derive({"slurm.conf": "", "gres.conf": gres}, "slurm")["gres.conf"].split("\n")
    assert [" ".join(line.split()) for line in lines] == [
        "Name=gpu Type=a100 Cores=0-7",
        "Name=gpu Type=l4",
        "Name=gpu Type=l4 Bogus=1",
        "Name=shard Count=2",
        "Name=shard Count=2",
    ]


def test_a_line_that_goes_on_in_the_next_is_one_line() -> None:
    gres = "Name=gpu Type=a100 \\\n  File=/dev/nvidia0\nName=gpu \\\n  Type=l4 File=/dev/nvidia1 # \\\nBogus=1\n"
    lines = derive({"slurm.conf": "", "gres.conf": gres}, "slurm")["gres.conf"].split("\n")
    assert [" ".join(line.split()) for line in lines] == ["Name=gpu Type=a100", "Name=gpu Type=l4", "Bogus=1"]


def test_other_files_stay_as_they_are() -> None:
    assert derive({"slurm.conf": "", "cgroup.conf": "Bogus=1"}, "slurm")["cgroup.conf"] == "Bogus=1"
