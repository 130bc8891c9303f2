"""The identify verb: an arm and its recorded motion in, an estimate out.

`build_problem` prepares and accumulates, so that one can look before solving;
`identify` does that too, solves, reviews the residuals, and validates.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from armwise.arms import Arm
from armwise.errors import (
    ArgumentError,
    NotIdentifiable,
)
from armwise.identification.data_checks import (
    WRONG_DATA,
    beyond_limits,
    examine,
    scaled_torques,
    without_copies,
)
from armwise.identification.diagnosis import CONCENTRATED, diagnose
from armwise.identification.estimate import (
    Estimate,
    Identification,
    build_estimate,
)
from armwise.identification.friction_selection import (
    carry_own_load,
    chance_covariance,
    select_friction,
    settle_load,
    without_idle,
)
from armwise.identification.methods import (
    Method,
    PhysicallyConsistent,
    method_named,
)
from armwise.identification.mismatch import find_mismatch
from armwise.identification.other_readings import READINGS
from armwise.identification.problem import (
    TERMS,
    Problem,
    count_base,
    pose_problem,
)
from armwise.identification.sampled_rows import SampledSystem, whitened_rows
from armwise.identification.validation import review
from armwise.progress import Progress
from armwise.recordings import Recording, Samples, prepare, require_torques
from armwise.regression import (
    Columns,
    FrictionTerm,
    GainStd,
    few_threads,
    joint_gain_std,
)

Data: TypeAlias = "Samples | Recording | Sequence[Samples] | Sequence[Recording]"
"""Samples, one run or several; or recordings, which are prepared first."""

Friction: TypeAlias = (
    "Literal['auto', 'linear'] | Sequence[FrictionTerm | tuple[FrictionTerm, float]]"
)
"""Friction beyond viscous, Coulomb and offset: selected, none, or these terms."""


def identify(
    arm: Arm | Problem,
    data: Data | None = None,
    method: Method | str | None = None,
    *,
    friction: Friction = "auto",
    terms: Iterable[str] = TERMS,
    validation: Data | None = None,
    hold_out: float = 0.0,
    cutoff_hz: float | None = None,
    lag: float | None = None,
    gain_std: GainStd | None = None,
    progress: Progress | None = None,
) -> Estimate:
    """Estimate the parameters of an arm that explain its measured torques.

    Args:
        arm: The description; what the data do not determine keeps its values. Or a
            problem from `build_problem`, which brings everything but the method.
        data: Samples or recordings, one run or several.
        method: How to solve, or its name, such as "output-error"; the best fit that is
            physically consistent if None.
        friction: "auto" selects terms beyond viscous, Coulomb and offset that predict
            better on stretches left out; "linear" has none; or a list of terms, such
            as another estimate's `friction`, whose values are fitted anew.
        terms: What to estimate: "links", "rotor_inertia", "viscous", "coulomb",
            "offset". Others keep the arm's values.
        validation: Samples or recordings to validate on.
        hold_out: Fraction at the end of the data that is kept for validation.
        cutoff_hz: Low-pass of recordings in [Hz]; chosen if None.
        lag: Delay of recorded torques behind the positions in [s]; found if None.
        gain_std: How far torques may be off by a factor, joint by joint: "sensor",
            "current", "unknown" (the default), or a standard deviation such as 0.03.
            Part of every interval; `Estimate.gain_std` states it.
        progress: Called with what is being done and how much of it is done.

    Raises:
        NotIdentifiable: If the data determine nothing at all.
    """
    if isinstance(arm, Problem):
        options = (data, validation, cutoff_hz, lag, hold_out or None)
        # Options that would be ignored without a word are refused.
        if any(x is not None for x in options) or friction != "auto" or terms != TERMS:
            raise ArgumentError(
                "A problem brings its own data, friction and terms: give those to "
                "build_problem, and to identify the problem and a method."
            )
        problem = arm
    else:
        if data is None:
            raise ArgumentError("There are no data. Give samples or recordings.")
        problem = build_problem(
            arm,
            data,
            friction=friction,
            terms=terms,
            validation=validation,
            hold_out=hold_out,
            cutoff_hz=cutoff_hz,
            lag=lag,
            progress=progress,
        )
    gains = joint_gain_std(gain_std, problem.columns.arm.dof)
    for run in problem.data:
        # A factor that had to be found is no better known than this.
        if run.preparation.torque_scale_std:
            gains = np.maximum(gains, run.preparation.torque_scale_std)
    report = progress or (lambda step, fraction: None)
    # Judgement: rough fractions of the time it takes, here as in build_problem.
    report("fit", 0.7)
    solver = method_named(method) if isinstance(method, str) else method
    solver = solver or PhysicallyConsistent()
    with few_threads():
        solution = solver.solve(problem)  # no pass over the data: R factors suffice
        problem, solution = without_idle(problem, solution, solver.solve)
        problem, solution = carry_own_load(problem, solution, solver.solve)
        checked = review(problem, solution)
        estimate = build_estimate(problem, solution, checked, type(solver).__name__)
        estimate = replace(estimate, solved=(problem, solver))
        if problem.friction_candidates and estimate.columns.friction:
            values = [value for _, value in estimate.friction]
            luck = chance_covariance(
                estimate.base_covariance,
                np.array(values),
                len(problem.friction_candidates),
            )
            spread = problem.friction_spread
            if spread is not None:
                luck += spread.T @ spread
            covariance = estimate.base_covariance + luck
            estimate = replace(
                estimate,
                base_covariance=covariance,
                # Other terms, with the parameters that go with them, give the same
                # torques.
                same_effects=None if spread is None else spread.T,
                friction_effects=None if spread is None else spread.T,
            )
        system = SampledSystem.of(problem, problem.data, estimate=estimate)
        rows = whitened_rows(problem, estimate, system)
        # With terms left out, what they would explain looks like wrong data.
        is_free = bool(problem.is_estimated.all())
        mismatch = find_mismatch(rows, gains, is_free)
        others = examine(system, rows, mismatch.is_large) if is_free else []
        estimate = mismatch.counted_in(estimate)
        report("validate", 0.9)
        if problem.validation_data:
            # By intervals that know of all that was found.
            fine = problem.fine_validation
            errors = estimate.validate(problem.validation_data, fine=fine)
            estimate = replace(estimate, validation=errors)
        diagnosed = diagnose(estimate, checked.agreement)
    report("done", 1.0)
    warnings = [*problem.data_warnings, *diagnosed]
    codes = {warning.code for warning in warnings}
    if any(warning.code in READINGS - codes for warning in others):
        # What mends the fit is the cause; what the description suggests, and what the
        # fit leaves over, only follow from it.
        follows = READINGS | {"unexplained-torque", "overfitted", CONCENTRATED}
        warnings = [*others, *(w for w in warnings if w.code not in follows)]
        others = []
    # What the description alone shows is not said again by a fit; nor is what follows
    # from wrong data a property of the arm.
    warnings += [w for w in others if w.code not in codes]
    if not WRONG_DATA & {warning.code for warning in warnings}:
        warnings += mismatch.warnings
    return replace(estimate, warnings=tuple(dict.fromkeys(warnings)))


def build_problem(
    arm: Arm,
    data: Data,
    *,
    friction: Friction = "auto",
    terms: Iterable[str] = TERMS,
    validation: Data | None = None,
    hold_out: float = 0.0,
    cutoff_hz: float | None = None,
    lag: float | None = None,
    progress: Progress | None = None,
) -> Problem:
    """Prepare an identification as far as solving it: what `identify` would solve.

    The problem shows its base parameters (`base`), rows and weights per joint (`rows`,
    `weights`), columns, and friction terms (`friction`, `friction_candidates`).

    Args: as for `identify`, which takes the problem in place of the arm.

    Raises:
        NotIdentifiable: If there is nothing to estimate, or nothing to estimate from.
    """
    report = progress or (lambda step, fraction: None)
    report("prepare", 0.0)
    data, validation, warnings = without_copies(arm, data, validation)
    runs, others, fine = _prepared(arm, data, validation, hold_out, (cutoff_hz, lag))
    # Refuse bad data before the long work, not in the middle of it.
    described = Columns(arm, has_lags=any(run.lag_std is not None for run in runs))
    for run in (*runs, *others):
        described.check(run)
    if sum(len(run) for run in runs) == 0:
        raise NotIdentifiable("There are no samples. Record a motion first.")
    if not any(run.tau.any() for run in runs):
        raise NotIdentifiable(
            "Every torque is zero: nothing was measured, or the wrong columns are "
            "mapped. Check the log's torque or current."
        )
    free = tuple(terms)
    if not free:
        raise NotIdentifiable("No term was left to estimate. Name at least one.")
    torques, unknowns = sum(run.tau.size for run in runs), count_base(described, free)
    if torques < _FEWEST_TORQUES * unknowns:
        raise NotIdentifiable(
            f"{torques} torques (samples × joints, filtered) for {unknowns} base "
            "parameters: the data are too short. Record a longer motion, or hold out "
            "less of it."
        )
    warnings += [*scaled_torques(arm, runs), *beyond_limits(arm, runs)]
    report("choose friction", 0.4)
    with few_threads():
        if isinstance(friction, str):
            problem = _with_named_friction(described, runs, friction, free)
        else:
            # Terms of another estimate end where its data did.
            columns = described.with_friction(_named_terms(friction))
            problem = settle_load(pose_problem(columns, runs, free), free)
    return replace(
        problem,
        validation_data=tuple(others),
        fine_validation=fine,
        data_warnings=tuple(warnings),
    )


def _named_terms(
    friction: Sequence[FrictionTerm | tuple[FrictionTerm, float]],
) -> tuple[FrictionTerm, ...]:
    """Terms to fit anew, however warm and fast; of an estimate's without values."""
    terms = [item[0] if isinstance(item, tuple) else item for item in friction]
    for term in terms:
        if not isinstance(term, FrictionTerm):
            raise ArgumentError(
                f'friction is "auto", "linear" or a list of terms, and {term!r} is no '
                "FrictionTerm."
            )
    return tuple(replace(term, warmest=None, fastest=None) for term in terms)


