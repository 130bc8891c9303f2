"""Sine and cosine by polynomials, between −π/4 and π/4.

sin r = r + r z S(z) and cos r = 1 − z/2 + z² C(z) with z = r². The coefficients are
minimax fits (Remez, 60 digits, rounded to doubles). The relative errors they leave are
far below rounding: 3.6e−18 and 5.6e−20 in double, 3.8e−9 and 1.2e−10 in single.
"""

from __future__ import annotations

from collections.abc import Sequence

SINE = (
    -0.1666666666666663,
    0.008333333333322118,
    -0.00019841269829589495,
    2.7557313621370277e-06,
    -2.5050747760348875e-08,
    1.589623000726203e-10,
)
COSINE = (
    0.041666666666666595,
    -0.0013888888888873056,
    2.4801587288851653e-05,
    -2.755731417928149e-07,
    2.0875700839859294e-09,
    -1.1358536409678325e-11,
)

SINE_SINGLE = (-0.1666665460951289, 0.008332160759566947, -0.00019515282875823102)
COSINE_SINGLE = (0.04166664568291716, -0.001388731625143906, 2.4433156715749723e-05)

HALF_PI = (
    1.57079632673412561417e00,
    6.07710050630396597660e-11,
    2.02226624879595063154e-21,
)
"""π/2 in three pieces of 33, 33 and 53 bits: k times them is exact for |k| < 2²⁰."""

HALF_PI_SINGLE = (
    1.5703125,
    4.837512969970703125e-4,
    7.549533620476723e-08,
    2.5633440682570896e-12,
)
"""The same of 8, 11, 11 and 24 bits, for |k| < 2¹³."""


def horner(coefficients: Sequence[float], suffix: str = "") -> str:
    """Write a polynomial in z as C text."""
    text = f"{coefficients[-1]!r}{suffix}"
    for coefficient in reversed(coefficients[:-1]):
        text = f"({coefficient!r}{suffix} + z * {text})"
    return text
