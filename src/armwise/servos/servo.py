"""Identified servos of an arm: values, intervals, free runs, and their file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm, Drive, arm_from_dict, arm_to_dict
from armwise.errors import ArgumentError, RecordingError
from armwise.files import json_text, write_atomically
from armwise.recordings import (
    ERROR_LEVELS,
    PredictionBand,
    Recording,
    error_within,
)
from armwise.servos.floor import Floor, floor_from_dict, floor_to_dict
from armwise.servos.free_runs import (
    FreeRunErrors,
    contact_of,
    errors_of,
    listed_contact,
)
from armwise.servos.model import CORE, FALLS, PARAMETERS, decode, encode
from armwise.servos.motions import require_same_mechanism, servo_motion
from armwise.servos.rollout import Roller, ServoMotion, ServoTables, SetPoint
from armwise.tables import read_json

if TYPE_CHECKING:
    from jaxtyping import Float

EXAMPLE = Path(__file__).parent / "example"
"""Folder with three motions of an SO-101 and its masses (see its NOTICE)."""

FORMAT = "armwise-servo-1"
"""What a file of `write_servo` says it is."""


@dataclass(frozen=True, eq=False)
class ServoElement:
    """An element that was tried.

    Attributes:
        name: Such as "load friction".
        before: Error in [rad] on motions left out, without it.
        after: The same with it.
        is_needed: Whether it stayed.
    """

    name: str
    before: float
    after: float
    is_needed: bool


BAND_DRAWS = 60
"""Draws of a band: its width is then known to 9 %, 1/√(2·60)."""

# Judgement: arms that no longer follow are no band.
_MOST_AWAY = 0.1
"""Fraction of the draws that may run away."""


@dataclass(frozen=True, eq=False)
class ServoScatter:
    """What is not known of one joint's servo.

    Attributes:
        names: Parameters that were fitted.
        covariance: Of their fitted coordinates: logarithms, or units of `units_of`.
        errors: What `ERROR_LEVELS` of its free-run errors are within, in [rad].
        left_out_ratio: Error on motions left out over that on those fitted.
        allowed: Fraction of the spread of its draws that the fitted motions allow: what
            moves these further than the fit's own errors they refute. Draws along
            valleys leave them where they bend.
    """

    names: tuple[str, ...]
    covariance: Float[np.ndarray, "names names"]
    errors: Float[np.ndarray, " levels"]
    left_out_ratio: float
    allowed: float = 1.0


@dataclass(frozen=True, eq=False)
class Servo:
    """The servos of an arm, identified from commands and positions.

    Attributes:
        arm: The description that the torques are in units of.
        signs: +1 or −1 per joint: which way positions count in the description.
        values: Parameter → one number per joint; see `PARAMETERS`.
        std: The same for their standard deviations; infinite where the data say
            nothing, zero where a parameter was not fitted.
        plain: The same parameters for simulators, fitted without what those lack; empty
            where nothing is lacking.
        elements: What was tried beyond the core.
        fit: Free-run errors of the motions it was fitted to.
        contact: Recording → fraction of its samples per joint that were left out:
            contact, walls and encoder spikes.
        load_error: How far gravity moments and inertias of known loads are off when
            found by these servos, relative, as standard deviations; None where the
            servos were identified with fewer than three loads.
        scatter: Per joint what draws scatter by; empty in files of earlier versions.
        floor: That links touched in these motions; None where they touched none.
        is_truncated: Whether commands reach the servos truncated to their ticks.
        gains: Gain registers they were identified with, the first recording's first:
            stiffness is then that of one unit. Empty where none were named.
        known_loads: Of every load and gain that they were identified with: the
            register, gravity moment in [N m] and inertia in [kg m²] as these servos
            find them, and the true ones; None where `load_error` is.
        mountings: Of one joint, loads that it was identified with, and how far beyond
            its zero each was put on, in [rad].
        notes: What the user should know.
        mismatches: What says that the logs are of another arm than the description.
    """

    arm: Arm
    signs: Float[np.ndarray, " dof"]
    values: Mapping[str, Float[np.ndarray, " dof"]]
    std: Mapping[str, Float[np.ndarray, " dof"]]
    plain: Mapping[str, Float[np.ndarray, " dof"]] = field(default_factory=dict)
    elements: tuple[ServoElement, ...] = ()
    fit: FreeRunErrors | None = None
    contact: Mapping[str, Float[np.ndarray, " dof"]] = field(default_factory=dict)
    load_error: tuple[float, float] | None = None
    scatter: tuple[ServoScatter, ...] = ()
    floor: Floor | None = None
    is_truncated: bool = True
    gains: tuple[float, ...] = ()
    known_loads: Float[np.ndarray, "loads 5"] | None = None
    mountings: tuple[tuple[Float[np.ndarray, " 10"], float], ...] = ()
    notes: tuple[str, ...] = ()
    mismatches: tuple[str, ...] = ()

    def predict(
        self,
        recording: Recording,
        arm: Arm | None = None,
        gain: float | None = None,
    ) -> Float[np.ndarray, "samples dof"]:
        """Return positions in free run, from the commands and the first sample.

        Args:
            recording: With command_1 … and q_1 …; of q only the first row is used.
            arm: With another load than the one identified.
            gain: The servo's gain register, if several were identified.
        """
        motion = self.motion(recording, arm, gain)
        return self.rollouts([motion])[0] * self.signs

    def motion(
        self, recording: Recording, arm: Arm | None = None, gain: float | None = None
    ) -> ServoMotion:
        """Return a recording as rollouts take it, in the description's sense.

        Raises:
            ArgumentError: If its gain register is not said, and servos have one.
        """
        if gain is None and self.gains:
            raise ArgumentError(
                f"The servos were identified with gain registers "
                f"{', '.join(f'{g:g}' for g in sorted(self.gains))}: say which one "
                f"{recording.source} was recorded with (--register, --registers)."
            )
        used = self.arm if arm is None else self.on(arm).arm
        motion = servo_motion(
            recording,
            used,
            1.0 if gain is None else gain,
            is_truncated=self.is_truncated,
        )
        return replace(signed(motion, self.signs), mounted=self._mounted(used))

    def _mounted(self, arm: Arm) -> Float[np.ndarray, " one"] | None:
        """Return how far beyond the zero a load is put on, if it is a known one."""
        load = arm.links[-1].inertia.vector
        # What files of descriptions round.
        known = [z for x, z in self.mountings if np.allclose(x, load, rtol=1e-6)]
        return np.array(known[:1]) if known else None

    def with_gain(self, register: float) -> Servo:
        """Return the servos with this in their gain register, as others have them.

        Raises:
            ArgumentError: If they were identified without one, or it is not positive.
        """
        if not self.gains:
            raise ArgumentError(
                "The servos were identified without gain registers: their stiffness is "
                "the whole one."
            )
        (gain,) = gain_registers([register], 1)
        values, std, plain = (
            dict(kind) | {"stiffness": gain * np.asarray(kind["stiffness"])}
            if kind
            else {}
            for kind in (self.values, self.std, self.plain)
        )
        return replace(self, values=values, std=std, plain=plain, gains=())

    def on(self, arm: Arm) -> Servo:
        """Return the same servos on an arm that differs in its inertias only."""
        require_same_mechanism(arm, self.arm)
        return replace(self, arm=arm)

    def set_point(self, motion: ServoMotion, step: float | None = None) -> SetPoint:
        """Return the set-points at the ends of steps and their means over them.

        Args:
            motion: Of `motion`.
            step: In [s]; that of rollouts by default.
        """
        return self.roller.set_point(motion, self.table, step)

    def rollouts(
        self, motions: Sequence[ServoMotion]
    ) -> list[Float[np.ndarray, "samples dof"]]:
        """Return free runs of several motions, in the description's sense."""
        runs = self.runs(motions, self.table)
        for run, motion in zip(runs, motions, strict=True):
            if not np.isfinite(run).all():
                raise RecordingError(
                    f"{motion.name}: the simulated arm runs away. Is this the arm and "
                    "the gain the servos were identified with?"
                )
        return [run[0] for run in runs]

    def runs(
        self,
        motions: Sequence[ServoMotion],
        tables: ServoTables,
        bodies: Sequence[Float[np.ndarray, "tables groups"]] | None = None,
    ) -> list[Float[np.ndarray, "tables samples dof"]]:
        """Return free runs of other servos than these, on the same floor."""
        if self.floor is None:
            return self.roller.run(motions, tables, bodies)
        count = len(tables["stiffness"])
        floors = np.repeat(self.floor.rows(self.arm)[None], count, axis=0)
        return self.roller.run(motions, tables, bodies, floors)

    def errors(
        self,
        recordings: Sequence[Recording],
        arms: Sequence[Arm] | None = None,
        gains: Sequence[float] | None = None,
    ) -> FreeRunErrors:
        """Return the free-run errors of recordings beside a delay line."""
        motions = [
            self.motion(r, arms[k] if arms else None, gains[k] if gains else None)
            for k, r in enumerate(recordings)
        ]
        runs = self.rollouts(motions)
        errors = errors_of(motions, runs)
        # Errors of the motions that were fitted; files of earlier versions lack them.
        medians = (
            error_within(np.array([own.errors for own in self.scatter]), 0.5)
            if self.scatter
            else errors.joints
        )
        return replace(errors, contact=contact_of(motions, runs, medians))

    def sample(self, n: int, seed: int = 0) -> dict[str, Float[np.ndarray, "n dof"]]:
        """Draw servos from what is not known of them: parameter → a row for each draw.

        What was fitted scatters together, joint by joint; where the motions say
        nothing, as servos of one type differ.

        Raises:
            ArgumentError: If the servos are from a file that does not say.
        """
        if not self.scatter:
            raise ArgumentError(
                "These servos are from a file that does not say how its parameters "
                "scatter together. Identify them again."
            )
        if n < 1:
            raise ArgumentError(f"{n} draws cannot be made; ask for one or more.")
        rng = np.random.default_rng(seed)
        drawn = {name: np.tile(x, (n, 1)) for name, x in self.values.items()}
        for j, own in enumerate(self.scatter):
            noise = rng.standard_normal((n, len(own.names)))
            if not own.names:
                continue
            one = {name: x[:, j] for name, x in drawn.items()}
            root = np.linalg.cholesky(own.covariance)
            moved = decode(one, own.names, encode(one, own.names) + noise @ root.T)
            for name in own.names:
                drawn[name][:, j] = moved[name]
            # Zeros of several joints are found together, beside their servos.
            if "zero" not in own.names and np.isfinite(self.std["zero"][j]):
                drawn["zero"][:, j] += self.std["zero"][j] * rng.standard_normal(n)
        return drawn

    def band(
        self,
        recording: Recording,
        level: float = 0.9,
        *,
        arm: Arm | None = None,
        gain: float | None = None,
        seed: int = 0,
    ) -> PredictionBand:
        """Interval that shall hold the positions of a free run, in [rad].

        Draws of the servos and, beside them, what no servo of the kind explains:
        between the errors that the fit left and those on motions left out.

        Args:
            recording: As for `predict`.
            level: Fraction of samples that it shall hold.
            arm: With another load than the one identified.
            gain: The servo's gain register, if several were identified.
            seed: Of the draws.
        """
        if not 0.0 < level < 1.0:
            raise ArgumentError(f"A band's level is between 0 and 1, not {level}.")
        motion = self.motion(recording, arm, gain)
        center = self.rollouts([motion])[0]
        (spread,) = self.spread([motion], level, seed)
        square = (np.array([s.allowed for s in self.scatter]) * spread) ** 2
        errors = error_within(np.array([s.errors for s in self.scatter]), level)
        ratio = np.array([s.left_out_ratio for s in self.scatter])
        # Errors on fitted motions are smaller than what no servo explains, those on
        # motions left out larger by as much: their product (`identification.left_out`).
        square += ratio * errors**2
        half, middle = np.sqrt(square), center * self.signs
        return PredictionBand(middle - half, middle + half, level)

    def spread(
        self, motions: Sequence[ServoMotion], level: float, seed: int = 0
    ) -> list[Float[np.ndarray, "samples dof"]]:
        """Return what so many draws' free runs stay within of the servos' own."""
        tables = tables_of_draws(self.sample(BAND_DRAWS, seed))
        spreads = []
        every = zip(
            motions,
            self.rollouts(motions),
            self.runs(motions, tables),
            strict=True,
        )
        for motion, center, runs in every:
            good = runs[np.isfinite(runs).all(axis=(1, 2))]
            if len(good) < (1.0 - _MOST_AWAY) * len(runs):
                raise RecordingError(
                    f"{motion.name}: of {len(runs)} arms drawn {len(runs) - len(good)} "
                    "run away: too little is known of the servos for a band."
                )
            # A quantile, not a deviation: what sticks in a few draws is far off there.
            spreads.append(np.quantile(np.abs(good - center), level, axis=0))
        return spreads

    @property
    def table(self) -> ServoTables:
        """The values as rollouts take them."""
        return tables_of_draws({name: x[None] for name, x in self.values.items()})

    @cached_property
    def roller(self) -> Roller:
        """Rollouts of the whole arm."""
        return Roller(self.arm)

    @property
    def fitted(self) -> list[str]:
        """The parameters that were fitted, in the order of `PARAMETERS`."""
        return [name for name in PARAMETERS if np.any(self.std[name] != 0.0)]

    def rows(self) -> list[tuple[str, str, list[str]]]:
        """Return name, unit and one cell per joint of every fitted parameter.

        A dash where a joint's servo has no such thing.
        """
        return [
            (
                name.replace("_", " "),
                PARAMETERS[name].unit,
                [
                    "–"
                    if std == 0.0 and value == PARAMETERS[name].absent
                    else _with_interval(float(value), float(std))
                    for value, std in zip(
                        self.values[name], self.std[name], strict=True
                    )
                ],
            )
            for name in self.fitted
        ]

    def statements(self) -> tuple[str, ...]:
        """Return what was found, in sentences."""
        needed = [e.name for e in self.elements if e.is_needed]
        lines = []
        if self.elements:
            lines.append(
                f"Beyond stiffness, damping, friction, rotor inertia and delay the "
                f"motions left out ask for: {', '.join(needed) or 'nothing'}."
            )
        vague = [
            f"{name.replace('_', ' ')} of {joint.name}"
            for name in self.fitted
            for joint, std in zip(self.arm.joints, self.std[name], strict=True)
            if not np.isfinite(std)
        ]
        if vague:
            more = f" and {len(vague) - 6} more" if len(vague) > 6 else ""
            lines.append(f"The data do not determine: {', '.join(vague[:6])}{more}.")
        if touched := listed_contact(self.contact):
            lines.append(f"Held back by something, and left out of the fit: {touched}.")
        return (*self.mismatches, *lines, *self.notes)

    def record_next(self) -> tuple[str, ...]:
        """Return the motions that would tell most of what is not known yet."""
        names = [joint.name for joint in self.arm.joints]
        lines = []
        still = [
            name
            for j, name in enumerate(names)
            if self.fitted and all(np.isinf(self.std[k][j]) for k in self.fitted)
        ]
        if still:
            lines.append(f"Move {_listed(still)}, which did not move.")
        for motion, parameters in _SHOWN_BY.items():
            vague = [
                name
                for j, name in enumerate(names)
                if name not in still
                and any(
                    k in self.fitted and np.isinf(self.std[k][j]) for k in parameters
                )
            ]
            if vague:
                lines.append(f"{motion} of {_listed(vague)}.")
        # Judgement: a twentieth of a motion in contact is worth another one.
        touched = [k for k, x in self.contact.items() if float(np.max(x)) > 0.05]
        if touched:
            lines.append(f"Repeat {_listed(touched)} where nothing is touched.")
        if self.fitted and self.load_error is None:
            lines.append(
                "Record with two other known loads: torques are in units of the "
                "description's masses until then."
            )
        return tuple(lines)

    def simplified(self) -> Servo:
        """Return the servos as simulators have them: position gain, damping, friction.

        Delay and limits of the set-point are kept, for `set_points` holds them.
        """
        if not self.plain:
            return self
        # Walls are none of the servos' own.
        walls = {name: self.values[name] for name in ("lower", "upper")}
        return replace(self, values=dict(self.plain) | walls, plain={})

    @property
    def actuator_damping(self) -> Float[np.ndarray, " dof"]:
        """What an actuator damps by within its limit of torque, in [N m s/rad].

        The derivative gain, and of the damping what a torque limit limits, too.
        """
        v = self.values
        return np.asarray(v["derivative"] + v["limited_damping"] * v["damping"])

    @property
    def actuated_arm(self) -> Arm:
        """The identified arm, its joints without the damping that actuators do."""
        if self.plain:
            return self.simplified().actuated_arm
        own = self.values["damping"] * (1.0 - self.values["limited_damping"])
        return replace(self, values=dict(self.values) | {"damping": own}).identified_arm

    @property
    def identified_arm(self) -> Arm:
        """The description with simplified servos' friction and rotors in its joints.

        Where walls stopped them, joints end. Only servos limit their torques: a
        description's limit is a guess, which would hold back what the logs show.
        """
        if self.plain:
            return self.simplified().identified_arm
        joints = []
        for j, joint in enumerate(self.arm.joints):
            drive = Drive(
                rotor_inertia=float(self.values["armature"][j]),
                viscous=float(self.values["damping"][j]),
                coulomb=float(self.values["coulomb"][j]),
                offset=joint.drive.offset,
            )
            limits = replace(
                joint.limits,
                lower=max(joint.limits.lower, float(self.values["lower"][j])),
                upper=min(joint.limits.upper, float(self.values["upper"][j])),
                effort=float(self.values["saturation"][j]),
            )
            joints.append(replace(joint, drive=drive, limits=limits))
        return replace(self.arm, joints=tuple(joints))


