# %% [markdown]
# # Ranking search results
#
# A search engine has graded results: for each query some documents, each with features and a grade from 0 (useless) to
# 4 (perfect). We train a score that puts better documents first, choose the regularisation, look at the proof that the
# model is close to the optimum, and use the model from the command line.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import maxmargin
from maxmargin import Model, SVMRanker
from maxmargin.metrics import ndcg_score

folder = tempfile.TemporaryDirectory()
train_file, test_file, model_file = (Path(folder.name) / name for name in ("train.svm", "test.svm", "ranker.mm"))


def command(*arguments: object) -> str:
    """Runs the command that comes with the package, and returns what it prints."""
    words = [sys.executable, "-m", "maxmargin", *map(str, arguments)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


# %% [markdown]
# The command simulates data. One hidden model grades two samples of queries: one for training, and one that is held
# out. There are few queries for so many features and the grades are noisy, so regularisation matters.

# %%
made = ["--queries", 60, "--docs", 20, "--features", 100, "--noise", 1.5, "--seed", 7]
command("simulate", "search", *made, "--stream", 0, "-o", train_file)
command("simulate", "search", *made, "--stream", 1, "-o", test_file)

train, test = maxmargin.load(train_file), maxmargin.load(test_file)
print(train)

# %% [markdown]
# An estimator takes a data set in place of `X`, `y` and `qid`. Scores are comparable only within a query, so the metric
# needs the query of each row.

# %%
plain = SVMRanker().fit(train)


def held_out(ranker: SVMRanker) -> float:
    return ndcg_score(test.targets, ranker.predict(test), qid=test.qid, k=10)


chance = ndcg_score(test.targets, np.random.default_rng(0).normal(size=len(test)), qid=test.qid, k=10)
print(f"NDCG@10 held out: chance {chance:.3f}, C=1 {held_out(plain):.3f}")

# %% [markdown]
# `tune` cross-validates C with whole queries in each fold. Each fit starts from the solution for the previous C, so a
# whole path costs little more than its last fit.

# %%
found = maxmargin.tune(SVMRanker(), train, metrics="ndcg@10", cv=5)
tuned = found.best_estimator
for row in found.results:
    print(f"C {row['C']:<12.4g} NDCG@10 {row['mean_ndcg@10']:.4f} ± {row['standard_error_ndcg@10']:.4f}")
print(f"best C {found.best_params['C']:.4g}; NDCG@10 held out {held_out(tuned):.3f}")

# %% [markdown]
# The certificate: the best possible objective lies between `lower_bound_` and `objective_`. `verify` recomputes both
# from the data.

# %%
print(f"{tuned.lower_bound_:.8g} <= optimum <= {tuned.objective_:.8g}, relative gap {tuned.gap_:.1e}")
objective, bound, gap = tuned.verify(train)

# %% [markdown]
# The command can use the model file, so a service needs no Python.

# %%
tuned.save(model_file)
printed = command("predict", model_file, test_file)
by_command = np.array([float(line) for line in printed.split()])
print(command("verify", model_file, train_file))

# %% Check the claims.
assert held_out(plain) > chance + 0.1
assert held_out(tuned) > held_out(plain)
assert tuned.converged_ and tuned.lower_bound_ <= tuned.objective_
assert np.isclose(objective, tuned.objective_) and np.isclose(bound, tuned.lower_bound_) and gap <= tuned.tol
np.testing.assert_allclose(by_command, tuned.predict(test), rtol=1e-6, atol=1e-9)
assert np.array_equal(Model.load(model_file).weights, tuned.coef_)
folder.cleanup()
