"""Followers of outputs, in a process of their own: ``python -m tests.bench.virtual_nodes.followers PORT HOW-MANY``.

Each connects with TLS, asks to follow the output of a pod, and goes two seconds after it is served. What has become of
them is printed as JSON: the status of each answer, or the error.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter

from tests.support.kubelet_callers import caller

AT_A_TIME = 1_000
PODS = 200
PATIENCE_S, FOLLOWS_S = 30, 2


CONTEXT = caller()


async def follow(port: int, number: int, turns: asyncio.Semaphore, ends: Counter[str]) -> None:
    async with turns:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=CONTEXT)
            path = f"/containerLogs/team/p{number % PODS}/main?follow=true"
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n\r\n".encode())
            async with asyncio.timeout(PATIENCE_S):
                status = (await reader.readuntil(b"\r\n")).split()[1].decode()
            ends[status] += 1
            if status == "200":
                await asyncio.sleep(FOLLOWS_S)
            writer.transport.abort()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            ends[type(error).__name__] += 1


async def main(port: int, count: int) -> None:
    turns, ends = asyncio.Semaphore(AT_A_TIME), Counter[str]()
    await asyncio.gather(*(follow(port, number, turns, ends) for number in range(count)))
    print(json.dumps(ends))


if __name__ == "__main__":
    # The operator has a CPU of its own where there are two.
    _ = os.nice(10)
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