_SHOWN_BY = {
    "Quick reversals, up to 3 Hz,": ("armature",),
    "Steps of 30° and more": ("acceleration", "slew", "delay", "saturation"),
    "Slow motions that reverse often": ("coulomb", "stribeck_speed"),
    "Poses in which gravity pulls hard, and slow motions between them,": (
        "stiffness", "damping",
    ),
}  # fmt: skip
"""Motion → the parameters that it shows."""


def tables_of_draws(draws: Mapping[str, np.ndarray]) -> ServoTables:
    """Return servos of whole arms as rollouts take them."""
    return {name: np.clip(x, -1e9, 1e9) for name, x in draws.items()}


def _listed(names: Sequence[str]) -> str:
    """Write a few names, and how many more there are."""
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _with_interval(value: float, std: float) -> str:
    """Write a value and twice its standard deviation; ? where that is infinite."""
    return f"{value:.4g} ± " + (f"{2.0 * std:.1g}" if np.isfinite(std) else "?")


def gain_registers(gains: Sequence[float] | None, count: int) -> list[float]:
    """Return one gain per recording, 1 where none are given.

    Raises:
        ArgumentError: If there are more or fewer, or one is not positive.
    """
    if gains is not None and len(gains) != count:
        raise ArgumentError(f"{len(gains)} gains for {count} recordings.")
    registers = [1.0] * count if gains is None else [float(g) for g in gains]
    if not all(g > 0.0 and np.isfinite(g) for g in registers):
        raise ArgumentError("Gains must be positive numbers.")
    return registers