def _with_named_friction(
    columns: Columns, runs: Sequence[Samples], friction: str, terms: Sequence[str]
) -> Problem:
    """Pose a problem without further friction terms, or with those that help."""
    if friction not in ("auto", "linear"):
        raise ArgumentError(
            f'friction is "auto", "linear" or a list of terms, not {friction!r}.'
        )
    # Without samples there is nothing to select by.
    if friction == "linear" or not any(len(run) for run in runs):
        return pose_problem(columns, runs, terms)
    selection = select_friction(columns.arm, runs, terms)
    widened = selection.accumulator.columns
    assert isinstance(widened, Columns)
    problem = pose_problem(widened, runs, terms, selection.accumulator)
    problem = settle_load(problem, terms)
    return replace(
        problem,
        friction_candidates=selection.candidates,
        friction_spread=selection.spread,
    )


def _prepared(
    arm: Arm,
    data: Data,
    validation: Data | None,
    hold_out: float,
    asked: tuple[float | None, float | None],
) -> tuple[list[Samples], list[Samples], Samples | None]:
    """Samples to fit and to validate on, and the latter finer, from what was given.

    Cut-off in [Hz] and lag in [s] are `asked` for, or None.
    """
    samples, recordings = _sorted_by_kind(data)
    others, logs = _sorted_by_kind(validation if validation is not None else [])
    for recording in (*recordings, *logs):
        require_torques(recording)
    if recordings:
        cutoff_hz, lag = asked
        samples = [prepare(recordings, cutoff_hz, arm=arm, lag=lag)]
    elif asked != (None, None):
        raise ArgumentError("cutoff_hz and lag are for recordings, not for samples.")
    if logs:
        if not samples:
            raise NotIdentifiable("There are no samples. Record a motion first.")
        # Compared with the same filters, or the errors would be the filters'.
        others = [prepare(logs, like=samples[0])]
    fine = _finer(logs, others[0]) if len(logs) == 1 else None
    if hold_out:
        if not 0.0 < hold_out < 1.0:
            raise ArgumentError(
                f"hold_out is a fraction between 0 and 1, not {hold_out:g}."
            )
        # The end of each run, in one part: rows drawn at random would be neighbours of
        # those fitted, and the low-pass makes neighbours alike.
        pairs = [run.split(1.0 - hold_out) for run in samples]
        samples = [first for first, _ in pairs]
        others += [last for _, last in pairs]
    return samples, others, fine


