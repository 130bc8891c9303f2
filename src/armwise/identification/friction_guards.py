"""Guards of friction terms: what must fall, how surely, and what may not get worse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.regression import student_tails

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

# Judgement: 10 % in power is 5 % of the residual's size.
LEAST_GAIN = 0.1
"""Fall of the squared error below which a term is not worth its column and what it
adds to the uncertainty of the others."""

# Judgement: filters, integrators and joints that stick leave tenths of a percent.
_LEAST_TORQUE = 0.01
"""Torque that a term must explain on stretches left out, as a fraction of the
joint's."""

MOST = 0.5
"""Fall of the squared error from which on a term may be as small as it likes: what
takes away half of all that is not explained is no artefact among others."""

# Beside the least gain, not alone: of ten stretches 0.75 asks for eight.
_MOST_FOLDS = 0.75
"""Fraction of the stretches left out on which a term must help: by luck alone it would
help on half of them."""

# Of ten stretches; a rule of one standard error would be met by luck by every sixth
# candidate, and there are a dozen for every drive.
_LEAST_ERRORS = 2.0
"""Standard errors, from stretch to stretch, by which the mean fall of the error's
logarithm must differ from zero. Logarithms: stretches differ in how much moves."""

_MOST_HARM = 0.02
"""Error that a term may add to any fifth of the log left out, as a fraction of the
joint's torque."""

# Judgement: hysteresis of real drives raised it by 12 % at most, while on joints that
# only stick at reversals a width of 1 mrad raised it by 40 to 170 %.
_MOST_SPOILT = 0.25
"""Error that hysteresis may add to rows far from reversals, as a fraction of their own:
friction that builds up over a distance is there everywhere, if little; that of a joint
that sticks for a moment is not, and is better explained without a memory."""

# On plants without it, joints that stick let hysteresis take at most half of the
# squared error of moving rows away; on plants whose friction builds up and then falls
# with speed (LuGre's), 84 % and more, for 1 to 5 % of that in rows far from reversals.
PLAINLY, _PRICE = 0.75, 0.1
"""Fall of the squared error of all rows from which on hysteresis is plainly there, and
the fraction of it that rows far from reversals may then pay: what is else missing there
must not keep it out."""

# Judgement: in simulated joints that stick, which a few stretches show, 1.6 at most; in
# those whose friction builds up over a distance 4.4 and more.
_SURE_AROUND = 3.0
"""Standard errors, from stretch to stretch, by which hysteresis that is plainly there,
or that is hardly sure in all rows, must lower the error around reversals."""

# Judgement: in simulated joints that stick for 20 to 40 ms, up to 0.4 %.
_PAUSES = 0.005
"""Torque that hysteresis must explain on stretches left out, as a fraction of the
joint's, whatever is left of the error: pauses too short for an encoder to show leave
some that looks alike."""

_ROUNDING = 1e-6
"""Fraction of the squared error around reversals that a stretch without a reversal may
have, by rounding."""

# Judgement: in simulated joints that carry others, up to 2 %, and up to 5 % if none of
# their pauses had been seen; where friction builds up over a distance 8 % and more.
_PAUSES_OF_FRICTION = 0.08
"""The same as a fraction of Coulomb friction, where that is less: a joint that pauses
is off by no more than its friction, however heavy the arm that it carries."""

# Judgement: in simulated joints that stick, up to 1.5 % where it was sure; in real arms
# 3.8 % and more.
_SPOILING_PAUSES = 0.02
"""The same where hysteresis adds to the error of rows far from reversals, or where a
joint is seen to stick: it does so for moments too short for its encoder, too."""


