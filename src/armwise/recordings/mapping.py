"""Mapping files: where a foreign log holds which signal, in what units and order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from armwise.errors import ArgumentError, RecordingError
from armwise.tables import TomlTable, read_toml

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

    Motors the arm already has are left as they are. Drives get the gears of the
    transmission, where their own are not known.
    """
    present = {coupling.name for coupling in arm.couplings}
    # One at a time: each changes the arm that the next is added to.
    for name, weights in mapping.motors.items():
        if name in present:
            continue
        try:
            arm = arm.with_coupling(name, weights)
        except ArgumentError as error:
            raise RecordingError(f"{mapping.source}, motor {name}: {error}") from None
    return arm if mapping.gears is None else _with_gears(arm, mapping)


def _with_gears(arm: Arm, mapping: LogMapping) -> Arm:
    """Return the arm whose drives know how often their motors turn."""
    assert mapping.gears is not None
    known = {name: k for k, name in enumerate(arm.coordinate_names)}
    names = mapping.joints or arm.coordinate_names[: mapping.gears.shape[1]]
    # A mapping of another arm is refused where its signals are read.
    if len(names) != mapping.gears.shape[1] or not set(names) <= set(known):
        return arm
    motors = np.zeros((len(mapping.gears), arm.dof))
    motors[:, [known[name] for name in names]] = mapping.gears
    unit = dict(zip(arm.coordinate_names, np.eye(arm.dof), strict=True))
    return replace(
        arm,
        joints=tuple(
            replace(joint, gear=joint.gear or _ratio(motors, unit.get(joint.name)))
            for joint in arm.joints
        ),
        couplings=tuple(
            replace(motor, gear=motor.gear or _ratio(motors, motor.weights))
            for motor in arm.couplings
        ),
    )


def _ratio(
    motors: Float[np.ndarray, "motors dof"], row: Float[np.ndarray, " dof"] | None
) -> float | None:
    """Turns of the motor that joints turn as they turn a drive; None: there is none."""
    if row is None:
        return None
    ratios = motors @ row / (row @ row)
    # Judgement: ratios are written with a handful of digits.
    apart = np.abs(motors - np.outer(ratios, row)).max(axis=1)
    is_same = apart <= 1e-6 * np.abs(ratios)
    turned = np.abs(ratios[is_same & (ratios != 0.0)])
    return float(turned[0]) if turned.size == 1 else None


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


def load_mapping(path: str | Path) -> LogMapping:
    """Read the description of a foreign log.

    Raises:
        RecordingError: If the file cannot be read, or a key or value makes no sense.
    """
    return _mapping(str(path), read_toml(Path(path), error_type=RecordingError))


def _mapping(source: str, top: TomlTable) -> LogMapping:
    top.only(*_TOP, "channels")
    csv = top.table("csv")
    csv.only("separator")
    channels = top.table("channels")
    # A number says how many, a list says which.
    joints = top.values.get("joints")
    count = joints if isinstance(joints, int) else 0
    # Judgement: a thousand joints are more than any arm; true is no number here.
    if isinstance(joints, bool) or (isinstance(joints, int) and not 0 < joints <= 1000):
        raise top.error('needs names, or a number from 1 to 1000, for "joints".')
    mapping = LogMapping(
        source=source,
        joints=() if count else top.names("joints"),
        count=count,
        time=_time(top.table("time")),
        signals={
            quantity: _signal(top.table(name))
            for name, quantity in SIGNALS.items()
            if name in top.values
        },
        phases=_phases(top.table("phases")) if "phases" in top.values else None,
        gears=_gears(top.table("transmission")),
        bag=_bag(top.table("bag")),
        motors=dict(_motor(part) for part in top.tables("motors")),
        channels={name: channels.text(name, "") for name in channels.values},
        separator=csv.text("separator", ""),
    )
    if len(mapping.separator) > 1:
        raise csv.error(f"needs one character as separator, not {mapping.separator!r}.")
    motors = any(signal.at == "motor" for signal in mapping.signals.values())
    if motors and mapping.gears is None:
        raise top.error("signals at the motor need a [transmission] with gears.")
    return mapping


