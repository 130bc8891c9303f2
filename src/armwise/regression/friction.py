"""Friction terms: torques of a drive beyond viscous, Coulomb and offset, as columns.

A form is the shape of such a torque, linear in its coefficient: a function of speed, of
the load on the gear, of where the drive came from, or of where it is. A term is a form
of one drive. `FORMS` may be extended: what is in it can be fitted, selected, predicted
and stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import mechanism_of
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm


@dataclass(frozen=True, eq=False)
class DriveMotion:
    """What a friction form may use of one drive, sample by sample.

    Attributes:
        q: Position in [rad] or [m], before any low-pass where that is known.
        qd: Speed in [rad/s] or [m/s].
        direction: Direction of motion, from −1 to 1: as the torque's low-pass shows it,
            or for sharp forms, which are filtered afterwards, as it is.
        load: Torque in [N m] that the gear passes on to the links; zero for sharp
            forms.
        stop: Stop operator of the position, from −1 to 1, for a width in [rad] or [m]:
            a spring that slides when it is stretched by the width.
        temperature: Measured temperature in [°C]; empty if none was.
        warmth: Dissipated power in [W] through a first-order lag, for its time constant
            in [s]: what a drive that started cold has been warmed by.
    """

    q: Float[np.ndarray, " samples"]
    qd: Float[np.ndarray, " samples"]
    direction: Float[np.ndarray, " samples"]
    load: Float[np.ndarray, " samples"]
    stop: Callable[[float], np.ndarray]
    temperature: Float[np.ndarray, " samples"] = field(
        default_factory=lambda: np.zeros(0)
    )
    warmth: Callable[[float], np.ndarray] = np.zeros_like


@dataclass(frozen=True)
class FrictionForm:
    """The shape of a friction torque, for a unit coefficient.

    Attributes:
        meaning: What it describes, in words.
        shape: Its torque as a function of the drive's motion and the term's scale.
        brakes: Whether it only ever takes energy: its coefficient is not negative.
        is_sharp: Whether it has steps or waves of its own, so that the torque's
            low-pass changes it.
        remembers: Whether it depends on where the drive came from.
        repeats: Whether it repeats with the position; its scale is the period.
        uses_load: Whether it depends on the load of the gear.
        uses_temperature: Whether it depends on a measured temperature.
        uses_heat: Whether it depends on the power that the drive has dissipated.
        straightens: Whether it is how friction bends at the speeds seen, and no law
            that goes on beyond them.
        scale: What the term's scale is; empty if the form has none.
        undecided: What a log must hold for it to be told from the others.
    """

    meaning: str
    shape: Callable[[DriveMotion, float], np.ndarray]
    brakes: bool = False
    is_sharp: bool = False
    remembers: bool = False
    repeats: bool = False
    uses_load: bool = False
    uses_temperature: bool = False
    uses_heat: bool = False
    straightens: bool = False
    scale: str = ""
    undecided: str = "speeds from slow to fast"


_BOTH_LOADS = "loads from light to heavy at the same speeds, in both directions"

_MANY_PERIODS = "slow sweeps over many periods"

_COLD_TO_WARM = "minutes of work from cold to warm, the same speeds again and again"

FORMS: dict[str, FrictionForm] = {
    "asymmetric": FrictionForm(
        "|q̇|: viscous friction that differs between the two directions",
        lambda m, _: np.abs(m.qd),
        undecided="speeds from slow to fast in both directions",
    ),
    "stribeck": FrictionForm(
        "sign(q̇) exp(−|q̇|/v): friction that falls as motion starts",
        lambda m, speed: m.direction * np.exp(-np.abs(m.qd) / speed),
        brakes=True,
        scale="speed v in [rad/s] or [m/s]",
    ),
    "root": FrictionForm(
        "sign(q̇) √|q̇|: lubricant that thins with speed",
        lambda m, _: m.direction * np.sqrt(np.abs(m.qd)),
        brakes=True,
    ),
    # Of real drives it is mostly negative: the bend of friction that grows ever less,
    # which as a parabola would fall, and drive, at twice the speed.
    "quadratic": FrictionForm(
        "q̇ |q̇|: drag that grows faster than speed, or slower",
        lambda m, _: m.qd * np.abs(m.qd),
        straightens=True,
    ),
    "load": FrictionForm(
        "sign(q̇) |τ|: friction that grows with the load of the gear",
        lambda m, _: m.direction * np.abs(m.load),
        brakes=True,
        uses_load=True,
        undecided=_BOTH_LOADS,
    ),
    # With d the direction, |τ| d while τ d > 0 is (|τ| d + τ |d|) / 2: smooth where the
    # filtered direction passes zero.
    "load_driving": FrictionForm(
        "sign(q̇) |τ| while the motor drives the load",
        lambda m, _: (
            0.5 * (m.direction * np.abs(m.load) + np.abs(m.direction) * m.load)
        ),
        brakes=True,
        uses_load=True,
        undecided=_BOTH_LOADS,
    ),
    "load_back_driven": FrictionForm(
        "sign(q̇) |τ| while the load drives the motor",
        lambda m, _: (
            0.5 * (m.direction * np.abs(m.load) - np.abs(m.direction) * m.load)
        ),
        brakes=True,
        uses_load=True,
        undecided=_BOTH_LOADS,
    ),
    "hysteresis": FrictionForm(
        "stop operator of q: friction that builds up over a distance after reversing, "
        "and holds at rest",
        lambda m, width: m.stop(width),
        brakes=True,
        is_sharp=True,
        remembers=True,
        scale="distance in [rad] or [m]",
        undecided="reversals, slow ones among them",
    ),
    # Both, so that the phase is free. Not sharp, but faster than the low-pass when the
    # drive is fast: what it takes away must be missing here, too.
    "ripple_sine": FrictionForm(
        "sin(2π q/p): torque that repeats with the position of motor or gear",
        lambda m, period: np.sin(2.0 * np.pi / period * m.q),
        is_sharp=True,
        repeats=True,
        scale="period p in [rad] or [m]",
        undecided=_MANY_PERIODS,
    ),
    "ripple_cosine": FrictionForm(
        "cos(2π q/p): torque that repeats with the position of motor or gear",
        lambda m, period: np.cos(2.0 * np.pi / period * m.q),
        is_sharp=True,
        repeats=True,
        scale="period p in [rad] or [m]",
        undecided=_MANY_PERIODS,
    ),
    # Bearings, seals and brakes that are not quite round; on the motor's shaft, above
    # all, whose turns a gear makes many of.
    "coulomb_sine": FrictionForm(
        "sign(q̇) sin(2π q/p): friction that repeats with the position of the motor",
        lambda m, period: m.direction * np.sin(2.0 * np.pi / period * m.q),
        is_sharp=True,
        repeats=True,
        scale="period p in [rad] or [m]",
        undecided=_MANY_PERIODS,
    ),
    "coulomb_cosine": FrictionForm(
        "sign(q̇) cos(2π q/p): friction that repeats with the position of the motor",
        lambda m, period: m.direction * np.cos(2.0 * np.pi / period * m.q),
        is_sharp=True,
        repeats=True,
        scale="period p in [rad] or [m]",
        undecided=_MANY_PERIODS,
    ),
    # About a temperature of the log: Coulomb and viscous friction are those at it.
    "coulomb_temperature": FrictionForm(
        "sign(q̇) (T − T₀): Coulomb friction that changes with temperature",
        lambda m, reference: m.direction * (m.temperature - reference),
        uses_temperature=True,
        scale="temperature T₀ in [°C]",
        undecided=_COLD_TO_WARM,
    ),
    "viscous_temperature": FrictionForm(
        "q̇ (T − T₀): viscous friction that changes with temperature",
        lambda m, reference: m.qd * (m.temperature - reference),
        uses_temperature=True,
        scale="temperature T₀ in [°C]",
        undecided=_COLD_TO_WARM,
    ),
    "coulomb_warming": FrictionForm(
        "sign(q̇) w: Coulomb friction that changes as work w warms the drive up",
        lambda m, constant: m.direction * m.warmth(constant),
        uses_heat=True,
        scale="time constant in [s]",
        undecided=_COLD_TO_WARM,
    ),
    "viscous_warming": FrictionForm(
        "q̇ w: viscous friction that changes as work w warms the drive up",
        lambda m, constant: m.qd * m.warmth(constant),
        uses_heat=True,
        scale="time constant in [s]",
        undecided=_COLD_TO_WARM,
    ),
}
"""Forms of friction by name; add your own before you use it."""

RIPPLES = ("ripple_sine", "ripple_cosine")
"""Waves of the torque: of cogging, gears' teeth."""