def signed(motion: ServoMotion, signs: np.ndarray) -> ServoMotion:
    """Return a motion with joints counted the other way where the sign is −1."""
    if np.all(signs == 1.0):
        return motion
    return replace(motion, goals=motion.goals * signs, q=motion.q * signs)


# Files.


def write_servo(
    servo: Servo, path: str | Path, beside: Mapping[str, Any] | None = None
) -> None:
    """Write servos to a JSON file, with the arm they belong to.

    Args:
        servo: What was identified.
        path: Of the file.
        beside: Further entries, which `read_servo` passes over.
    """
    content = servo_to_dict(servo) | dict(beside or {})
    write_atomically(Path(path), json_text(content))


def servo_to_dict(servo: Servo) -> dict[str, Any]:
    """Return servos as JSON has them; infinity as null."""
    return {
        "format": FORMAT,
        "arm": arm_to_dict(servo.arm),
        "joints": [joint.name for joint in servo.arm.joints],
        "signs": [float(x) for x in servo.signs],
        "values": {k: _plain(v) for k, v in servo.values.items()},
        "std": {k: _plain(v) for k, v in servo.std.items()},
        "plain": {k: _plain(v) for k, v in servo.plain.items()},
        "units": {k: PARAMETERS[k].unit for k in servo.values},
        "elements": [
            {
                "name": e.name,
                "mrad_before": 1e3 * e.before,
                "mrad_after": 1e3 * e.after,
                "needed": e.is_needed,
            }
            for e in servo.elements
        ],
        "contact": {k: _plain(v) for k, v in servo.contact.items()},
        "scatter": [
            {
                "names": list(own.names),
                "covariance": own.covariance.tolist(),
                "errors": own.errors.tolist(),
                "left_out_ratio": own.left_out_ratio,
                "allowed": own.allowed,
            }
            for own in servo.scatter
        ],
        "floor": None if servo.floor is None else floor_to_dict(servo.floor, servo.arm),
        "truncated_commands": servo.is_truncated,
        "gains": list(servo.gains),
        "mountings": [
            {"load": load.tolist(), "zero": zero} for load, zero in servo.mountings
        ],
        "record_next": list(servo.record_next()),
        "known_loads": (
            None if servo.known_loads is None else servo.known_loads.tolist()
        ),
        "load_error": None if servo.load_error is None else list(servo.load_error),
        "notes": list(servo.notes),
        "mismatches": list(servo.mismatches),
    }


