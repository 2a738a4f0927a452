"""The regression with shared and own weights, beside a well-known solver of the same problem."""

import numpy as np
import pytest

from routing.contexts import INTERCEPT, SIZE, features
from routing.hierarchy import STEPS, Posterior, Prior, Rows, Spreads
from routing.logits import Floats, sigmoid
from routing.types import Dimension

MODELS = 3
SPREADS = Spreads()


def drawn(attempts: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    parts = []
    for model in range(MODELS):
        x = rng.normal(size=(attempts, SIZE)) * 0.5
        x[:, INTERCEPT] = 1.0
        chance = sigmoid(x[:, 1] + 0.5 * model - 0.5)
        parts.append((x, (rng.random(attempts) < chance).astype(float), rng.uniform(0.3, 1.0, attempts)))
    return Rows.stacked(parts)


def fitted(rows: Rows, levels: Floats, steps: int = STEPS, own: Floats | None = None) -> Posterior:
    prior = Prior.of(levels, SPREADS.shared(), SPREADS.own() if own is None else own)
    posterior = prior.posterior()
    for _ in range(steps):
        reached = posterior.reached(rows)
        posterior = prior.step(rows, reached, sigmoid(reached))
    return posterior


@pytest.mark.parametrize("attempts", [5, 80])
def test_the_mode_is_that_of_scikit_learn(attempts: int) -> None:
    """One design matrix with a block for the shared and one for each model's weights, each scaled by its spread."""
    from sklearn.linear_model import LogisticRegression  # only here: each process that shares the tests would wait

    rows = drawn(attempts, seed=attempts)
    design = np.zeros((len(rows.x), (1 + MODELS) * SIZE))
    design[:, :SIZE] = rows.x * np.sqrt(SPREADS.shared())
    for model, mine in rows.slices:
        design[mine, (1 + model) * SIZE : (2 + model) * SIZE] = rows.x[mine] * np.sqrt(SPREADS.own())
    peer = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=5000)
    peer.fit(design, rows.scores, sample_weight=rows.counts)
    blocks = peer.coef_.reshape(1 + MODELS, SIZE)
    means = blocks[0] * np.sqrt(SPREADS.shared()) + blocks[1:] * np.sqrt(SPREADS.own())

    assert fitted(rows, np.zeros(MODELS), steps=12).means == pytest.approx(means, abs=1e-4)
    assert fitted(rows, np.zeros(MODELS)).means == pytest.approx(means, abs=0.02)


def test_without_attempts_the_prior_is_believed() -> None:
    rows = Rows.stacked([(np.zeros((0, SIZE)), np.zeros(0), np.zeros(0))] * MODELS)
    z = np.eye(SIZE)[INTERCEPT]
    posterior = fitted(rows, np.array([-1.0, 0.0, 1.0]))

    assert posterior.means @ z == pytest.approx([-1.0, 0.0, 1.0])
    covariance = posterior.covariance(range(MODELS), z)
    shared, own = SPREADS.shared_level**2, SPREADS.own_level**2
    assert covariance == pytest.approx(np.full((MODELS, MODELS), shared) + own * np.eye(MODELS))


def test_what_one_model_shows_is_believed_of_the_others_in_part() -> None:
    rows = drawn(60, seed=1)
    alone = Rows(rows.x, np.ones_like(rows.scores), np.where(rows.owner == 0, rows.counts, 0.0), rows.bounds)
    z = np.eye(SIZE)[INTERCEPT]
    first, second, third = (fitted(alone, np.zeros(MODELS)).means @ z).tolist()

    assert first > second > 0.2
    assert second == pytest.approx(third)


def test_of_features_that_no_attempt_has_the_prior_is_believed() -> None:
    drawn_rows = drawn(30, seed=2)
    x = drawn_rows.x.copy()
    x[:, 1] = 0.0
    rows = Rows(x, drawn_rows.scores, drawn_rows.counts, drawn_rows.bounds)
    z = np.eye(SIZE)[1]
    posterior = fitted(rows, np.zeros(MODELS))

    assert posterior.means @ z == pytest.approx(np.zeros(MODELS))
    shared, own = SPREADS.shared()[1], SPREADS.own()[1]
    assert posterior.covariance(range(MODELS), z) == pytest.approx(np.full((MODELS, MODELS), shared) + own * np.eye(3))
    both = z + np.eye(SIZE)[INTERCEPT]
    alone = posterior.covariance(range(MODELS), np.eye(SIZE)[INTERCEPT])
    assert posterior.covariance(range(MODELS), both) == pytest.approx(alone + shared + own * np.eye(MODELS))


def test_what_is_published_is_believed_of_repairing_repositories_and_nowhere_else() -> None:
    both = np.stack([SPREADS.own(published=True), SPREADS.own()])
    before = Prior.of(np.zeros(2), SPREADS.shared(), both).posterior()

    def own_spreads(dimension: Dimension) -> Floats:
        covariance = before.covariance(range(2), features(dimension, (), None))
        found: Floats = np.sqrt(np.diag(covariance) - covariance[0, 1])
        return found

    assert own_spreads(Dimension.BUG_FIXING) == pytest.approx([0.316, 1.063], abs=0.001)
    for elsewhere in set(Dimension) - {Dimension.BUG_FIXING}:
        assert own_spreads(elsewhere) == pytest.approx([1.063, 1.063], abs=0.001)


def test_a_published_model_keeps_its_standing_longer() -> None:
    """Three failures of two models that are expected alike: of the one of which less was known they say more."""
    own = np.stack([SPREADS.own(published=True), SPREADS.own()])
    x = np.tile(features(Dimension.BUG_FIXING, (), None), (3, 1))
    rows = Rows.stacked([(x, np.zeros(3), np.ones(3))] * 2)
    posterior = fitted(rows, np.ones(2), own=own)
    published, unknown = posterior.scores(range(2), features(Dimension.BUG_FIXING, (), None)).tolist()
    assert sigmoid(np.ones(1))[0] > published > unknown + 0.05
