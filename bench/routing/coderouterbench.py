"""CodeRouterBench's two streams, by the names of its files (arXiv 2606.22902)."""

from dataclasses import replace
from pathlib import Path

from bench.routing.stream import Stream, StreamKind, read_stream

ID_SPLIT = "CodeRouterBench ID split"
"""The ID tasks as a benchmark of the shipped profile."""


def read_ood_stream(data: Path) -> Stream:
    """Read the OOD tasks.

    Raises:
        StreamError: a file is missing or wrong.
    """
    return read_stream(
        "ood", tasks=data / "ood176_tasks.jsonl", results=data / "ood176_results_long.csv", models=data / "models.json"
    )


def read_id_stream(data: Path) -> Stream:
    """Read the ID tasks with the published voters; the pool's priors do not know what the models did on them.

    Raises:
        StreamError: a file is missing or wrong.
    """
    stream = read_stream(
        "id",
        tasks=data / "id_test_tasks.jsonl",
        results=data / "id_test_results_long.csv",
        models=data / "models.json",
        voters=data / "id_voters",
    )
    pool = replace(stream.pool, without_benchmarks=(ID_SPLIT,))
    return replace(stream, pool=pool, kind=StreamKind.SINGLE_TURN)