FRICTION_WAVES = ("coulomb_sine", "coulomb_cosine")
"""Waves of friction, which turn back with the motion."""

WAVES = (RIPPLES, FRICTION_WAVES)
"""Forms that are the two halves of a wave whose phase is free."""


@dataclass(frozen=True)
class FrictionTerm:
    """One more friction torque of one drive: coefficient × form.

    Attributes:
        joint: Which drive: joints first, then motors that several joints turn.
        joint_name: What it is called.
        form: Name of the form.
        scale: The form's speed, distance or period, for forms that have one.
        warmest: Warmth in [W] up to which forms that warm up were seen: beyond it they
            stay as they are there, for friction that fell on would drive. None: no end.
        fastest: Speed in [rad/s] or [m/s] up to which forms that straighten were seen:
            beyond it they go on straight. None: no end.
    """

    joint: int
    joint_name: str
    form: str
    scale: float = 1.0
    warmest: float | None = field(default=None, compare=False)
    fastest: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ArgumentError(
                f"There is no friction of the form {self.form!r}. "
                f"Choose from: {', '.join(FORMS)}; or add it to "
                "armwise.regression.FORMS first."
            )
        if not (np.isfinite(self.scale) and self.scale > 0.0):
            raise ArgumentError(
                f"The scale of {self.joint_name}.{self.form} is a positive number, not "
                f"{self.scale}."
            )
        if self.warmest is not None and not 0.0 <= self.warmest < np.inf:
            raise ArgumentError(
                f"The largest warmth of {self.joint_name}.{self.form} is a number from "
                f"0 on, not {self.warmest}."
            )
        if self.fastest is not None and not 0.0 < self.fastest < np.inf:
            raise ArgumentError(
                f"The fastest speed of {self.joint_name}.{self.form} is a positive "
                f"number, not {self.fastest}."
            )

    @property
    def kind(self) -> FrictionForm:
        """The form itself."""
        return FORMS[self.form]

    @property
    def name(self) -> str:
        """Name of its coefficient."""
        scale = f"({self.scale:.3g})" if self.kind.scale else ""
        return f"{self.joint_name}.{self.form}{scale}"

    def torque(self, motion: DriveMotion) -> Float[np.ndarray, " samples"]:
        """Torque of a unit coefficient."""
        most = self.warmest
        if most is not None and self.kind.uses_heat:
            whole = motion.warmth
            motion = replace(
                motion, warmth=lambda constant: np.minimum(whole(constant), most)
            )
        end = self.straight_from
        if end == np.inf:
            return self.kind.shape(motion, self.scale)
        inside = np.clip(motion.qd, -end, end)
        bent = self.kind.shape(replace(motion, qd=inside), self.scale)
        return bent + self.slope_beyond * (motion.qd - inside)

    @property
    def straight_from(self) -> float:
        """Speed from which on it goes on straight; infinite: nowhere."""
        is_bounded = self.kind.straightens and self.fastest is not None
        return float(self.fastest or np.inf) if is_bounded else np.inf

    @property
    def slope_beyond(self) -> float:
        """Slope with which it goes on beyond its fastest speed; 0 if it has none.

        That of the faster half of the speeds seen: on parts of logs of six arms, faster
        than those fitted, it predicted better than a tangent, which few samples know,
        and much better than the slope that viscous friction alone would have.
        """
        end = self.straight_from
        if end == np.inf:
            return 0.0
        half = 0.5 * end
        speeds, nothing = np.array([half, end]), np.zeros(2)
        motion = DriveMotion(nothing, speeds, np.ones(2), nothing, np.zeros_like)
        low, high = self.kind.shape(motion, self.scale)
        return float(high - low) / half


