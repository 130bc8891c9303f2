"""Errors of free runs beside a delay line, and contact that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.servos.motions import held_back
from armwise.servos.rollout import ServoMotion

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class FreeRunErrors:
    """Mean |q_simulated − q| in [rad].

    Attributes:
        motions: Name of the recording → one number per joint, all samples.
        delay_line: The same for the command some time late, the best of all delays.
        samples: Samples of each recording.
        contact: Of recordings in which something holds joints back: the fraction of
            each joint's samples.
    """

    motions: Mapping[str, Float[np.ndarray, " dof"]]
    delay_line: Mapping[str, Float[np.ndarray, " dof"]]
    samples: Mapping[str, int]
    contact: Mapping[str, Float[np.ndarray, " dof"]] = field(default_factory=dict)

    @property
    def joints(self) -> Float[np.ndarray, " dof"]:
        """Per joint over all samples."""
        weights = np.array([self.samples[name] for name in self.motions], float)
        rows = np.array(list(self.motions.values()))
        return weights @ rows / weights.sum()

    @property
    def delay_line_joints(self) -> Float[np.ndarray, " dof"]:
        """Per joint over all samples, of the delay line."""
        weights = np.array([self.samples[name] for name in self.delay_line], float)
        return weights @ np.array(list(self.delay_line.values())) / weights.sum()

    def statements(self) -> tuple[str, ...]:
        """Return what is to be said of them, in sentences."""
        if touched := listed_contact(self.contact):
            return (
                "Other motions are held back by something that the model lacks: "
                f"{touched}; errors there are not the servos'.",
            )
        return ()


def errors_of(
    motions: Sequence[ServoMotion], runs: Sequence[np.ndarray]
) -> FreeRunErrors:
    """Return the mean errors of rollouts, and of a delay line, per motion and joint."""
    names = _distinct([m.name for m in motions])
    free = [np.abs(r - m.q).mean(0) for r, m in zip(runs, motions, strict=True)]
    # Judgement: sixty milliseconds by tens; beyond, a servo is not a delay.
    lags = np.arange(0.0, 0.21, 0.01)
    late = np.array(
        [[np.abs(_late(m, lag) - m.q).mean(0) for m in motions] for lag in lags]
    )
    counts = np.array([len(m.time) for m in motions], float)
    best = np.argmin(np.einsum("lmj,m->lj", late, counts), axis=0)
    line = [late[best, k, np.arange(late.shape[2])] for k in range(len(motions))]
    return FreeRunErrors(
        dict(zip(names, free, strict=True)),
        dict(zip(names, line, strict=True)),
        {name: len(m.time) for name, m in zip(names, motions, strict=True)},
    )


def contact_of(
    motions: Sequence[ServoMotion], runs: Sequence[np.ndarray], usual: np.ndarray
) -> dict[str, Float[np.ndarray, " dof"]]:
    """Return the fraction of rows in which something holds joints back.

    Args:
        motions: Of the whole arm.
        runs: Their free runs.
        usual: Error of each joint in [rad] where nothing does.
    """
    contact = {}
    names = _distinct([m.name for m in motions])
    for name, motion, run in zip(names, motions, runs, strict=True):
        rows = [
            held_back(motion, run[:, j], float(usual[j]), is_sure=True, joint=j)
            for j in range(run.shape[1])
        ]
        if np.any(rows):
            contact[name] = np.mean(rows, axis=1)
    return contact


def listed_contact(contact: Mapping[str, Float[np.ndarray, " dof"]]) -> str:
    """List the motions that something holds back longest, and how long."""
    touched = {k: float(np.max(v)) for k, v in contact.items()}
    # Judgement: half a percent is a moment, and 0 % reads like an error.
    touched = {k: part for k, part in touched.items() if part >= 0.005}
    worst = sorted(touched, key=lambda k: -touched[k])[:3]
    more = " and others" if len(touched) > 3 else ""
    return ", ".join(f"{k} ({100.0 * touched[k]:.0f} %)" for k in worst) + more


def _late(motion: ServoMotion, lag: float) -> np.ndarray:
    rows = np.searchsorted(motion.time, motion.time - lag, side="right") - 1
    return motion.goals[np.clip(rows, 0, None)]


def _distinct(names: Sequence[str]) -> list[str]:
    """Return file names; with a number where two are the same."""
    short = [Path(name).name for name in names]
    return [
        name if short.count(name) == 1 else f"{name} ({short[:k].count(name) + 1})"
        for k, name in enumerate(short)
    ]
