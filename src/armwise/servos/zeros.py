"""Joint zeros from free runs: where gravity pulls tells how a joint stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.servos.fit import effective_rows
from armwise.servos.model import (
    PARAMETERS,
    Values,
    decode,
    encode,
    stacked,
    tables_of,
    units_of,
)
from armwise.servos.motions import joint_loads, travel_of
from armwise.servos.rollout import (
    Roller,
    ServoMotion,
    count_doubt,
    least_scale,
    rounding_of,
)

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

# Judgement: arms are put together within 20°, and more is another description.
_USUAL = 0.35
"""Zeros in [rad] that are usual, which holds those that no motion shows."""

# Judgement: gravity changes by a few percent over a degree, all but linearly.
_STEP = 0.02
"""Difference in [rad] for derivatives."""

# Judgement: some hundred poses.
_MOST_S = 150.0
"""Length in [s] of the motions that zeros are sought in."""


# Judgement: with six, Student's two standard deviations are 2.6; a part of a motion of
# half a minute still holds several poses.
_FEWEST = 6
"""Motions, or parts of them, whose scatter tells how well zeros are known."""


# Judgement: a horn is put on to within a degree.
MOUNTED_STD = 0.02
"""How far zeros differ in [rad] from one mounting of a load to the next."""


def mounting_zeros(
    roller: Roller, groups: Sequence[Sequence[ServoMotion]], values: Values
) -> Float[np.ndarray, " groups"]:
    """Return how far each load of one joint is put on beyond the servo's zero.

    Args:
        roller: Of the joint.
        groups: Motions with each of the loads.
        values: Its servo.
    """
    nothing, zeros = np.zeros((1, 0)), []
    for group in groups:
        bare = [replace(m, mounted=None) for m in group]
        scale = roller.normals(bare, tables_of(stacked([values])), nothing).scale[0]
        zero = 0.0
        # Judgement: three times as far as is usual, then a tenth of a degree: costs of
        # models that explain next to all are cusps.
        for width in (0.5, 0.1):
            steps = zero + width * np.arange(-6, 7)
            servos = [
                {**values, "zero": values["zero"] + MOUNTED_STD * x} for x in steps
            ]
            tables = tables_of(stacked(servos))
            costs = roller.costs(bare, tables, np.full(len(steps), scale))
            costs = costs * effective_rows(bare) / scale + 0.5 * steps**2
            zero = float(steps[np.argmin(costs)])
        zeros.append(MOUNTED_STD * zero)
    return np.array(zeros)


@dataclass(frozen=True, eq=False)
class ZeroStep:
    """A step towards the joints' zeros, servos adjusting to it.

    Attributes:
        step: In [rad].
        std: Standard deviation in [rad]; infinite where gravity shows nothing.
    """

    step: Float[np.ndarray, " dof"]
    std: Float[np.ndarray, " dof"]


def zero_step(
    roller: Roller,
    arms: Sequence[Arm],
    motions: Sequence[ServoMotion],
    joints: Mapping[int, tuple[Sequence[ServoMotion], Values, Sequence[str]]],
    zeros: Float[np.ndarray, " dof"],
    free: Bool[np.ndarray, " dof"] | None = None,
) -> ZeroStep:
    """Return a Gauss-Newton step of all joints' zeros, from all joints' free runs.

    A zero moves the load on its own joint and on those before it; each joint's fitted
    parameters follow, for they are eliminated from the normal equations.

    Args:
        roller: Of single joints.
        arms: The description in every motion.
        motions: Of the whole arm.
        joints: Number of a joint that moves → its motions, values and fitted names.
        zeros: Where to step from; the values hold that of a joint alone.
        free: Joints whose zeros are stepped; None: all.
    """
    dof = arms[0].dof
    from scipy.stats import t

    used = _telling(motions, [joints[j][0] for j in joints])
    # The last: not moved at all.
    nudges = [*(zeros + _STEP * np.eye(dof)), zeros]
    moved = [[joint_loads(motions[m], arms[m], z) for m in used] for z in nudges]
    # Parts of few motions scatter, too; of two or three nobody knows how.
    parts = -(-_FEWEST // len(used))
    S, scores = np.zeros((dof, dof)), np.zeros((len(used) * parts, dof))
    for j, (own, values, names) in joints.items():
        used_motions = [own[m] for m in used]
        nudged = [[motion[j] for motion in some] for some in moved]
        slopes = _Slopes(roller, used_motions, nudged, values, names)
        # The servo follows: what its own parameters can do is no zero.
        back = slopes.by_names @ np.linalg.pinv(
            slopes.information, rcond=1e-10, hermitian=True
        )
        S += back @ slopes.prior @ back.T
        for n, (z, p, e, w) in enumerate(slopes.rows):
            own_part = z - p @ back.T
            S += (own_part * w[:, None]).T @ own_part
            for k, rows in enumerate(np.array_split(np.arange(len(e)), parts)):
                scores[n * parts + k] += own_part[rows].T @ (w * e)[rows]
    prior = np.eye(dof) / _USUAL**2
    inverse = np.zeros((dof, dof))
    stepped = np.arange(dof) if free is None else np.flatnonzero(free)
    some = np.ix_(stepped, stepped)
    inverse[some] = np.linalg.inv((S + prior)[some])
    step = -inverse @ (scores.sum(0) + prior @ zeros)
    count = len(scores)
    scatter = inverse @ (scores.T @ scores * count / max(count - 1, 1)) @ inverse
    # Few motions: a normal's two standard deviations are Student's some more. Parts of
    # one or two are alike in what a model lacks, which looks like a zero.
    alike = len(motions) - 1 if len(motions) < 3 else max(count - 1, 2)
    few = (t.ppf(0.975, max(alike, 1)) / 1.96) ** 2
    variance = few * np.maximum(np.diag(scatter), np.diag(inverse))
    # Judgement: known no better than half as well as anybody would have guessed is
    # not known.
    is_open = np.diag(inverse) > 0.25 * _USUAL**2
    is_open |= ~np.isin(np.arange(dof), stepped)
    std = np.where(is_open, np.inf, np.sqrt(variance))
    return ZeroStep(step, std)


def _telling(
    motions: Sequence[ServoMotion], joints: Sequence[Sequence[ServoMotion]]
) -> list[int]:
    """Return the numbers of motions that tell most: free ones that move far.

    What holds an arm up looks like a zero that is off, also in rows around those that
    are known as held.
    """
    numbers = range(len(motions))
    held = [float(np.mean([~own[k].mask for own in joints])) for k in numbers]
    # Judgement: a hundredth is an encoder's spikes, or a first model's error.
    free = [k for k in numbers if held[k] < 0.01]
    # Judgement: twenty seconds are some ten poses of every joint.
    is_enough = sum(motions[k].time[-1] for k in free) > 20.0
    travels = {k: sum(travel_of(own[k]) for own in joints) for k in numbers}
    order = sorted(free if is_enough else numbers, key=lambda k: -travels[k])
    seconds = np.cumsum([motions[k].time[-1] for k in order])
    return order[: 1 + int(np.searchsorted(seconds, _MOST_S))]


class _Slopes:
    """Errors of one joint's free runs, and how they change with zeros and parameters.

    Attributes:
        rows: Of every motion: derivatives by zeros and by parameters, errors, weights.
        information: Of the parameters, prior included.
        prior: Of the offset that rounding leaves.
        by_names: Mixed, of zeros and parameters.
    """

    def __init__(
        self,
        roller: Roller,
        motions: Sequence[ServoMotion],
        nudged: Sequence[Sequence[ServoMotion]],
        values: Values,
        names: Sequence[str],
    ) -> None:
        # A command's offset that is fitted is free, and not what rounding leaves.
        is_free = "offset" in names
        names = names if is_free else (*names, "offset")
        start, size = stacked([values]), len(names)
        steps = 0.1 * np.array([PARAMETERS[name].step for name in names])
        points = encode(start, names) + np.concatenate(
            [np.zeros((1, size)), np.diag(steps)]
        )
        repeated = {name: np.repeat(v, 1 + size) for name, v in start.items()}
        runs = roller.run(motions, tables_of(decode(repeated, names, points)))
        if len(nudged) == 2:
            # One joint's rollouts know its true gravity, and its zero is in its table.
            moved = tables_of(stacked([{**values, "zero": values["zero"] + _STEP}]))
            others = [roller.run(motions, moved), roller.run(motions, tables_of(start))]
        else:
            others = [roller.run(some, tables_of(start)) for some in nudged]
        parts = []
        for n, (run, m) in enumerate(zip(runs, motions, strict=True)):
            e = run[..., 0] - m.q[:, 0]
            ends = np.stack([other[n][0, :, 0] for other in others], axis=1)
            z = (ends[:, :-1] - ends[:, -1:]) / _STEP
            good = m.mask[:, 0] & np.isfinite(e).all(0) & np.isfinite(z).all(1)
            by_names = (e[1:, good] - e[0, good]).T / steps
            parts.append((z[good], by_names, e[0, good], m.weight))
        sizes = np.abs(np.concatenate([part[2] for part in parts]))
        median = np.median(sizes) if len(sizes) else np.array(np.nan)
        scale = least_scale(median, rounding_of(motions))
        self.rows = [
            (z, p, e, weight / scale**2 / np.sqrt(1.0 + (e / scale) ** 2))
            for z, p, e, weight in parts
        ]
        # How positions and commands are rounded looks like gravity, and is not known.
        unit = units_of(start, ("offset",))["offset"][0] / count_doubt(motions)
        pull = 0.0 if is_free else unit**2
        self.prior = np.diag([(n == "offset") * pull for n in names])
        self.information = self.prior.copy()
        self.by_names = np.zeros((len(nudged) - 1, size))
        for z, p, _, w in self.rows:
            self.information += (p * w[:, None]).T @ p
            self.by_names += (z * w[:, None]).T @ p
