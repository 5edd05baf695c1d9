"""scikit-learn's own checks, strict and without an expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import MultilabelSVM, PAClassifier, SVMClassifier, SVMOrdinal, SVMRanker


@parametrize_with_checks(
    [
        SVMClassifier(),
        SVMClassifier(loss="squared_hinge"),
        SVMClassifier(loss="logistic"),
        SVMClassifier(kernel="rbf"),
        MultilabelSVM(),
        # Sparse rows with weights and their copies agree to the tolerance.
        MultilabelSVM(loss="hinge", tol=1e-8),
        MultilabelSVM(form="one-vs-rest"),
        MultilabelSVM(loss="hinge", kernel="rbf"),
        SVMOrdinal(),
        SVMOrdinal(form="explicit", loss="squared_hinge"),
        SVMOrdinal(kernel="rbf"),
        SVMRanker(),
        SVMRanker(kernel="rbf"),
        PAClassifier(),
        PAClassifier(loss="squared_hinge", average=True),
    ],
    xfail_strict=True,
)
def test_scikit_learn_is_content(estimator, check):
    check(estimator)
