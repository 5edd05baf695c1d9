# %% [markdown]
# # Optimising the measure that you report
#
# Most rankers learn from pairs, and most classifiers from single rows. If the result is judged by average precision or by
# F1, the loss can be that measure itself: of a whole order, or of the labels of all rows. Two small examples with the data
# that the command simulates.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.metrics import f1_score

import maxmargin
from maxmargin import SVMClassifier, SVMRanker
from maxmargin.metrics import map_score

folder = tempfile.TemporaryDirectory()


def simulated(name: str, *arguments: object) -> maxmargin.Dataset:
    """Rows that the command simulates."""
    file = Path(folder.name) / name
    words = [sys.executable, "-m", "maxmargin", "simulate", *map(str, arguments), "-o", str(file)]
    subprocess.run(words, check=True, capture_output=True, text=True)
    return maxmargin.load(file)


# %% [markdown]
# ## Average precision of queries
#
# The ranker with `optimize="map"` learns one order a query, and `C` is the weight of a query. `tune` then chooses C by MAP.

# %%
made = ["search", "--queries", 80, "--docs", 20, "--features", 30, "--noise", 1.5, "--seed", 7]
train, test = simulated("train.svm", *made), simulated("test.svm", *made, "--stream", 1)
by_order = maxmargin.tune(SVMRanker(optimize="map"), train, C=[0.01, 0.1, 1.0, 10.0], cv=4).best_estimator


def held_out(ranker: SVMRanker) -> float:
    return map_score(test.targets, ranker.predict(test), qid=test.qid)


chance = map_score(test.targets, np.random.default_rng(0).normal(size=len(test)), qid=test.qid)
print(f"MAP held out: chance {chance:.3f}, learned from whole orders {held_out(by_order):.3f}, C {by_order.C:g}")

# %% [markdown]
# The certificate is the same as for other models: the optimum of the stated objective lies in this interval.

# %%
print(f"{by_order.lower_bound_:.6g} <= optimum <= {by_order.objective_:.6g}")
objective, bound, gap = by_order.verify(train)

# %% [markdown]
# ## F1 of rare positives
#
# Two overlapping classes, of which one is rare. The hinge of single rows finds next to no positives, since a row labelled
# negative is nearly always right. With `optimize="f1"` the labels of all rows are judged together.

# %%
random = np.random.default_rng(3)
y = random.random(1500) < 0.06
X = random.normal(size=(1500, 5)) + 0.9 * y[:, None]
by_rows = SVMClassifier().fit(X[:1000], y[:1000])
by_f1 = SVMClassifier(optimize="f1").fit(X[:1000], y[:1000])
f1 = [f1_score(y[1000:], model.predict(X[1000:])) for model in (by_rows, by_f1)]
print(f"F1 held out: single rows {f1[0]:.3f}, all rows at once {f1[1]:.3f}")

# %% Check the claims.
assert held_out(by_order) > chance + 0.1
assert by_order.converged_ and bound <= objective and gap <= by_order.tol
assert f1[1] > f1[0] + 0.05
folder.cleanup()
