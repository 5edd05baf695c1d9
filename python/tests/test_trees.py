"""TreeSVM: the same model however trees are given, checks of its arguments, files shared with the command."""

import copy
import pickle
import subprocess
import sys

import pytest
from sklearn.base import clone

from maxmargin import MaxmarginError, Model, TreeSVM

NESTED = [
    ("S", ("NP", ("DT", "the"), ("NN", "dog")), ("VP", ("VBZ", "barks"))),
    ["S", ["NP", ["DT", "a"], ["NN", "cat"]], ["VP", ["VBZ", "sees"], ["NP", ["DT", "the"], ["NN", "dog"]]]],
    ("S", ("NP", ("PRP", "it")), ("VP", ("VBZ", "sleeps"), ("-LRB-", "("))),
]
TEXTS = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))",
    "( (S (NP-SBJ (DT a) (NN cat))\n  (VP (VBZ sees) (NP (DT the) (NN dog)) (NP (-NONE- *)))) )",
    "(S (NP (PRP it)) (VP (VBZ sleeps) (-LRB- -LRB-)))",
]
PRINTED = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))",
    "(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN dog))))",
    "(S (NP (PRP it)) (VP (VBZ sleeps) (-LRB- -LRB-)))",
]


def test_texts_and_tuples_give_the_same_model():
    texts, nested = TreeSVM().fit(TEXTS), TreeSVM().fit(NESTED)
    assert texts.model_.to_bytes() == nested.model_.to_bytes()
    assert TreeSVM().fit(["ignored"] * 3, PRINTED).model_.to_bytes() == texts.model_.to_bytes()
    assert texts.predict(TEXTS) == PRINTED
    assert texts.predict(["the dog barks", "a cat sees the dog", "it sleeps ("]) == PRINTED
    assert texts.predict([["the", "dog", "barks"], NESTED[1], ["it", "sleeps", "("]]) == PRINTED
    assert texts.score(TEXTS) == texts.score(["a", "b", "c"], NESTED) == 1.0
    assert texts.converged_ and texts.gap_ <= 1e-3 and texts.shared_.ndim == 1
    assert texts.coef_.shape[1] == texts.n_features_in_
    objective, bound, _ = texts.verify(TEXTS)
    assert bound <= objective == pytest.approx(texts.objective_)
    with pytest.raises(MaxmarginError):
        texts.verify(TEXTS[:2])


def test_it_is_cloned_pickled_and_saved(tmp_path):
    parser = TreeSVM(C=2.0, siblings=2, parents=True, loss_scale="length", max_words=4).fit(TEXTS)
    assert clone(parser).get_params() == parser.get_params()
    for other in (pickle.loads(pickle.dumps(parser)), copy.deepcopy(parser)):
        assert other.predict(TEXTS) == parser.predict(TEXTS)
    path = tmp_path / "m.mm"
    parser.save(path)
    assert Model.load(path).task == "tree"
    trees = tmp_path / "trees.mrg"
    trees.write_text("\n".join(TEXTS))
    command = [sys.executable, "-m", "maxmargin"]
    found = subprocess.run([*command, "verify", path, trees], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    found = subprocess.run([*command, "predict", path, trees], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == parser.predict(TEXTS)


def test_templates_and_long_sentences():
    short = TreeSVM(max_words=3).fit(TEXTS)
    assert short.model_.to_bytes() != TreeSVM().fit(TEXTS).model_.to_bytes()
    assert len(short.predict(TEXTS)) == 3
    few = TreeSVM(templates="word\n").fit(TEXTS)
    assert all(name.startswith("word=") for name in few.model_.feature_names or [])
    with pytest.raises(MaxmarginError, match="MM0241|wrd"):
        TreeSVM(templates="wrd").fit(TEXTS)


@pytest.mark.parametrize(
    ("trees", "kind", "words"),
    [
        ("(S (A a))", TypeError, "X must be a list"),
        ([("S", "a", ("B", "b"))], ValueError, "a tuple of its own"),
        ([("S",)], TypeError, "a tree is a text"),
        ([("A", "two words")], ValueError, "without blanks"),
        ([3], TypeError, "a tree is a text"),
        (["(S (A a) (B b))(S (A a))"], ValueError, "give one in each"),
        (["(S (A a)"], MaxmarginError, "not closed"),
        (["the dog"], MaxmarginError, "no bracketed tree"),
        ([], MaxmarginError, "no words"),
    ],
)
def test_what_is_no_tree_is_refused(trees, kind, words):
    with pytest.raises(kind, match=words):
        TreeSVM().fit(trees)


def test_arguments_are_checked():
    for name, value in (("loss_scale", "row"), ("siblings", -1), ("max_words", 0)):
        with pytest.raises(ValueError, match=name):
            TreeSVM(**{name: value}).fit(TEXTS)
    for name, value in (("parents", "yes"), ("templates", 3)):
        with pytest.raises(TypeError, match=name):
            TreeSVM(**{name: value}).fit(TEXTS)
    parser = TreeSVM().fit(TEXTS)
    with pytest.raises(ValueError, match="empty sentence"):
        parser.predict(["the dog", ""])
    with pytest.raises(ValueError, match="inconsistent"):
        parser.score(["a"], TEXTS)
