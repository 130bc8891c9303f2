"""Reproductions of five classic papers, our figures beside theirs."""

from papers.catalogue import PAPERS, Group, GroupResult, Paper, groups
from papers.experiments import Experiment, experiments
from papers.gallery import Gallery
from papers.pages import write_gallery
from papers.running import reproduce, run_groups

__all__ = [
    "PAPERS",
    "Experiment",
    "Gallery",
    "Group",
    "GroupResult",
    "Paper",
    "experiments",
    "groups",
    "reproduce",
    "run_groups",
    "write_gallery",
]
