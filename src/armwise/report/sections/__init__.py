"""One file per section; each turns a Subject into a Section."""

from armwise.report.sections.doubts import doubts_section
from armwise.report.sections.friction import friction_section
from armwise.report.sections.hidden import hidden_section
from armwise.report.sections.parameters import parameters_section
from armwise.report.sections.preparation import preparation_section
from armwise.report.sections.residuals import residuals_section
from armwise.report.sections.spectrum import spectrum_section
from armwise.report.sections.summary import summary_section
from armwise.report.sections.torques import torques_section

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
