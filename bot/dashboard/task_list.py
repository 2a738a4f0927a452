"""The list of tasks: filters over the facts, pages by the last id that was seen."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from urllib.parse import urlencode

import numpy as np
from sqlmodel import Session, col, select

from bot.dashboard import periods, search
from bot.dashboard.errors import BadRequestError
from bot.dashboard.facts import TASK_KINDS, TASK_STATES, TRIGGERS, Bools, Facts, Ints, present
from store.states import TaskState
from store.suggest import did_you_mean
from store.tables import Task
from templates.escape import plain

PAGE = 50
_KEYS = ("repository", "model", "dimension", "state", "person", "since", "until", "text")
_GROUPS = {
    "open": tuple(state for state in TaskState if state.is_open),
    "ended": tuple(state for state in TaskState if not state.is_open),
}
"""Words that stand for several states in the filter."""


@dataclass(frozen=True)
class TaskFilter:
    """What is asked for; an empty word asks for nothing."""

    repository: str = ""
    model: str = ""
    dimension: str = ""
    state: str = ""
    person: str = ""
    since: str = ""
    until: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return any(asdict(self).values())

    def query(self, **more: object) -> str:
        """Return it as a query string."""
        values = {**asdict(self), **more}
        return urlencode({key: value for key, value in values.items() if value not in ("", None)})


@dataclass(frozen=True)
class TaskLine:
    """One task in a list."""

    id: int
    title: str
    repository: str
    kind: str
    trigger: str
    person: str
    dimension: str
    state: TaskState
    reverted: bool
    model: str
    """Of the published attempt, or of the last one."""
    attempts: int
    cost_usd: float
    created: float
    seconds: float | None
    """From trigger to its first ending."""
    target_number: int | None
    pr_number: int | None
    pr_url: str


@dataclass(frozen=True)
class TaskPage:
    lines: tuple[TaskLine, ...]
    total: int
    """Tasks that the filter lets through."""
    next_before: int | None
    """Where the next page begins; None at the end."""


def parse_filter(values: Mapping[str, str]) -> TaskFilter:
    """Read a filter from a query.

    Raises:
        BadRequestError: a state or a day is none.
    """
    found = TaskFilter(**{key: plain(values.get(key, "")[:300]).strip() for key in _KEYS})
    known = [*TASK_STATES, *_GROUPS]
    if found.state and found.state not in known:
        raise BadRequestError(
            f"state: there is no '{found.state}'.{did_you_mean(found.state, known)} There are: {', '.join(known)}."
        )
    for day in (found.since, found.until):
        if day:
            periods.day_of(day)
    return found


def mask(session: Session, facts: Facts, wanted: TaskFilter) -> Bools:
    """Return which tasks a filter lets through. The database is asked only for words (`search`)."""
    tasks = facts.tasks
    keep = np.ones(len(tasks), dtype=bool)
    if wanted.repository:
        ids = [key for key, name in facts.repositories.items() if name.lower() == wanted.repository.lower()]
        keep &= np.isin(tasks.repository, np.array(ids, dtype=np.int64))
    if wanted.dimension:
        keep &= tasks.dimension == facts.dimensions.find(wanted.dimension)
    if wanted.person:
        keep &= tasks.person == facts.persons.find(wanted.person)
    if wanted.state:
        states = _GROUPS.get(wanted.state) or (TaskState(wanted.state),)
        keep &= np.isin(tasks.state, [TASK_STATES.index(state) for state in states])
    if wanted.since:
        keep &= tasks.created >= periods.day_of(wanted.since) * 86_400
    if wanted.until:
        keep &= tasks.created < (periods.day_of(wanted.until) + 1) * 86_400
    if wanted.model:
        code = facts.models.find(wanted.model)
        keep &= (tasks.first_model == code) | np.isin(tasks.id, facts.attempts.task[facts.attempts.model == code])
    if wanted.text:
        found = search.holding(session, facts, np.flatnonzero(keep), wanted.text)
        keep = np.zeros(len(tasks), dtype=bool)
        keep[found] = True
    return keep


def list_tasks(
    session: Session, facts: Facts, wanted: TaskFilter, *, before: int | None = None, page: int = PAGE
) -> TaskPage:
    """Return one page of tasks, the newest first."""
    rows = np.flatnonzero(mask(session, facts, wanted))
    total = len(rows)
    if before is not None:
        rows = rows[facts.tasks.id[rows] < before]
    shown = rows[::-1][:page]
    lines = _lines(session, facts, shown)
    more = len(rows) > page
    return TaskPage(tuple(lines), total, lines[-1].id if more and lines else None)


def latest(facts: Facts) -> int | None:
    """Return the newest task that a model was chosen for."""
    found = np.flatnonzero(facts.tasks.first_model >= 0)
    return int(facts.tasks.id[found[-1]]) if len(found) else None


def _lines(session: Session, facts: Facts, rows: Ints) -> list[TaskLine]:
    tasks, attempts = facts.tasks, facts.attempts
    ids = [int(one) for one in tasks.id[rows]]
    if not ids:
        return []
    columns = select(Task.id, Task.target_number, Task.pr_number, Task.pr_url).where(col(Task.id).in_(ids))
    links = {row[0]: row[1:] for row in session.exec(columns).all()}
    costs: dict[int, float] = dict.fromkeys(ids, 0.0)
    counts: dict[int, int] = dict.fromkeys(ids, 0)
    models: dict[int, str] = {}
    published = dict(zip(ids, tasks.published[rows].tolist(), strict=True))
    for place in np.flatnonzero(np.isin(attempts.task, np.array(ids))):
        task = int(attempts.task[place])
        costs[task] += float(attempts.cost_usd[place])
        counts[task] += 1
        if not published[task] or published[task] == attempts.id[place]:
            models[task] = facts.models.names[int(attempts.model[place])]
    lines = []
    for row, task in zip(rows, ids, strict=True):
        number, pr_number, pr_url = links.get(task, (None, None, ""))
        seconds = float(tasks.finished[row] - tasks.created[row])
        first = int(tasks.first_model[row])
        lines.append(
            TaskLine(
                id=task,
                title=facts.titles.shown[int(tasks.title[row])],
                repository=facts.repositories.get(int(tasks.repository[row]), ""),
                kind=str(TASK_KINDS[int(tasks.kind[row])]),
                trigger=str(TRIGGERS[int(tasks.trigger[row])]),
                person=facts.persons.names[int(tasks.person[row])],
                dimension=facts.dimensions.names[int(tasks.dimension[row])],
                state=TASK_STATES[int(tasks.state[row])],
                reverted=bool(tasks.reverted[row]),
                model=models.get(task) or (facts.models.names[first] if first >= 0 else ""),
                attempts=counts[task],
                cost_usd=costs[task],
                created=float(tasks.created[row]),
                seconds=None if np.isnan(seconds) else seconds,
                target_number=number,
                pr_number=pr_number,
                pr_url=pr_url or "",
            )
        )
    return lines


def choices(facts: Facts) -> dict[str, list[str]]:
    """Return what can be chosen in the filter: only what occurs among the tasks that may be seen."""
    tasks = facts.tasks
    names = facts.repositories
    models = present(np.concatenate([facts.attempts.model, tasks.first_model]))
    found = {
        "repository": sorted(names[one] for one in np.unique(tasks.repository).tolist() if one in names),
        "model": sorted(facts.models.names[one] for one in models),
        "dimension": sorted(filter(None, (facts.dimensions.names[one] for one in present(tasks.dimension)))),
        "person": sorted(filter(None, (facts.persons.names[one] for one in present(tasks.person)))),
        "state": [*_GROUPS, *(str(state) for state in TASK_STATES)],
    }
    # What hides controls or direction marks in a name is no choice that a person could make.
    return {key: [one for one in words if plain(one) == one] for key, words in found.items()}
