"""Load of a servo arm from command and position, its servos known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm, InertialParameters
from armwise.dynamics import mechanism_of
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.files import json_text, write_atomically
from armwise.recordings import Recording
from armwise.servos.motions import turned_inertia, turned_moment
from armwise.servos.rollout import CORRELATION_S, ServoMotion, robust
from armwise.servos.servo import Servo, gain_registers
from armwise.servos.zeros import MOUNTED_STD

if TYPE_CHECKING:
    from jaxtyping import Float

_DAMPINGS = (0.0, 0.03, 0.3, 3.0)
"""Levenberg-Marquardt damping, of the diagonal, tried at once in one batch."""

_FRICTION = (
    "coulomb", "static", "bearing", "driving", "back_driven", "load_static",
    "load_square", "load_stiction",
)  # fmt: skip
"""Parameters that are dry friction."""

# Judgement: friction of one servo scatters by a tenth and more from one mounting to the
# next.
_FRICTION_STD = 0.15
"""How far friction may have moved since, in its logarithm."""

_NUISANCES = 2
"""Coordinates beside the load's ten, in their standard deviations: friction, zero."""

_SCALES = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 20.0, 30.0, 45.0, 70.0)
"""Sizes of what the joint turns that are tried first, of the description's: a rod may
weigh next to nothing beside its load."""


