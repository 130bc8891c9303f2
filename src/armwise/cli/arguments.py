"""Arguments and options that several subcommands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.identification import Estimate
    from armwise.recordings import LogMapping, Recording
    from armwise.servos import Servo


LONGEST = 3600.0
"""The longest motion [s] that is planned or simulated at once: more fills memory."""
FASTEST = 1e5
"""The highest rate [Hz]: no controller of an arm runs faster."""

METHODS = (
    *("physical", "weighted", "ordinary", "ridge", "total", "robust", "prefiltered"),
    *("prior", "output-error"),
)
"""Methods of identification, as the user types them."""

DESCRIPTIONS = "URDF, MJCF, DH .toml, estimate .json or bundled name."


def bundled_names(incomplete: str) -> list[str]:
    """Complete the name of a bundled arm; the shell completes files."""
    from armwise.arms import bundled_arms

    return [name for name in bundled_arms() if name.startswith(incomplete)]


def number(explanation: str, least: float = 0.0, most: float = LONGEST) -> Any:
    """Declare an option that takes a number between bounds, which NaN is not."""

    def check(value: float | None) -> float | None:
        if value is not None and not least <= value <= most:
            raise typer.BadParameter(f"{value} is not between {least:g} and {most:g}.")
        return value

    return typer.Option(help=explanation, callback=check)


def output_file(explanation: str) -> Any:
    """Declare -o for one file; a missing folder is an error before the work."""
    return typer.Option("-o", "--output", help=explanation, callback=check_output_file)


def check_output_file(path: Path | None) -> Path | None:
    """Refuse a file whose folder is not there, or that is a folder itself."""
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"{path} cannot be written: no folder {path.parent}.")
    if path is not None and path.is_dir():
        raise typer.BadParameter(f"{path} cannot be written: it is a folder.")
    return path


def _check_folder(path: Path | None) -> Path | None:
    if path is not None:
        nearest = next(p for p in (path, *path.parents) if p.exists())
        if not nearest.is_dir():
            raise typer.BadParameter(f"{path} cannot be made: {nearest} is a file.")
    return path


def output_folder(
    explanation: str = "Folder for the results; files there are replaced.",
) -> Any:
    """Declare -o for a folder, made if need be."""
    return typer.Option("-o", "--output", help=explanation, callback=_check_folder)


ArmName = Annotated[
    str,
    typer.Argument(metavar="ARM", help=DESCRIPTIONS, autocompletion=bundled_names),
]
"""The arm a command is about."""

Model = Annotated[
    str | None,
    typer.Option(
        help="Model of the controller (default: the arm, perturbed).",
        autocompletion=bundled_names,
    ),
]
"""Another arm: the assumed model of the first."""

Logs = Annotated[
    list[Path],
    typer.Argument(metavar="LOG", help="CSV, JSON lines, Parquet, NPZ, MAT, bag."),
]
"""Logs of the arm's motion."""

Validate = Annotated[
    list[Path] | None,
    typer.Option("--validate", help="A log to validate on; repeatable."),
]
"""Logs that are not used to fit."""

MappingFile = Annotated[
    Path | None, typer.Option("--mapping", help="TOML that describes the logs.")
]
"""What the columns and units of foreign logs are."""

Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="A column by another name: tau_3=NAME; repeatable."),
]
"""The short way for single columns."""

MethodName = Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")]
"""How parameters are solved for; `method_named` gives the method."""

FixedTerms = Annotated[
    list[str] | None,
    typer.Option("--fix", help="Keep a term, such as rotor_inertia, as described."),
]
"""What is not estimated; `free_terms` gives what is."""

AsDescribed = Annotated[
    list[str] | None,
    typer.Option(help="A parameter that is as described, such as '*.my'."),
]
"""Parameters that a calibration takes from the description."""

NotNegative = Annotated[
    list[str] | None, typer.Option(help="A parameter that cannot be negative.")
]
"""Parameters of which a calibration knows the sign."""

GainRegister = Annotated[
    float | None,
    number("Gain register of servos that were identified with some [1].", 1e-6, 1e6),
]
"""What multiplies a servo's stiffness."""

LoadedArm = Annotated[
    str | None,
    typer.Option("--on", help="Arm that servos move, with its load; servo.json's own."),
]
"""The description of an arm with what it carried in a log."""

