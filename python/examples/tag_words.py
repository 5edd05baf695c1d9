# %% [markdown]
# # Tagging words, with neighbours in mind
#
# In sentences the tag of a word depends on the word and on the tags beside it. A classifier looks at one word at a
# time. A sequence model learns weights for words and for transitions between tags, and predicts the tags of a sentence
# together.

# %%
import numpy as np
from scipy.sparse import csr_array

from maxmargin import SequenceSVM, SVMClassifier

# %% [markdown]
# ## Sentences of a small language
#
# Some words may be a noun or a verb. Determiners come before nouns, and nouns before verbs: only the neighbours tell
# what such a word is.

# %%
WORDS = {
    "det": ["the", "a", "this"],
    "noun": ["dog", "tea", "run", "walk", "play"],
    "verb": ["sees", "run", "walk", "play"],
}
NEXT = {"det": [("noun", 1.0)], "noun": [("verb", 0.8), ("noun", 0.2)], "verb": [("det", 0.7), ("noun", 0.3)]}
VOCABULARY = sorted({word for words in WORDS.values() for word in words})
random = np.random.default_rng(5)


def sentence() -> tuple[list[str], list[str]]:
    """Words with their tags."""
    tag = random.choice(["det", "noun"])
    words, tags = [], []
    for _ in range(random.integers(3, 9)):
        words.append(str(random.choice(WORDS[tag])))
        tags.append(tag)
        following, chances = zip(*NEXT[tag], strict=True)
        tag = str(random.choice(following, p=chances))
    return words, tags


def features(words: list[str]) -> csr_array:
    """One column for each word of the vocabulary."""
    columns = [VOCABULARY.index(word) for word in words]
    return csr_array((np.ones(len(words)), (range(len(words)), columns)), shape=(len(words), len(VOCABULARY)))


made = [sentence() for _ in range(300)]
X, y = [features(words) for words, _ in made], [tags for _, tags in made]
train, test = slice(0, 200), slice(200, 300)

# %% [markdown]
# ## Together and one by one

# %%
tagger = SequenceSVM(C=1.0).fit(X[train], y[train])
together = tagger.score(X[test], y[test])


def rows(parts: list[csr_array]) -> np.ndarray:
    return np.vstack([part.toarray() for part in parts])


single = SVMClassifier(C=1.0, multi_class="joint").fit(rows(X[train]), np.concatenate(y[train]))
one_by_one = single.score(rows(X[test]), np.concatenate(y[test]))
print(f"right tags of held-out words: one by one {one_by_one:.3f}, whole sentences {together:.3f}")

# %% [markdown]
# The weights of transitions say what was learned about neighbours. Rows are the tag before, columns the tag after.

# %%
for before, weights in zip(tagger.classes_, tagger.transition_, strict=True):
    after = zip(tagger.classes_, weights, strict=True)
    print(f"{before:>5}", "  ".join(f"{tag} {weight:+.2f}" for tag, weight in after))

# %% Check the claims.
objective, bound, gap = tagger.verify(X[train], y[train])
assert together > one_by_one + 0.05
assert bound <= objective and gap <= tagger.tol
at = {tag: place for place, tag in enumerate(tagger.classes_)}
assert tagger.transition_[at["det"], at["noun"]] > tagger.transition_[at["det"], at["verb"]]
