"""Slurm and Kubernetes as they are, and what may happen to them: a small model that knows no rule of the controller.

`World` holds the truth: pods with their objects, what really runs in them, node records, jobs with their processes.
Every method named `do_*` is something that happens by itself or by somebody else's hand. The doors through which the
controller sees and changes the world are in `doors`; they call the methods named `order_*`, which also watch over what
is never allowed to happen and note it in `violations`.

================  =================================================================
module            concern
================  =================================================================
`objects`         names, and objects as they come over the wire
`state`           the truth, and what can be looked up in it
`machines`        what happens to pods by itself
`slurm`           what happens in Slurm by itself, and how Slurm shows it
`users`           what users and administrators do
`slurm_orders`    what the controller orders of Slurm, and what it never may
`kube_orders`     what the controller orders of Kubernetes, and what it never may
================  =================================================================
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from datetime import timedelta

from tests.unit.nodeset.simulation.kube_orders import KubeOrders
from tests.unit.nodeset.simulation.objects import HOSTS, NEIGHBOUR, SELECTED
from tests.unit.nodeset.simulation.slurm_orders import SlurmOrders
from tests.unit.nodeset.simulation.state import Record
from tests.unit.nodeset.simulation.users import Users


@dataclass
class World(Users, SlurmOrders, KubeOrders):
    """All of it together."""

    def __post_init__(self) -> None:
        self.records["a-b-0"] = Record("a-b-0", NEIGHBOUR, "neighbour", "neighbour", self.now)
        self.running["neighbour"] = self.now
        self.known.add("neighbour")
        for name in HOSTS:
            metadata = {"name": name, "uid": f"uid-of-{name}", "labels": dict(SELECTED)}
            self.hosts[name] = {"metadata": metadata, "spec": {}, "status": {}}
            self.tell("nodes", "ADDED", self.hosts[name])
        self.create_nodeset(2)
        self.do_poll(0)

    def twin(self) -> World:
        """A world of its own that is like this one, and of which nothing has been told yet."""
        if not self.frozen:
            self.log.clear()
            self.frozen = pickle.dumps(self)
        copied: World = pickle.loads(self.frozen)  # noqa: S301 - written a moment before
        return copied

    def do_time(self, index: int) -> None:
        self.now += timedelta(seconds=(1, 5, 20, 61, 200)[index % 5])