ServoCalibration = Annotated[
    Path | None,
    typer.Option(
        "--calibration", help="LeRobot's calibration, for logs in -100 to 100."
    ),
]
"""What LeRobot's normalised values mean."""

SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Drop and count bad rows.")
]
"""Whether unreadable rows are dropped and counted, or an error."""

SensorsFile = Annotated[
    Path | None,
    typer.Option("--sensors", help="Calibration of joint sensors to apply to logs."),
]
"""A file that `calibrate` or `calibrate-moving` wrote."""

CutoffHz = Annotated[
    float | None,
    typer.Option("--cutoff-hz", help="Low-pass [Hz]; from the data if absent."),
]
"""Cut-off frequency of the low-pass on measured signals."""

Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")]
"""Same seed, same result."""

Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 if a verdict is fail.")
]
"""Whether a result that cannot be trusted is an error."""

Duration = Annotated[float, number("Length of the motion [s].", 0.01)]
"""How long an arm moves."""

Folder = Annotated[Path | None, output_folder()]
"""Where a command that writes several files puts them."""


# The part of an arm that a command is about, for every command with an ARM.

Chain = Annotated[
    str | None,
    typer.Option(
        "--chain", help="Part that moves, base..tip; all other joints are locked."
    ),
]
"""First and last link of the part that moves."""

Lock = Annotated[
    list[str] | None,
    typer.Option("--lock", help="Hold a joint: finger=0.02 [rad, m]; repeatable."),
]
"""Joints that are held, and where."""

AllowUnphysical = Annotated[
    bool,
    typer.Option(
        "--allow-unphysical", help="Accept links that are not physically realisable."
    ),
]
"""Whether negative masses and moments are taken as they are."""

_OTHER_ARMS = ("model", "compare")
"""Options that name one more arm."""


class PartOfArm(str):
    """What the user wrote for ARM, with the part of it that was chosen.

    Attributes:
        chain: First and last link of the part that moves, if chosen.
        lock: Joint → where it is held.
        allow_unphysical: Whether negative masses and moments are taken as they are.
    """

    chain: tuple[str, str] | None
    lock: dict[str, float]
    allow_unphysical: bool

    @classmethod
    def of(
        cls,
        arm: str,
        chain: str | None = None,
        lock: Sequence[str] | None = None,
        allow_unphysical: bool = False,
    ) -> PartOfArm:
        """Read the options --chain, --lock and --allow-unphysical."""
        part = cls(arm)
        part.allow_unphysical = allow_unphysical
        part.chain = None
        if chain is not None:
            base, dots, tip = chain.partition("..")
            if not (base and dots and tip):
                raise typer.BadParameter(f"--chain takes BASE..TIP, not {chain!r}.")
            part.chain = (base, tip)
        part.lock = dict(_locked(text) for text in lock or ())
        return part


def _locked(text: str) -> tuple[str, float]:
    joint, _, position = text.rpartition("=")
    try:
        value = float(position)
    except ValueError:
        value = nan
    if not joint or not isfinite(value):
        raise typer.BadParameter(f"--lock takes JOINT=POSITION [rad, m], not {text!r}.")
    return joint, value