# Judgement: with as many torques as unknowns every fit is perfect, and none means much.
_FEWEST_TORQUES = 2
"""Torques for each base parameter below which nothing is estimated."""

# Judgement: of a motion that has something at the cut-off, 2.5 times it hold the most.
_FINER = 2.5
"""Cut-off of finer samples over that of the fit."""

_MOST_SAMPLES = 100_000
"""Samples from which on a validation is not prepared a second time."""


def _finer(logs: Sequence[Recording], samples: Samples) -> Samples | None:
    """Prepare a log once more, with more of its fast motion left in."""
    done = samples.preparation
    if done.cutoff_hz is None or len(samples) > _MOST_SAMPLES:
        return None
    cutoff = _FINER * done.cutoff_hz
    thin = max(1, int(done.decimation / _FINER))
    like = replace(
        done, cutoff_hz=cutoff, torque_bandwidth_hz=None, decimation=thin, lag_std=None
    )
    fine = prepare(logs, like=like)
    # Clocks that start again cannot be interpolated in.
    return fine if bool((fine.time[1:] > fine.time[:-1]).all()) else None


def _sorted_by_kind(data: Data) -> tuple[list[Samples], list[Recording]]:
    """Samples and recordings among what was given; one of the two is empty."""
    several = [data] if isinstance(data, Samples | Recording) else list(data)
    samples = [one for one in several if isinstance(one, Samples)]
    recordings = [one for one in several if isinstance(one, Recording)]
    if len(samples) + len(recordings) < len(several):
        odd = next(x for x in several if not isinstance(x, Samples | Recording))
        raise ArgumentError(
            f"The data are Samples or Recordings, not {type(odd).__name__}."
        )
    if samples and recordings:
        raise ArgumentError(
            "The data are samples or recordings, not both. Prepare the recordings "
            "first (aw.prepare)."
        )
    return samples, recordings


def identify_recordings(
    arm: Arm,
    recordings: Sequence[Recording],
    validation: Sequence[Recording] = (),
    *,
    method: Method | None = None,
    friction: Literal["auto", "linear"] = "auto",
    terms: Sequence[str] = TERMS,
    cutoff_hz: float | None = None,
    hold_out: float = 0.0,
    progress: Progress | None = None,
) -> Identification:
    """Deprecated: `identify` takes recordings itself."""
    warnings.warn(
        "identify_recordings will go: identify(arm, recordings, validation=…) does the "
        "same, and its estimate holds samples, validation and warnings.",
        DeprecationWarning,
        stacklevel=2,
    )
    estimate = identify(
        arm,
        list(recordings),
        method,
        friction=friction,
        terms=terms,
        validation=list(validation) or None,
        hold_out=hold_out,
        cutoff_hz=cutoff_hz,
        progress=progress,
    )
    others = estimate.validation_samples
    return Identification(
        estimate,
        estimate.samples[0],
        Samples.concatenate(others) if others else None,
        estimate.validation,
        tuple(warning.text for warning in estimate.warnings),
    )
