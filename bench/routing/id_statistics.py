"""What is public of the models before the OOD tasks start: how many of the ID tasks each solved.

The shipped profile has these numbers as one more benchmark. `python -m bench.routing.id_statistics FOLDER` computes
them again, FOLDER being CodeRouterBench's. The ID stream itself is played without them (`bench.routing.command`).
"""

import sys
from dataclasses import replace
from pathlib import Path

from bench.routing.stream import Stream, StreamKind, read_stream

ID_SPLIT = "CodeRouterBench ID split"
"""The benchmark's name in the profile."""


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


def id_scores(stream: Stream) -> dict[str, float]:
    """Return the mean score of each model over a stream's tasks, in percent to one place."""
    means = 100 * stream.resolved.mean(axis=0)
    return {model: round(float(mean), 1) for model, mean in zip(stream.models, means, strict=True)}


if __name__ == "__main__":
    for model, score in id_scores(read_id_stream(Path(sys.argv[1]))).items():
        sys.stdout.write(f"{model} {score}\n")