# Judgement: a factor of four apart; gears wind up by a milliradian or less, bearings
# and belts build friction up over hundredths.
_WIDTHS = (1e-3, 4e-3, 16e-3, 64e-3)
"""Distances in [rad] over which friction may build up after a reversal."""

_LEVER = 0.1
"""Metres of a prismatic joint that count as a radian."""


def hysteresis_terms(arm: Arm) -> tuple[FrictionTerm, ...]:
    """Friction of every drive that builds up over a distance, narrow to wide."""
    # A joint that follows another has no friction of its own that could be seen.
    drives = [*arm.coordinates, *range(len(arm.joints), len(arm.driven))]
    terms = []
    for j in drives:
        is_turning = j >= len(arm.joints) or arm.joints[j].kind != "prismatic"
        scale = 1.0 if is_turning else _LEVER
        name = arm.driven[j].name
        terms += [FrictionTerm(j, name, "hysteresis", scale * w) for w in _WIDTHS]
    return tuple(terms)


def load_rows(
    drive_rows: Float[np.ndarray, "drives dof"],
) -> Float[np.ndarray, "drives dof"]:
    """L with L τ the load of every drive's gear, for torques τ of the joints.

    A motor that several joints turn moves the last of them: with speeds q̇' = W q̇ of the
    motors that do the work, torques are τ' = W⁻ᵀ τ.
    """
    dof = drive_rows.shape[1]
    speeds = np.eye(dof)
    last = [int(np.flatnonzero(row)[-1]) for row in drive_rows]
    shared = np.count_nonzero(drive_rows, axis=1) > 1
    for k in np.flatnonzero(shared):
        speeds[last[k]] = drive_rows[k]
    # The pseudo-inverse: two motors of the same joints share its load in no known way.
    torques = np.linalg.pinv(speeds).T
    rows = zip(shared, drive_rows, last, strict=True)
    ratio = [1.0 if s else row[j] for s, row, j in rows]
    return np.asarray(torques[last] / np.array(ratio)[:, None])


