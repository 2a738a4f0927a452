"""Which model judges an attempt's patch, if any."""

from dataclasses import dataclass

from sandbox.opinions import Judge, Opinion
from store.errors import ConfigurationError
from store.repo_config import ModelRules
from store.tables import Attempt
from store.types import utc_now
from workers.context import Work
from workers.endpoints import endpoint, is_same_model, resting
from workers.run import AttemptMeter, Run
from workers.runtime import Runtime


def judge_for(run: Run, work: Work, attempt: Attempt) -> Judge | None:
    """Return the operator's judge with the task's money, or None.

    There is none where the operator or the repository wants none, where the repository lets that model see nothing,
    where the patch is its own (nobody is a fair judge of that), and while its endpoint fails.
    """
    name, config = run.runtime.settings.judge_model, work.source.config
    if not name or config.judge == "off" or not _may_see(name, config.models):
        return None
    if is_same_model(run.runtime.pool, name, attempt.model):
        return None
    if name in resting(run):
        return None
    try:
        model = endpoint(run, name)
    except ConfigurationError:  # its key is missing, which `acrouter doctor` tells
        return None
    # Seconds of import, for those who ask nobody.
    from sandbox.agent.judge import ModelJudge

    assert attempt.id is not None
    return _TellingJudge(ModelJudge(model, AttemptMeter(run, attempt.id, name)), run.runtime, name)


@dataclass(frozen=True)
class _TellingJudge:
    """Tells the breaker of the judge's endpoint what came of the call. Fulfils `Judge`."""

    judge: Judge
    runtime: Runtime
    model: str

    def __call__(self, task_text: str, patch: str) -> Opinion:
        began = utc_now()
        opinion = self.judge(task_text, patch)
        if opinion.endpoint_answered is not None:
            with self.runtime.database.session() as session:
                if opinion.endpoint_answered:
                    self.runtime.breakers.answered(session, self.model)
                else:
                    self.runtime.breakers.failed(session, self.model, opinion.reason, began)
        return opinion


def _may_see(name: str, rules: ModelRules) -> bool:
    """A repository's rules say which models get to see its code."""
    return name not in rules.deny and (not rules.allow or name in rules.allow)
