"""A simulation of Slurm and Kubernetes, and of what may happen to them, that shares no rule with the controller.

`World` holds the true state: pods with their objects, what really runs in them, node records, jobs with their
processes. Every method named `do_*` is an event that the controller does not cause. The interfaces through which the
controller sees and changes the world are in `doors`; they call the methods named `order_*`, which also check for what
is never allowed and record it in `violations`.

================  =================================================================
module            concern
================  =================================================================
`objects`         names, and objects as they come over the wire
`state`           the true state, with look-ups
`machines`        what happens to pods without the controller
`slurm`           what happens in Slurm without the controller, and how Slurm shows it
`users`           actions of users and administrators
`checks`          health checks: what nodes report, and what may follow from it
`hardware`        machines: what is asked of them, when they end, and what may follow from it
`slurm_orders`    the controller's writes to Slurm, and those that are never allowed
`kube_orders`     the controller's writes to Kubernetes, and those that are never allowed
================  =================================================================
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from datetime import timedelta

from tests.unit.nodeset.simulation.checks import Checks
from tests.unit.nodeset.simulation.hardware import Hardware
from tests.unit.nodeset.simulation.kube_orders import KubeOrders
from tests.unit.nodeset.simulation.objects import HOSTS, NEIGHBOUR, SELECTED
from tests.unit.nodeset.simulation.slurm_orders import SlurmOrders
from tests.unit.nodeset.simulation.state import Record
from tests.unit.nodeset.simulation.users import Users


@dataclass
class World(Users, SlurmOrders, KubeOrders, Checks, Hardware):
    """All of it together."""

    def __post_init__(self) -> None:
        self.records["a-b-0"] = Record("a-b-0", NEIGHBOUR, "neighbour", "neighbour", self.now)
        self.running["neighbour"] = self.now
        self.known.add("neighbour")
        for name in HOSTS:
            metadata = {"name": name, "uid": f"uid-of-{name}", "labels": dict(SELECTED)}
            self.hosts[name] = {"metadata": metadata, "spec": {}, "status": {"nodeInfo": {"bootID": "first"}}}
            self.tell("nodes", "ADDED", self.hosts[name])
        self.create_nodeset(2)
        self.do_poll(0)

    def twin(self) -> World:
        """A world of its own that is like this one, and of which nothing has been reported yet."""
        if not self.frozen:
            self.log.clear()
            self.frozen = pickle.dumps(self)
        copied: World = pickle.loads(self.frozen)  # noqa: S301 - written a moment before
        return copied

    def do_time(self, index: int) -> None:
        self.now += timedelta(seconds=(1, 5, 20, 61, 200)[index % 5])
