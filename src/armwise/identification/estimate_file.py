"""The estimate's file: complete but for the samples, versioned, read back as it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms import Arm, arm_from_dict, arm_to_dict, kinematics_digest
from armwise.dynamics import BaseParameters
from armwise.errors import ArmwiseError, EstimateWarning
from armwise.files import json_text, write_atomically
from armwise.identification.estimate import Estimate, loaded_columns
from armwise.identification.left_out import LeftOut
from armwise.identification.validation import PARTS, PartErrors, TorqueLag, Validation
from armwise.recordings import (
    ERROR_LEVELS,
    preparation_from_dict,
    preparation_to_dict,
)
from armwise.regression import Columns, FrictionTerm
from armwise.tables import LARGEST_NUMBER, read_json

VERSION = 2
"""Version of the file format; a reader refuses any other."""
LARGEST_ERROR = 1e6
"""Relative error beyond which a fit predicts nothing: the file is broken."""


def write_estimate(estimate: Estimate, path: str | Path) -> None:
    """Write an estimate as JSON, under a temporary name first."""
    write_atomically(path, json_text(estimate_to_dict(estimate)))


def read_estimate(path: str | Path, arm: Arm | None = None) -> Estimate:
    """Read an estimate of an arm back.

    Args:
        path: What `write_estimate` wrote.
        arm: The description it was made from; the one in the file if not given.
    """
    data = read_json(Path(path), "an estimate")
    # No guess at other versions: a wrong model on a robot costs more than a refusal.
    if data.get("version") != VERSION:
        raise ArmwiseError(
            f"{path} is not an estimate of version {VERSION}. Identify again."
        )
    described = arm_from_dict(data.get("description"), str(path))
    digest = kinematics_digest(described)
    if data.get("kinematics") != digest:
        raise ArmwiseError(
            f"{path} was changed: its description is not the one it was made from. "
            "Identify again."
        )
    if arm is not None and kinematics_digest(arm) != digest:
        raise ArmwiseError(
            f"{path} is an estimate of {described.name}, whose joints are not those of "
            f"{arm.name}. Name the arm it was made from, or identify this one."
        )
    try:
        return _estimate(data, described if arm is None else arm)
    except (
        *(AttributeError, KeyError, IndexError, TypeError, ValueError),
        *(OverflowError, ArmwiseError),
    ) as error:
        raise ArmwiseError(f"{path} is not a complete estimate: {error}.") from error


def estimate_to_dict(estimate: Estimate) -> dict[str, Any]:
    """Return all of an estimate as plain numbers and words; infinity is null."""
    # Here: reading a file needs none of what fits friction again.
    from armwise.identification.export import arm_for_file

    validation, lag = estimate.validation, estimate.torque_lag
    gains, effects = estimate.gain_std, estimate.same_effects
    others = estimate.friction_effects
    fits = estimate.left_out_fits
    preparation = estimate.preparation
    is_plain = not estimate.columns.friction
    plain = None if is_plain else arm_for_file(estimate).parameters.tolist()
    return {
        "version": VERSION,
        "arm": estimate.prior_arm.name,
        "description": arm_to_dict(estimate.prior_arm),
        "kinematics": kinematics_digest(estimate.prior_arm),
        "method": estimate.method,
        "torque_lag": None if lag is None else _lag_to_dict(lag),
        "gain_std": None if gains is None else gains.tolist(),
        "same_effects": None if effects is None else effects.tolist(),
        "friction_effects": None if others is None else others.tolist(),
        "left_out_fits": None if fits is None else _lists(fits),
        "preparation": preparation and preparation_to_dict(preparation),
        "notes": list(estimate.notes),
        "warnings": [asdict(warning) for warning in estimate.warnings],
        "friction": [asdict(term) for term in estimate.columns.friction],
        "names": list(estimate.base.names),
        "parameters": estimate.all_parameters.tolist(),
        "plain_parameters": plain,
        "std": _finite(_every_std(estimate)),
        "origin": estimate.origin,
        "base": {
            "indices": list(estimate.base.indices),
            "matrix": estimate.base.matrix.tolist(),
            "unidentifiable": list(estimate.base.unidentifiable),
            "expressions": list(estimate.base.expressions),
            "values": estimate.base_values.tolist(),
            "std": _finite(estimate.base_std),
            "covariance": [_finite(row) for row in estimate.base_covariance],
        },
        "torque_std": estimate.torque_std.tolist(),
        "condition_number": _finite(np.array([estimate.condition_number]))[0],
        "singular_values": estimate.singular_values.tolist(),
        "directions": estimate.directions.tolist(),
        "fit": estimate.fit.to_dict(),
        "validation": None if validation is None else validation.to_dict(),
        "left_out": list(estimate.left_out),
    }


def _every_std(estimate: Estimate) -> np.ndarray:
    """Standard deviations of all names: friction terms stand alone, after the arm's."""
    std = np.full(len(estimate.base.names), np.inf)
    std[list(estimate.base.indices)] = estimate.base_std
    std[: estimate.std.size] = estimate.std
    return std


