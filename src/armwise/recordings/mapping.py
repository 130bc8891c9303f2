"""How a foreign log is to be understood: said once, in a small TOML file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from armwise.errors import ArgumentError, RecordingError

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm


@dataclass(frozen=True)
class SignalMapping:
    """Where one quantity of all joints is, and what turns it into SI.

    value = (column · unit · scale) through the transmission, + offset.

    Attributes:
        columns: Names, or numbers from 1, one per joint; a single name may stand for a
            matrix. Empty: the standard names.
        file: File it is in, beside the log; empty for the log itself.
        unit: Unit of the columns; empty: what the log says, else SI.
        scale: Factors, one per joint or one for all; torque constants, for instance.
        scale_from: Name of a single number in the log to multiply by as well.
        offset: Added in the end, in SI, one per joint or one for all.
        at: Whether it is seen at the joint or at the motor, before the gears.
        layout: Columns, or one number a line with all joints of a sample in turn.
    """

    columns: tuple[str, ...] = ()
    file: str = ""
    unit: str = ""
    scale: tuple[float, ...] = (1.0,)
    scale_from: str = ""
    offset: tuple[float, ...] = (0.0,)
    at: Literal["joint", "motor"] = "joint"
    layout: Literal["columns", "numbers"] = "columns"


@dataclass(frozen=True)
class TimeMapping:
    """Where the time stamps are.

    Attributes:
        column: Name or number of the column; empty: the standard names.
        file: File it is in, beside the log; empty for the log itself.
        unit: Its unit; empty: what the log says, else seconds.
        rate_hz: Sampling rate in [Hz] when there are no stamps at all.
    """

    column: str = ""
    file: str = ""
    unit: str = ""
    rate_hz: float | None = None


@dataclass(frozen=True)
class PhaseMapping:
    """Three phase currents of each motor (`aah1986` Eq. 22).

    τ = K_T (I_a sin θ + I_b sin(θ + 120°) + I_c sin(θ + 240°)), where θ is the
    electrical angle: pole pairs times motor position plus an offset.

    Attributes:
        columns: Three columns in [A] per joint.
        constants: K_T in [N m/A] per joint.
        pole_pairs: Electrical turns per motor turn, per joint.
        angle_offsets: Electrical angle at motor position zero in [rad], per joint.
        at: Whether the torque comes out at the joint or at the motor.
    """

    columns: tuple[tuple[str, str, str], ...]
    constants: tuple[float, ...]
    pole_pairs: tuple[float, ...] = (1.0,)
    angle_offsets: tuple[float, ...] = (0.0,)
    at: Literal["joint", "motor"] = "motor"


@dataclass(frozen=True)
class TopicChannel:
    """One number in every message of a topic, kept as a channel."""

    topic: str
    field: str
    channel: str
    unit: str = ""


@dataclass(frozen=True)
class BagMapping:
    """Which topics of a ROS 2 bag to read.

    Attributes:
        joint_states: Topic of JointState messages; empty: the only one there is.
        wrench: Topic of WrenchStamped messages; empty: the only one, if any.
        stamps: Time from the message's header, or when the bag received it.
        channels: Numbers of other messages to keep.
    """

    joint_states: str = ""
    wrench: str = ""
    stamps: Literal["header", "received"] = "header"
    channels: tuple[TopicChannel, ...] = ()


@dataclass(frozen=True, eq=False)
class LogMapping:
    """A foreign log, described once.

    Attributes:
        source: The mapping file, for messages.
        joints: Joint names in the order of the columns; empty: the arm's order.
        count: Number of joints, where only that is known; zero if not.
        time: Where the time is.
        signals: `q`, `qd`, `qdd`, `tau` and `wrench` → where they are.
        phases: Three-phase currents that give the torque.
        gears: G in motor = G · joint, as a matrix; None: no gears.
        bag: Topics of a ROS 2 bag.
        motors: Name → joint weights of motors that several joints turn.
        channels: Own name → column, for other columns that are to be kept.
        separator: Between the values of a text log; found when empty.
    """

    source: str = "mapping"
    joints: tuple[str, ...] = ()
    count: int = 0
    time: TimeMapping = TimeMapping()
    signals: Mapping[str, SignalMapping] = field(default_factory=dict)
    phases: PhaseMapping | None = None
    gears: Float[np.ndarray, "motors joints"] | None = None
    bag: BagMapping = BagMapping()
    motors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    channels: Mapping[str, str] = field(default_factory=dict)
    separator: str = ""

    @property
    def joint_count(self) -> int | None:
        """Number of joints the mapping speaks of, if it says."""
        if self.joints or self.count:
            return len(self.joints) or self.count
        if self.gears is not None:
            return int(self.gears.shape[1])
        counts = [len(s.columns) for k, s in self.signals.items() if k != "wrench"]
        return max(counts, default=0) or None


def apply_mapping_to_arm(arm: Arm, mapping: LogMapping) -> Arm:
    """Give the arm the motors the mapping names, each with three more parameters.

    Motors the arm already has are left as they are.
    """
    present = {coupling.name for coupling in arm.couplings}
    for name, weights in mapping.motors.items():
        if name in present:
            continue
        try:
            arm = arm.with_coupling(name, weights)
        except ArgumentError as error:
            raise RecordingError(f"{mapping.source}, motor {name}: {error}") from None
    return arm


# Reading the TOML file that describes a foreign log.

SIGNALS = {
    "position": "q",
    "velocity": "qd",
    "acceleration": "qdd",
    "torque": "tau",
    "wrench": "wrench",
}
"""Name of a table in the file → the quantity it describes."""

_TOP = ("joints", "time", *SIGNALS, "phases", "transmission", "bag", "motors", "csv")


@dataclass(frozen=True)
class _Part:
    """One table of the file, and where it stands."""

    where: str
    values: dict[str, Any]

    def error(self, problem: str) -> RecordingError:
        return RecordingError(f"{self.where}: {problem}")

    def only(self, *known: str) -> None:
        for key in self.values:
            if key not in known:
                raise self.error(f"unknown key {key!r}. Known: {', '.join(known)}.")

    def part(self, key: str) -> _Part:
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.error(f"{key} must be a table [{key}], not {value!r}.")
        return _Part(f"{self.where}, [{key}]", value)

    def parts(self, key: str) -> list[_Part]:
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(x, dict) for x in value):
            raise self.error(f"{key} must be tables [[{key}]], not {value!r}.")
        return [
            _Part(f"{self.where}, [[{key}]] {i}", x) for i, x in enumerate(value, 1)
        ]

    def text(self, key: str, default: str = "") -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.error(f"{key} must be text, not {value!r}.")
        return value

    def choice(self, key: str, *known: str) -> str:
        value = self.text(key, known[0])
        if value not in known:
            raise self.error(f"{key} must be one of {', '.join(known)}, not {value!r}.")
        return value

    def names(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key, [])
        value = [value] if isinstance(value, str | int) else value
        if not isinstance(value, list) or not all(
            isinstance(x, str | int) for x in value
        ):
            raise self.error(f"{key} must be names or numbers of columns.")
        return tuple(str(x) for x in value)

    def numbers(self, key: str, default: float | None) -> tuple[float, ...]:
        value = self.values.get(key, default)
        if value is None:
            raise self.error(f"{key} is missing.")
        value = value if isinstance(value, list) else [value]
        if not all(_is_number(x) for x in value):
            raise self.error(f"{key} must be finite numbers, not {value!r}.")
        return tuple(float(x) for x in value)


def load_mapping(path: str | Path) -> LogMapping:
    """Read the description of a foreign log.

    Raises:
        RecordingError: If the file cannot be read, or a key or value makes no sense.
    """
    file = Path(path)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordingError(f"{file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecordingError(f"{file} is not a TOML file: {error}.") from None
    return _mapping(_Part(str(file), values))


def _mapping(top: _Part) -> LogMapping:
    top.only(*_TOP, "channels")
    csv = top.part("csv")
    csv.only("separator")
    joints = top.values.get("joints")
    count = joints if isinstance(joints, int) else 0
    mapping = LogMapping(
        source=top.where,
        joints=() if count else top.names("joints"),
        count=count,
        time=_time(top.part("time")),
        signals={
            quantity: _signal(top.part(name))
            for name, quantity in SIGNALS.items()
            if name in top.values
        },
        phases=_phases(top.part("phases")) if "phases" in top.values else None,
        gears=_gears(top.part("transmission")),
        bag=_bag(top.part("bag")),
        motors=dict(_motor(part) for part in top.parts("motors")),
        channels={k: top.part("channels").text(k) for k in top.part("channels").values},
        separator=csv.text("separator"),
    )
    motors = any(signal.at == "motor" for signal in mapping.signals.values())
    if motors and mapping.gears is None:
        raise top.error("signals at the motor need a [transmission] with gears.")
    return mapping


def _time(part: _Part) -> TimeMapping:
    part.only("column", "file", "unit", "rate_hz")
    rate = part.numbers("rate_hz", 0.0)[0]
    if "rate_hz" in part.values and rate <= 0.0:
        raise part.error(f"rate_hz must be positive, not {rate:g}.")
    columns = part.names("column")
    return TimeMapping(
        columns[0] if columns else "",
        part.text("file"),
        part.text("unit"),
        rate or None,
    )


def _signal(part: _Part) -> SignalMapping:
    part.only(
        "columns", "file", "unit", "scale", "scale_from", "offset", "at", "layout"
    )
    return SignalMapping(
        columns=part.names("columns"),
        file=part.text("file"),
        unit=part.text("unit"),
        scale=part.numbers("scale", 1.0),
        scale_from=part.text("scale_from"),
        offset=part.numbers("offset", 0.0),
        at=cast('Literal["joint", "motor"]', part.choice("at", "joint", "motor")),
        layout=cast(
            'Literal["columns", "numbers"]', part.choice("layout", "columns", "numbers")
        ),
    )


def _phases(part: _Part) -> PhaseMapping:
    part.only("columns", "constants", "pole_pairs", "angle_offsets", "at")
    columns = part.values.get("columns", [])
    triples = [tuple(map(str, row)) for row in columns if isinstance(row, list)]
    if not triples or any(len(row) != 3 for row in triples):
        raise part.error("columns must be three names per joint: [[a, b, c], …].")
    return PhaseMapping(
        columns=cast("tuple[tuple[str, str, str], ...]", tuple(triples)),
        constants=part.numbers("constants", None),
        pole_pairs=part.numbers("pole_pairs", 1.0),
        angle_offsets=part.numbers("angle_offsets", 0.0),
        at=cast('Literal["joint", "motor"]', part.choice("at", "motor", "joint")),
    )


def _gears(part: _Part) -> np.ndarray | None:
    part.only("gears", "couplings", "matrix")
    if not part.values:
        return None
    if "matrix" in part.values:
        matrix = np.array(part.values["matrix"], dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise part.error("matrix must be square: motor = matrix · joint.")
    else:
        matrix = np.diag(part.numbers("gears", None))
    for extra in part.parts("couplings"):
        extra.only("motor", "joint", "ratio")
        motor, joint = (int(extra.numbers(k, None)[0]) for k in ("motor", "joint"))
        if not (1 <= motor <= len(matrix) and 1 <= joint <= len(matrix)):
            raise extra.error(f"motor and joint are numbers from 1 to {len(matrix)}.")
        matrix[motor - 1, joint - 1] = extra.numbers("ratio", None)[0]
    if abs(np.linalg.det(matrix)) < 1e-12:
        raise part.error("the gears are singular: a joint moves no motor.")
    return matrix


def _bag(part: _Part) -> BagMapping:
    part.only("joint_states", "wrench", "stamps", "channels")
    channels = []
    for extra in part.parts("channels"):
        extra.only("topic", "field", "channel", "unit")
        named = [extra.text(key) for key in ("topic", "field", "channel", "unit")]
        if not all(named[:3]):
            raise extra.error("topic, field and channel are all needed.")
        channels.append(TopicChannel(*named))
    stamps = part.choice("stamps", "header", "received")
    return BagMapping(
        part.text("joint_states"),
        part.text("wrench"),
        cast('Literal["header", "received"]', stamps),
        tuple(channels),
    )


def _motor(part: _Part) -> tuple[str, dict[str, float]]:
    part.only("name", "joints")
    joints = part.part("joints")
    weights = {name: joints.numbers(name, None)[0] for name in joints.values}
    if not part.text("name") or not weights:
        raise part.error("a motor needs a name and joints = { joint = weight, … }.")
    return part.text("name"), weights


def _is_number(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(cast(float, value))
