"""Reduction: the parameters that matter."""

from armwise.reduction.reduce import reduce, significance

__all__ = ["reduce", "significance"]
