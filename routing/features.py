"""A task as numbers: its embedding and its metadata, in a fixed order."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from routing.metadata import metadata
from routing.types import Dimension, RoutingTask

LANGUAGES = ("python", "javascript", "typescript", "go", "rust", "java", "c", "c++", "c#", "ruby", "php", "shell")
"""The others count as none of them."""
TRIGGERS = ("label", "command", "ci", "command_line")
METADATA: Sequence[str] = (
    *(f"dimension={dimension.value}" for dimension in Dimension),
    *(f"language={language}" for language in LANGUAGES),
    *(f"trigger={trigger}" for trigger in TRIGGERS),
    "log_size",
    "has_traceback",
    "has_failing_test",
)
"""Names of the features that follow the embedding's."""


def features(task: RoutingTask, dimensions: int) -> NDArray[np.float64]:
    """Return a vector of `dimensions` + len(METADATA) numbers; the embedding's are 0 for a task without words."""
    known = metadata(task)
    values = [
        *(float(task.dimension == dimension) for dimension in Dimension),
        *(float(known.language == language) for language in LANGUAGES),
        *(float(known.trigger == trigger) for trigger in TRIGGERS),
        math.log10(1 + known.size) / 5,
        float(known.has_traceback),
        float(known.has_failing_test),
    ]
    embedding = np.zeros(dimensions) if task.embedding is None else task.embedding
    return np.concatenate([embedding, values])
