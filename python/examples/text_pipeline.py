# %% [markdown]
# # Text in a scikit-learn pipeline
#
# The classifier is an ordinary scikit-learn estimator: it can be the last step of a pipeline, and a grid search can
# tune all steps. If only C is to be chosen, `maxmargin.tune` does the same with far fewer fits.

# %%
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

import maxmargin
from maxmargin import SVMClassifier

random = np.random.default_rng(11)

# %% [markdown]
# A synthetic corpus: words follow a Zipf distribution, and each of two topics uses some words more often.

# %%
syllables = ["ba", "do", "fi", "gu", "ka", "lo", "mi", "ne", "ru", "sa", "te", "vo"]
vocabulary = [a + b + c for a in syllables for b in syllables for c in syllables]
common = 1.0 / np.arange(1, len(vocabulary) + 1)
leaning = np.where(random.random(len(vocabulary)) < 0.2, random.choice([0.7, 1.4], size=len(vocabulary)), 1.0)
frequencies = {"sport": common * leaning, "science": common / leaning}


def document(topic: str) -> str:
    chosen = random.choice(len(vocabulary), size=40, p=frequencies[topic] / frequencies[topic].sum())
    return " ".join(vocabulary[word] for word in chosen)


topics = random.choice(["sport", "science"], size=2000)
texts = [document(topic) for topic in topics]
train_texts, test_texts, train_topics, test_topics = train_test_split(texts, topics, random_state=0)
print(train_topics[0], ":", train_texts[0][:60], "...")

# %% [markdown]
# Sparse rows from the vectoriser are shared with the core and not copied.

# %%
pipeline = Pipeline([("words", TfidfVectorizer(dtype=np.float32)), ("classifier", SVMClassifier())])
grid = {"words__sublinear_tf": [False, True], "classifier__C": [0.01, 0.1, 1.0, 10.0]}
search = GridSearchCV(pipeline, grid, cv=3).fit(train_texts, train_topics)
accuracy = search.score(test_texts, test_topics)
print("grid search:", search.best_params_, f"accuracy {accuracy:.3f}")

# %% [markdown]
# With fixed features, `tune` follows a path of C over the same rows. It uses a finer grid that suits the data, and
# every fold starts from the weights for the previous C.

# %%
words = TfidfVectorizer(dtype=np.float32, sublinear_tf=search.best_params_["words__sublinear_tf"])
rows = words.fit_transform(train_texts)
found = maxmargin.tune(SVMClassifier(), rows, train_topics, cv=3)
tuned_accuracy = found.best_estimator.score(words.transform(test_texts), test_topics)
print(f"tune: C {found.best_params['C']:.3g} of {len(found.results)}, accuracy {tuned_accuracy:.3f}")

# %% [markdown]
# The words with the largest weights for each topic.

# %%
classifier = found.best_estimator
order = np.argsort(classifier.coef_[0])
names = words.get_feature_names_out()
for topic, strongest in zip(classifier.classes_, (order[:6], order[-6:]), strict=True):
    print(f"{topic:<8}", " ".join(names[strongest]))

# %% Check the claims.
assert accuracy > 0.8 and tuned_accuracy > 0.8
assert abs(tuned_accuracy - accuracy) < 0.05
assert classifier.converged_ and classifier.gap_ <= classifier.tol
assert list(classifier.classes_) == ["science", "sport"]
leanings = dict(zip(vocabulary, leaning, strict=True))
assert np.mean([leanings[name] > 1 for name in names[order[-20:]]]) > 0.7
assert np.mean([leanings[name] < 1 for name in names[order[:20]]]) > 0.7