def with_part_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes an ARM --chain, --lock and --allow-unphysical.

    They come with the command's `arm`, which `load_named` understands: no command has
    to pass them on.
    """
    signature = inspect.signature(command, eval_str=True)
    if "arm" not in signature.parameters:
        return command

    # A command may have more to do with it than to load the arm.
    has_own = "allow_unphysical" in signature.parameters

    @wraps(command)
    def whole(
        *,
        arm: str | None,
        chain: str | None,
        lock: list[str] | None,
        allow_unphysical: bool,
        **options: Any,
    ) -> None:
        from armwise.cli.output import warnings_once

        for name in _OTHER_ARMS:
            if isinstance(other := options.get(name), str):
                options[name] = PartOfArm.of(other, allow_unphysical=allow_unphysical)
        if has_own:
            options["allow_unphysical"] = allow_unphysical
        with warnings_once():
            part = arm and PartOfArm.of(arm, chain, lock, allow_unphysical)
            command(arm=part, **options)

    keyword = inspect.Parameter.KEYWORD_ONLY
    added: dict[str, tuple[Any, Any]] = {"chain": (None, Chain), "lock": (None, Lock)}
    if not has_own:
        added["allow_unphysical"] = (False, AllowUnphysical)
    parameters = [p.replace(kind=keyword) for p in signature.parameters.values()]
    parameters += [
        inspect.Parameter(name, keyword, default=default, annotation=annotation)
        for name, (default, annotation) in added.items()
    ]
    # typer reads the signature, and the annotations for themselves.
    whole.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    whole.__annotations__ = {p.name: p.annotation for p in parameters}
    return whole


# Arms and logs, loaded as the options say.


def load_named(arm: str) -> Arm:
    """Load the arm that ARM names, as described or, of an estimate, as identified.

    What was taken otherwise than the file says goes to the terminal as warnings.
    """
    from armwise.arms import load_arm
    from armwise.cli.output import warn

    part = arm if isinstance(arm, PartOfArm) else PartOfArm.of(arm)
    loaded = load_arm(
        part,
        chain=part.chain,
        lock=part.lock,
        allow_unphysical=part.allow_unphysical,
    )
    for note in loaded.notes:
        warn(f"{loaded.name}: {note}")
    return loaded


def load_model(arm: str) -> Arm | Estimate:
    """Load what ARM names, for commands that use more of an estimate than its arm."""
    described = load_named(arm)
    path = Path(arm)
    # By content, as `load_arm` decides: no other description begins with a brace.
    if not path.is_file() or path.read_bytes().lstrip()[:1] != b"{":
        return described
    from armwise.identification import read_estimate

    return read_estimate(path)


def load_servo(
    arm: str, register: float | None = None, loaded: str | None = None
) -> Servo | None:
    """Load the servos that ARM names; None if it names something else.

    Args:
        arm: The file.
        register: What their gain register holds, if they have one.
        loaded: The arm that they move, with its load; that of the file if None.
    """
    path = Path(arm)
    # By content: a file of servos says so in its first lines.
    if not path.is_file() or b'"armwise-servo-' not in path.read_bytes()[:200]:
        return None
    from armwise.servos import read_servo

    servo = read_servo(path)
    if loaded is not None:
        servo = servo.on(load_named(loaded))
    elif servo.gains:
        from armwise.cli.output import warn

        # Registers are those of a bench, whose logs differ in their loads, too.
        warn(f"The servos move {servo.arm.name} as it is in {path.name}: --on names "
             "the arm with the load of a log.")  # fmt: skip
    return servo if register is None else servo.with_gain(register)


def load_described(
    arm: str, mapping: Path | None, logs: Sequence[Path] = ()
) -> tuple[Arm, LogMapping | None]:
    """Load an arm, with the motors a mapping file adds to it, and that mapping.

    Joints that the logs do not hold are locked where they are described, and the
    terminal says so.
    """
    from armwise.cli.output import warn
    from armwise.recordings import apply_mapping_to_arm, load_mapping

    log_mapping = None if mapping is None else load_mapping(mapping)
    described = load_named(arm)
    unlogged = _unlogged_joints(described, logs, log_mapping)
    if unlogged:
        from armwise.arms import rest_positions, with_locked_joints

        held = rest_positions(described, unlogged)
        described = with_locked_joints(described, held)
        which = ", ".join(f"{name} at {held[name]:.4g}" for name in unlogged[:8])
        more = f" and {len(unlogged) - 8} more" if len(unlogged) > 8 else ""
        warn(
            f"Not in the log, and locked: {which}{more}. --lock holds them elsewhere; "
            f"if the log is not {described.name}'s, name its own arm's description."
        )
    if log_mapping is None:
        return described, None
    return apply_mapping_to_arm(described, log_mapping), log_mapping


def _unlogged_joints(
    arm: Arm, logs: Sequence[Path], mapping: LogMapping | None
) -> list[str]:
    """Name the arm's joints that logs leave out; none where they leave out all.

    Raises:
        RecordingError: If logs leave out different ones.
    """
    from armwise.errors import RecordingError
    from armwise.recordings import JSON_LINES, TEXT, joint_names_in_log

    missing: dict[Path, list[str]] = {}
    for path in logs:
        # Other files are read whole for their names: only where an arm has more joints
        # than one arm's log usually holds.
        is_headed = path.suffix.lower() in (*TEXT, *JSON_LINES)
        if not path.is_file() or (not is_headed and arm.dof <= 7):
            continue
        logged = joint_names_in_log(path, mapping)
        if all(name.isdigit() for name in logged):
            beyond = arm.joints_beyond(len(logged))
            # Numbers name no joint: a gripper's few may be missing, but a log of two
            # joints is another arm's.
            missing[path] = list(beyond) if 2 * len(beyond) < len(logged) else []
        elif set(logged) & set(arm.coordinate_names):
            missing[path] = [n for n in arm.coordinate_names if n not in logged]
    # Of one arm's logs all hold the same joints: one that does not is another arm's.
    first = next(iter(missing.values()), [])
    for path, names in missing.items():
        if set(names) != set(first):
            lacks = sorted(set(names) ^ set(first))
            one = path.name if set(names) & set(lacks) else next(iter(missing)).name
            raise RecordingError(
                f"{one} lacks {', '.join(lacks[:4])}, which other logs have. Is it "
                f"{arm.name}'s? --lock {lacks[0]}=POSITION holds a joint in all of "
                "them."
            )
    return list(first)


def read_logs(
    paths: Sequence[Path],
    arm: Arm | None,
    mapping: LogMapping | Path | None,
    columns: Sequence[str] | None = None,
    skip_bad_rows: bool = False,
    sensors: Path | None = None,
) -> list[Recording]:
    """Read several logs of one arm; sensors is a file that `calibrate` wrote."""
    from armwise.recordings import read_recording

    named = named_columns(columns)
    return [
        read_recording(
            path,
            arm,
            mapping,
            columns=named,
            calibration=sensors,
            skip_bad_rows=skip_bad_rows,
        )
        for path in paths
    ]


def read_servo_logs(
    paths: Sequence[Path],
    arm: Arm,
    mapping: LogMapping | Path | None,
    columns: Sequence[str] | None,
    skip_bad_rows: bool,
    calibration: Path | None,
) -> list[Recording]:
    """Read logs of commands; of LeRobot's files every episode is a recording."""
    from armwise.servos import is_lerobot, read_lerobot

    recordings = []
    for path in paths:
        if is_lerobot(path):
            recordings += read_lerobot(path, arm, calibration)
        else:
            recordings += read_logs([path], arm, mapping, columns, skip_bad_rows)
    return recordings