def worth_of_terms(
    before: Float[np.ndarray, "2 folds"],
    after: Float[np.ndarray, "2 folds"],
    torque: Float[np.ndarray, " 2"],
    remembers: bool,
    sticks: bool = False,
    friction: Float[np.ndarray, " 2"] | None = None,
) -> float:
    """Fraction of the squared error that terms take away; 0 if they are refused.

    Args:
        before, after: Squared error of fitted rows and of all, per stretch left out.
        torque: Squared torque of fitted rows and of all.
        remembers: Whether the terms make all rows fitted ones.
        sticks: Whether a joint of theirs is seen to stick.
        friction: Squared Coulomb friction of fitted rows and of all, for hysteresis;
            waves, with which all rows may be fitted, too, show in any stretch.
    """
    is_sticking = sticks
    total = np.maximum(before.sum(axis=1), 1e-300)
    gain = 1.0 - after.sum(axis=1) / total
    falls = np.log(np.maximum(before, 1e-300) / np.maximum(after, 1e-300))
    sureness, folds = np.array([_sureness(kind) for kind in falls]), falls.shape[1]
    least = np.clip(_LEAST_TORQUE**2 * torque / total, LEAST_GAIN, MOST)
    helped = np.mean(falls > 0.0, axis=1)
    # Sure on the rows that are fitted with it: what shows around reversals alone is
    # a joint that sticks there, unless the term has a memory.
    is_sure = bool(sureness[int(remembers)] >= _LEAST_ERRORS)
    shows_around = False
    if sticks or gain[0] <= 0.0:
        # A pause helps no rows far from reversals: this may be one.
        friction = None
    if friction is not None:
        reverses = _reversing(before)
        told, around = falls[1, reverses], _falls_around(before, after)[reverses]
        helped[1], sureness[1] = np.mean(told > 0.0), _sureness(told)
        is_sure = _is_sure(told, _LEAST_ERRORS, folds)
        shows_around = _is_sure(around, _SURE_AROUND, folds)
        shows_around &= bool(np.mean(around > 0.0) >= _MOST_FOLDS)
    exceeds = np.ones(2, dtype=bool)
    if remembers:
        # What takes half of the error where it acts away, surely there or surely some
        # elsewhere, need not be much of the whole: there are few reversals in a log.
        is_sure_elsewhere = is_sure and sureness[0] >= _LEAST_ERRORS
        if _explains_reversals(before, after) and (is_sure_elsewhere or shows_around):
            least = np.zeros(2)
        # One standard error: it need not be sure to be no help.
        spoils = sureness[0] <= -1.0
        # In joints that stick, at most 0.4 of both kinds of rows; in those that stick
        # and have it, 0.7 to 0.8.
        sticks = sticks and bool(gain.min() < MOST)
        size = _SPOILING_PAUSES if spoils or sticks else _PAUSES
        explained, squared = gain * total, size**2 * torque
        if friction is not None and not spoils:
            squared = np.minimum(squared, _PAUSES_OF_FRICTION**2 * friction)
        if sticks:
            # Without the stretch in which it explains most: one that it stands still in
            # for a moment may have more error than all others.
            explained = explained - (before - after).max(axis=1)
            squared = squared * (1.0 - 1.0 / folds)
        exceeds = explained >= squared
    is_clear = (helped >= _MOST_FOLDS) & is_sure | shows_around
    # What takes half of the error away, of rows of both kinds, where it matters
    # most, need not help where there is little to be gained; nor need a memory in
    # stretches without a reversal.
    is_plain = remembers and bool(gain[1] >= PLAINLY)
    is_plain = is_plain and _sureness(_falls_around(before, after)) >= _SURE_AROUND
    is_large = np.all(gain >= MOST) | is_plain
    is_large = is_large & (helped > 0.5) & (sureness >= 1.0)
    is_clear = exceeds & (gain >= least) & (is_clear | is_large)
    judged = slice(1, 2) if remembers else slice(0, 2)
    # Neither kind may get worse on the whole. With a memory all rows are fitted,
    # and those far from a reversal may pay for it, by as much as is no harm.
    sizes = [np.sqrt(np.maximum(x.sum(axis=1), 0.0)) for x in (before, after)]
    spoilt = _MOST_SPOILT * sizes[0]
    # Not of a joint that sticks: how it is held there is explained by much that it has
    # not, and rows of clear motion pay for that with up to thirty times their error.
    if remembers and gain[1] >= PLAINLY and not is_sticking:
        price = _PRICE * (before[1] - after[1]).sum()
        spoilt = np.maximum(spoilt, np.sqrt(sizes[0] ** 2 + price) - sizes[0])
    allowed = np.minimum(_MOST_HARM * np.sqrt(torque), spoilt)
    worse = sizes[1] - sizes[0] > (allowed if remembers else 0.0)
    if np.any(worse) or not is_clear[judged].any():
        return 0.0
    # Two stretches at a time: of a single one, chance decides.
    was, now = (np.sqrt(np.maximum(_pairs(x[judged]), 0.0)) for x in (before, after))
    bound = _MOST_HARM * np.sqrt(torque[judged] / was.shape[1])
    if np.any(now - was > bound[:, None]):
        return 0.0
    return float(gain[judged][is_clear[judged]].max())


