# %% [markdown]
# # Comparisons with ties
#
# People were shown two points and said which is better, or that they see no difference. A hidden score decides. It
# falls with the distance from the middle: a circular pattern that no linear score can express. The comparator learns a
# score and, together with it, the threshold: people see no difference if the scores differ by less.

# %%
import numpy as np

from maxmargin import SVMComparator
from maxmargin.metrics import compare_error

random = np.random.default_rng(3)


def hidden(points: np.ndarray) -> np.ndarray:
    return -np.hypot(points[:, 0], points[:, 1])


def asked(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two points a question, and the answer: -1 for left, 1 for right, 0 for no difference."""
    left, right = random.uniform(-1, 1, size=(2, count, 2))
    difference = hidden(right) - hidden(left) + random.normal(scale=0.05, size=count)
    return left, right, np.where(np.abs(difference) < 0.2, 0, np.sign(difference)).astype(int)


train, test = asked(1500), asked(1500)
print("share of ties:", np.mean(train[2] == 0).round(2))

# %% [markdown]
# A linear score fails on this; a Gaussian kernel does not.

# %%
linear = SVMComparator(loss="squared_hinge").fit(*train)
curved = SVMComparator(kernel="rbf", gamma=1.0, C=10).fit(*train)
errors = {
    name: compare_error(test[2], model.compare(*test[:2])) for name, model in (("linear", linear), ("rbf", curved))
}
for name, error in errors.items():
    print(f"{name:<6} error {error:.3f}")
print(
    f"threshold for ties {curved.threshold_:.3f}; relative gap {curved.gap_:.1e}; {len(curved.support_)} pairs in use"
)

# %% [markdown]
# Three outcomes give a 3 × 3 confusion matrix: rows are the answers, columns the predictions. Errors should be between
# neighbours: a decided pair predicted as a tie is a small error, the wrong winner a large one.

# %%
predicted = curved.compare(*test[:2])
confusion = np.zeros((3, 3), dtype=int)
np.add.at(confusion, (test[2] + 1, predicted + 1), 1)
print("said \\ predicted   left    tie  right")
for name, row in zip(("left", "tie", "right"), confusion, strict=True):
    print(f"{name:<16}" + "".join(f"{count:>7}" for count in row))

# %% [markdown]
# Often the same few items are compared many times. `fit_items` takes the items once, and pairs that name them. Here
# twelve items are compared 400 times. `rank` gives the same rank to items that differ by less than the threshold.
# `intervals` gives the uncertainty, by training on resampled pairs. Comparisons do not determine a constant added to
# all scores, so the intervals are those of the scores minus their mean.

# %%
items = random.uniform(-1, 1, size=(12, 2))
left, right = random.integers(12, size=(2, 400))
left, right = left[left != right], right[left != right]
difference = hidden(items)[right] - hidden(items)[left] + random.normal(scale=0.05, size=len(left))
pairs = np.column_stack([left, right, np.where(np.abs(difference) < 0.2, 0, np.sign(difference))]).astype(int)

table = SVMComparator(kernel="rbf", gamma=1.0).fit_items(items, pairs)
scores, ranks = table.decision_function(items), table.rank(items)
scores -= scores.mean()
low, high, sure_ranks = table.intervals(items, pairs, resamples=50)
print("rank  surely  score  95 % interval     distance from the middle")
for item in np.argsort(-scores):
    interval = f"[{low[item]:6.2f}, {high[item]:6.2f}]"
    print(f"{ranks[item]:>4} {sure_ranks[item]:>7} {scores[item]:6.2f}  {interval} {-hidden(items)[item]:14.2f}")

# %% Check the claims.
assert errors["rbf"] < 0.2 < errors["linear"]
assert confusion.sum() == 1500 and confusion[0, 2] + confusion[2, 0] <= 5
assert np.array_equal(predicted, -curved.compare(test[1], test[0]))
assert np.corrcoef(scores, hidden(items))[0, 1] > 0.9
assert (low <= high).all() and ((low <= scores) & (scores <= high)).mean() > 0.7 and (sure_ranks <= ranks).all()
assert ranks[np.argmax(scores)] == 1
