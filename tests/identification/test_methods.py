"""One conformance suite: every method, the same demands."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArgumentError, NotConverged, NotIdentifiable
from tests.identification.conftest import samples_of, weighted


def planned(data):
    return aw.identification.InstrumentalVariables(lambda arm: [data])


METHODS = {
    "ordinary": lambda data: aw.identification.OrdinaryLeastSquares(),
    "weighted": lambda data: aw.WeightedLeastSquares(),
    "ridge": lambda data: aw.identification.Ridge(),
    "total": lambda data: aw.identification.TotalLeastSquares(),
    "huber": lambda data: aw.identification.Robust(),
    "bisquare": lambda data: aw.identification.Robust("bisquare"),
    "prior": lambda data: aw.identification.PriorWeighted(
        relative_std=3.0, absolute_std=3.0
    ),
    "physical": lambda data: aw.PhysicallyConsistent(),
    "prefiltered": lambda data: aw.identification.Prefiltered(),
    "instrumental": planned,
    "momentum": lambda data: aw.identification.MomentumBalance(0.05),
    "recursive": lambda data: aw.identification.Recursive(0.9999),
}


@pytest.fixture(params=METHODS)
def method(request, data):
    return METHODS[request.param](data)


def truth(estimate, arm):
    return estimate.base.values(arm.parameters)


def test_recovers_the_truth_within_its_own_uncertainty(method, described, arm, data):
    estimate = weighted(described, data, method)
    z = (estimate.base_values - truth(estimate, arm)) / estimate.base_std
    assert np.all(np.isfinite(estimate.base_std))
    assert np.sqrt(np.mean(z**2)) < 2.0
    assert np.abs(z).max() < 6.0


def test_predicts_another_motion(method, described, arm, data):
    estimate = weighted(described, data, method)
    other = samples_of(arm, seed=5, noise=0.0, seed_motion=3)
    assert estimate.validate(other).relative_error.max() < 0.03


def test_standard_parameters_have_the_base_values(method, described, data):
    estimate = weighted(described, data, method)
    np.testing.assert_allclose(
        estimate.base.values(estimate.all_parameters),
        estimate.base_values,
        rtol=1e-6, atol=1e-7,
    )  # fmt: skip
    q, qd, qdd = data.q[:5], data.qd[:5], data.qdd[:5]
    np.testing.assert_allclose(
        aw.Dynamics(estimate.arm).inverse_dynamics(q, qd, qdd),
        estimate.predict(data[:5]),
        rtol=1e-7, atol=1e-8,
    )  # fmt: skip


SHRINKAGE = {"ridge": (1e-5, 1e-4)}
"""Relative error of fit and of the base parameters that a method's own penalty causes.

