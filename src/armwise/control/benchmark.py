"""Benchmark of controllers: tasks × plants × controllers × seeds in one table."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.control.feedback import ResumableController
from armwise.errors import ArgumentError
from armwise.files import replacing
from armwise.jobs import ResultFolder, open_runner
from armwise.motions import Motion
from armwise.plants import Plant, run_batch

if TYPE_CHECKING:
    import polars as pl

    from armwise.recordings import Recording


# Fingerprint of everything a result depends on, to remember results by.


class NotDescribable(TypeError):  # noqa: N818
    """Something whose content cannot be determined from outside."""


def fingerprint(*things: object) -> str | None:
    """Return a digest of what things are made of; None if that is unknown.

    Functions and classes count by name, frozen data by content, so that equal
    descriptions agree between processes and after use. Lambdas have no name.
    """
    digest = hashlib.sha256()
    try:
        for thing in things:
            _feed(digest, thing)
    except NotDescribable:
        return None
    # 128 bits: far from any accidental collision.
    return digest.hexdigest()[:32]


def _feed(digest: Any, thing: object) -> None:
    digest.update(f"<{type(thing).__module__}.{type(thing).__qualname__}>".encode())
    if thing is None or isinstance(thing, bool | int | float | complex | str | Path):
        digest.update(repr(thing).encode())
    elif isinstance(thing, bytes):
        digest.update(thing)
    elif isinstance(thing, np.ndarray | np.generic):
        array = np.ascontiguousarray(thing)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    elif isinstance(thing, partial):
        _feed_all(digest, (thing.func, thing.args, thing.keywords))
    elif isinstance(thing, list | tuple):
        _feed_all(digest, thing)
    elif isinstance(thing, dict):
        _feed_all(digest, [x for item in thing.items() for x in item])
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        _feed_all(digest, [getattr(thing, f.name) for f in dataclasses.fields(thing)])
    else:
        _feed_name(digest, thing)


def _feed_all(digest: Any, things: Any) -> None:
    digest.update(f"{len(things)}:".encode())
    for thing in things:
        _feed(digest, thing)


def _feed_name(digest: Any, thing: object) -> None:
    if not isinstance(thing, type | FunctionType | BuiltinFunctionType):
        raise NotDescribable(type(thing).__name__)
    name = f"{thing.__module__}.{thing.__qualname__}"
    # "<lambda>" and "<locals>" name no unique thing.
    if "<" in name or isinstance(thing, MethodType):
        raise NotDescribable(name)
    digest.update(name.encode())


# The result of a comparison of controllers: a tidy table.

KEYS = ("task", "plant", "controller", "seed")


@dataclass(frozen=True, eq=False)
class TrackingTable:
    """One row per task, plant, controller, seed and joint.

    Attributes:
        frame: Columns task, plant, controller, seed, seconds (of computing), joint,
            stable, rms_error and peak_error in [rad] or [m] (NaN where unstable),
            rms_torque in [N m] or [N].
    """

    frame: pl.DataFrame

    @classmethod
    def from_rows(cls, rows: list[dict[str, Any]]) -> TrackingTable:
        """Build from rows as dictionaries."""
        import polars as pl

        return cls(pl.DataFrame(rows))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return self.frame.to_dicts()

    @property
    def unstable(self) -> int:
        """How many runs ran away."""
        import polars as pl

        return self.frame.filter(~pl.col("stable")).select(KEYS).unique().height

    def overall(self) -> pl.DataFrame:
        """Errors over all joints: one row per task, plant, controller and seed."""
        import polars as pl

        squares = (pl.col("rms_error") ** 2).mean().sqrt()
        return self.frame.group_by(KEYS, maintain_order=True).agg(
            squares.alias("rms_error"),
            pl.col("peak_error").max(),
            pl.col("stable").all(),
        )

    def normalised(self, baseline: str) -> pl.DataFrame:
        """Overall errors divided by another controller's on the same run.

        Args:
            baseline: Name of the controller to divide by.
        """
        import polars as pl

        overall = self.overall()
        if baseline not in overall["controller"].to_list():
            names = overall["controller"].unique(maintain_order=True).to_list()
            raise ArgumentError(
                f"There is no controller {baseline!r} to compare with. "
                f"There is: {', '.join(names)}."
            )
        keys = [key for key in KEYS if key != "controller"]
        base = overall.filter(pl.col("controller") == baseline)
        base = base.select(*keys, pl.col("rms_error").alias("baseline"))
        joined = overall.join(base, on=keys, how="left", maintain_order="left")
        ratio = pl.col("rms_error") / pl.col("baseline")
        return joined.with_columns(ratio.alias("normalised")).drop("baseline")

    def write(self, path: str | Path) -> None:
        """Write to a Parquet file, all at once or not at all."""
        with replacing(path) as temporary:
            self.frame.write_parquet(temporary)

    @classmethod
    def read(cls, path: str | Path) -> TrackingTable:
        """Read what `write` wrote."""
        import polars as pl

        try:
            return cls(pl.read_parquet(path))
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ArgumentError(
                f"{path} is no table of tracking errors ({error})."
            ) from error


# The runs.

PlantFactory = Callable[[int, int], Plant]
"""Makes a batch of plants: (batch, seed) → Plant."""

ControllerFactory = Callable[[], ResumableController]
"""Makes a fresh controller."""

_VERSION = 1


@dataclass(frozen=True, eq=False)
class _Group:
    """All tasks of one plant, controller and seed: they run as one batch."""

    plant: tuple[str, PlantFactory]
    controller: tuple[str, ControllerFactory]
    seed: int
    tasks: tuple[tuple[str, Motion], ...]
    warm_up: float


def benchmark_tracking(
    tasks: Mapping[str, Motion],
    plants: Mapping[str, PlantFactory],
    controllers: Mapping[str, ControllerFactory],
    seeds: Sequence[int] = (0,),
    *,
    warm_up: float = 0.0,
    workers: int = 1,
    cache: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TrackingTable:
    """Run every controller on every plant along every task, with every seed.

    Tasks of one plant, controller and seed run together as a batch of plants.

    Args:
        tasks: Name → motion.
        plants: Name → function of (batch, seed) that makes the plants.
        controllers: Name → function that makes a fresh controller.
        seeds: Seeds of the plants' noise.
        warm_up: Time in [s] at the beginning that is not counted (adaptation).
        workers: Processes; with more than one, all factories must be picklable:
            functools.partial and module-level functions are, lambdas are not.
        cache: A folder that remembers results; anything that changes a factory's
            arguments or a motion is run again. Results of lambdas are not remembered.
        progress: Called with (done, all) after every group.

    Returns:
        One row per task, plant, controller, seed and joint. A plant that ran away is
        a row like any other, marked unstable.
    """
    for name, members in (
        ("task", tasks),
        ("plant", plants),
        ("controller", controllers),
    ):
        if not members:
            raise ArgumentError(f"There is no {name} to compare.")
    groups = [
        _Group(plant, controller, seed, tuple(tasks.items()), warm_up)
        for plant in plants.items()
        for controller in controllers.items()
        for seed in seeds
    ]
    if workers > 1:
        _require_picklable(groups)
    work = partial(_remembered, None if cache is None else Path(cache))
    results: dict[int, list[dict[str, Any]]] = {}
    with open_runner(max(1, workers)) as runner:
        for number, rows in runner.run(work, groups):
            results[number] = rows
            if progress is not None:
                progress(len(results), len(groups))
    # Processes finish in any order; the table's order must not depend on it.
    return TrackingTable.from_rows([row for k in sorted(results) for row in results[k]])


def _require_picklable(groups: list[_Group]) -> None:
    try:
        pickle.dumps(groups)
    except Exception as error:
        raise ArgumentError(
            f"These plants or controllers cannot be sent to other processes ({error}). "
            "Use functools.partial instead of lambda, or workers=1."
        ) from error


def _remembered(cache: Path | None, group: _Group) -> list[dict[str, Any]]:
    """Run a group, or read what it gave before."""
    key = None if cache is None else _key(group)
    if cache is None or key is None:
        return _run(group)
    folder = ResultFolder(cache)
    if (data := folder.read(key)) is not None:
        stored: list[dict[str, Any]] = json.loads(data)
        return stored
    rows = _run(group)
    folder.write(key, json.dumps(rows).encode())
    return rows


def _key(group: _Group) -> str | None:
    """A name for all that decides on a group's result; None if it has none."""
    motions = [
        # Motions count by what they do, not by their class.
        (name, motion.sample(np.linspace(0.0, motion.duration, 1001)))
        for name, motion in group.tasks
    ]
    return fingerprint(
        _VERSION, group.plant, group.controller, group.seed, group.warm_up, motions
    )