def _explains_reversals(
    before: Float[np.ndarray, "2 folds"], after: Float[np.ndarray, "2 folds"]
) -> bool:
    """Whether terms take half of the squared error of rows around reversals away."""
    was, now = (float((every - fitted).sum()) for fitted, every in (before, after))
    return now <= (1.0 - MOST) * was


def _reversing(before: Float[np.ndarray, "2 folds"]) -> Bool[np.ndarray, " folds"]:
    """Stretches that say something of a memory: those in which friction reverses.

    In others hysteresis is Coulomb friction, and what changes there is chance. Of two
    stretches no scatter is known: all count if no more reverse.
    """
    around = before[1] - before[0]
    reverses = around > _ROUNDING * around.sum()
    return reverses if reverses.sum() > 2 else np.ones(around.size, dtype=bool)


def _falls_around(
    before: Float[np.ndarray, "2 folds"], after: Float[np.ndarray, "2 folds"]
) -> Float[np.ndarray, " folds"]:
    """Fall of the error's logarithm around reversals; 0 in stretches without one."""
    was, now = (every - fitted for fitted, every in (before, after))
    least = max(_ROUNDING * float(was.sum()), 1e-300)
    return np.asarray(np.log(np.maximum(was, least) / np.maximum(now, least)))


def _sureness(falls: Float[np.ndarray, " folds"]) -> float:
    """Standard errors, from stretch to stretch, by which their mean differs from 0."""
    spread = float(np.std(falls, ddof=1)) / np.sqrt(falls.size)
    return float(falls.mean()) / max(spread, 1e-300)


def _is_sure(falls: Float[np.ndarray, " some"], errors: float, folds: int) -> bool:
    """Whether some stretches are as sure as so many standard errors of all of them.

    The fewer there are, the less their scatter is known (Student's t).
    """
    sureness, luck = _sureness(falls), student_tails(errors, folds - 1)
    return sureness > 0.0 and student_tails(sureness, falls.size - 1) <= luck


# Judgement: pauses of simulated wrist joints let a width of a milliradian take up to
# 80 % away, 4 % of the torque; friction that builds up over it took 96 % and more, or
# beside other friction that was not described 78 to 94 %, 6 to 20 % of the torque.
_NEARLY_ALL, _MUCH = 0.9, 0.06
"""Fall of the squared error, or torque explained beside a plain fall, from which on
the narrowest hysteresis is more than pauses."""


def exceeds_pauses(gain: float, error: float, torque: float) -> bool:
    """Whether the narrowest hysteresis takes more away than pauses would.

    Args:
        gain: Fraction of the squared error that it takes away.
        error: Squared error of all rows without it.
        torque: Squared torque of all rows.
    """
    is_much = gain * error >= _MUCH**2 * torque
    return gain >= _NEARLY_ALL or (gain >= PLAINLY and is_much)


def _pairs(errors: Float[np.ndarray, "kinds folds"]) -> np.ndarray:
    """Sums of every two neighbouring stretches; the last one may stand alone."""
    return np.add.reduceat(errors, np.arange(0, errors.shape[1], 2), axis=1)