Ridge gives up accuracy for small parameters, and no more than this.
"""


@pytest.mark.parametrize("name", [name for name in METHODS if name != "momentum"])
def test_exact_data_are_explained_exactly(name, described, arm):
    clean = samples_of(arm, noise=0.0)
    estimate = weighted(described, clean, METHODS[name](clean))
    misfit, bias = SHRINKAGE.get(name, (1e-10, 1e-9))
    assert estimate.fit.relative_error.max() < misfit
    assert relative_bias(estimate, arm) < bias


def relative_bias(estimate, arm):
    want = truth(estimate, arm)
    return np.linalg.norm(estimate.base_values - want) / np.linalg.norm(want)


def test_integrals_of_momentum_become_exact_as_sampling_becomes_fine(described, arm):
    """By the trapezoidal rule: the error falls with the square of the step."""
    coarse, fine = (
        weighted(
            described, samples_of(arm, noise=0.0, rate=rate), METHODS["momentum"](None)
        )
        for rate in (100.0, 400.0)
    )
    assert relative_bias(coarse, arm) < 3e-4
    assert relative_bias(fine, arm) < relative_bias(coarse, arm) / 10
    assert fine.fit.relative_error.max() < coarse.fit.relative_error.max() / 10 < 1e-5


def test_outliers_do_not_move_a_robust_fit(described, arm, data):
    tau = data.tau.copy()
    tau[::50] += 40.0
    spoilt = aw.Samples(time=data.time, q=data.q, qd=data.qd, qdd=data.qdd, tau=tau)
    good = truth(weighted(described, data), arm)

    def miss(method):
        found = weighted(described, spoilt, method).base_values
        return np.linalg.norm((found - good) / (1 + np.abs(good)))

    assert miss(aw.identification.Robust("bisquare")) < 0.2 * miss(
        aw.WeightedLeastSquares()
    )


def test_noisy_motion_shrinks_least_squares_but_not_instruments(arm, described):
    """Attenuation: noise in q̈ is taken for motion; instruments know nothing of it."""
    clean = samples_of(arm, seconds=40.0)
    rng = np.random.default_rng(3)
    qdd = clean.qdd + 0.8 * clean.qdd.std(axis=0) * rng.normal(size=clean.qdd.shape)
    noisy = aw.Samples(time=clean.time, q=clean.q, qd=clean.qd, qdd=qdd, tau=clean.tau)
    exact = weighted(described, clean).base
    want = exact.values(arm.parameters)
    heavy = [
        k for k, i in enumerate(exact.indices) if want[k] and "rotor" in exact.names[i]
    ]

    def shrunk(method):
        found = weighted(described, noisy, method).base_values
        return np.median(found[heavy] / want[heavy])

    assert shrunk(aw.WeightedLeastSquares()) < 0.9
    assert abs(shrunk(planned(clean)) - 1) < 0.05


def test_a_prior_fills_what_the_data_leave_open(arm, described):
    still = samples_of(arm, seconds=4.0)
    frozen = aw.Samples(
        time=still.time, q=still.q, qd=0 * still.qd, qdd=0 * still.qdd, tau=still.tau
    )
    estimate = weighted(described, frozen, aw.identification.PriorWeighted())
    assert np.all(np.isfinite(estimate.base_std))


@pytest.mark.parametrize(
    "make",
    [
        lambda: aw.identification.Ridge(0.0),
        lambda: aw.identification.Robust("median"),
        lambda: aw.identification.MomentumBalance(-1.0),
        lambda: aw.identification.Recursive(1.5),
        lambda: aw.identification.PriorWeighted(absolute_std=0.0),
        lambda: aw.identification.TotalLeastSquares(0.0),
    ],
)
def test_senseless_settings_are_refused(make):
    with pytest.raises(ArgumentError):
        make()


def test_instruments_of_another_length_are_refused(described, data):
    with pytest.raises(ArgumentError, match="samples"):
        weighted(described, data, planned(data[:100]))


def test_too_few_windows_are_refused(described, data):
    with pytest.raises(NotIdentifiable, match="windows"):
        weighted(described, data[:300], aw.identification.MomentumBalance(1.0))


# The physically consistent fit's own solver.


def _problem_with_a_wrist_of(grams, described, arm, noise):
    """A problem whose last link is far smaller than the others."""
    factor = np.ones(arm.layout.size)
    last = arm.layout.mass[-1]
    factor[last : last + 10] = 1e-3 * grams
    small = arm.with_parameters(arm.parameters * factor)
    data = samples_of(small, seed=3, noise=noise)
    return small, aw.build_problem(described, data, friction="linear")


@pytest.mark.parametrize("grams", [1e3, 1.0, 1e-3])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_no_body_is_impossible_however_small(grams, noise, described, arm):
    _, problem = _problem_with_a_wrist_of(grams, described, arm, noise)
    estimate = aw.identify(problem)
    for link in estimate.arm.links:
        assert np.linalg.eigvalsh(link.inertia.pseudo_inertia)[0] > 0
    assert not estimate.arm.defects()
    free = aw.identify(problem, method=aw.WeightedLeastSquares())
    # The bodies that made the log exist, so that the constraint costs next to nothing.
    assert np.all(estimate.fit.rmse < 1.02 * free.fit.rmse + 1e-4)


def test_links_described_as_points_get_no_inertia_that_torques_show(arm):
    # A hobby arm's description: masses on the axes, inertia zero, feeble motors. What
    # the cone asks beyond zero must stay below what such a joint's torque shows.
    values = 0.0 * arm.parameters
    values[arm.layout.mass] = 0.1
    for i, name in enumerate(("rotor_inertia", "viscous", "coulomb")):
        values[arm.layout.drive(name)] = (1e-6, 2e-7, 1e-7)[i]
    points = arm.with_parameters(values)
    logs = [samples_of(points, seed, seed_motion=seed, noise=1e-3) for seed in (0, 1)]
    estimate = aw.identify(points, logs[0], validation=logs[1], friction="linear")
    assert estimate.method == "PhysicallyConsistent"
    assert estimate.validation.relative_error.max() < 0.01


def test_least_squares_has_the_digits_of_qr():
    from armwise.identification.methods import physical

    rng = np.random.default_rng(0)
    U, _ = np.linalg.qr(rng.normal(size=(60, 20)))
    V, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    # Beyond 1e8 the squares have no digit left, and QR takes over.
    for condition in (1e2, 1e6, 1e11):
        A = (U * np.geomspace(1.0, 1.0 / condition, 20)) @ V.T
        x = rng.normal(size=20)
        error = physical._least_squares(A, A @ x) - x
        assert np.linalg.norm(error) < 1e-14 * condition * np.linalg.norm(x)


def test_faces_of_the_cone_hold_a_step_from_the_fit(described, arm):
    """Cost moves a little: the minimum moves along the faces that hold it."""
    from armwise.identification.methods import physical

    _, problem = _problem_with_a_wrist_of(1.0, described, arm, 0.3)
    sizes = physical._sizes(problem)
    method = aw.PhysicallyConsistent()
    barrier = physical._Barrier(problem, method, problem.prior, sizes)
    rng = np.random.default_rng(0)
    width = int(problem.is_estimated.sum())
    R = np.eye(width) + 0.1 * np.triu(rng.normal(size=(width, width)), 1)
    c, moved = 3.0 * rng.normal(size=width), 0.03 * rng.normal(size=width)
    x, faces = physical._minimise(R, c, barrier, 1e-3)
    other, _ = physical._minimise(R, c + moved, barrier, 1e-3)
    held, free = (
        np.linalg.solve(R.T @ R + hold * faces.T @ faces, R.T @ moved)
        for hold in (1.0, 0.0)
    )
    off, without = (np.linalg.norm(step - (other - x)) for step in (held, free))
    assert off < 0.3 * np.linalg.norm(other - x)
    assert off < 0.3 * without


def test_the_fit_inside_the_cone_is_clarabels(described, arm):
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    from armwise.identification.methods import physical

    _, problem = _problem_with_a_wrist_of(1.0, described, arm, 0.3)
    method = aw.PhysicallyConsistent()
    sizes = physical._sizes(problem)
    barrier = physical._Barrier(problem, method, problem.prior, sizes)
    rng = np.random.default_rng(0)
    width = int(problem.is_estimated.sum())
    # A well-conditioned cost whose unconstrained optimum is far outside.
    R = np.eye(width) + 0.1 * np.triu(rng.normal(size=(width, width)), 1)
    c = 3.0 * rng.normal(size=width)
    ours, _ = physical._minimise(R, c, barrier, method.gap)
    assert barrier.violation(ours) < 0 < barrier.violation(np.linalg.solve(R, c))

    slopes = [barrier.slacks(e) - barrier.slacks(0 * e) for e in np.eye(width)]
    bodies = [barrier.matrices(e) - barrier.matrices(0 * e) for e in np.eye(width)]
    upper = np.triu_indices(4)
    order = np.lexsort(upper)
    root = np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))

    def flat(matrices):
        return (matrices[:, upper[0], upper[1]] * root)[:, order].ravel()

    zero = np.zeros(width)
    A = -np.vstack([np.array(slopes).T, np.array([flat(b) for b in bodies]).T])
    b = np.concatenate([barrier.slacks(zero), flat(barrier.matrices(zero))])
    cones = [clarabel.NonnegativeConeT(len(slopes[0]))]
    cones += [clarabel.PSDTriangleConeT(4) for _ in arm.links]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(R.T @ R)),
        -R.T @ c,
        sparse.csc_matrix(A),
        b,
        cones,
        settings,
    ).solve()
    # Both stop a little above the minimum; where the cost is round, x is its root.
    np.testing.assert_allclose(ours, answer.x, atol=2e-4)
    costs = [float(np.sum((R @ x - c) ** 2)) / 2 for x in (ours, np.array(answer.x))]
    assert costs[0] < costs[1] + 1e-6


def test_bounds_on_a_body_are_kept_or_refused(described, arm):
    _, problem = _problem_with_a_wrist_of(1e3, described, arm, 0.3)
    name = arm.links[-1].name
    true = arm.links[-1].inertia.mass
    for bounds in ((2.0 * true, 3.0 * true), (true, true)):
        method = aw.PhysicallyConsistent(mass={name: bounds})
        mass = aw.identify(problem, method=method).arm.links[-1].inertia.mass
        assert bounds[0] * (1 - 1e-6) <= mass <= bounds[1] * (1 + 1e-6)
    box = {name: ((0.1, 0.1, 0.1), (0.2, 0.2, 0.2))}
    method = aw.PhysicallyConsistent(center_of_mass=box)
    center = aw.identify(problem, method=method).arm.links[-1].inertia.center_of_mass
    assert np.all((center > 0.1 - 1e-6) & (center < 0.2 + 1e-6))
    bad = aw.PhysicallyConsistent(mass={name: (3.0, 2.0)})
    with pytest.raises(NotConverged, match="Widen them"):
        aw.identify(problem, method=bad)


def test_torques_of_zero_are_refused(described, arm):
    data = samples_of(arm, noise=0.0)
    silent = replace(data, tau=0.0 * data.tau)
    with pytest.raises(NotIdentifiable, match="Every torque is zero"):
        aw.identify(described, silent)


def test_a_torque_of_the_wrong_sign_ends_in_an_estimate():
    """Its rotor is pressed onto its bound until rounding puts it there."""
    arm = aw.load_arm("puma560")
    rng = np.random.default_rng(0)
    t = np.arange(1500)[:, None] * 1e-2
    w, phase = rng.uniform(0.5, 3.0, (4, 1, 6)), rng.uniform(0.0, 6.3, (4, 1, 6))
    q = 0.3 * np.sin(w * t + phase).sum(axis=0)
    qd = 0.3 * (w * np.cos(w * t + phase)).sum(axis=0)
    qdd = -0.3 * (w**2 * np.sin(w * t + phase)).sum(axis=0)
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau = tau * [1, 1, 1, 1, 1, -1]
    tau += rng.normal(size=tau.shape) * 1e-3 * np.abs(tau).max(axis=0)
    samples = aw.Samples(time=t[:, 0], q=q, qd=qd, qdd=qdd, tau=tau)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        estimate = aw.identify(arm, samples, friction="linear")
    assert "unexplained-torque" in [w.code for w in estimate.warnings]


@pytest.mark.parametrize("joint", [3, 4, 5])
def test_a_wrist_that_its_torque_pushes_along_has_the_wrong_sign(arm, joint):
    data = samples_of(arm)
    signs = np.where(np.arange(arm.dof) == joint, -1.0, 1.0)
    flipped = replace(data, tau=data.tau * signs)
    warnings = aw.identify(arm, flipped, friction="linear").warnings
    (found,) = [w for w in warnings if w.code == "torque-sign-flipped"]
    assert arm.coordinate_names[joint] in found.text
    fine = aw.identify(arm, data, friction="linear").warnings
    assert "torque-sign-flipped" not in [w.code for w in fine]


def test_friction_of_an_arm_of_tons_is_not_lost_beside_its_links(arm):
    heavy = np.array(arm.parameters)
    arm.layout.by_link(heavy)[:] *= 1e4  # links of tons, described without friction
    truth = np.array(heavy)
    truth[arm.layout.drive("coulomb")] = 40.0
    data = samples_of(arm.with_parameters(truth), noise=1e-5)
    empty = np.array(heavy)
    for kind in ("viscous", "coulomb", "offset", "rotor_inertia"):
        empty[arm.layout.drive(kind)] = 0.0
    estimate = weighted(arm.with_parameters(empty), data)
    found = estimate.parameters[arm.layout.drive("coulomb")]
    np.testing.assert_allclose(found, 40.0, rtol=0.05)
