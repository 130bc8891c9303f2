"""Verdicts on an estimate, each from computed numbers or "not evaluated"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.identification import (
    DOUBTFUL_DATA,
    MISMATCH,
    WRONG_DATA,
    Estimate,
    Identification,
    Tally,
    Validation,
    negative_friction,
    part_masks,
    predict_torque,
    worsening,
)
from armwise.recordings import Samples
from armwise.report.report import Verdict

if TYPE_CHECKING:
    from jaxtyping import Float


CONDITION = (100.0, 300.0)
"""Condition numbers up to which a motion separates parameters well, or at all:
Schröer's rule of thumb for calibration is 100; three times that is still usable where
torques are clean."""

# The second bound is that of the warning "unexplained-torque".
FIT = (0.15, 0.5)
"""Fraction of a joint's torque that may stay unexplained, to pass or not to fail. The
last joints of an arm carry little torque and much friction, so 15 % is common."""

# The second bound is that of the warning "overfitted".
VALIDATION = (2.0, 3.0)
"""Factor by which validation data are predicted worse than fitted and worse than the
prediction's own intervals promise (`worsening`), to pass or not to fail. Another motion
at other speeds easily doubles it; more is overfitting or a change of the arm."""


BAND_LEVEL = 0.9
"""Fraction of unseen torques that a band of draws shall hold."""


@dataclass(frozen=True, eq=False)
class Subject:
    """An estimate and the data behind it.

    Attributes:
        estimate: The estimate.
        fitted: Samples of the fit; None: not given.
        validated: Samples not used to fit; None: not given.
        validation: Errors on those; None: not evaluated.
    """

    estimate: Estimate
    fitted: Samples | None
    validated: Samples | None
    validation: Validation | None

    @classmethod
    def of(
        cls,
        result: Identification | Estimate,
        fitted: Samples | None = None,
        validated: Samples | None = None,
    ) -> Subject:
        """Take an estimate with the samples it holds, or with others.

        Args:
            result: An estimate, or what the deprecated `identify_recordings` returned.
            fitted: Samples of the fit, for an estimate without them.
            validated: Samples left out of it, to validate on.
        """
        estimate = result.estimate if isinstance(result, Identification) else result
        if not isinstance(estimate, Estimate):
            raise ArgumentError(
                f"A report is about an Estimate, not {type(estimate).__name__}."
            )
        validation = estimate.validation
        if fitted is None and estimate.samples:
            fitted = Samples.concatenate(estimate.samples)
        if validated is not None:
            validation = estimate.validate(validated)
        elif estimate.validation_samples:
            validated = Samples.concatenate(estimate.validation_samples)
        return cls(estimate, fitted, validated, validation)

    @property
    def arm(self) -> Arm:
        """The arm as it was described."""
        return self.estimate.prior_arm

    @property
    def torque_units(self) -> tuple[str, ...]:
        """N m of joints that turn, N of those that slide."""
        joints = [self.arm.joints[i] for i in self.arm.coordinates]
        return tuple("N m" if joint.is_revolute else "N" for joint in joints)

    @property
    def base_parameter_count(self) -> int:
        """Base parameters; friction terms beyond the arm's own are not counted."""
        return self.estimate.base.count - len(self.estimate.columns.friction)

    @cached_property
    def runs(self) -> tuple[PredictedRun, ...]:
        """Validation data and those of the fit, as far as they are there, predicted."""
        columns = self.estimate.columns
        described = np.zeros(self.estimate.all_parameters.shape)
        described[: self.arm.parameters.size] = self.arm.parameters
        both = np.stack([self.estimate.all_parameters, described])
        data = {"validation": self.validated, "fit": self.fitted}
        return tuple(
            PredictedRun(name, samples, *predict_torque(columns, both, samples))
            for name, samples in data.items()
            if samples is not None
        )

    @cached_property
    def band(self) -> Float[np.ndarray, " dof"] | None:
        """Fraction of validated torques that the band of draws holds, per joint."""
        if self.validated is None or not len(self.validated):
            return None
        band = self.estimate.band(self.validated, BAND_LEVEL)
        return band.holds(self.validated.tau)


@dataclass(frozen=True, eq=False)
class PredictedRun:
    """Samples, and the torques two models predict for them.

    Attributes:
        name: "validation" or "fit".
        samples: The samples.
        identified: Torque in [N m] the estimate predicts.
        described: Torque in [N m] of the same model with the description's parameters.
    """

    name: str
    samples: Samples
    identified: Float[np.ndarray, "samples dof"]
    described: Float[np.ndarray, "samples dof"]

    @property
    def description_errors(self) -> Validation:
        """Errors of the description's torques."""
        tally, tau = Tally(self.samples.dof), self.samples.tau
        tally.add(tau, tau - self.described, part_masks(self.samples))
        return tally.result()


@dataclass(frozen=True)
class Judgement:
    """One question and its answer.

    Attributes:
        question: What was asked.
        verdict: The answer.
        why: The numbers behind it.
    """

    question: str
    verdict: Verdict
    why: str


def worst_of(judgements: Sequence[Judgement]) -> Judgement:
    """Return the answer that should worry most; the first, of several."""
    order = ("fail", "look", "pass", "not evaluated")
    return min(judgements, key=lambda one: order.index(one.verdict))


