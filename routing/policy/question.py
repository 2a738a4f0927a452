"""The question that the policy model is asked: the pool's statistics, the neighbours and the task, all as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from routing.types import Neighbour, RoutingTask
from templates import render
from templates.escape import cut_middle, plain

MAX_TASK_CHARS = 1200
"""Of the task's text: the whole question should stay within about 1,000 tokens, so that a small model is quick."""
MAX_NEIGHBOURS = 5


@dataclass(frozen=True)
class ModelStatistics:
    """What is known of one model on tasks of this dimension. Amounts are in USD."""

    name: str
    attempts: int
    mean_score: float
    cost_usd: float


@dataclass(frozen=True)
class Question:
    """What the policy model sees. It may answer with one of `choices` and nothing else."""

    dimension: str
    language: str
    text: str
    """Untrusted."""
    statistics: Sequence[ModelStatistics]
    neighbours: Sequence[Neighbour] = ()

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(line.name for line in self.statistics)

    def messages(self) -> list[dict[str, str]]:
        """Return the chat messages of the question; the task stands in them as one JSON string."""
        return [
            {"role": "system", "content": render("prompts/policy_system.md.j2")},
            {
                "role": "user",
                "content": render(
                    "prompts/policy.md.j2",
                    statistics=self.statistics,
                    # A neighbour's title may come from another repository: numbers are all that is told of it.
                    neighbours=[n for n in self.neighbours if n.model in self.choices][:MAX_NEIGHBOURS],
                    dimension=self.dimension,
                    language=self.language,
                    text=cut_middle(plain(self.text).strip(), MAX_TASK_CHARS),
                ),
            },
        ]


def question(
    task: RoutingTask, statistics: Mapping[str, ModelStatistics], neighbours: Sequence[Neighbour] = ()
) -> Question:
    """Return the question about a task."""
    words = task.text if not task.title or task.text.startswith(task.title) else f"{task.title}\n\n{task.text}"
    return Question(str(task.dimension), task.language, words, tuple(statistics.values()), tuple(neighbours))
