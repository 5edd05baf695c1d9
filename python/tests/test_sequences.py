"""SequenceSVM: the same model however sequences are given, checks of its arguments, files shared with the command."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

from maxmargin import Dataset, Model, SequenceSVM


def words(seed=0, count=40):
    """Sequences whose tags follow each other, with features that tell them apart only roughly."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        tags = [int(random.integers(3))]
        for _ in range(int(random.integers(5))):
            tags.append((tags[-1] + 1) % 3 if random.random() < 0.85 else tags[-1])
        X.append(np.eye(3)[tags] + random.normal(scale=0.8, size=(len(tags), 3)))
        y.append(np.array(["x", "a", "M"])[tags])
    return X, y


def test_lists_and_groups_of_any_kind_give_the_same_model():
    X, y = words()
    rows, tags, groups = np.concatenate(X), np.concatenate(y), np.repeat(np.arange(len(X)), [len(part) for part in X])
    listed = SequenceSVM(C=0.5).fit(X, y)
    named = SequenceSVM(C=0.5).fit(rows, tags, groups=[f"s{group}" for group in groups])
    sparse = SequenceSVM(C=0.5).fit([csr_matrix(part) for part in X], [list(part) for part in y])
    assert listed.model_.to_bytes() == named.model_.to_bytes()
    assert sparse.objective_ == pytest.approx(listed.objective_, rel=2e-3)
    assert listed.classes_.tolist() == ["M", "a", "x"]
    assert listed.coef_.shape == (3, 3) and listed.transition_.shape == (3, 3)
    predicted = listed.predict(X)
    assert [len(part) for part in predicted] == [len(part) for part in y]
    assert np.concatenate(predicted).tolist() == named.predict(rows, groups=groups).tolist()
    assert listed.score(X, y) == named.score(rows, tags, groups=groups) > 0.8
    # Rows of a sequence may lie apart, as long as they are in order.
    order = np.argsort(np.concatenate([np.arange(len(part)) for part in X]), kind="stable")
    assert (named.predict(rows[order], groups=groups[order]) == named.predict(rows, groups=groups)[order]).all()


def test_the_attributes_are_those_of_the_prediction():
    X, y = words(seed=3)
    tagger = SequenceSVM(loss_scale="length").fit(X, y)
    best, count = [], 3
    for rows in X:
        scores = rows @ tagger.coef_.T + tagger.intercept_
        found = None
        for number in range(count ** len(rows)):
            tags = [number // count**place % count for place in range(len(rows))]
            value = tagger.start_[tags[0]] + tagger.end_[tags[-1]] + sum(scores[row, tag] for row, tag in enumerate(tags))
            value += sum(tagger.transition_[pair] for pair in zip(tags, tags[1:], strict=False))
            found = max(found or (value, tags), (value, tags))
        best.append(tagger.classes_[found[1]].tolist())
    assert best == [tags.tolist() for tags in tagger.predict(X)]


def test_it_is_an_estimator_with_a_certificate():
    X, y = words(seed=1)
    tagger = SequenceSVM(tol=1e-4).fit(X, y)
    assert tagger.converged_ and tagger.gap_ <= 1e-4 and tagger.lower_bound_ <= tagger.objective_
    assert tagger.verify(X, y)[0] == pytest.approx(tagger.objective_)
    again = pickle.loads(pickle.dumps(tagger))
    assert [tags.tolist() for tags in again.predict(X)] == [tags.tolist() for tags in tagger.predict(X)]
    assert clone(tagger).get_params() == tagger.get_params()
    numbers = [np.searchsorted(["M", "a", "x"], tags) for tags in y]
    assert SequenceSVM(tol=1e-4).fit(X, numbers).predict(X)[0].dtype.kind == "i"


def test_wrong_input_is_refused_in_words():
    X, y = words()
    rows, tags = np.concatenate(X), np.concatenate(y)
    tagger = SequenceSVM()
    with pytest.raises(ValueError, match="groups is needed"):
        tagger.fit(rows, tags)
    with pytest.raises(ValueError, match="sequence 0 has"):
        tagger.fit(X, [part[:-1] for part in y])
    with pytest.raises(ValueError, match="only one tag"):
        tagger.fit(X, [["O"] * len(part) for part in y])
    with pytest.raises(ValueError, match="y has 1 sequences"):
        tagger.fit(X, y[:1])
    with pytest.raises(TypeError, match="needs no groups"):
        tagger.fit(X, y, groups=np.zeros(len(rows)))
    with pytest.raises(ValueError, match="loss_scale must be"):
        SequenceSVM(loss_scale="row").fit(X, y)
    weights = np.ones(len(rows))
    weights[0] = 2
    lengths = np.repeat(np.arange(len(X)), [len(part) for part in X])
    with pytest.raises(ValueError, match="have the weights 2 and 1"):
        tagger.fit(rows, tags, groups=np.zeros(len(rows)), sample_weight=weights)
    assert not hasattr(tagger, "model_") and len(lengths) == len(rows)


def test_the_command_uses_its_models(tmp_path):
    X, y = words(seed=2)
    tagger = SequenceSVM().fit(X, y)
    tagger.save(tmp_path / "tags.mm")
    lines = []
    for group, (rows, tags) in enumerate(zip(X, y, strict=True)):
        for row in rows:
            lines.append(",".join([f"s{group}", "", *map(repr, map(float, row))]))
        assert len(tags) == len(rows)
    (tmp_path / "rows.csv").write_text("group,target,1,2,3\n" + "\n".join(lines) + "\n")
    command = [sys.executable, "-m", "maxmargin", "predict", "tags.mm", "rows.csv", "--ignore", "target"]
    found = subprocess.run([*command, "--precision", "f64"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.split() == np.concatenate(tagger.predict(X)).tolist()
    assert Model.load(tmp_path / "tags.mm").classes == ("M", "a", "x")
    data = Dataset.dense(np.concatenate(X))
    with pytest.raises(ValueError, match="sequence"):
        tagger.model_.tags(data)
