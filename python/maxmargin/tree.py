"""Trees: the parse of a sentence by a weighted context-free grammar."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from . import _core
from .estimator import Callback, MarginEstimator, Reals, number, one_of, switch, whole_or_not_at_all

#: The largest number of words, and of siblings.
MOST_WORDS, MOST_SIBLINGS = 2**32 - 1, 99


def escaped(word: Any) -> str:
    """A word without brackets and blanks."""
    if not isinstance(word, str):
        raise TypeError(f"a word must be a text, and is {word!r}")
    if not word or word.split() != [word]:
        raise ValueError(f"a word must be a text without blanks, and is {word!r}")
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def bracketed(tree: Any) -> str:
    """A tree as a text in one line. A tuple or list holds a label and a word, or a label and trees."""
    if isinstance(tree, str):
        return " ".join(tree.split())
    if not isinstance(tree, tuple | list) or len(tree) < 2 or not isinstance(tree[0], str):
        raise TypeError(f"a tree is a text, or a tuple with a label and a word or trees; this is {tree!r}")
    if len(tree) == 2 and isinstance(tree[1], str):
        return f"({tree[0]} {escaped(tree[1])})"
    if any(isinstance(part, str) for part in tree[1:]):
        raise ValueError(f"a word needs a tuple of its own with its tag; this is {tree!r}")
    return f"({tree[0]} {' '.join(bracketed(part) for part in tree[1:])})"


def listed(name: str, values: Any) -> list[Any]:
    """The items of a list of trees or sentences."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list with one item for each sentence, and is {values!r}")
    return list(values)


class TreeSVM(MarginEstimator):
    """Large-margin parsing: predicts the bracketed tree of a sentence.

    The grammar is read off the trees. Its rules have weights, and so have the features of words for tags, for the first
    and the last word of a phrase, and for the words at which a phrase is split. The predicted tree has the largest sum
    among all trees of the grammar. Traces and function tags of the Penn Treebank are left out.

    Parameters
    ----------
    C : float, default=1.0
        The weight of the sum of losses over sentences.
    loss_scale : {"token", "length"}, default="token"
        The loss of a tree: the number of wrong and missing phrases and wrong tags, or this divided by the number of words.
    siblings : int, default=1
        How many of the last parts of a phrase the grammar remembers when it continues the phrase.
    parents : bool, default=False
        Whether phrases with different parents are told apart in the grammar.
    max_words : int, optional
        Leave longer sentences out of `fit`.
    templates : str, optional
        The features of words, one template in each line, such as ``word[-1..1]`` or ``suffix(3)``.
    scale, solver, tol, max_iter, random_state, n_jobs, verbose, callback
        See :class:`SVMClassifier`.

    Attributes
    ----------
    shared_ : array
        The weights of rules, tops and lengths.
    coef_ : array of shape (n_outputs, n_features)
        The weights of features for tags and borders of phrases.
    objective_, lower_bound_, gap_, n_iter_, converged_, model_
        See :class:`SVMClassifier`.

    Examples
    --------
    >>> from maxmargin import TreeSVM
    >>> trees = [
    ...     "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))",
    ...     "(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN dog))))",
    ... ]
    >>> parser = TreeSVM().fit(trees)
    >>> parser.predict(["the cat barks"])
    ['(S (NP (DT the) (NN cat)) (VP (VBZ barks)))']
    >>> parser.score(trees)
    1.0
    """

    _task = "tree"
    loss = "hinge"

    loss_scale: str
    siblings: int
    parents: bool
    max_words: int | None
    templates: str | None

    shared_: Reals

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss_scale: str = "token",
        siblings: int = 1,
        parents: bool = False,
        max_words: int | None = None,
        templates: str | None = None,
        scale: str = "none",
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = -1,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self._store(locals())

    @whole_or_not_at_all
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to trees.

        Parameters
        ----------
        X : list of str, tuple or list
            The trees: bracketed texts, or tuples such as ``("NP", ("DT", "the"), ("NN", "dog"))``.
        y : list, optional
            The trees, if X are the sentences. The words are those of the trees.

        Returns
        -------
        self
        """
        return self._train(self._dataset(X, y))

    def _dataset(self, X: Any, y: Any = None) -> _core.Dataset:
        trees = [bracketed(tree) for tree in self._trees(X, y)]
        settings: dict[str, Any] = {}
        if self.max_words is not None:
            settings["max-words"] = number("max_words", self.max_words, at_least=1, at_most=MOST_WORDS, whole=True)
        if self.templates is not None:
            if not isinstance(self.templates, str):
                raise TypeError(f"templates must be None or a text, and is {self.templates!r}")
            settings["templates"] = self.templates
        return _core.sentences(trees, None, json.dumps(settings))

    @staticmethod
    def _trees(X: Any, y: Any) -> list[Any]:
        """The trees, of which one or the other argument holds them."""
        trees = listed("X", X)
        if y is None:
            return trees
        given = listed("y", y)
        if len(given) != len(trees):
            raise ValueError(f"y has {len(given)} trees, and X has {len(trees)} sentences: inconsistent numbers of samples")
        return given

    def _settings(self, data: _core.Dataset) -> dict[str, Any]:
        settings = super()._settings(data)
        settings["loss-scale"] = one_of("loss_scale", self.loss_scale, ("token", "length"))
        settings["siblings"] = number("siblings", self.siblings, at_least=0, at_most=MOST_SIBLINGS, whole=True)
        if switch("parents", self.parents):
            settings["parents"] = True
        return settings

    def _adopt(self, model: _core.Model, data: _core.Dataset) -> Self:
        super()._adopt(model, data)
        shared = model.shared
        if shared is None:
            raise ValueError("the model parses no sentences")
        self.shared_ = shared
        return self

    def predict(self, X: Any) -> list[str]:
        """The tree of each sentence, as a text in one line.

        A sentence that the grammar does not parse gets a flat tree: one phrase over all words.

        Parameters
        ----------
        X : list of str, or list of lists of str
            The sentences: texts with words between blanks, lists of words, or bracketed trees, whose words are taken.
        """
        check_is_fitted(self, "model_")
        sentences = [self._sentence(sentence) for sentence in listed("X", X)]
        predicted = [""] * len(sentences)
        # A text holds either trees or plain sentences.
        for trees in (True, False):
            places = [place for place, text in enumerate(sentences) if text.startswith("(") == trees]
            if places:
                data = _core.sentences([sentences[place] for place in places], self.model_, "{}")
                for place, tree in zip(places, self.model_.trees(data, self._threads()), strict=True):
                    predicted[place] = tree
        return predicted

    @staticmethod
    def _sentence(sentence: Any) -> str:
        """A sentence or a tree in one line."""
        if isinstance(sentence, str):
            return " ".join(sentence.split())
        words: Sequence[Any] = sentence if isinstance(sentence, Sequence) else list(sentence)
        if words and all(isinstance(word, str) for word in words) and not isinstance(words, tuple):
            return " ".join(escaped(word) for word in words)
        return bracketed(words)

    def score(self, X: Any, y: Any = None) -> float:
        """Labelled F1 of the predicted trees, between 0 and 1.

        Parameters
        ----------
        X : list of str, tuple or list
            The true trees.
        y : list, optional
            The true trees, if X are the sentences.
        """
        check_is_fitted(self, "model_")
        trees = [bracketed(tree) for tree in self._trees(X, y)]
        return self.model_.measure(_core.sentences(trees, self.model_, "{}"), "labelled-f1", self._threads())
