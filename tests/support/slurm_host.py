"""
Real Slurm daemons on loopback, for tests for which a fake is not enough.

A :class:`SlurmHost` is one small Slurm cluster: slurmctld, slurmrestd and any number of dynamic slurmds, run from a
root tree with the packages of one Slurm release, each in its own namespaces (:mod:`tests.support.daemons`). The network
is the machine's own: every socket is bound to 127.0.0.1 with its own port.

Root trees come from the image builder (``hack.images.rootfs``), and the requests from the tests. All waiting is for
conditions.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import jwt

from hack.machine import ports
from tests.support.daemons import DaemonError, Daemons, accepts, short_host_name

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

SLURM_UID = 64030
"""User and group id of the slurm user in the Debian packages."""

NOBODY = 65534

AGAIN = 30.0
"""Seconds until a reconfigure is repeated that a slurmd has missed."""


@dataclass
class SlurmHost(Daemons):
    """
    One Slurm cluster on 127.0.0.1.

    Parameters
    ----------
    root
        Root tree with the Slurm packages; never written to except for mount points.
    extra_conf
        Lines appended to slurm.conf.
    max_nodes
        ``MaxNodeCount``.
    slurmrestd_options
        Options of slurmrestd beside its authentication and its address.
    slurmrestd_environment
        Its variables; those of its pod that matter to what it does.
    jwt_key, rest_port
        Key of tokens, and port of slurmrestd; fresh ones when absent.
    state
        Folder for configuration, state and logs; a temporary one when absent, removed by :meth:`close`.
    """

    root: Path
    extra_conf: str = ""
    max_nodes: int = 64
    state: Path | None = None
    slurmrestd_options: Sequence[str] = ("-s", "openapi/slurmctld")
    slurmrestd_environment: Mapping[str, str] = field(default_factory=lambda: {"MALLOC_ARENA_MAX": "1"})
    jwt_key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    rest_port: int = 0

    def __post_init__(self) -> None:
        """Reserve ports and write keys and configuration."""
        super().__init__(self.root, "slurm-host-", self.state)
        self.slurmctld_port, free = ports.hold(2)
        self.rest_port = self.rest_port or free
        self._etc = self.folder / "etc" / "slurm"
        shutil.rmtree(self._etc, ignore_errors=True)
        self._spool = self.folder / "spool"
        self._slurmds: set[str] = set()
        self.crashes = 0
        """How often slurmctld was started again since it had divided by zero."""
        self.binds["/var/spool"] = self._spool
        self.grace["slurmctld"] = 60
        for folder in (self._etc, self._spool, self._spool / "slurmctld"):
            folder.mkdir(parents=True, exist_ok=True)
            os.chown(folder, SLURM_UID, SLURM_UID)
        self._write_key("slurm.key", secrets.token_bytes(64))
        self._write_key("jwt.key", self.jwt_key)
        (self._etc / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        self.write_conf(self.extra_conf)

    @property
    def url(self) -> str:
        """Base URL of slurmrestd."""
        return f"http://127.0.0.1:{self.rest_port}"

    def write_conf(self, extra: str = "") -> None:
        """Write slurm.conf; it takes effect by a start or a reconfigure."""
        (self._etc / "slurm.conf").write_text(
            f"""\