def _lists(fits: LeftOut) -> dict[str, Any]:
    arrays = {field.name: getattr(fits, field.name) for field in fields(fits)}
    return {k: None if x is None else x.tolist() for k, x in arrays.items()}


def _lag_to_dict(lag: TorqueLag) -> dict[str, Any]:
    """Return a delay as plain numbers; an infinite deviation is null."""
    return asdict(lag) | {"std": lag.std if math.isfinite(lag.std) else None}


_HEAVIEST = 1e9
"""Size of a link's parameter in SI units, a million tons for a mass, that no arm has:
beside it, thinner bodies would be lost in rounding."""

_STIFFEST = 1e12
"""The same of a drive's: joints of simulated bases are held by damping of 1e11."""


def _friction_term(stored: dict[str, Any]) -> FrictionTerm:
    term = FrictionTerm(**stored)
    for end in (term.warmest, term.fastest):
        if end is not None and type(end) not in (int, float):
            raise ValueError("a friction term's warmth or speed is no number")
    # Columns ask for the drive's name; numbers of another type would pass that.
    if type(term.joint) is not int or term.scale > LARGEST_NUMBER:
        raise ValueError("a friction term is none of the arm's")
    return term


def _estimate(data: dict[str, Any], arm: Arm) -> Estimate:
    """Build an estimate from a file that anyone may have changed."""
    columns = Columns(arm, tuple(_friction_term(x) for x in data["friction"]))
    names = columns.names
    if tuple(data["names"]) != names:
        raise ValueError(f"it names other parameters than {arm.name} has")
    parameters = _array(data["parameters"], len(names))
    largest = np.full(len(names), _STIFFEST)
    largest[arm.layout.links] = _HEAVIEST
    # Files of earlier versions do not have these.
    plain = data.get("plain_parameters")
    plain = None if plain is None else _array(plain, arm.parameters.size)
    for values in (parameters, plain):
        if values is not None and np.any(np.abs(values) > largest[: values.size]):
            raise ValueError("it holds parameters no arm has")
    columns = loaded_columns(columns, parameters)
    base = _base(data["base"], names)
    count = base.count
    covariance = _array(data["base"]["covariance"], count, count, infinite=True)
    # Files of earlier versions have those of gains alone.
    effects = _effects(data.get("same_effects", data.get("gain_effects")), count)
    others = _effects(data.get("friction_effects"), count)
    # What they add is a part of it, but for rounding.
    added = [np.sum(x**2, axis=1) for x in (effects, others) if x is not None]
    is_whole = all(np.all(np.diag(covariance) >= (1.0 - 1e-9) * x) for x in added)
    if not is_whole or not np.allclose(covariance, covariance.T):
        raise ValueError("its covariance is none")
    condition = float(_array(data["condition_number"], infinite=True))
    if condition < 1.0:
        raise ValueError(f"its condition number is {condition:g}")
    validation, gains = data.get("validation"), data.get("gain_std")
    fits, settings = data.get("left_out_fits"), data.get("preparation")
    warnings = tuple(EstimateWarning(**one) for one in data["warnings"])
    left_out = _words(data["left_out"])
    if not set(left_out) <= set(names):
        raise ValueError("it left out parameters that the arm does not have")
    return Estimate(
        columns=columns,
        base=base,
        base_values=_array(data["base"]["values"], count),
        base_covariance=covariance,
        all_parameters=parameters,
        fit=_validation(data["fit"], arm.dof),
        torque_std=_array(data["torque_std"], arm.dof, least=0.0),
        condition_number=condition,
        singular_values=_array(data["singular_values"], count, least=0.0),
        directions=_array(data["directions"], count, count),
        method=_words([data["method"]])[0],
        torque_lag=_lag(data.get("torque_lag"), arm.coordinate_names),
        gain_std=None if gains is None else _array(gains, arm.dof, least=0.0),
        same_effects=effects,
        friction_effects=others,
        known_left_out=None if fits is None else _left_out(fits, len(names), arm.dof),
        known_plain=plain,
        known_preparation=settings and preparation_from_dict(settings),
        notes=_words(data["notes"]),
        warnings=warnings,
        validation=None if validation is None else _validation(validation, arm.dof),
        left_out=left_out,
    )


