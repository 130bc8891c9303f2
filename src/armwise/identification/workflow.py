"""From recordings to a model one can trust: fit, choose, constrain, validate, doubt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from armwise.arms import Arm
from armwise.identification.diagnosis import diagnose
from armwise.identification.estimate import Estimate
from armwise.identification.friction import FrictionTerm
from armwise.identification.friction_selection import select_friction
from armwise.identification.identify import identify
from armwise.identification.methods import Method, PhysicallyConsistent
from armwise.identification.problem import TERMS
from armwise.identification.validation import Validation
from armwise.recordings import Recording, Samples, prepare

Progress = Callable[[str, float], None]
FrictionChoiceName = Literal["auto", "linear"]


@dataclass(frozen=True, eq=False)
class Identification:
    """What came of a log.

    Attributes:
        estimate: The estimate, by the method asked for.
        fitted: The samples it was fitted to.
        validated: The samples it was validated on, if any.
        validation: Errors on those; None: not evaluated.
        warnings: What the residuals say about the data, in words.
    """

    estimate: Estimate
    fitted: Samples
    validated: Samples | None
    validation: Validation | None
    warnings: tuple[str, ...]


def identify_recordings(
    arm: Arm,
    recordings: Sequence[Recording],
    validation: Sequence[Recording] = (),
    *,
    method: Method | None = None,
    friction: FrictionChoiceName = "auto",
    terms: Sequence[str] = TERMS,
    cutoff_hz: float | None = None,
    hold_out: float = 0.0,
    progress: Progress | None = None,
) -> Identification:
    """Prepare recordings, choose friction, fit, and validate on data left out.

    Args:
        arm: The description.
        recordings: Logs to fit.
        validation: Logs to validate on; nothing is validated without any.
        method: How to fit; physically consistent if not given.
        friction: "auto" tries terms beyond viscous, Coulomb and offset and keeps what
            predicts better; "linear" does not.
        terms: What to estimate.
        cutoff_hz: Low-pass in [Hz]; chosen if None.
        hold_out: Fraction at the end of the logs that is kept for validation.
        progress: Called with what is being done and how much of it is done.
    """
    tell = progress or (lambda what, share: None)
    tell("prepare", 0.0)
    fitted = prepare(list(recordings), cutoff_hz, arm=arm)
    others = prepare(list(validation), like=fitted) if validation else None
    if hold_out:
        fitted, kept = fitted.split(1.0 - hold_out)
        others = kept if others is None else Samples.concatenate([others, kept])
    tell("choose friction", 0.4)
    chosen: tuple[FrictionTerm, ...] = ()
    if friction == "auto":
        chosen = select_friction(arm, fitted, terms).terms
    tell("fit", 0.7)
    estimate = identify(
        arm, fitted, method or PhysicallyConsistent(), terms=terms, friction=chosen
    )
    tell("validate", 0.9)
    checked = None if others is None else estimate.validate(others)
    warnings = diagnose(estimate, fitted, checked)
    tell("done", 1.0)
    return Identification(estimate, fitted, others, checked, warnings)
