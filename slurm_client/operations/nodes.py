"""Calls about nodes."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, overload

from slurm_client import errors
from slurm_client.connection.answers import ListOf
from slurm_client.decode import nodes as decode
from slurm_client.encode import nodes as encode
from slurm_client.operations.base import Listing, Operations, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from slurm_client.models import Node
    from slurm_client.operations.arguments import NodeName, NodeNames, Text

__all__ = ["NodeOperations"]

_LONGEST_PATH = 6000
"""Characters of names in one address; slurmrestd takes more than 20,000 (measured), what stands before it may not."""

_ASKED_SINGLY = 8
"""For more nodes than these, one list costs less than single questions."""

_ENDS_JOBS = re.compile("DOWN|FAIL|REBOOT", re.IGNORECASE)
"""What is in the words for states that end jobs, or may."""

_NODES = ListOf("nodes", decode.node)
_ALL_NODES = ListOf("nodes", decode.node, recurs=True, identity=lambda node: node.name)


class NodeOperations(Operations):
    """List, get, update, create and delete nodes."""

    @overload
    async def nodes(self, *, timeout: float | None = None) -> Listing[Node]: ...

    @overload
    async def nodes(self, update_time: int | None, *, timeout: float | None = None) -> Listing[Node] | None: ...

    async def nodes(self, update_time: int | None = None, *, timeout: float | None = None) -> Listing[Node] | None:
        """
        Return all nodes.

        Parameters
        ----------
        update_time
            ``last_update`` of an earlier list; the answer is then ``None`` if nothing has changed since.
        timeout
            Seconds; the client's when absent.
        """
        return await self._list("get_nodes", _ALL_NODES, update_time=update_time, timeout=timeout)

    async def node(self, name: NodeName, *, timeout: float | None = None) -> Node:
        """Return one node; NotFound if there is none of that name."""
        found: Node = await self._one(
            "get_node",
            _NODES,
            f"node {name}",
            pick=named(name),
            path={"node_name": name},
            timeout=timeout,
        )
        return found

    async def update_nodes(
        self,
        names: NodeNames,
        *,
        state: str | Sequence[str] | None = None,
        reason: str | None = None,
        comment: str | None = None,
        extra: str | None = None,
        features: Sequence[str] | None = None,
        active_features: Sequence[str] | None = None,
        gres: str | None = None,
        weight: int | None = None,
        address: str | None = None,
        hostname: str | None = None,
        topology: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """
        Change many nodes alike, in one call where the server has one (24.11 and newer).

        Slurm takes the name of a NodeSet of slurm.conf for all nodes in it. ``ALL`` is refused: name the nodes. For a
        state that ends jobs (``DOWN``, ``FAIL``, ``POWER_DOWN``, ``REBOOT`` and their like) the nodes are asked for
        first: NotFound before anything is changed if there is none of a name.

        Otherwise the server goes through the names in order and stops at the first it does not know: then NotFound is
        raised, and the nodes before it have been changed. Name known nodes, and read back. On older servers one call is
        made for each node; then all known nodes are changed before NotFound is raised.

        Parameters
        ----------
        names
            Node names: a hostlist such as ``w-[0-3],w-7``, or a list of names and hostlists. Nothing is sent for none.
        state
            What to do: ``DRAIN``, ``UNDRAIN``, ``RESUME``, ``DOWN``, ``POWER_DOWN`` …
        reason
            Why; Slurm notes the token's user with it.
        comment, extra, features, active_features, gres, weight, address, hostname
            New values; ``None`` leaves them alone. Active features must be among the features: give both to take
            features away.
        topology
            Place in the topology, ``<topology>:<switch or block>``; v0.0.43 and newer, else NotSupported is raised.
        """
        wanted = list(dict.fromkeys(names))
        if state is not None and not state:
            raise errors.InvalidArgument("update_nodes: state is empty; nothing was sent", field="state")
        body = encode.node_update(
            state=list(state) if state is not None and not isinstance(state, str) else state,
            reason=reason,
            comment=comment,
            extra=extra,
            features=list(features) if features is not None else None,
            active_features=list(active_features) if active_features is not None else None,
            gres=gres,
            weight=weight,
            address=address,
            hostname=hostname,
            topology=topology,
        )
        if not wanted or not body:
            return
        await self._look_before(state, wanted, timeout)
        if len(wanted) == 1:
            await self._session.call("post_node", path={"node_name": wanted[0]}, body=body, timeout=timeout)
            return
        try:
            await self._session.call("post_nodes", body={"name": wanted, **body}, timeout=timeout)
        except errors.NotSupported as error:
            if error.status != 404:
                raise
        else:
            return
        # A server before 24.11: nothing has been done yet, so each node gets its own call.
        results = await asyncio.gather(
            *(self._session.call("post_node", path={"node_name": name}, body=body, timeout=timeout) for name in wanted),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def drain_nodes(self, names: NodeNames, reason: str, *, timeout: float | None = None) -> None:
        """
        Let no new job start on these nodes.

        An existing drain gets the new reason, even if someone else set it: read before you write.
        """
        await self.update_nodes(names, state="DRAIN", reason=reason, timeout=timeout)

    async def undrain_nodes(self, names: NodeNames, *, timeout: float | None = None) -> None:
        """Take drains away; no error where there is none, and a node that is down stays down."""
        await self.update_nodes(names, state="UNDRAIN", timeout=timeout)

    async def resume_nodes(self, names: NodeNames, *, timeout: float | None = None) -> None:
        """Bring nodes back from drain *and* down; InvalidTransition on a node that is neither."""
        await self.update_nodes(names, state="RESUME", timeout=timeout)

    async def down_nodes(self, names: NodeNames, reason: str, *, timeout: float | None = None) -> None:
        """
        Set nodes DOWN; their jobs are requeued or fail. A node whose slurmd answers may return to service.

        NotFound before anything is changed if one is unknown, also for the name of a NodeSet of slurm.conf: slurmctld
        takes it for all nodes in it, and their jobs would end.
        """
        await self.update_nodes(names, state="DOWN", reason=reason, timeout=timeout)

    async def _look_before(
        self, state: str | Sequence[str] | None, names: Sequence[str], timeout: float | None
    ) -> None:
        """Raise NotFound for a name that no node has, where the state ends jobs."""
        words = [state] if isinstance(state, str) else state or ()
        if any(_ENDS_JOBS.search(word) for word in words):
            unknown = await self._unknown(names, timeout)
            if unknown:
                raise errors.NotFound(f"no node {unknown[0]}; nothing was changed")

    async def _unknown(self, names: Sequence[str], timeout: float | None) -> list[str]:
        """Return the names that no node has; that of a NodeSet of slurm.conf is one of them."""
        if len(names) > _ASKED_SINGLY:
            known = {node.name for node in await self.nodes(timeout=timeout)}
            return [name for name in names if name not in known]

        async def is_there(name: str) -> bool:
            try:
                await self.node(name, timeout=timeout)
            except errors.NotFound:
                return False
            return True

        found = await asyncio.gather(*map(is_there, names))
        return [name for name, there in zip(names, found, strict=True) if not there]

    async def delete_node(self, name: NodeName, *, timeout: float | None = None) -> None:
        """
        Delete the record of a dynamic node; Conflict while a job is on it, NotFound if there is none.

        It is asked for first: slurmctld takes the name of a NodeSet of slurm.conf too, and deletes all nodes in it.
        """
        await self.node(name, timeout=timeout)
        await self._session.call("delete_node", path={"node_name": name}, timeout=timeout)

    async def delete_nodes(self, names: NodeNames, *, are_nodes: bool = False, timeout: float | None = None) -> None:
        """
        Delete the records of many dynamic nodes, hundreds in one call.

        Nodes are asked for first, more than 8 by one list of all, and names that no node has are left out: slurmctld
        takes the name of a NodeSet of slurm.conf for all nodes in it.

        The server goes through all the names, deletes what it can, and tells the last thing that went wrong (measured
        with 24.11 and 26.05): Conflict if a job is on one of them, NotFound if one is unknown, only one of both where
        both is true. Either is raised after everything has been tried: read back what is left.

        Parameters
        ----------
        names
            Node names: a hostlist such as ``w-[0-3],w-7``, or a list of names and hostlists. Nothing is sent for none.
        are_nodes
            All names were just read from Slurm as those of nodes: nothing is asked first.
        """
        refused: errors.SlurmError | None = None
        wanted = list(dict.fromkeys(names))
        if wanted and not are_nodes:
            unknown = await self._unknown(wanted, timeout)
            if unknown:
                refused = errors.NotFound(f"no node {unknown[0]}")
            wanted = [name for name in wanted if name not in unknown]
        for chunk in _chunks(wanted):
            try:
                await self._session.call("delete_node", path={"node_name": ",".join(chunk)}, timeout=timeout)
            except (errors.Conflict, errors.NotFound) as error:
                refused = error
        if refused is not None:
            raise refused

    async def create_node(self, conf: Text, *, timeout: float | None = None) -> None:
        """
        Create a node record from one line of slurm.conf (v0.0.44 and newer).

        The line must say ``State=CLOUD``, ``EXTERNAL`` or ``FUTURE``: dynamic nodes make their records themselves.
        """
        await self._session.call("post_new_node", body={"node_conf": conf}, timeout=timeout)


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    """Names that fit into one address together."""
    chunk: list[str] = []
    length = 0
    for name in names:
        if chunk and length + len(name) + 3 > _LONGEST_PATH:
            yield chunk
            chunk, length = [], 0
        chunk.append(name)
        # A comma is three characters there.
        length += len(name) + 3
    if chunk:
        yield chunk