def plain_logs(paths: Sequence[Path]) -> list[Path]:
    """Those of some logs that name their joints: LeRobot's files do not."""
    from armwise.servos import is_lerobot

    return [path for path in paths if not is_lerobot(path)]


def named_columns(pairs: Sequence[str] | None) -> dict[str, str]:
    """Read options of the form tau_3=NAME."""
    for pair in pairs or ():
        if "=" not in pair:
            raise ArgumentError(f"--column takes CHANNEL=NAME, not {pair!r}.")
    return dict(pair.split("=", 1) for pair in pairs or ())


def method_named(name: str) -> Any:
    """Return a method of identification with its default settings."""
    from armwise import identification

    if name not in METHODS:
        raise typer.BadParameter(f"unknown method {name!r}; use {', '.join(METHODS)}.")
    return identification.method_named(name)


def free_terms(fixed: Sequence[str] | None) -> tuple[str, ...]:
    """Return what is estimated when some terms stay as described."""
    from armwise.identification import TERMS

    if unknown := set(fixed or ()) - set(TERMS):
        raise typer.BadParameter(
            f"cannot fix {sorted(unknown)[0]!r}; choose from {', '.join(TERMS)}."
        )
    return tuple(term for term in TERMS if term not in (fixed or ()))


def with_own_arm(
    arm: str, estimate: Path | None, logs: list[Path] | None
) -> tuple[str, Path, list[Path]]:
    """ARM ESTIMATE LOG …, or ESTIMATE LOG …: an estimate holds its arm.

    Raises:
        typer.BadParameter: If there is no estimate.
    """
    words = [*([] if estimate is None else [estimate]), *(logs or [])]
    is_estimate = Path(arm).suffix.lower() == ".json"
    if is_estimate and not (words and words[0].suffix.lower() == ".json"):
        return arm, Path(arm), words
    if not words:
        raise typer.BadParameter("Name an estimate.json of armwise identify.")
    return arm, words[0], words[1:]
