"""One file per section; each turns a Subject into a Section."""

from armwise.report.sections.fit import (
    preparation_section,
    residuals_section,
    spectrum_section,
    summary_section,
    torques_section,
)
from armwise.report.sections.parameters import friction_section, parameters_section
from armwise.report.sections.unidentified import hidden_section
from armwise.report.sections.warnings import doubts_section

SECTIONS = (
    summary_section,
    doubts_section,
    torques_section,
    residuals_section,
    parameters_section,
    hidden_section,
    spectrum_section,
    friction_section,
    preparation_section,
)
"""In the order to read them."""

__all__ = ["SECTIONS"]
