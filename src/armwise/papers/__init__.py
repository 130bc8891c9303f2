"""Papers: five classic ones redone, ours beside theirs."""

from armwise.papers.catalogue import PAPERS, Group, Paper, groups, reproduce
from armwise.papers.gallery import write_gallery

__all__ = ["PAPERS", "Group", "Paper", "groups", "reproduce", "write_gallery"]
