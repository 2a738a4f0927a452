"""Sends signed webhooks over a fixed number of connections, as fast as they are answered or at a given rate.

Run as a process of its own (`python -m bench.load`), so that the load does not share an interpreter with what it
measures. It prints JSON: the seconds, the status of each answer, each latency, and the ids that were acknowledged.
"""

import argparse
import asyncio
import json
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import uvloop


@dataclass
class Tally:
    latencies_s: list[float] = field(default_factory=list)
    """From the moment a request was due, so that a server that is late cannot hide it."""
    acknowledged: list[str] = field(default_factory=list)
    refused: int = 0
    broken: int = 0


async def connection(
    head: bytes, body: bytes, port: int, until: float, every_s: float, first: float, tally: Tally
) -> None:
    """Send one request after the other over one connection, each at its time where there is a rate."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    due = first
    try:
        while (now := time.perf_counter()) < until:
            if every_s:
                if due > now:
                    await asyncio.sleep(due - now)
            else:
                due = now
            guid = str(uuid.uuid1())  # of the version of GitHub's: made of the time
            writer.write(head.replace(b"GUID", guid.encode()) + body)
            status = await _answer(reader)
            tally.latencies_s.append(time.perf_counter() - due)
            if 200 <= status < 300:
                tally.acknowledged.append(guid)
            else:
                tally.refused += 1
            due += every_s
    except (OSError, asyncio.IncompleteReadError):
        tally.broken += 1
    finally:
        writer.close()


async def _answer(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    lower = head.lower()
    if b"content-length:" in lower:
        length = int(lower.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        await reader.readexactly(length)
    elif b"transfer-encoding: chunked" in lower:
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    return int(head[9:12])


async def send(port: int, body: bytes, signature: str, seconds: float, connections: int, rate: float) -> Tally:
    head = (
        "POST /webhooks/github HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "User-Agent: GitHub-Hookshot/bench\r\nX-GitHub-Event: issues\r\nX-GitHub-Delivery: GUID\r\n"
        f"X-Hub-Signature-256: {signature}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    tally = Tally()
    began = time.perf_counter()
    every_s = connections / rate if rate else 0.0
    await asyncio.gather(
        *(
            connection(head, body, port, began + seconds, every_s, began + every_s * index / connections, tally)
            for index in range(connections)
        )
    )
    return tally


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("port", "connections"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("seconds", "rate"):
        parser.add_argument(f"--{name}", type=float, required=True)
    parser.add_argument("--body", type=Path, required=True)
    parser.add_argument("--signature", required=True)
    given = parser.parse_args()
    began = time.perf_counter()
    tally = uvloop.run(
        send(given.port, given.body.read_bytes(), given.signature, given.seconds, given.connections, given.rate)
    )
    json.dump({"seconds": time.perf_counter() - began, **vars(tally)}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
