"""The command line of all roles, and the two processes of the server."""

from __future__ import annotations

import argparse
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from slinky_operator.pod_programs.agent.volumes import Volumes
from slinky_operator.pod_programs.joblogs.copies import porter
from slinky_operator.pod_programs.joblogs.follower.printer import PATIENCE, Follower, Pace, noting, to_descriptor
from slinky_operator.pod_programs.joblogs.log import Log
from slinky_operator.pod_programs.joblogs.server import opening, retention
from slinky_operator.pod_programs.joblogs.server.listener import Server
from slinky_operator.pod_programs.joblogs.server.retention import Retention

NOBODY: Final = 65534
BACKLOG: Final = 64
BROKEN_PIPE: Final = 128 + signal.SIGPIPE


def main(arguments: Sequence[str]) -> int:
    """Run one of the roles."""
    asked = _parser().parse_args(arguments)
    # The first process of a container ignores SIGTERM unless it has a handler.
    signal.signal(signal.SIGTERM, _stop)
    if asked.role == "serve":
        return serve(asked)
    if asked.role == "copy":
        return porter.run(asked.orders, asked.report, pauses=porter.PAUSES[: max(0, asked.attempts - 1)])
    return follow(asked)


def follow(asked: argparse.Namespace) -> int:
    """Print one stream of a job, and return its exit code."""
    note = noting(sys.stderr.fileno())
    pace = Pace(patience=asked.patience)
    try:
        return Follower(asked.job, asked.stream, sink=to_descriptor(sys.stdout.fileno()), note=note, pace=pace).run()
    except BrokenPipeError:
        # Nobody takes the output any more.
        return BROKEN_PIPE


def serve(asked: argparse.Namespace) -> int:
    """Start the process that talks to callers, and open files for it until it ends, which it should not."""
    if os.geteuid():
        print("job-log-server: must be root, to open files as the users of jobs", file=sys.stderr)  # noqa: T201
        return 2
    folders: list[str] = [os.path.realpath(one) for one in (*asked.own_folder, *asked.folder)]
    if not folders:
        print("job-log-server: needs a folder", file=sys.stderr)  # noqa: T201
        return 2
    log = Log()
    for folder in asked.own_folder:
        retention.prepare(folder, log)
    tidied = [folder for folder in folders[: len(asked.own_folder)] if asked.keep and _is_tidied(folder, log)]
    listener = _listener(asked.host, asked.port)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if not os.fork():
        ours.close()
        _talk(listener, theirs, _volumes(folders[: len(asked.own_folder)]))
    listener.close()
    theirs.close()

    settings = opening.Settings(asked.key, tuple(folders))
    if tidied:
        opening.run(ours, settings, log, every=retention.EVERY, beside=Retention(tidied, asked.keep, log).look)
    else:
        opening.run(ours, settings, log)
    print("job-log-server: the process that talks to callers has ended", file=sys.stderr)  # noqa: T201
    return 1


def _is_tidied(folder: str, log: Log) -> bool:
    """Whether old files of a folder may be deleted; said once, if not."""
    found = retention.file_system(folder)
    if found in retention.LOCAL:
        return True
    why = "other machines may have files of it open, so none is deleted, however old"
    log(f"{folder} is on {found or 'an unknown file system'}: {why}")
    return False


def _volumes(folders: Sequence[str]) -> Volumes:
    """Looks at the file systems of own folders, each by the last part of its path."""
    return Volumes({Path(folder).name: Path(folder) for folder in folders})


def _talk(listener: socket.socket, channel: socket.socket, volumes: Volumes) -> None:
    """Serve as nobody; does not return."""
    code = 1
    try:
        opening.become(NOBODY, (NOBODY,))
        threading.Thread(target=_end_with, args=(channel,), daemon=True).start()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        port = listener.getsockname()[1]
        print(f"job-log-server: listens on port {port}", file=sys.stderr, flush=True)  # noqa: T201
        Server(opening.Opener(channel), volumes=volumes).serve(listener)
    except Exception as error:  # noqa: BLE001 - the container ends with it, and is started again
        print(f"job-log-server: {type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201
    finally:
        os._exit(code)


def _end_with(channel: socket.socket) -> None:
    """End once the other process has: nothing is ever sent to this one, so what comes is the end."""
    poll = select.poll()
    poll.register(channel, select.POLLRDHUP)
    poll.poll()
    os._exit(0)


def _listener(host: str, port: int) -> socket.socket:
    dual = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual or ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, dualstack_ipv6=dual, backlog=BACKLOG)


def _stop(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="joblogs", description="Output of Slurm jobs without a shared file system.")
    roles = parser.add_subparsers(dest="role", required=True)
    server = roles.add_parser("serve", help="serve files of jobs beside slurmd (root)")
    server.add_argument("--key", type=Path, required=True, help="file with the key of tokens")
    server.add_argument("--port", type=int, required=True)
    server.add_argument("--host", default="", help="address to listen on; all by default")
    server.add_argument("--own-folder", action="append", default=[], help="a folder that this server looks after")
    server.add_argument("--folder", action="append", default=[], help="another folder with files of jobs")
    server.add_argument(
        "--keep", type=float, default=0, help="seconds until files of own folders are deleted; 0: never"
    )
    follower = roles.add_parser("follow", help="print one stream of a job, and exit as the job did")
    follower.add_argument("--job", type=Path, required=True, help="the file of the job")
    follower.add_argument("--stream", choices=("stdout", "stderr"), required=True)
    follower.add_argument(
        "--patience", type=float, default=PATIENCE, help="seconds for which output is looked for after the job's end"
    )
    copier = roles.add_parser("copy", help="copy files between volumes and nodes, and say what became of it")
    copier.add_argument("--orders", type=Path, required=True, help="the file that says what is copied")
    copier.add_argument("--report", type=Path, default=Path("/dev/termination-log"), help="where the end is reported")
    most = len(porter.PAUSES) + 1
    copier.add_argument("--attempts", type=int, default=most, help=f"how often a copy is tried; at most {most} times")
    return parser