def _time(part: TomlTable) -> TimeMapping:
    part.only("column", "file", "unit", "rate_hz")
    rate = part.number("rate_hz", 0.0)
    if "rate_hz" in part.values and rate <= 0.0:
        raise part.error(f"has a rate_hz of {rate:g}; it must be positive.")
    columns = part.names("column")
    return TimeMapping(
        columns[0] if columns else "",
        part.text("file", ""),
        part.text("unit", ""),
        rate or None,
    )


def _signal(part: TomlTable) -> SignalMapping:
    part.only(
        "columns", "file", "unit", "scale", "scale_from", "offset", "at", "layout"
    )
    return SignalMapping(
        columns=part.names("columns"),
        file=part.text("file", ""),
        unit=part.text("unit", ""),
        scale=part.numbers("scale", 1.0),
        scale_from=part.text("scale_from", ""),
        offset=part.numbers("offset", 0.0),
        at=cast('Literal["joint", "motor"]', part.choice("at", "joint", "motor")),
        layout=cast(
            'Literal["columns", "numbers"]', part.choice("layout", "columns", "numbers")
        ),
    )


def _phases(part: TomlTable) -> PhaseMapping:
    part.only("columns", "constants", "pole_pairs", "angle_offsets", "at")
    columns = part.values.get("columns", [])
    columns = columns if isinstance(columns, list) else []
    triples = [tuple(map(str, row)) for row in columns if isinstance(row, list)]
    if not triples or any(len(row) != 3 for row in triples):
        raise part.error("needs three names per joint as columns: [[a, b, c], …].")
    return PhaseMapping(
        columns=cast("tuple[tuple[str, str, str], ...]", tuple(triples)),
        constants=part.numbers("constants"),
        pole_pairs=part.numbers("pole_pairs", 1.0),
        angle_offsets=part.numbers("angle_offsets", 0.0),
        at=cast('Literal["joint", "motor"]', part.choice("at", "motor", "joint")),
    )


def _gears(part: TomlTable) -> np.ndarray | None:
    part.only("gears", "couplings", "matrix")
    if not part.values:
        return None
    if "matrix" in part.values:
        rows = part.values["matrix"]
        rows = rows if isinstance(rows, list) else []
        lists = [row if isinstance(row, list) else [] for row in rows]
        if not rows or any(len(row) != len(rows) for row in lists):
            raise part.error(
                "has a matrix that must be square: motor = matrix · joint."
            )
        flat = replace(part, values={"matrix": [x for row in lists for x in row]})
        matrix = np.array(flat.numbers("matrix")).reshape(len(rows), -1)
    else:
        matrix = np.diag(part.numbers("gears"))
        if not matrix.size:
            raise part.error("has no gears; give one per motor.")
    for extra in part.tables("couplings"):
        extra.only("motor", "joint", "ratio")
        motor, joint = (int(extra.number(k)) for k in ("motor", "joint"))
        if not (1 <= motor <= len(matrix) and 1 <= joint <= len(matrix)):
            raise extra.error(
                f"needs a motor and a joint, numbers from 1 to {len(matrix)}."
            )
        matrix[motor - 1, joint - 1] = extra.number("ratio")
    # Judgement: gear ratios are of order one or far above, so that only rounding of a
    # singular matrix comes out this small. NaN, of gears too large, fails as well.
    with np.errstate(over="ignore", invalid="ignore"):
        size = abs(np.linalg.det(matrix))
    if not 1e-12 <= size < np.inf:
        raise part.error("has singular gears: a joint moves no motor.")
    return matrix


def _bag(part: TomlTable) -> BagMapping:
    part.only("joint_states", "wrench", "stamps", "channels")
    channels = []
    for extra in part.tables("channels"):
        extra.only("topic", "field", "channel", "unit")
        named = [extra.text(key, "") for key in ("topic", "field", "channel", "unit")]
        if not all(named[:3]):
            raise extra.error("is incomplete: topic, field and channel are all needed.")
        channels.append(TopicChannel(*named))
    stamps = part.choice("stamps", "header", "received")
    return BagMapping(
        part.text("joint_states", ""),
        part.text("wrench", ""),
        cast('Literal["header", "received"]', stamps),
        tuple(channels),
    )


def _motor(part: TomlTable) -> tuple[str, dict[str, float]]:
    part.only("name", "joints")
    joints = part.table("joints")
    weights = {name: joints.number(name) for name in joints.values}
    if not part.text("name", "") or not weights:
        raise part.error("needs a name and joints = { joint = weight, … }.")
    return part.text("name", ""), weights
