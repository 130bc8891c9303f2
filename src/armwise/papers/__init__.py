"""Papers: five classic ones redone, ours beside theirs."""

from armwise.papers.catalogue import PAPERS, Group, Made, Paper, groups
from armwise.papers.experiments import Experiment, experiments
from armwise.papers.gallery import Gallery
from armwise.papers.pages import write_gallery
from armwise.papers.running import reproduce, run_groups

__all__ = [
    "PAPERS",
    "Experiment",
    "Gallery",
    "Group",
    "Made",
    "Paper",
    "experiments",
    "groups",
    "reproduce",
    "run_groups",
    "write_gallery",
]