def _plain(values: np.ndarray) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in values]


def read_servo(path: str | Path) -> Servo:
    """Read servos that `write_servo` wrote.

    Raises:
        ArgumentError: If the file is not one of servos, or its numbers cannot be.
    """
    plain = read_json(Path(path), "servos", error_type=ArgumentError)
    try:
        if plain["format"] != FORMAT:
            raise ArgumentError(f"its format is {plain['format']!r}, not {FORMAT!r}")
        arm = arm_from_dict(plain["arm"], str(path))
        values = _values(plain["values"], arm.dof)
        simple = _values(plain["plain"], arm.dof) if plain["plain"] else {}
        deviations = {k: [0.0] * arm.dof for k in PARAMETERS} | plain["std"]
        std = {
            k: np.array([np.inf if x is None else float(x) for x in deviations[k]])
            for k in PARAMETERS
        }
        if any(x.shape != (arm.dof,) or not np.all(x >= 0.0) for x in std.values()):
            raise ArgumentError(
                "its standard deviations are not one of each joint, ≥ 0"
            )
        elements = tuple(
            ServoElement(
                str(e["name"]),
                1e-3 * float(e["mrad_before"]),
                1e-3 * float(e["mrad_after"]),
                bool(e["needed"]),
            )
            for e in plain["elements"]
        )
        contact = {k: np.array(v, float) for k, v in plain["contact"].items()}
        signs = np.array(plain["signs"], float)
        if signs.shape != (arm.dof,) or not np.all(np.abs(signs) == 1.0):
            raise ArgumentError("its signs are not +1 or -1, one per joint")
        notes = tuple(str(x) for x in plain["notes"])
        mismatches = tuple(str(x) for x in plain.get("mismatches", ()))
        # Files of earlier versions do not say.
        doubts = plain.get("load_error")
        load_error = None if doubts is None else (float(doubts[0]), float(doubts[1]))
        scatter = tuple(_scatter(own) for own in plain.get("scatter", []))
        if scatter and len(scatter) != arm.dof:
            raise ArgumentError("its scatter is not one entry per joint")
        is_truncated = bool(plain.get("truncated_commands", True))
        named = plain.get("gains", [])
        gains = tuple(gain_registers(named, len(named)))
        known_loads = _known_loads(plain.get("known_loads"))
        mountings = tuple(_mounting(own) for own in plain.get("mountings", []))
        ground = plain.get("floor")
        floor = None if ground is None else floor_from_dict(ground, arm)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArgumentError(
            f"{path} is not a file of servos that `armwise identify-servo` wrote: "
            f"{error}."
        ) from None
    return Servo(
        arm, signs, values, std, simple, elements, contact=contact,
        load_error=load_error, scatter=scatter, floor=floor, is_truncated=is_truncated,
        gains=gains, known_loads=known_loads, mountings=mountings, notes=notes,
        mismatches=mismatches,
    )  # fmt: skip