def _run(group: _Group) -> list[dict[str, Any]]:
    from threadpoolctl import threadpool_limits

    names, motions = zip(*group.tasks, strict=True)
    plant = group.plant[1](len(motions), group.seed)
    begin = time.perf_counter()
    with threadpool_limits(1):  # the matrices are tiny; a second thread only waits
        recordings = run_batch(plant, group.controller[1](), motions)
    took = (time.perf_counter() - begin) / len(motions)
    labels = {
        "plant": group.plant[0],
        "controller": group.controller[0],
        "seed": group.seed,
        "seconds": took,
    }
    rows = []
    for b, (name, motion) in enumerate(zip(names, motions, strict=True)):
        stable = not bool(plant.diverged[b])
        for row in _errors(recordings[b], motion, group.warm_up, stable):
            rows.append({"task": name, **labels, **row})
    return rows


def _errors(
    recording: Recording, motion: Motion, warm_up: float, stable: bool
) -> list[dict[str, Any]]:
    """Errors of each joint after the warm-up, while the motion lasts."""
    has_truth = "true_q_1" in recording
    rows = []
    for j in range(motion.dof):
        q = recording[f"true_q_{j + 1}" if has_truth else f"q_{j + 1}"]
        # The last instant may come a rounding error late.
        counted = (q.time >= warm_up) & (q.time <= motion.duration + 1e-9)
        error = (q.values - motion.sample(q.time).q[:, j])[counted]
        torque = recording[f"command_{j + 1}"].values
        rows.append(
            {
                "joint": j + 1,
                "stable": stable,
                "rms_error": _or_nan(np.sqrt(np.mean(error**2)), stable, error),
                "peak_error": _or_nan(np.abs(error).max(initial=0.0), stable, error),
                "rms_torque": float(np.sqrt(np.mean(torque**2))),
            }
        )
    return rows


def _or_nan(value: float, stable: bool, error: np.ndarray) -> float:
    return float(value) if stable and error.size else float("nan")