ClusterName=test
SlurmctldHost={short_host_name()}(127.0.0.1)
SlurmctldPort={self.slurmctld_port}
SlurmUser=slurm
AuthType=auth/slurm
CredType=cred/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
SlurmctldParameters=enable_configless
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd-%n
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MaxNodeCount={self.max_nodes}
ReturnToService=2
MinJobAge=300
KillWait=5
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
SlurmctldLogFile=/dev/stderr
SlurmdLogFile=/dev/stderr
NodeSet=all Feature=all
PartitionName=all Nodes=ALL Default=YES State=UP
{extra}
"""
        )

    def write_file(self, name: str, text: str | None, mode: int = 0o555) -> None:
        """Put a file beside slurm.conf, or take it away; as with slurm.conf, nobody looks before a reconfigure."""
        path = self._etc / name
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
            path.chmod(mode)

    @property
    def configuration(self) -> Path:
        """The folder with slurm.conf, which daemons see as ``/etc/slurm``."""
        return self._etc

    @property
    def shared(self) -> Path:
        """A folder that every daemon and job sees as ``/var/spool``."""
        return self._spool

    def _write_key(self, name: str, key: bytes) -> None:
        path = self._etc / name
        path.write_bytes(key)
        os.chown(path, SLURM_UID, SLURM_UID)
        path.chmod(0o400)

    def token(self, user: str = "slurm", lifetime: float = 3600) -> str:
        """Mint a token for ``user`` that is good for ``lifetime`` seconds (negative: already expired)."""
        now = int(time.time())
        return jwt.encode({"sun": user, "iat": now - 60, "exp": int(now + lifetime)}, self.jwt_key, algorithm="HS256")

    # daemons

    def start(self) -> Self:
        """Start slurmctld and slurmrestd and wait until both answer."""
        try:
            self.start_slurmctld()
            self.start_slurmrestd()
        except BaseException:
            self.close()
            raise
        return self

    def start_slurmctld(self) -> None:
        """Start slurmctld and wait until it answers ``scontrol ping``."""
        self.spawn("slurmctld", ["slurmctld", "-D"])
        self.wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False).stdout, "slurmctld answers")

    def reconfigure(self) -> None:
        """
        Let slurmctld read its files, and wait until each slurmd has read them too.

        A slurmd restarts itself for it. A step that reaches it in that millisecond is lost (26.05): its srun waits
        for minutes, and its job runs without a process.
        """
        try:
            self._reconfigure()
        except DaemonError:
            if not self.revive_slurmctld():
                raise
            self._reconfigure()

    def _reconfigure(self) -> None:
        before: dict[str, int] = {}
        asked = float("-inf")

        def are_read() -> bool:
            nonlocal asked, before
            if time.monotonic() - asked > AGAIN:
                # A slurmd that starts again at that moment misses it; the operator repeats a reconfigure as well.
                before = {name: self.starts(name) for name in self._slurmds & self.daemons.keys()}
                self.run("scontrol", "reconfigure")
                asked = time.monotonic()
            return all(self.starts(name) > before[name] for name in before)

        self.wait_for(are_read, "each slurmd has read them")

    def revive_slurmctld(self) -> bool:
        """
        Start slurmctld again if it has divided by zero, as its kubelet would; returns whether it had.

        24.11.5 does so once in a while in a reconfigure, where slurmdbd has come back a moment before.
        """
        if self.daemons["slurmctld"].process.poll() != -signal.SIGFPE:
            return False
        self.crashes += 1
        self.stop("slurmctld")
        self.start_slurmctld()
        return True

    def starts(self, name: str) -> int:
        """How often a slurmd has started with what it was given."""
        lines = (self.folder / f"{name}.log").read_text(errors="replace").splitlines(keepends=True)
        # Each line is there twice: for stderr, and for the file, which is stderr too.
        return len({line for line in lines if "slurmd started on" in line and line.endswith("\n")})

    def start_slurmrestd(self, name: str = "slurmrestd", port: int = 0) -> None:
        """Start slurmrestd, or another one with a name and a port of its own; wait until it accepts connections."""
        port = port or self.rest_port
        self.spawn(
            name,
            ["slurmrestd", "-a", "rest_auth/jwt", *self.slurmrestd_options, f"127.0.0.1:{port}"],
            userspec=f"{NOBODY}:{NOBODY}",
            environment={"SLURM_JWT": "daemon", **self.slurmrestd_environment},
        )
        self.wait_for(lambda: accepts(port), f"{name} accepts connections")

    @property
    def sack_socket(self) -> Path:
        """The socket of sackd."""
        return self.folder / "run-sackd" / "sack.socket"

    def start_sackd(self) -> None:
        """Start sackd, as in a login pod; `login` runs commands whose messages it signs."""
        run = self.sack_socket.parent
        run.mkdir(exist_ok=True)
        os.chown(run, SLURM_UID, SLURM_UID)
        self.sack_socket.unlink(missing_ok=True)
        # slurmd has a socket of this name too.
        self.binds["/run/slurm"] = run
        try:
            self.spawn(
                "sackd",
                ["sackd", "-D", "-f", "/etc/slurm/slurm.conf"],
                userspec=f"{SLURM_UID}:{SLURM_UID}",
                environment={"RUNTIME_DIRECTORY": "/run/slurm"},
            )
            if "login" not in self.daemons:
                self.spawn("login", ["sleep", "infinity"])
        finally:
            del self.binds["/run/slurm"]
        self.wait_for(self.sack_socket.exists, "sackd listens")

    def login(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as in a login pod, whose sackd may be starting again."""
        return self.run_beside("login", *command, check=False)

    def add_node(
        self,
        name: str,
        *,
        cpus: int = 1,
        memory: int = 256,
        features: Sequence[str] = ("all",),
        instance_id: str = "",
        extra: str = "",
        configless: bool = False,
        port: int = 0,
        wait: bool = True,
    ) -> None:
        """
        Start a slurmd that registers as a dynamic node.

        Parameters
        ----------
        name
            NodeName.
        cpus, memory
            What it registers with; ``memory`` in MiB.
        features
            Feature words; ``all`` puts it into the partition ``all``.
        instance_id, extra
            The record's fields of those names.
        configless
            Whether it gets its configuration from slurmctld, as in pods, instead of from the shared folder.
        port
            Where it listens, if a record has its port already; a free one if 0.
        wait
            Return only when slurmctld shows the node without NOT_RESPONDING.
        """
        port = port or ports.hold(1)[0]
        conf = f"Port={port} CPUs={cpus} RealMemory={memory} Features={','.join(features)}"
        source = (
            ["--conf-server", f"127.0.0.1:{self.slurmctld_port}"] if configless else ["-f", "/etc/slurm/slurm.conf"]
        )
        command = ["slurmd", "-D", "-Z", "-N", name, *source, "--conf", conf]
        if instance_id:
            command += ["--instance-id", instance_id]
        if extra:
            command += ["--extra", extra]
        self._slurmds.add(name)
        self.spawn(name, command)
        if wait:
            self.wait_for(lambda: self.node_is_up(name), f"node {name} registers")

    def start_slurmd(self, name: str, command: Sequence[str]) -> None:
        """Start a slurmd by a command of the caller's, and wait until slurmctld shows its node."""
        self._slurmds.add(name)
        self.spawn(name, list(command))
        self.wait_for(lambda: self.node_is_up(name), f"node {name} registers")

    def node_is_up(self, name: str) -> bool:
        """Whether slurmctld shows the node and can reach it."""
        shown = self.run("sinfo", "-h", "-N", "-n", name, "-o", "%T", check=False).stdout.strip()
        return bool(shown) and not shown.endswith("*") and not shown.startswith(("unk", "down", "future"))

    def __enter__(self) -> Self:
        """Start the cluster."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # asking and waiting

    def run(
        self, *command: str, check: bool = True, stdin: str | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a Slurm command inside the tree as root, e.g. ``run("scontrol", "show", "nodes")``."""
        # Beside slurmctld, whose socket under /run signs for clients that cannot read the key.
        return self.run_beside("slurmctld", *command, check=check, stdin=stdin, timeout=timeout)

    def sbatch(self, script: str, *options: str) -> int:
        """Submit a batch script (without its first line) and return the job id."""
        result = self.run("sbatch", "--parsable", "-o", "/dev/null", *options, stdin=f"#!/bin/sh\n{script}\n")
        return int(result.stdout.strip().split(";")[0])

    def end_now(self, job: int) -> None:
        """Let the time limit of a running job end now.

        A minute is the shortest limit, and an administrator may move the end. slurmctld refuses one that is over when
        it hears of it, as on a machine that is busy.
        """

        def moved() -> bool:
            result = self.run("scontrol", "update", f"JobId={job}", "EndTime=now+1", check=False)
            if result.returncode and "Invalid time" not in result.stderr + result.stdout:
                raise DaemonError(f"the end of job {job} was not moved: {result.stdout}{result.stderr}")
            return not result.returncode

        self.wait_for(moved, f"the end of job {job} is moved")

    def saved(self, name: str) -> bytes:
        """A file of slurmctld's state; empty before there is one, and in the instant in which it is replaced."""
        try:
            return (self.shared / "slurmctld" / name).read_bytes()
        except FileNotFoundError:
            return b""

    def has_saved(self, text: str) -> bool:
        """Whether slurmctld has saved its jobs with this text in one of them, such as a name."""
        return text.encode() in self.saved("job_state")

    def wait_saved(self, job: int) -> None:
        """Wait until slurmctld has saved its jobs as they are now: what it has not, a kill forgets."""
        comment = f"saved-{time.time_ns()}"
        self.run("scontrol", "update", f"JobId={job}", f"Comment={comment}")
        self.wait_for(lambda: self.has_saved(comment), "slurmctld saves its jobs")

    def job_state(self, job: int) -> str:
        """Long state word of a job, e.g. ``RUNNING``; empty when Slurm has forgotten it."""
        return self.run("squeue", "-h", "-j", str(job), "-t", "all", "-o", "%T", check=False).stdout.strip()