def _base(stored: dict[str, Any], names: tuple[str, ...]) -> BaseParameters:
    indices = tuple(stored["indices"])
    matrix = _array(stored["matrix"], len(indices), len(names))
    is_whole = all(type(i) is int and 0 <= i < len(names) for i in indices)
    # The columns of what leads a combination are the identity.
    if not is_whole or not np.array_equal(matrix[:, indices], np.eye(len(indices))):
        raise ValueError("its combinations are none of the arm's parameters")
    unidentifiable = _words(stored["unidentifiable"])
    if not set(unidentifiable) <= set(names):
        raise ValueError("it calls parameters unidentifiable that the arm has not")
    return BaseParameters(names, indices, matrix, unidentifiable)


def _validation(data: dict[str, Any], dof: int) -> Validation:
    parts = {k: _part(data[k], dof) for k in PARTS if k in data}
    whole = {k: v for k, v in data.items() if k not in (*PARTS, "samples")}
    arrays = {k: _array(v, dof) for k, v in whole.items()}
    errors = Validation(samples=data["samples"], **arrays, **parts)  # type: ignore[arg-type]
    is_sound = (
        type(errors.samples) is int
        and errors.samples >= 0
        and np.all((errors.relative_error >= 0) & (errors.rmse >= 0))
        and np.all(errors.relative_error < LARGEST_ERROR)
        # One but for rounding.
        and np.all((errors.r2 <= 1.0) & (np.abs(errors.whiteness) <= 1.0 + 1e-6))
    )
    if not is_sound:
        raise ValueError("its errors are none")
    return errors


def _effects(stored: Any, count: int) -> np.ndarray | None:
    """Columns that a covariance has in it; earlier versions lack some."""
    if stored is None:
        return None
    return _array(stored, count, len(stored[0]) if count else 0)


def _left_out(stored: dict[str, Any], count: int, dof: int) -> LeftOut:
    levels = len(ERROR_LEVELS)
    steady = stored.get("steady")  # older files have none
    return LeftOut(
        _array(stored["parameters"], len(stored["parameters"]), count),
        _array(stored["moving"], dof, levels, least=0.0),
        _array(stored["turning"], dof, levels, least=0.0),
        None if steady is None else _array(steady, count),
    )


def _lag(stored: dict[str, Any] | None, joints: Sequence[str]) -> TorqueLag | None:
    if stored is None:
        return None
    seconds = float(_array(stored["seconds"]))
    std = float(_array(stored["std"], least=0.0, infinite=True))
    own = []
    for name, late, deviation in stored.get("joints", []):  # older files have none
        if name not in joints:
            raise ValueError("it knows a delay of a joint that the arm has not")
        own.append((name, float(_array(late)), float(_array(deviation, least=0.0))))
    return TorqueLag(seconds, std, tuple(own))


def _part(data: dict[str, Any], dof: int) -> PartErrors:
    arrays = {k: _array(v, dof, least=0.0, infinite=True) for k, v in data.items()}
    # Null is what is not known here, as joints without such rows have no error.
    return PartErrors(
        **{k: np.where(np.isinf(v), np.nan, v) for k, v in arrays.items()}
    )


def _words(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(x, str) for x in values):
        raise ValueError("words are expected where it has something else")
    return tuple(values)


def _array(
    values: Any, *shape: int, least: float = -math.inf, infinite: bool = False
) -> np.ndarray:
    """Numbers of a shape; null is infinity where that may be."""
    array = np.array(values, dtype=object)
    if infinite:
        array[array == None] = math.inf  # noqa: E711
    array = array.astype(float)
    is_number = (array >= least) & (np.abs(array) <= LARGEST_NUMBER)
    if infinite:
        is_number |= np.isposinf(array)
    if array.shape != shape or not np.all(is_number):
        raise ValueError("it holds numbers no estimate has")
    return array


def _finite(values: np.ndarray) -> list[float | None]:
    # JSON has no infinity.
    return [float(v) if math.isfinite(v) else None for v in values]
