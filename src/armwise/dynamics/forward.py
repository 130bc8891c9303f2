"""Forward dynamics over scalars: M factored along the tree."""

from __future__ import annotations

from collections.abc import Sequence

from armwise.dynamics.vectors import Scalar, mul, sub


def solve_mass_matrix(
    matrix: Sequence[Sequence[Scalar]], right: Sequence[Scalar]
) -> list[Scalar]:
    """Solve M x = b by M = Lᵀ D L, which keeps the zeros of a branching tree.

    Eliminating from the tips to the base fills nothing in (Featherstone 2005).
    """
    size = len(right)
    work = [list(row) for row in matrix]
    inverse: list[Scalar] = [0.0] * size
    for k in reversed(range(size)):
        inverse[k] = 1.0 / work[k][k]
        for i in reversed(range(k)):
            if _is_zero(work[k][i]):
                continue
            ratio = mul(work[k][i], inverse[k])
            for j in range(i + 1):
                if not _is_zero(work[k][j]):
                    work[i][j] = sub(work[i][j], mul(ratio, work[k][j]))
            work[k][i] = ratio
    x = list(right)
    for k in reversed(range(size)):
        for i in range(k):
            x[i] = sub(x[i], mul(work[k][i], x[k]))
    for k in range(size):
        x[k] = mul(x[k], inverse[k])
        for i in range(k):
            x[k] = sub(x[k], mul(work[k][i], x[i]))
    return x


def _is_zero(a: Scalar) -> bool:
    return type(a) is float and a == 0.0
