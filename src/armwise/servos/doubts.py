"""What motions do not tell of a servo: its torques' scale, forms, a derivative gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armwise.servos.fit import (
    ServoFit,
    errors_together,
    fit_servo,
    fit_servos,
    ranked,
    standing,
)
from armwise.servos.joints import ServoJoint
from armwise.servos.model import ELEMENTS, Values
from armwise.servos.rollout import Roller
from armwise.servos.starts import (
    with_even_friction,
    with_torques,
    without,
    without_derivative,
)

# As usual: two standard errors.
TOLD = 2.0
"""Standard errors by which windows tell two servos apart."""

_FORMS = {"stribeck_speed": "stribeck_shape", "saturation": "limited_damping"}
"""Parameter → the one that says which form it is of."""


def in_any_form(roller: Roller, joint: ServoJoint, fit: ServoFit) -> ServoFit:
    """Return a fit in whose intervals friction and limits may have another form.

    Coulomb friction and damping depend on how Stribeck friction falls off, a limit
    on whether what damps is within it: where motions do not tell that, and by what
    they differ where windows prefer another form.
    """
    forms = [form for name, form in _FORMS.items()
             if name in fit.names and form not in fit.names]  # fmt: skip
    if not forms:
        return fit
    names = (*fit.names, *forms)
    own, other = (
        fit_servo(
            roller, joint.windows, fit.values, some, iterations=3, prior=joint.prior
        ).values
        for some in (fit.names, names)
    )
    joint.names = names
    joint.allow(own, [other])
    return replace(fit, names=names)


def with_own_scale(
    roller: Roller, joint: ServoJoint, values: Values
) -> dict[str, float]:
    """Return a joint's servo, its torques as its own windows have them.

    Where gravity does not load a joint and its rotor outweighs the links, a servo
    twice as strong with twice the friction and inertia moves alike. The information
    does not say so, for stick and slip makes differences ripple, and the halves'
    fits agree that start alike: so others start a factor away, without the other
    servos' torques. What windows prefer is taken; of what they do not tell apart
    the joint has no scale.
    """
    windows = joint.windows
    starts = [with_torques(values, factor) for factor in (0.5, 2.0)]
    own, *others = errors_together(roller, windows, [values, *starts])
    # Judgement: torques that gravity shows are far off by then.
    if all(np.nanmean(other) > 5.0 * np.nanmean(own) for other in others):
        return dict(values)
    fits = fit_servos(roller, windows, starts, joint.names, iterations=8)
    servos = [dict(values), *(fit.values for fit in fits)]
    errors = errors_together(roller, windows, servos)
    saved = [standing(errors[0] - other) for other in errors[1:]]
    if max(saved) > TOLD:
        best = 1 + int(np.argmax(saved))
        joint.prior, joint.is_alike = None, False
    else:
        best = 0
    for other, servo in zip(errors, servos, strict=True):
        away = abs(np.log(servo["stiffness"] / servos[best]["stiffness"]))
        # Judgement: half of a factor of e, as far as servos of one type differ.
        if standing(other - errors[best]) < TOLD and away > 0.5:
            joint.has_scale = False
    return servos[best]


def with_even_load(
    roller: Roller, joint: ServoJoint, values: Values, is_alone: bool
) -> dict[str, float]:
    """Return a joint's servo, its load friction alike both ways unless windows object.

    Of servos that move alike the one in the middle is taken, and intervals reach the
    fit. Servos of an arm lend each other the scale of their torques: of one that is not
    alone the fit is taken, and intervals reach the middle.
    """
    if values["driving"] == values["back_driven"]:
        return dict(values)
    even = with_even_friction(values)
    if even is None:
        return dict(values)
    own, other = errors_together(roller, joint.windows, [values, even])
    if standing(other - own) > TOLD:
        return dict(values)
    for name in [n for n in ("driving", "back_driven") if n not in joint.names]:
        joint.names = (*joint.names, name)
    joint.allow(values, [even])
    return even if is_alone else dict(values)


def with_own_limit(
    roller: Roller, joint: ServoJoint, values: Values
) -> dict[str, float]:
    """Return a joint's servo, its limit of the form that its windows have.

    Whether the error's torque is limited, or the whole with what damps, shows only
    where a motor is at its limit for long: at one speed, more of the one is less of the
    other. What windows do not tell apart is in the intervals.
    """
    if "saturation" not in joint.names:
        return dict(values)
    limit, own_part = values["saturation"], values["limited_damping"]
    # What damps takes some of the limit.
    starts = [
        dict(values) | {"limited_damping": part, "saturation": less * limit}
        for part, less in ((0.9, 1.0), (0.9, 0.75), (0.4, 0.85), (0.0, 1.2))
        # Judgement: nearer ones the fit itself would have gone to.
        if abs(part - own_part) > 0.2
    ]
    names = joint.names
    if "limited_damping" not in names:
        names = (*names, "limited_damping")
    fits = fit_servos(
        roller, joint.windows, starts, names, iterations=6, prior=joint.prior
    )
    ends = ranked(roller, joint.windows, fits, joint.prior)
    servos = [dict(values), *(dict(end.values) for end in ends)]
    errors = errors_together(roller, joint.windows, servos)
    best = 1 if standing(errors[0] - errors[1]) > TOLD else 0
    if best:
        joint.names = names
    alike = [
        own
        for other, own in zip(errors, servos, strict=True)
        if own is not servos[best] and standing(other - errors[best]) < TOLD
    ]
    joint.allow(servos[best], alike, ("saturation", "limited_damping"), part=1.0)
    return servos[best]


def doubt_derivative(roller: Roller, joint: ServoJoint, values: Values) -> None:
    """Let intervals hold a servo without derivative gain, if windows do.

    It hastens what a longer delay makes up for, and damps as damping does.
    """
    if "derivative" not in joint.names:
        return
    names = tuple(name for name in joint.names if name != "derivative")
    start = without_derivative(without(values, names), values)
    other = fit_servo(
        roller, joint.windows, start, names, iterations=6, prior=joint.prior
    ).values
    own, bare = errors_together(roller, joint.windows, [values, other])
    if standing(bare - own) < TOLD:
        joint.allow(values, [other])


def doubt_load_friction(
    roller: Roller, joint: ServoJoint, values: Values, others: Sequence[Values]
) -> None:
    """Let intervals hold a servo with load friction as others have, if windows do.

    Without it stiffness makes up for what it holds, and is off by many of its
    standard deviations.

    Args:
        roller: Of single joints.
        joint: One that came out without load friction.
        values: Of its servo.
        others: Servos of the same arm that have some.
    """
    friction = ELEMENTS["load friction"]
    if set(friction) & set(joint.names) or not others:
        return
    lent = {name: float(np.median([one[name] for one in others])) for name in friction}
    other = fit_servo(
        roller, joint.windows, dict(values) | lent, (*joint.names, *friction),
        iterations=6, prior=joint.prior,
    ).values  # fmt: skip
    own, loaded = errors_together(roller, joint.windows, [values, other])
    if standing(loaded - own) < TOLD:
        joint.allow(values, [other])
