"""Folds by user: no test user is known to training."""

from bench.learning import tau, tau_folds


def test_no_test_users_run_is_in_a_training_bank_or_query(airline: tau.Domain, fold: tau_folds.Fold):
    for mode in tau_folds.Mode:
        tested = {question.user for question in fold.test[mode]}
        trained = {question.user for question in fold.train[mode]}
        stored = {str(user) for question in fold.train[mode] for user in airline.user[question.candidates]}
        assert tested
        assert not tested & trained
        assert not tested & stored


def test_cold_banks_know_nothing_of_the_querys_user_and_warm_ones_not_the_run_itself(
    airline: tau.Domain, fold: tau_folds.Fold
):
    for question in fold.test[tau_folds.Mode.COLD]:
        assert question.user not in airline.user[question.candidates]
    for question in fold.test[tau_folds.Mode.WARM]:
        assert question.run not in question.candidates