def _values(
    plain: Mapping[str, Sequence[float | None]], dof: int
) -> dict[str, np.ndarray]:
    """Return every parameter; files of earlier versions lack what servos grew since."""
    lacking = {k: [None] * dof for k in PARAMETERS if k not in CORE}
    return {k: _array((lacking | dict(plain))[k], dof, k) for k in PARAMETERS}


def _known_loads(
    plain: Sequence[Sequence[float]] | None,
) -> Float[np.ndarray, "loads 5"] | None:
    if plain is None:
        return None
    loads = np.array(plain, float)
    # Loads have logarithms.
    if (
        loads.ndim != 2
        or loads.shape[1] != 5
        or not (np.isfinite(loads) & (loads > 0)).all()
    ):
        raise ArgumentError("its known loads are not five positive numbers each")
    return loads


def _mounting(plain: Mapping[str, Any]) -> tuple[np.ndarray, float]:
    load, zero = np.array(plain["load"], float), float(plain["zero"])
    if load.shape != (10,) or not np.isfinite([*load, zero]).all():
        raise ArgumentError("its mountings are not ten numbers of a load and a zero")
    return load, zero


def _scatter(plain: Mapping[str, Any]) -> ServoScatter:
    names = tuple(str(name) for name in plain["names"])
    covariance = np.array(plain["covariance"], float).reshape(len(names), len(names))
    errors, ratio = np.array(plain["errors"], float), float(plain["left_out_ratio"])
    allowed = float(plain.get("allowed", 1.0))  # earlier versions lack it
    if not set(names) <= set(PARAMETERS) or len(set(names)) != len(names):
        raise ArgumentError("its scatter is of parameters that servos do not have")
    is_finite = np.isfinite(covariance).all() and np.isfinite(errors).all()
    is_finite &= np.isfinite(ratio) and ratio >= 1.0
    if not (is_finite and 0.0 <= allowed <= 1.0):
        raise ArgumentError("its scatter is not of finite numbers")
    if errors.shape != (len(ERROR_LEVELS),) or np.any(errors < 0.0):
        raise ArgumentError(f"its scatter needs {len(ERROR_LEVELS)} errors per joint")
    if not np.allclose(covariance, covariance.T) or np.any(
        np.linalg.eigvalsh(covariance) <= 0.0
    ):
        raise ArgumentError("its scatter has a covariance that cannot be")
    return ServoScatter(names, covariance, errors, ratio, allowed)


def _array(row: Sequence[float | None], dof: int, name: str) -> np.ndarray:
    """Return one number per joint; null is the infinity that means "absent"."""
    missing = PARAMETERS[name].absent
    values = np.array([missing if x is None else float(x) for x in row])
    if values.shape != (dof,) or np.isnan(values).any():
        raise ArgumentError(f"{name!r} needs one number for each of {dof} joints")
    _require_possible(name, values)
    return values


_DIVISORS = {"stiffness", *FALLS} - {"stribeck_shape"}
"""Parameters that others are divided by."""


def _require_possible(name: str, values: np.ndarray) -> None:
    """Refuse numbers that no servo has, as hand-edited files may."""
    kind = PARAMETERS[name]
    if kind.scale == "signed":
        return
    least, most = 0.0 if kind.scale == "log" else kind.least, kind.most
    is_possible = (values >= least) & (values <= most)
    if name in _DIVISORS:
        is_possible &= values > 0.0
    if not is_possible.all():
        above = "above" if name in _DIVISORS else "at least"
        below = f" and at most {most:g}" if np.isfinite(most) else ""
        wrong = values[~is_possible][0]
        raise ArgumentError(f"{name!r} is {above} {least:g}{below}, not {wrong:g}")