def verdicts(estimate: Estimate) -> tuple[Judgement, ...]:
    """Say how far an estimate is to be trusted: questions, verdicts and reasons."""
    return judge(Subject.of(estimate))


def judge(subject: Subject) -> tuple[Judgement, ...]:
    """Ask what a careful reader would."""
    return (
        _belonging(subject),
        _complete(subject),
        _excited(subject),
        _determined(subject),
        _fitted(subject),
        _predicted(subject),
        _physical(subject),
        _friction(subject),
    )


def _belonging(subject: Subject) -> Judgement:
    warnings = subject.estimate.warnings
    wrong = [w.text for w in warnings if w.code in WRONG_DATA]
    doubtful = [w.text for w in warnings if w.code in DOUBTFUL_DATA]
    return Judgement(
        "Do the data look like this arm's?",
        "fail" if wrong else "look" if doubtful else "pass",
        (wrong or doubtful or ["gains, encoders, gravity, clocks and order agree"])[0],
    )


_OTHER_MODEL = (
    "model-mismatch",
    "torque-gains-differ",
    "residual-follows-acceleration",
)
"""Codes of what no interval of this model makes good."""


def _complete(subject: Subject) -> Judgement:
    codes = {w.code: w.text for w in subject.estimate.warnings}
    question = "Does the residual follow nothing that would move the parameters?"
    # Intervals know of what was found; beyond some of it, values are another model's.
    # An elastic joint is another model however little shows of it: between rotor and
    # link there is a motion that no encoder sees, and rotor inertias take the blame.
    large = [codes[c] for c in _OTHER_MODEL if c in codes]
    small = [text for code, text in codes.items() if code in MISMATCH]
    why = "no load, speed, position, phase or time is in it"
    if small:
        why = f"what it follows moves them within their intervals: {small[0]}"
    return Judgement(question, "look" if large else "pass", large[0] if large else why)


def graded(value: float, bounds: tuple[float, float]) -> Verdict:
    """Pass below the first bound, look below the second, fail beyond and for NaN."""
    # Comparisons with NaN are false, so that it falls through to the end.
    return "pass" if value <= bounds[0] else "look" if value <= bounds[1] else "fail"


def _excited(subject: Subject) -> Judgement:
    estimate = subject.estimate
    number = estimate.condition_number
    why = f"condition number {number:.1f}; below {CONDITION[0]:g} is good"
    if not np.isfinite(number):
        seconds = sum(len(run) / run.rate_hz for run in estimate.samples if len(run))
        why = (
            f"{seconds:.2g} s of this motion leave combinations of parameters free: "
            "no condition number. Record a longer or richer motion"
        )
    return Judgement(
        "Did the motion separate the parameters?", graded(number, CONDITION), why
    )


def _determined(subject: Subject) -> Judgement:
    std = subject.estimate.base_std
    count = int(np.isfinite(std).sum())
    return Judgement(
        "Did it determine all that motion can show?",
        # Undetermined combinations keep described values, which may well be good: look.
        "pass" if count == std.size else "look" if count else "fail",
        f"{count} of {std.size} combinations have a finite uncertainty",
    )


def _fitted(subject: Subject) -> Judgement:
    fit = subject.estimate.fit
    question = "Does the model explain the data it was fitted to?"
    if not fit.samples:
        return Judgement(question, "not evaluated", "there were no samples")
    return Judgement(
        question,
        graded(float(fit.relative_error.max()), FIT),
        "unexplained fraction of torque: " + _per_joint(subject, fit.relative_error),
    )


def _predicted(subject: Subject) -> Judgement:
    checked = subject.validation
    question = "Does it predict data it was not fitted to?"
    if checked is None or not checked.samples:
        return Judgement(
            question, "not evaluated", "no validation data; give --validate LOG"
        )
    ratio = worsening(subject.estimate.fit, checked)
    verdict = graded(float(ratio.max()), VALIDATION)
    # A fit may be bad and just as bad elsewhere: the ratio alone would pass that.
    # What leaves more than half of a joint's torque predicts nothing there.
    own = graded(float(checked.relative_error.max()), FIT)
    if own == "fail" or (verdict == "pass" and own == "look"):
        verdict = own
    return Judgement(
        question,
        verdict,
        "unexplained fraction of torque: "
        + _per_joint(subject, checked.relative_error),
    )


def _physical(subject: Subject) -> Judgement:
    defects = subject.estimate.arm.defects()
    first = next(iter(defects.items()), None)
    return Judgement(
        "Are the inertias physically realisable?",
        "fail" if first else "pass",
        f"{first[0]}: {first[1]}" if first else "every link is physically realisable",
    )


def _friction(subject: Subject) -> Judgement:
    endings = (".viscous", ".coulomb")
    question = "Does friction only brake?"
    if not any(name.endswith(endings) for name in subject.estimate.base.names):
        return Judgement(question, "not evaluated", "no friction was estimated")
    driving = negative_friction(subject.estimate)
    return Judgement(
        question,
        "look" if driving else "pass",
        f"negative: {', '.join(driving)}"
        if driving
        else "no coefficient is clearly negative",
    )


def _per_joint(subject: Subject, fractions: Sequence[float] | np.ndarray) -> str:
    names = subject.arm.coordinate_names
    return ", ".join(
        f"{n} {100 * f:.1f} %" for n, f in zip(names, fractions, strict=True)
    )
