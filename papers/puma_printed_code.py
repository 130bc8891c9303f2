"""`izaguirre1992` App. A: the generated C as printed, line by line, over samples.

Two misprints are mended: `C1C1 = C1 + C1`, and letters the scan took for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

INPUT_FILE = """
number_links 6
mass 0 0 0 0 0 m6
sigma 0 0 0 0 0 0
alpha 90 0 -90 90 -90 0
dpar 0 0 d3 d4 0 0
apar 0 a2 0 0 0 0
adyna 0 0 0 ad4 0 0
cdyna 0 0 0 cd4 0 0
ygrav 0 0 0 y4 0 0
zgrav 0 0 0 0 0 z6
ia1 ia2 ia3 ia4 ia5 ia6
option moment
variable m6 2.768114
variable z6 0.014041
variable y4 -0.382190
variable ad4 0.079781
variable cd4 0.077761
variable ia1 0.091631
variable ia2 0.136312
variable ia3 0.030843
variable ia4 0.001781
variable ia5 0.006759
variable ia6 0.001262
constant a2 0.20320
constant d3 0.12624
constant d4 0.20320
"""
"""What the paper's generator reads; lines that are all zero are left out."""

M6, Z6, Y4, AD4, CD4 = 2.768114, 0.014041, -0.38219, 0.079781, 0.077761
IA = (0.091631, 0.136312, 0.030843, 0.001781, 0.006759, 0.001262)
A2, D3, D4, GRAV = 0.2032, 0.12624, 0.2032, 9.81
FP42, FP32, FP21 = D4 * M6, -D3 * M6, A2 * M6
NP4, NP3, NP2 = M6 * D4**2, M6 * D3**2, M6 * A2**2


def printed_gravity(q: Float[np.ndarray, "samples 6"]) -> Float[np.ndarray, "n 6"]:
    """DI: gravity torques in [N m]."""
    s, c = np.sin(q).T, np.cos(q).T
    S23, C23 = np.sin(q[:, 1] + q[:, 2]), np.cos(q[:, 1] + q[:, 2])
    BS31, BS32, BS42, BS51, BS52, _, _ = _first_moments(s, c)
    none = np.zeros_like(S23)
    lines = [
        none,
        c[1] * (BS31 + FP21) - s[1] * BS32,
        -BS32 * s[1] + BS31 * c[1],
        -BS42 * S23,
        -BS52 * S23 * c[3] + BS51 * C23,
        none,
    ]
    return GRAV * np.stack(lines, axis=1)


def printed_inertia(q: Float[np.ndarray, "samples 6"]) -> Float[np.ndarray, "n 6 6"]:
    """DIJ: the inertia matrix in [kg m²]."""
    s, c = np.sin(q).T, np.cos(q).T
    S2, C2, S3, C3, S4, C4 = s[1], c[1], s[2], c[2], s[3], c[3]
    S23, C23 = np.sin(q[:, 1] + q[:, 2]), np.cos(q[:, 1] + q[:, 2])
    T1214, T1224 = C2 * A2, S2 * A2
    T1411, T1421 = C23 * C4, S23 * C4
    T1414, T1424 = -S23 * D4 + T1214, C23 * D4 + T1224
    BS31, BS32, BS42, BS51, BS52, BS41, BS43 = _first_moments(s, c)
    BS33, BA31 = -(BS42 + FP32), BS31 + FP21
    BS22, BS21 = S2 * BA31 + C2 * BS32, C2 * BA31 - S2 * BS32
    JA533, JA511 = CD4 - NP4, AD4 - NP4
    JS422 = S4 * S4 * JA511 + C4 * C4 * JA533 + 2.0 * D4 * BS43
    JS411 = C4 * C4 * JA511 + S4 * S4 * JA533 + 2.0 * D4 * BS43
    JS412, JS413, JS423 = S4 * C4 * (JA511 - JA533), -D4 * BS41, -D4 * BS42
    JA433, JA411 = -NP3, JS411 - NP3
    JS323, JS313 = -S3 * JS412 - D3 * BS32, -C3 * JS412 - D3 * BS31
    JS322 = S3 * S3 * JA411 + C3 * C3 * JA433 + 2.0 * D3 * BS33
    JS311 = C3 * C3 * JA411 + S3 * S3 * JA433 + 2.0 * D3 * BS33
    JS312 = S3 * C3 * (JA411 - JA433)
    JS233 = JS422 - NP2 + 2.0 * (T1224 * BS22 + T1214 * BS21)
    JS222 = S2 * S2 * JS311 + 2.0 * S2 * C2 * JS312 + C2 * C2 * (JS322 - NP2)
    D = np.zeros((len(q), 6, 6))
    D[:, 0, 0] = JS222 + 2.0 * T1214 * BS21 + IA[0]
    D[:, 0, 1] = S2 * JS313 + C2 * JS323 - T1224 * BS33
    D[:, 0, 2] = S2 * JS313 + C2 * JS323
    D[:, 0, 3] = S23 * JS413 - BS42 * C23 * D3 + BS41 * T1214
    D[:, 0, 4] = -BS52 * (T1411 * D3 + S4 * T1414) - BS51 * S23 * D3
    D[:, 1, 1], D[:, 1, 2] = JS233 + IA[1], JS422 + BS31 * A2
    D[:, 1, 3] = -JS423 - BS42 * (-C23 * T1224 + S23 * T1214)
    D[:, 1, 4] = -BS52 * (-T1411 * T1424 + T1421 * T1414)
    D[:, 1, 4] += BS51 * (S23 * T1424 + C23 * T1414)
    D[:, 2, 2], D[:, 2, 3], D[:, 2, 4] = JS422 + IA[2], -JS423, BS52 * C4 * D4
    D[:, 3, 3], D[:, 4, 4], D[:, 5, 5] = IA[3], IA[4], IA[5]
    return D + np.triu(D, 1).swapaxes(1, 2)


def _first_moments(s: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
    """BS31, BS32, BS42, BS51, BS52, BS41, BS43."""
    BS51, BS52 = -s[4] * Z6, c[4] * Z6
    BS41, BS42, BS43 = c[3] * BS51, s[3] * BS51, Y4 + BS52 + FP42
    BS32, BS31 = s[2] * BS41 + c[2] * BS43, c[2] * BS41 - s[2] * BS43
    return BS31, BS32, BS42, BS51, BS52, BS41, BS43