def check_terms(terms: Sequence[FrictionTerm], arm: Arm) -> None:
    """Refuse friction of drives that an arm does not have."""
    names = [driven.name for driven in arm.driven]
    for term in terms:
        if not 0 <= term.joint < len(names) or term.joint_name != names[term.joint]:
            raise ArgumentError(
                f"{term.name} is friction of drive {term.joint}, {term.joint_name!r}, "
                f"which {arm.name} has not. Its drives: "
                f"{', '.join(f'{k} {name}' for k, name in enumerate(names))}."
            )


def heat_coefficients(
    arm: Arm, parameters: Float[np.ndarray, " parameters"]
) -> Float[np.ndarray, "2 drives"]:
    """What multiplies |v| and v² of each drive for the power in [W] it dissipates.

    Its Coulomb and viscous friction. What further terms add is left out: warmth is in
    units of its own anyway, which its coefficient turns into friction.
    """
    rows = [arm.layout.drive(name) for name in ("coulomb", "viscous")]
    return np.maximum(np.stack([parameters[row] for row in rows]), 0.0)


class FrictionModel:
    """Friction of terms, step by step, with the state that it carries.

    What a controller adds, what a simulated arm loses; the generated C does the same.

    Args:
        arm: Whose drives they are.
        terms: Terms and their coefficients.
        batch: Arms side by side.
        smoothing: Speed in [rad/s] or [m/s] over which a direction is blended through
            zero, v / √(v² + smoothing²); 0: sign(v).
        period: Time in [s] from one call to the next, for drives that warm up.

    Attributes:
        temperature: Temperature of each drive in [°C]; None: that which its terms are
            about. Set it as it is measured.
    """

    def __init__(
        self,
        arm: Arm,
        terms: Sequence[tuple[FrictionTerm, float]],
        batch: int = 1,
        smoothing: float = 0.0,
        period: float | None = None,
    ) -> None:
        self.terms = tuple(terms)
        self.temperature: Float[np.ndarray, " drives"] | None = None
        self.period = period
        check_terms([term for term, _ in self.terms], arm)
        self._rows = mechanism_of(arm).drive_rows
        self._loads = load_rows(self._rows)
        self._heat = heat_coefficients(arm, arm.parameters)
        self._smoothing = smoothing
        self._before: Float[np.ndarray, "batch drives"] | None = None
        self._springs = np.zeros((len(self.terms), batch))
        self._references = [np.full(1, term.scale) for term, _ in self.terms]

    def reset(self) -> None:
        """Forget where the arm came from, and start cold."""
        self._before = None
        self._springs[:] = 0.0

    @property
    def state(self) -> dict[str, np.ndarray]:
        """Where the drives were, and every term's spring or warmth."""
        own = {} if self._before is None else {"friction_position": self._before}
        return {"friction_springs": self._springs.copy()} | own

    def restore(
        self,
        springs: Float[np.ndarray, "terms batch"],
        position: Float[np.ndarray, "batch drives"] | None,
    ) -> None:
        """Go on from a `state`."""
        self._springs[:] = springs
        self._before = None if position is None else np.array(position)

    def torque(
        self,
        q: Float[np.ndarray, "batch dof"],
        qd: Float[np.ndarray, "batch dof"],
        link_torque: Float[np.ndarray, "batch dof"],
    ) -> Float[np.ndarray, "batch dof"]:
        """Friction in [N m] at the next instant, which is remembered.

        Args:
            q, qd: Motion of the joints.
            link_torque: Torque of the links in [N m], which the gears carry.
        """
        position, speed = q @ self._rows.T, qd @ self._rows.T
        loads = link_torque @ self._loads.T
        moved = np.zeros(position.shape)
        if self._before is not None:
            moved = position - self._before
        self._before = position
        direction = np.sign(speed)
        if self._smoothing > 0.0:
            direction = speed / np.sqrt(speed**2 + self._smoothing**2)
        lost = np.zeros(position.shape)
        for k, (term, coefficient) in enumerate(self.terms):
            j, spring = term.joint, self._springs[k]

            def stretched(
                width: float, spring: np.ndarray = spring, j: int = j
            ) -> np.ndarray:
                # Half the time of np.clip, and this runs a million times a log.
                np.minimum(np.maximum(spring + moved[:, j], -width), width, out=spring)
                return spring / width

            def warmed(
                constant: float, warmth: np.ndarray = spring, j: int = j
            ) -> np.ndarray:
                coulomb, viscous = self._heat[:, j]
                power = coulomb * np.abs(speed[:, j]) + viscous * speed[:, j] ** 2
                warmth += self._warming(constant) * (power - warmth)
                return warmth

            temperature = self._references[k]
            if self.temperature is not None:
                temperature = np.asarray(self.temperature[j : j + 1], dtype=float)
            motion = DriveMotion(
                position[:, j],
                speed[:, j],
                direction[:, j],
                loads[:, j],
                stretched,
                temperature,
                warmed,
            )
            lost[:, j] += coefficient * term.torque(motion)
        return np.asarray(lost @ self._rows)

    def _warming(self, constant: float) -> float:
        """Fraction by which a drive's warmth approaches its power in a period."""
        if self.period is None:
            raise ArgumentError(
                "Friction of drives that warm up needs the time between two calls: "
                "FrictionModel(…, period=)."
            )
        return float(-np.expm1(-self.period / constant))
