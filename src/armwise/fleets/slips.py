"""What a slipped encoder does to the torque: one more column per joint, ∂τ/∂q_i.

An encoder that reads q_i + δ makes the arm's torque look like τ(q) at another place;
to first order the measured motion explains it up to −δ ∂τ/∂q_i. Unlike every other
column this one depends on the parameters, so it belongs to a second look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.identification.columns import Block, Columns

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.recordings import Samples

_STEP = 1e-3
"""Step of the central differences in [rad] or [m]."""


@dataclass(frozen=True, eq=False)
class SlipColumns:
    """Columns of an arm, followed by −∂τ/∂q_i of every joint i, then the torque."""

    columns: Columns

    def blocks(self, data: Sequence[Samples]) -> Iterator[Block]:
        """Yield the widened columns of recorded samples, block by block."""
        for block in self.columns.blocks(data):
            slopes = self._slopes(block)
            joints = tuple(
                np.vstack([matrix[:-1], -slopes[:, :, j], matrix[-1:]])
                for j, matrix in enumerate(block.joints)
            )
            yield replace(block, joints=joints)

    def _slopes(self, block: Block) -> Float[np.ndarray, "turned samples joints"]:
        """Return ∂τ/∂q_i in [N m/rad], for each joint i that is turned."""
        samples, rows = block.samples, block.rows
        q, qd, qdd = samples.q[rows], samples.qd[rows], samples.qdd[rows]
        torque = self.columns.dynamics.inverse_dynamics
        slopes = []
        for step in _STEP * np.eye(samples.dof):
            rise = torque(q + step, qd, qdd) - torque(q - step, qd, qdd)
            slopes.append(rise / (2.0 * _STEP))
        return np.stack(slopes)