@dataclass(frozen=True, eq=False)
class ServoLoad:
    """What a joint of a servo arm turns, found by where its servo stops short.

    Attributes:
        joint: Name of the joint that carries the load.
        gravity_moment: Largest torque of gravity about the joint, in [N m]: of all that
            the joint turns, load and link.
        gravity_moment_std: Its standard deviation.
        inertia: About the joint's axis in [kg m²], of the same, without the rotor.
        inertia_std: Its standard deviation.
        parameters: Ten parameters of the load alone, beyond the description, in the
            frame of the link that carries it; what the motion does not show is zero.
        std: Their standard deviations; infinite where the motion says nothing.
        error: Mean |q_simulated − q| in [rad] with the load.
        error_without: The same for the arm as described.
        notes: What the user should know.
    """

    joint: str
    gravity_moment: float
    gravity_moment_std: float
    inertia: float
    inertia_std: float
    parameters: InertialParameters
    std: Float[np.ndarray, " 10"]
    error: float
    error_without: float
    notes: tuple[str, ...] = ()

    @property
    def mass(self) -> float:
        """Mass of the load in [kg]; NaN where the motion does not show it."""
        return self.parameters.mass if np.isfinite(self.std[0]) else np.nan

    def statement(self) -> str:
        """Say in plain words what the load is."""
        moment = _known(self.gravity_moment, self.gravity_moment_std, "N m")
        inertia = _known(self.inertia, self.inertia_std, "kg m²")
        lines = [f"{self.joint} turns {moment} of gravity and {inertia} of inertia."]
        if np.isfinite(self.std[0]):
            lines.append(f"The load's mass is {_known(self.mass, self.std[0], 'kg')}.")
        else:
            lines.append("Its mass alone does not show in this motion.")
        lines.append(
            f"Free run: {1e3 * self.error:.1f} mrad with it, "
            f"{1e3 * self.error_without:.1f} mrad without."
        )
        return "\n".join([*lines, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; infinity as null."""
        std = [float(x) if np.isfinite(x) else None for x in self.std]
        return {
            "joint": self.joint,
            "gravity_moment": self.gravity_moment,
            "gravity_moment_std": _finite(self.gravity_moment_std),
            "inertia": self.inertia,
            "inertia_std": _finite(self.inertia_std),
            "mass": _finite(self.mass),
            "parameters": [float(x) for x in self.parameters.vector],
            "std": std,
            "error_mrad": 1e3 * self.error,
            "error_without_mrad": 1e3 * self.error_without,
            "notes": list(self.notes),
        }


def write_servo_load(load: ServoLoad, path: str | Path) -> None:
    """Write a load to a JSON file, its folder made if need be."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json_text(load.to_dict()))


def _known(value: float, std: float, unit: str) -> str:
    if not np.isfinite(std):
        return f"what this motion does not show [{unit}]"
    return f"{value:.4g} ± {2.0 * std:.2g} {unit}"


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None


def identify_servo_load(
    servo: Servo,
    recordings: Recording | Sequence[Recording],
    gains: Sequence[float] | None = None,
    *,
    joint: str | None = None,
) -> ServoLoad:
    """Identify what a joint turns, from commands and positions, the servos known.

    A servo without integral gain stops short of its command by gravity over stiffness,
    and swings with the inertia it carries: the load is the one whose free run is the
    recorded one. Friction and the joint's zero may have moved a little since the servos
    were identified: both are found beside the load.

    Args:
        servo: Of `identify_servo`, from other recordings with known loads.
        recordings: With the load, as `identify_servo` takes them.
        gains: The servo's gain register in each recording.
        joint: Name of the joint that carries the load; the last by default.

    Raises:
        ArgumentError: If the arm has no such joint, or gains do not match.
        NotIdentifiable: If the recordings do not show the load.
    """
    listed = [recordings] if isinstance(recordings, Recording) else list(recordings)
    if not listed:
        raise ArgumentError("No recordings: give at least one with the load.")
    registers: list[float | None] = [None] * len(listed)
    if gains is not None:
        registers = [*gain_registers(gains, len(listed))]
    arm = servo.arm
    names = [one.name for one in arm.joints]
    if joint is not None and joint not in names:
        raise ArgumentError(
            f"{arm.name} has no joint {joint!r}. It has: {', '.join(names)}."
        )
    number = arm.dof - 1 if joint is None else names.index(joint)
    pairs = zip(listed, registers, strict=True)
    motions = [servo.motion(r, gain=g) for r, g in pairs]
    problem = _Problem(servo, motions, number)
    return problem.answer(*problem.solve())


def _moving(motion: ServoMotion) -> Float[np.ndarray, "samples dof"]:
    """Return what rows count: of a rest all together a correlation time.

    Where a joint sticks is one error, however long it stays there, and what lets it
    stick elsewhere is next to nothing.
    """
    parts = np.ones_like(motion.q)
    for j, q in enumerate(motion.q.T):
        # Judgement: a step of the encoder to and fro is rest.
        width, first = 3.0 * motion.rounding[j], 0
        low = high = q[0]
        for k in range(1, len(q) + 1):
            if k < len(q):
                low, high = min(low, q[k]), max(high, q[k])
                if high - low <= width:
                    continue
                low = high = q[k]
            length = motion.time[k - 1] - motion.time[first]
            parts[first:k, j] = min(CORRELATION_S / max(length, 1e-9), 1.0)
            first = k
    return parts


class _Problem:
    """Free runs of an arm whose one link carries more than the description says."""

    def __init__(
        self, servo: Servo, motions: Sequence[ServoMotion], number: int
    ) -> None:
        self.servo, self.number = servo, number
        unit = np.ones(1) if servo.arm.dof == 1 else None
        self.motions = [replace(m, carried=unit, mounted=None) for m in motions]
        self.weights = [m.weight * _moving(m) for m in motions]
        mechanism = mechanism_of(servo.arm)
        self.columns = mechanism.group_matrix[:, mechanism.layout.link(number)]
        self.link = servo.arm.links[number].inertia.vector
        # Judgement: a link without mass is measured by a point of 0.1 kg at 0.1 m.
        size = np.array([0.1] + [0.01] * 3 + [1e-3] * 6)
        heavy = np.linalg.norm(self.link[1:4])
        if heavy > 0.0:
            size[1:4] = heavy
            size[4:] = max(float(np.abs(self.link[4:]).max()), 1e-9)
            size[0] = max(float(self.link[0]), 1e-9)
        self.size = size

    def errors(self, points: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return (points, samples, dof) of simulated less measured positions."""
        rows = np.array([self.columns @ (self.size * x[:10]) for x in points])
        bodies = [m.bodies + rows for m in self.motions]
        tables = {k: np.repeat(x, len(points), 0) for k, x in self.servo.table.items()}
        friction, zero = np.array([x[10:] for x in points]).T
        for name in _FRICTION:
            tables[name] *= np.exp(_FRICTION_STD * friction)[:, None]
        tables["zero"][:, self.number] += MOUNTED_STD * zero
        # Bearings carry what is sought, not the description's.
        if self.servo.arm.dof == 1:
            totals = [self.link + self.size * x[:10] for x in points]
            tables["bearing"] *= np.array([[self.weight(total)] for total in totals])
        runs = self.servo.runs(self.motions, tables, bodies)
        return [run - m.q for run, m in zip(runs, self.motions, strict=True)]

    def scales(self, errors: Sequence[np.ndarray]) -> np.ndarray:
        """Return each joint's median error in [rad], where squares end."""
        sizes = []
        for j in range(self.servo.arm.dof):
            parts = [
                np.abs(e[0, m.mask[:, j], j])
                for e, m in zip(errors, self.motions, strict=True)
            ]
            rounding = float(np.median([m.rounding[j] for m in self.motions]))
            sizes.append(max(float(np.nanmedian(np.concatenate(parts))), rounding))
        return np.array(sizes)

    def costs(
        self,
        points: Sequence[np.ndarray],
        scales: np.ndarray,
        errors: Sequence[np.ndarray] | None = None,
    ) -> np.ndarray:
        """Return the robust cost of every load, in half squared deviations."""
        total = 0.5 * np.sum([x[10:] ** 2 for x in points], axis=1)
        errors = self.errors(points) if errors is None else errors
        for e, m, weight in zip(errors, self.motions, self.weights, strict=True):
            c = robust(e, scales) / scales
            c = np.where(np.isfinite(c), c, 1e3) * m.mask * weight
            total += c.sum((1, 2))
        return total

    def solve(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the load in its sizes, its information and scatter of recordings."""
        starts = np.zeros((len(_SCALES), 10 + _NUISANCES))
        for x, factor in zip(starts, _SCALES, strict=True):
            x[:10] = (factor - 1.0) * self.link / self.size
        wide = np.full(self.servo.arm.dof, 0.05)
        order = np.argsort(self.costs(list(starts), wide))
        # Steps, and what counts as known, are of the size of what is turned.
        larger = max(_SCALES[order[0]], 1.0)
        self.size, starts[:, :10] = larger * self.size, starts[:, :10] / larger
        # The best two: a swing more or less makes valleys of their own.
        ends = [self._descend(starts[k]) for k in order[:2]]
        scales = self.scales(self.errors([ends[0][0]]))
        costs = self.costs([end[0] for end in ends], scales)
        return ends[int(np.argmin(costs))]

    def _descend(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Descend by Gauss-Newton from a start."""
        H = scatter = np.zeros((len(x), len(x)))
        prior = np.repeat([0.0, 1.0], [10, _NUISANCES])
        widths = [0.02, 0.006, 0.05]
        # Judgement: two dozen steps; six are the rule.
        for _ in range(24):
            # Friction and zeros in steps as wide as the load's, in what they do.
            steps = widths[0] * (1.0 + 9.0 * prior)
            errors = self.errors([x, *(x + np.diag(steps))])
            scales = self.scales(errors)
            H, gradients = self._normal(errors, steps, scales)
            H += np.diag(prior)
            scatter = gradients.T @ gradients
            gradient = gradients.sum(0) + prior * x
            before = self.costs([x], scales, [e[:1] for e in errors])[0]
            nexts = [x - self._step(H, gradient, damping) for damping in _DAMPINGS]
            after = self.costs(nexts, scales)
            k = int(np.argmin(after))
            # Judgement: far less than one standard deviation.
            if after[k] < before * (1.0 - 1e-4):
                x = nexts[k]
                continue
            # Stick and slip make the error ripple: other differences may see past it.
            widths.pop(0)
            if not widths:
                break
        return x, H, scatter

    def _normal(
        self, errors: Sequence[np.ndarray], steps: np.ndarray, scales: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the information and every recording's gradient."""
        H = np.zeros((len(steps), len(steps)))
        gradients = np.zeros((len(self.motions), len(steps)))
        every = zip(errors, self.motions, self.weights, strict=True)
        for k, (e, m, weight) in enumerate(every):
            r = np.where(m.mask & np.isfinite(e).all(0), e[0], 0.0)
            J = np.where(m.mask & np.isfinite(e).all(0), e[1:] - e[0], 0.0)
            J /= steps[:, None, None]
            w = weight / scales**2 / np.sqrt(1.0 + (r / scales) ** 2)
            H += np.einsum("aij,ij,bij->ab", J, w, J, optimize=True)
            gradients[k] = np.einsum("aij,ij->a", J, w * r)
        return H, gradients

    def _step(self, H: np.ndarray, gradient: np.ndarray, damping: float) -> np.ndarray:
        diagonal = np.diag(H) + 1e-9 * np.diag(H).max()
        step = np.linalg.lstsq(H + damping * np.diag(diagonal), gradient, rcond=1e-9)[0]
        # Judgement: beyond the link's own size the linear picture says nothing.
        return np.clip(step, -1.0, 1.0)

    def answer(self, x: np.ndarray, H: np.ndarray, scatter: np.ndarray) -> ServoLoad:
        """Return the load with its standard deviations."""
        values, vectors = np.linalg.eigh(H)
        # Judgement: a direction known no better than to the link's own size is not.
        is_known = values > max(1.0, 1e-9 * float(values.max()))
        if not is_known.any():
            raise NotIdentifiable(
                "The recordings do not show the load: no simulated motion depends on "
                "it. Record motions in which gravity pulls at the joint."
            )
        half = vectors[:, is_known] / np.sqrt(values[is_known])
        inverse = half @ half.T
        count = len(self.motions)
        spread = inverse @ scatter @ inverse * count / max(count - 1, 1)
        # The larger: few recordings scatter little by chance.
        wider = np.where(
            np.diag(spread).sum() > np.diag(inverse).sum(), spread, inverse
        )
        covariance = wider[:10, :10] * np.outer(self.size, self.size)
        blind = vectors[:10, ~is_known] * self.size[:, None]
        theta = x[:10] * self.size
        hidden = np.abs(vectors[:10, ~is_known]).max(axis=1, initial=0.0) > 1e-2
        total = self.link + theta
        factors, beyond = self._trend(total)
        total[1:4] *= factors[0]
        total[4:] *= factors[1]
        theta = total - self.link
        moment, by_moment = self.gravity_moment(total)
        inertia, by_inertia = self.inertia(total)
        notes = []
        doubts = self.servo.load_error
        if doubts is None:
            notes.append(
                "The servos were identified with one or two loads, of three and more "
                "they would show how far others are off: stiffness and friction scale "
                "with what descriptions say of these, which is taken to be known to "
                "10 %."
            )
            # Judgement: descriptions' masses are as good as that.
            doubts = (0.1, 0.1)
        stds = []
        for value, by, doubt in (
            (moment, by_moment, doubts[0]),
            (inertia, by_inertia, doubts[1]),
        ):
            # Away from known loads errors go on as they may, not as they did.
            wide = np.hypot(doubt, _TREND_STD * beyond)
            variance = by @ covariance @ by + (wide * value) ** 2
            # Judgement: a hundredth of it may lie where the motion shows nothing.
            is_blind = np.linalg.norm(by @ blind) > 0.01 * np.linalg.norm(
                by * self.size
            )
            stds.append(np.inf if is_blind else float(np.sqrt(variance)))
        if not np.isfinite(stds).any():
            joint = self.servo.arm.joints[self.number].name
            raise NotIdentifiable(
                f"The recordings show neither the gravity moment nor the inertia of "
                f"what {joint} turns. Record motions in which it moves and gravity "
                "pulls at it, or name the joint that carries the load (--joint)."
            )
        own = np.diag(covariance) + (doubts[0] * theta) ** 2
        std = np.where(hidden, np.inf, np.sqrt(np.maximum(own, 0.0)))
        errors = self.errors([x, np.zeros(len(x))])
        means = np.mean([np.abs(e)[:, m.mask.all(1)].mean((1, 2)) for e, m in
                         zip(errors, self.motions, strict=True)], axis=0)  # fmt: skip
        return ServoLoad(
            self.servo.arm.joints[self.number].name,
            moment,
            stds[0],
            inertia,
            stds[1],
            InertialParameters(np.where(hidden, 0.0, theta)),
            std,
            float(means[0]),
            float(means[1]),
            tuple(notes),
        )

    def _trend(self, total: np.ndarray) -> tuple[Float[np.ndarray, " two"], float]:
        """Return what moment and inertia are multiplied by, as known loads say.

        And how far the load is from the known ones, in logarithms.
        """
        known = self.servo.known_loads
        if known is None:
            return np.ones(2), 0.0
        gain = float(np.exp(np.mean([np.log(m.gain) for m in self.motions])))
        estimate = gain, self.gravity_moment(total)[0], self.inertia(total)[0]
        trend, beyond = load_trend(known, np.array([estimate]))
        return np.exp(-trend[0]), float(beyond[0])

    def gravity_moment(self, total: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the largest torque of gravity in [N m], and its derivative."""
        arm = self.servo.arm
        return turned_moment(arm.joints[self.number], total, arm.gravity)

    def weight(self, total: np.ndarray) -> float:
        """Return the weight on the bearings in [N], as `carried_weight` has it."""
        moment, inertia = self.gravity_moment(total)[0], self.inertia(total)[0]
        g = max(float(np.linalg.norm(self.servo.arm.gravity)), 1e-9)
        # Judgement: a point ten times as near as in the description is beyond belief,
        # and the search may try an inertia below zero.
        return moment**2 / (g * max(inertia, 0.01 * self.size[4:].max()))

    def inertia(self, total: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the inertia about the axis in [kg m²], and its derivative."""
        return turned_inertia(self.servo.arm.joints[self.number], total)


# How far known loads are off, for unknown ones and their intervals.

_GROUPS = 24
"""Loads and gains that are tried, at most."""

_PER_GROUP = 12
"""Recordings of each, at most."""


def _spread(items: Sequence[Any], most: int) -> list[Any]:
    """Return so many items at most, evenly from the first to the last."""
    count = min(len(items), most)
    return [items[k] for k in np.linspace(0, len(items) - 1, count).round().astype(int)]


def loads_found_again(
    servo: Servo, motions: Sequence[ServoMotion], arms: Sequence[Arm]
) -> tuple[Float[np.ndarray, "loads 5"], list[float]] | None:
    """Return the loads that servos were identified with, as the servos find them.

    What friction and the model's other errors do to a load, they did to these. None of
    fewer than three loads.

    Args:
        servo: Identified.
        motions: That it was identified from.
        arms: The description with its load in each.

    Returns:
        For each load and gain: the gain register, gravity moment in [N m] and inertia
        in [kg m²] as found, and the true ones. And the true gravity moments of loads
        that do not show, such as a bare rod's beside a servo's friction.
    """
    vectors = [np.array([link.inertia.vector for link in arm.links]) for arm in arms]
    changes = np.array([v - vectors[0] for v in vectors])
    differing = np.flatnonzero(np.abs(changes).max(axis=(0, 2)) > 0.0)
    groups: dict[tuple[bytes, float], list[int]] = {}
    for k, motion in enumerate(motions):
        groups.setdefault((vectors[k].tobytes(), motion.gain), []).append(k)
    # Judgement: two loads say too little about a third.
    if len({key[0] for key in groups}) < 3 or len(differing) != 1:
        return None
    rows, faint = [], []
    listed = list(groups.values())
    for group in _spread(listed, _GROUPS):
        used = _spread(group, _PER_GROUP)
        arm = arms[group[0]]
        problem = _Problem(servo.on(arm), [motions[k] for k in used], int(differing[0]))
        true = arm.links[int(differing[0])].inertia.vector
        known = problem.gravity_moment(true)[0], problem.inertia(true)[0]
        try:
            load = problem.answer(*problem.solve())
        except NotIdentifiable:
            faint.append(known[0])
            continue
        estimate = (load.gravity_moment, load.inertia)
        # An inertia below zero has no ratio to the true one, and says nothing.
        if min(*estimate, *known) > 0.0:
            rows.append((motions[group[0]].gain, *estimate, *known))
    table = np.array(rows).reshape(-1, 5)
    # Under another gain it may have shown.
    return table, sorted(set(faint) - set(table[:, 3].tolist()))


def known_load_errors(
    table: Float[np.ndarray, "loads 5"],
) -> tuple[float, float] | None:
    """Return how far gravity moments and inertias of loads are off, relative.

    Each load is left out, and the others' trend taken from it: so are unknown ones.
    None of fewer than three loads.

    Args:
        table: Of `loads_found_again`.
    """
    loads = np.unique(table[:, 3:], axis=0)
    if len(loads) < 3:
        return None
    off = []
    for load in loads:
        is_own = (table[:, 3:] == load).all(axis=1)
        own = table[is_own]
        trend, _ = load_trend(table[~is_own], own[:, :3])
        off.append(np.log(own[:, 1:3] / load) - trend)
    from scipy.stats import t

    # Errors of one load are alike under all gains: few loads scatter little by chance,
    # and a normal's two standard deviations are Student's some more.
    few = t.ppf(0.975, len(loads)) / 1.96
    moment, inertia = few * np.sqrt(np.mean(np.square(np.concatenate(off)), axis=0))
    return float(moment), float(inertia)


# Judgement: known loads are within a tenth; light ones, which friction hides, farther.
_ANOTHER = 2.0
"""Factor by which a load is off, beside the others, that is not the one described."""


def misdescribed_loads(table: Float[np.ndarray, "loads 5"]) -> list[str]:
    """Name loads that servos find to be others than their descriptions say.

    Args:
        table: Of `loads_found_again`.
    """
    loads, ratios = _ratios(table)
    is_another = np.abs(np.log(ratios)) > np.log(_ANOTHER)
    return [
        f"Logs of a load that weighs {load[0]:.3g} N m by its description are of one "
        f"of {ratio * load[0]:.3g} N m, as the other loads have it: name each log's "
        "own arm, in kilograms and metres."
        for load, ratio in zip(loads[is_another], ratios[is_another], strict=True)
    ]


def odd_loads(table: Float[np.ndarray, "loads 5"]) -> list[str]:
    """Name a load that servos find some percent off where they find all others.

    Args:
        table: Of `loads_found_again`.
    """
    loads, ratios = _ratios(table)
    # Judgement: friction hides what is a fifth as heavy as the heaviest.
    is_heavy = loads[:, 0] > 0.2 * loads[:, 0].max(initial=0.0)
    # Those that are others altogether are said to be, and say nothing of the rest.
    is_another = np.abs(np.log(ratios)) > np.log(_ANOTHER)
    loads, ratios = loads[is_heavy & ~is_another], ratios[is_heavy & ~is_another]
    # Judgement: of four, three agree.
    if len(loads) < 4:
        return []
    k = int(np.argmax(np.abs(np.log(ratios))))
    others = np.delete(ratios, k)
    spread = float(np.abs(np.log(others / np.median(others))).max())
    off = float(abs(np.log(ratios[k] / np.median(others))))
    # Judgement: friction and descriptions are good for some percent; three times as far
    # as any other is no chance. By a factor it is another load, which is said.
    if not max(0.05, 3.0 * spread) < off < np.log(_ANOTHER):
        return []
    return [
        f"The load described as {loads[k, 0]:.3g} N m comes out as "
        f"{ratios[k] / np.median(others):.2f} of "
        f"that where the others come out within {100.0 * spread:.0f} % of theirs: "
        "weigh it again."
    ]


def _ratios(
    table: Float[np.ndarray, "loads 5"],
) -> tuple[Float[np.ndarray, "distinct 2"], Float[np.ndarray, " distinct"]]:
    """Return distinct loads, and their moments as found, of those described.

    The median load's is one: all torques are in units of the descriptions'.
    """
    loads = np.unique(table[:, 3:], axis=0)
    rows = [table[(table[:, 3:] == load).all(axis=1)] for load in loads]
    ratios = np.array([np.median(own[:, 1] / own[:, 3]) for own in rows])
    return loads, ratios / (np.median(ratios) if len(ratios) else 1.0)


# Judgement: errors of a tenth change by a third of that over a factor of e.
_TREND_STD = 0.3
"""How much errors of loads change, as logarithms, with one of gain, moment, length."""


def load_trend(
    table: Float[np.ndarray, "loads 5"], asked: Float[np.ndarray, "others 3"]
) -> tuple[Float[np.ndarray, "others 2"], Float[np.ndarray, " others"]]:
    """Return how far moments and inertias of loads are off, as known ones are.

    Logarithms of what is found over the truth: none, all alike, or a plane over the
    logarithms of gain, moment, and inertia over moment, which is the length of a
    pendulum. Known loads that are left out say which: three on one line in moment and
    length say nothing of what lies beside it. Outside the known loads a plane is that
    at their edge: trends do not go on.

    Args:
        table: Of `loads_found_again`.
        asked: Gain registers, moments and inertias found of others.

    Returns:
        The trend, and how far each of the others is outside the known ones.
    """
    known, others = _coordinates(table[:, :3]), _coordinates(asked)
    inside = np.clip(others, known.min(axis=0), known.max(axis=0))
    beyond = np.linalg.norm(others - inside, axis=1)
    forms = _trends(table, inside)
    loads = np.unique(table[:, 3:], axis=0)
    if len(loads) < 2:
        return forms[0], beyond
    off = np.zeros((len(forms), 2))
    for load in loads:
        is_own = (table[:, 3:] == load).all(axis=1)
        own, rest = table[is_own], table[~is_own]
        edge = _coordinates(rest[:, :3])
        at = np.clip(_coordinates(own[:, :3]), edge.min(axis=0), edge.max(axis=0))
        errors = np.log(own[:, 1:3] / load) - _trends(rest, at)
        # Under all gains one load is one.
        off += np.mean(errors**2, axis=1)
    best = np.argmin(off, axis=0)
    return forms[best, :, np.arange(2)].T, beyond


def _trends(
    table: Float[np.ndarray, "loads 5"], at: Float[np.ndarray, "others 3"]
) -> Float[np.ndarray, "forms others 2"]:
    """Return trends at some coordinates: of no form, all alike, as a plane."""
    known = _coordinates(table[:, :3])
    mean = known.mean(axis=0)
    X = np.column_stack([np.ones(len(known)), known - mean])
    ratios = np.log(table[:, 1:3] / table[:, 3:])
    # A plane through few loads that scatter is held near none at all.
    ridges = np.maximum(np.mean(ratios**2, axis=0) / _TREND_STD**2, 1e-9)
    slopes = np.column_stack([
        np.linalg.solve(X.T @ X + ridge * np.eye(4), X.T @ y)
        for ridge, y in zip(ridges, ratios.T, strict=True)
    ])  # fmt: skip
    plane = slopes[0] + (at - mean) @ slopes[1:]
    alike = np.broadcast_to(ratios.mean(axis=0), plane.shape)
    return np.array([np.zeros_like(plane), alike, plane])


def _coordinates(
    loads: Float[np.ndarray, "loads 3"],
) -> Float[np.ndarray, "loads 3"]:
    gain, moment, inertia = np.maximum(loads, 1e-12).T
    return np.log(np.column_stack([gain, moment, inertia / moment]))
