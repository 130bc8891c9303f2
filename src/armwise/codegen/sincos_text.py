"""C text of sine and cosine: all angles at once, no branches, any compiler."""

from __future__ import annotations

from armwise.codegen.statements import Precision
from armwise.programs.sine import (
    COSINE,
    COSINE_SINGLE,
    HALF_PI,
    HALF_PI_SINGLE,
    SINE,
    SINE_SINGLE,
    horner,
)

ULP = 2.0
"""Largest error in units in the last place, for angles up to FARTHEST."""

FARTHEST = {"double": 1.0e5, "float": 1.0e3}
"""Largest angle in [rad] for which that holds.

Beyond it, quarter turns are clipped to this number so that they fit an int: a result is
then wrong, but never undefined. Truncating after a shift rounds without a branch."""

_TEXT = """\
/* Sine and cosine of {size} angles: within {ulp} units in the last place for angles up
   to {farthest} rad, without branches, so that compilers make it vector code. */
static void sincos_{size}(const {type} angle[restrict {size}],
                      {type} sine[restrict {size}], {type} cosine[restrict {size}])
{{
  for (int i = 0; i < {size}; i++) {{
    const {type} x = angle[i];
    {type} turns = x * {two_over_pi};
    turns = turns > -{most} ? turns : -{most};
    turns = turns < {most} ? turns : {most};
    const int quarter = (int)(turns + {shift}.5{suffix}) - {shift};
    const {type} k = ({type})quarter;
    const {type} r = {reduced};
    const {type} z = r * r;
    const {type} s = r + r * (z * {sine});
    const {type} c = {one} - z * ({half} - z * {cosine});
    const {type} odd = ({type})(quarter & 1), even = {one} - odd;
    const {type} sign_s = {one} - ({type})(quarter & 2);
    const {type} sign_c = {one} - ({type})((quarter + 1) & 2);
    sine[i] = sign_s * (even * s + odd * c);
    cosine[i] = sign_c * (even * c + odd * s);
  }}
}}
"""


def sincos_text(size: int, precision: Precision) -> str:
    """Return a C function for `size` angles at once."""
    is_double = precision.name == "double"
    number, suffix = precision.number, precision.suffix
    pieces = HALF_PI if is_double else HALF_PI_SINGLE
    farthest = FARTHEST[precision.name]
    return _TEXT.format(
        size=size,
        type=precision.type,
        ulp=int(ULP),
        farthest=f"{farthest:g}",
        two_over_pi=number(0.6366197723675814),
        most=number(round(farthest)),
        shift=131072 if is_double else 1024,
        suffix=suffix,
        half=number(0.5),
        one=number(1.0),
        reduced=_reduced([number(piece) for piece in pieces]),
        sine=horner(SINE if is_double else SINE_SINGLE, suffix),
        cosine=horner(COSINE if is_double else COSINE_SINGLE, suffix),
    )


def _reduced(pieces: list[str]) -> str:
    """Take k quarter turns from x, the largest piece first: nothing is lost."""
    text = "x"
    for piece in pieces:
        text = f"({text} - k * {piece})"
    return text[1:-1]
