# %% [markdown]
# # Learning from a stream
#
# Comparisons arrive in chunks and are not stored. The learner makes one small step for each pair that it predicted
# wrongly, so it can be used at any time. It predicts the outcome of each pair before it learns from it. The share of
# wrong predictions is an honest estimate of the error without any held-out data.

# %%
import pickle

import numpy as np

from maxmargin import PAComparator

random = np.random.default_rng(5)
FEATURES, CHUNK, CHUNKS = 20, 500, 40
hidden = random.normal(size=FEATURES)


def chunk() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of items; they tie where the hidden scores differ by less than 2."""
    left, right = random.normal(size=(2, CHUNK, FEATURES))
    difference = (right - left) @ hidden + random.normal(scale=0.3, size=CHUNK)
    return left, right, np.where(np.abs(difference) < 2, 0, np.sign(difference)).astype(int)


stream = [chunk() for _ in range(CHUNKS)]

# %% [markdown]
# `partial_fit` continues where training stopped. `progressive_error_` is the error over all pairs so far,
# `recent_error_` that over the most recent ones. It falls faster, because it forgets the beginning.

# %%
learner = PAComparator(C=0.01)
told = []
for position, (left, right, outcome) in enumerate(stream[: CHUNKS // 2], start=1):
    learner.partial_fit(left, right, outcome)
    told.append((learner.progressive_error_, learner.recent_error_))
    if position % 4 == 0:
        print(f"{learner.n_pairs_:>6} pairs   error {told[-1][0]:.3f}   of the last {told[-1][1]:.3f}")

# %% [markdown]
# Halfway, the process ends. A pickle holds everything needed to continue, and so does a model file.

# %%
kept = pickle.dumps(learner)
del learner
learner = pickle.loads(kept)
print(f"{len(kept)} bytes after {learner.n_pairs_} pairs")
for position, (left, right, outcome) in enumerate(stream[CHUNKS // 2 :], start=CHUNKS // 2 + 1):
    learner.partial_fit(left, right, outcome)
    told.append((learner.progressive_error_, learner.recent_error_))
    if position % 4 == 0:
        print(f"{learner.n_pairs_:>6} pairs   error {told[-1][0]:.3f}   of the last {told[-1][1]:.3f}")

# %% [markdown]
# The confusion matrix: predictions (columns) of true outcomes (rows: left, tie, right), and how well the hidden score
# was found.

# %%
for row in learner.confusion_:
    print("".join(f"{count:>7}" for count in row))
likeness = learner.coef_ @ hidden / np.linalg.norm(learner.coef_) / np.linalg.norm(hidden)
print(f"cosine with the hidden weights {likeness:.3f}; threshold {learner.threshold_:.3f}")

# %% [markdown]
# The chunks and the pickle do not change the result: one `fit` over all pairs in the same order gives the same bits.

# %%
at_once = PAComparator(C=0.01).fit(*(np.concatenate(side) for side in zip(*stream, strict=True)))

# %% Check the claims.
assert learner.n_pairs_ == CHUNK * CHUNKS == np.sum(learner.confusion_)
assert told[-1][0] < told[0][0] and told[-1][1] < 0.2
assert np.isclose(learner.progressive_error_, 1 - np.trace(learner.confusion_) / learner.n_pairs_)
assert likeness > 0.95
assert np.array_equal(at_once.coef_, learner.coef_) and at_once.threshold_ == learner.threshold_
assert at_once.progressive_error_ == learner.progressive_error_
