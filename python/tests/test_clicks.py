"""Learning from click logs."""

import numpy as np
import pytest

from maxmargin import MaxmarginError, SVMRanker, estimate_propensity


def simulated(queries=60, docs=6, lists=4000, seed=0):
    """Features, queries and items of rows, and a log of two rankers with propensity 1 / position."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(queries * docs, 4))
    relevant = X @ [1.0, -1.0, 0.5, 0.0] > 0.5
    qid, items = np.repeat(np.arange(queries), docs), np.tile(np.arange(docs), queries)
    log = {name: [] for name in ("query", "session", "item", "position", "clicked", "propensity")}
    policies = random.normal(size=(2, queries * docs))
    for session in range(lists):
        query = random.integers(queries)
        rows = np.arange(query * docs, (query + 1) * docs)
        for place, row in enumerate(rows[np.argsort(policies[session % 2][rows])], 1):
            looked = random.random() < 1 / place
            clicked = looked and random.random() < (1.0 if relevant[row] else 0.1)
            for name, value in zip(log, (query, session, items[row], place, int(clicked), 1 / place), strict=True):
                log[name].append(value)
    return X, qid, items, relevant, log


def test_clicks_teach_the_hidden_order():
    X, qid, items, relevant, log = simulated()
    best = SVMRanker().fit(X, relevant.astype(float), qid=qid).score(X, relevant.astype(float), qid=qid)
    for propensity in (None, "log", "power:1", "estimate", [1 / place for place in range(1, 7)]):
        ranker = SVMRanker(C=1e-3, tol=1e-6).fit_clicks(log, X, qid=qid, items=items, propensity=propensity)
        assert ranker.converged_
        assert ranker.score(X, relevant.astype(float), qid=qid) > 0.95 * best
    exact = SVMRanker(C=1e-3, tol=1e-9).fit_clicks(log, X, qid=qid, items=items, propensity="log")
    law = SVMRanker(C=1e-3, tol=1e-9).fit_clicks(log, X, qid=qid, items=items, propensity="power:1")
    np.testing.assert_allclose(exact.coef_, law.coef_, rtol=1e-4)


def test_the_curve_is_estimated():
    *_, log = simulated(lists=20000)
    found = estimate_propensity(log)
    np.testing.assert_allclose(found.propensity, 1 / found.position, rtol=0.25)
    assert (found.low <= found.propensity).all() and (found.propensity <= found.high).all()
    assert found.shown.sum() == len(log["query"])
    assert found.clicks.sum() == sum(log["clicked"])


def test_preferences_and_files(tmp_path):
    X, qid, items, relevant, log = simulated(lists=500)
    ranker = SVMRanker(C=0.01).fit_clicks(log, X, qid=qid, items=items, preferences="every-unclicked")
    assert ranker.score(X, relevant.astype(float), qid=qid) > 0.8
    lines = [",".join(log)] + [",".join(str(value) for value in row) for row in zip(*log.values(), strict=True)]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    by_file = SVMRanker(C=0.01).fit_clicks(tmp_path / "log.csv", X, qid=qid, items=items)
    by_columns = SVMRanker(C=0.01).fit_clicks(log, X, qid=qid, items=items)
    np.testing.assert_array_equal(by_file.coef_, by_columns.coef_)


def test_bad_logs_are_refused():
    X, qid, items, _, log = simulated(lists=20)
    fit = SVMRanker().fit_clicks
    with pytest.raises(ValueError, match="no column 'item'"):
        fit({name: values for name, values in log.items() if name != "item"}, X, qid=qid, items=items)
    with pytest.raises(ValueError, match="0 or 1"):
        fit({**log, "clicked": [2] * len(log["query"])}, X, qid=qid, items=items)
    with pytest.raises(MaxmarginError, match="propensity 0"):
        fit({**log, "propensity": [0.0] * len(log["query"])}, X, qid=qid, items=items)
    with pytest.raises(ValueError, match="propensity is 'guess'"):
        fit(log, X, qid=qid, items=items, propensity="guess")
    with pytest.raises(ValueError, match="leave them out"):
        fit(log, X, qid=qid, items=items, preferences="skip-above", clip=0.1)
