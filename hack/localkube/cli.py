"""The command line: ``python -m hack.localkube COMMAND``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hack.localkube import control_plane_only
from hack.localkube.cluster import Cluster
from hack.localkube.errors import LocalKubeError
from hack.localkube.paths import ClusterPaths
from hack.localkube.programs import build
from hack.machine.progress import say

DEFAULT_NAME = "local"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="localkube", description="A real Kubernetes on this machine, without Docker.")
    parser.add_argument("--name", default=DEFAULT_NAME, help="the cluster's name (default: %(default)s)")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="bring the cluster up; does nothing if it is up")
    up.add_argument("--nodes", type=int, default=2, help="number of Nodes (default: %(default)s)")
    up.add_argument("--control-plane-only", action="store_true", help="etcd and API server on loopback; needs no root")
    commands.add_parser("down", help="end the cluster and leave nothing behind")
    commands.add_parser("status", help="show machines, services, memory and Nodes")
    commands.add_parser("kubeconfig", help="print the path of the kubeconfig")
    commands.add_parser("env", help='print shell exports: eval "$(python -m hack.localkube env)"')
    load = commands.add_parser("load-image", help="load image archives into every Node")
    load.add_argument("archives", nargs="+", type=Path)
    for verb, text in (("stop", "stop a service of a machine"), ("start", "start a stopped service again")):
        service = commands.add_parser(f"{verb}-service", help=text)
        service.add_argument("machine", help="node-1, node-2, … or control-plane")
        service.add_argument("service", help="kubelet, containerd, kube-proxy, kube-apiserver, …")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 1 after printing what went wrong."""
    options = _parser().parse_args(arguments)
    # `kill` and a closed terminal end a command the same way as Ctrl-C, through its clean-up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run(options)
    except LocalKubeError as error:
        say(f"localkube: {error}")
        return 1
    except KeyboardInterrupt:
        say("localkube: interrupted; `down` cleans up")
        return 130
    return 0


def _run(options: argparse.Namespace) -> None:
    cluster = Cluster(options.name)
    match options.command:
        case "up" if options.control_plane_only:
            start = time.monotonic()
            paths = control_plane_only.up(options.name)
            say(f"  ok   control plane {options.name!r} is ready after {time.monotonic() - start:.1f} s")
            print(paths.kubeconfig)
        case "up":
            cluster.up(options.nodes)
        case "down":
            cluster.down()
        case "status":
            _show(cluster)
        case "kubeconfig":
            cluster.require_up()
            print(cluster.paths.kubeconfig)
        case "env":
            cluster.require_up()
            print(f"export KUBECONFIG={ClusterPaths(options.name).kubeconfig}")
            print(f"export PATH={build.bin_folder()}:{os.environ['PATH']}")
        case "load-image":
            cluster.load_images([archive.resolve() for archive in options.archives])
        case "stop-service":
            cluster.require_up()
            cluster.machine(options.machine).stop(options.service)
        case "start-service":
            cluster.require_up()
            cluster.machine(options.machine).resume(options.service)
        case other:
            raise AssertionError(f"argparse let {other!r} through")


def _show(cluster: Cluster) -> None:
    status = cluster.status()
    memory = cluster.memory_mib()
    print(f"cluster {status['name']}, kubeconfig {status['kubeconfig']}")
    for name, services in status["machines"].items():
        ready = "" if name == "control-plane" else (" Ready" if name in status["ready"] else " NOT READY")
        print(f"{name}{ready}, {memory[name]} MiB")
        for service, report in services.items():
            state = "running" if report["running"] else "stopped"
            print(f"  {service:26} {state:8} restarts {report['restarts']}")


if __name__ == "__main__":
    sys.exit(main())
