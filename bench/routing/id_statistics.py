"""What is public of the models before the OOD tasks start: how many of the ID tasks each solved.

The shipped profile has these numbers as one more benchmark. `python -m bench.routing.id_statistics FOLDER` computes
them again, FOLDER being CodeRouterBench's. The ID stream itself is played without them
(`bench.routing.coderouterbench`).
"""

import sys
from pathlib import Path

from bench.routing.coderouterbench import read_id_stream
from bench.routing.stream import Stream


def id_scores(stream: Stream) -> dict[str, float]:
    """Return the mean score of each model over a stream's tasks, in percent to one place."""
    means = 100 * stream.resolved.mean(axis=0)
    return {model: round(float(mean), 1) for model, mean in zip(stream.models, means, strict=True)}


if __name__ == "__main__":
    for model, score in id_scores(read_id_stream(Path(sys.argv[1]))).items():
        sys.stdout.write(f"{model} {score}\n")
