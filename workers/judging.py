"""Which model judges an attempt's patch, if any."""

from sandbox.opinions import Judge
from store.errors import ConfigurationError
from store.repo_config import ModelRules
from store.tables import Attempt
from workers.context import Work
from workers.endpoints import endpoint, is_same_model
from workers.run import AttemptMeter, Run


def judge_for(run: Run, work: Work, attempt: Attempt) -> Judge | None:
    """Return the operator's judge with the task's money, or None.

    There is none where the operator or the repository wants none, where the repository lets that model see nothing, and
    where the patch is its own: nobody is a fair judge of that.
    """
    name, config = run.runtime.settings.judge_model, work.source.config
    if not name or config.judge == "off" or not _may_see(name, config.models):
        return None
    if is_same_model(run.runtime.pool, name, attempt.model):
        return None
    try:
        model = endpoint(run, name)
    except ConfigurationError:  # its key is missing, which `acrouter doctor` tells
        return None
    # Seconds of import, for those who ask nobody.
    from sandbox.agent.judge import ModelJudge

    assert attempt.id is not None
    return ModelJudge(model, AttemptMeter(run, attempt.id, name))


def _may_see(name: str, rules: ModelRules) -> bool:
    """A repository's rules say which models get to see its code."""
    return name not in rules.deny and (not rules.allow or name in rules.allow)
