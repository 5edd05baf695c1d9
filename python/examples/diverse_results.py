# %% [markdown]
# # Search results that do not repeat each other
#
# A search for "jaguar" finds pages about a car, an animal and a guitar. Ten pages about the car are a bad answer for most
# people. We learn to choose a few of the documents found so that together they cover much and repeat little. No ranking of
# single documents can do that: how useful a document is depends on the other ones. So the choice as a whole is the
# output, and we write an oracle for it.

# %%
import itertools

import numpy as np

from maxmargin import StructuredSVM, check_oracle

random = np.random.default_rng(5)

# %% [markdown]
# Simulated data. Each search has eight documents and five topics. A document is about one or two topics and has two of the
# three words of each; documents may also have many words that no other document has. An input is the list of documents,
# each a set of words. The right output is a choice of three documents that covers the most topics. The topics are known in
# training only, and are not part of the input.

# %%
DOCUMENTS, CHOSEN, TOPICS = 8, 3, 5


def search():
    found, topics = [], []
    for _ in range(DOCUMENTS):
        own = set(random.choice(TOPICS, size=random.integers(1, 3), replace=False).tolist())
        words = {f"{topic}-{word}" for topic in own for word in random.choice(3, size=2, replace=False)}
        found.append(words | {f"rare-{random.integers(10**9)}" for _ in range(random.integers(0, 8))})
        topics.append(own)
    return found, topics


def covered(choice, topics):
    return len(set().union(*(topics[at] for at in choice)))


def best_choice(topics):
    return max(itertools.combinations(range(DOCUMENTS), CHOSEN), key=lambda choice: covered(choice, topics))


searches = [search() for _ in range(60)]
X = [found for found, _ in searches[:30]]
Y = [best_choice(topics) for _, topics in searches[:30]]

# %% [markdown]
# The oracle. Words are told apart by how many of the documents have them. The joint feature says how many words of each
# kind a choice covers, and how many times it repeats them. The search tries all 56 choices, so it is exact; for more
# documents one would take them greedily, and the stated objective would no longer be exact.


# %%
class Diverse:
    """Chooses documents that cover much and repeat little."""

    LEVELS = 4

    def joint_feature(self, x, y):
        feature = np.zeros(2 * self.LEVELS)
        counts = self.counts(x)
        for word, times in self.counts([x[at] for at in y]).items():
            level = min(counts[word], self.LEVELS) - 1
            feature[level] += 1
            feature[self.LEVELS + level] += times - 1
        return feature

    def loss(self, y_true, y):
        return 1.0 - len(set(y_true) & set(y)) / CHOSEN

    def most_violated(self, x, y_true, w):
        return self.best(x, lambda y: self.loss(y_true, y) + w @ self.joint_feature(x, y))

    def predict(self, x, w):
        return self.best(x, lambda y: w @ self.joint_feature(x, y))

    @staticmethod
    def counts(documents):
        counts = {}
        for word in itertools.chain.from_iterable(sorted(words) for words in documents):
            counts[word] = counts.get(word, 0) + 1
        return counts

    @staticmethod
    def best(x, value):
        return max(itertools.combinations(range(len(x)), CHOSEN), key=value)


check_oracle(Diverse(), X[:5], Y[:5])

# %% [markdown]
# The check found nothing wrong. Training states how far the weights are from the best ones, and how often it called the
# oracle.

# %%
model = StructuredSVM(Diverse(), C=1.0, tol=0.01).fit(X, Y)
print(f"objective {model.objective_:.4f}, at least {model.lower_bound_:.4f}, gap {model.gap_:.1e}")
print(f"{model.n_calls_} searches took {model.oracle_seconds_:.2f} seconds")
for kind, weights in zip(("covered", "repeated"), model.coef_.reshape(2, -1), strict=True):
    print(f"{kind:9}", "  ".join(f"in {level + 1} documents {weight:+.2f}" for level, weight in enumerate(weights)))

assert model.gap_ <= 0.01

# %% [markdown]
# New searches: how many topics three documents cover. The longest documents have the most words, but many of these are
# rare.

# %%
new = searches[30:]
chosen = model.predict([found for found, _ in new])
longest = [np.argsort([-len(words) for words in found])[:CHOSEN] for found, _ in new]
means = {
    name: np.mean([covered(choice, topics) for choice, (_, topics) in zip(choices, new, strict=True)])
    for name, choices in [
        ("best possible", [best_choice(topics) for _, topics in new]),
        ("learned", chosen),
        ("the longest documents", longest),
        ("the first documents", [range(CHOSEN)] * len(new)),
    ]
}
for name, mean in means.items():
    print(f"{name:22} {mean:.2f} topics of {TOPICS}")

assert means["learned"] > 0.9 * means["best possible"]
assert means["learned"] > means["the longest documents"] + 0.2 and means["learned"] > means["the first documents"] + 0.2

# %% [markdown]
# The model file holds the weights and the proof of the bound. It is loaded with the oracle, and verified with the data.

# %%
loaded = StructuredSVM.loads(model.dumps(), oracle=Diverse())
objective, bound, gap = loaded.verify(X, Y)
assert objective == model.objective_ and loaded.predict(X[:3]) == model.predict(X[:3])
