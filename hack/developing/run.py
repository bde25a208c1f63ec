"""``make run``: the operator on this machine, for the Kubernetes of the current kubeconfig.

It gets the flags that the chart would give it. slurmrestd of each Cluster is forwarded; when a Cluster is created, the
operator is started again with a port-forward for it. Given with ``--``, further flags of the operator come last.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from hack.developing import cluster, routes
from hack.developing.errors import DevelopingError
from hack.developing.forwards import Forwards
from hack.machine.progress import say
from hack.packaging.errors import PackagingError
from hack.packaging.render import OPERATOR_CHART, ROOT, render

VALUES: Final = OPERATOR_CHART / "values-dev.yaml"
LOOK_AGAIN: Final = 3.0
"""Seconds between two looks at which Clusters there are."""


def flags(values: Path = VALUES) -> list[str]:
    """Return the operator's flags: those of the chart, and what differs outside Kubernetes."""
    given = (yaml.safe_load(values.read_text(encoding="utf-8")) or {}) if values.exists() else {}
    (deployment,) = (one for one in render(values=given) if one["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return [
        *container["args"],
        f"--lease-namespace={cluster.NAMESPACE}",
        # What a pod reads from its resolv.conf.
        "--cluster-domain=cluster.local",
        "--health-host=127.0.0.1",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator until SIGTERM or SIGINT, or until it ends by itself; returns its exit status."""
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.add_argument("more", nargs="*", metavar="FLAG", help="of the operator, after --")
    more = parser.parse_args(arguments).more
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    try:
        cluster.check()
        cluster.make_namespace()
        given = flags()
        with routes.routed(cluster.items("nodes")), Forwards() as forwards:
            return _run([*given, *more], forwards)
    except (DevelopingError, PackagingError) as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _run(given: Sequence[str], forwards: Forwards) -> int:
    while True:
        for one in sorted(cluster.slurm_clusters() - set(forwards.ports)):
            forwards.add(one)
            say(f"  ok   slurmrestd of {one.namespace}/{one.name} is forwarded to port {forwards.ports[one]}")
        command = [sys.executable, "-m", "slinky_operator.cli", *given, *forwards.flags()]
        operator = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'api'}"}
        )
        try:
            while operator.poll() is None:
                time.sleep(LOOK_AGAIN)
                if _new(forwards):
                    say("  ...  a Cluster was created: the operator starts again with a port-forward for it")
                    break
            else:
                return operator.returncode
        finally:
            operator.terminate()
            operator.wait()


def _new(forwards: Forwards) -> bool:
    try:
        return bool(cluster.slurm_clusters() - set(forwards.ports))
    except DevelopingError:
        return False  # the API server is away for a moment; the operator says so itself


if __name__ == "__main__":
    sys.exit(main())
