"""A URDF as a tree: who hangs on whom, and every way in which that can be wrong."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from armwise.arms.xml import Element


def _refuse_other_dialects(robot: Element) -> None:
    if robot.tag != "robot":
        raise robot.error("is not the root of a URDF, which is <robot>.")
    for child in robot.children:
        if child.tag.startswith("xacro:"):
            raise child.error("is xacro; expand the file with xacro first.")


@dataclass(frozen=True)
class Tree:
    """The links and joints of a URDF, known to be one tree.

    Attributes:
        links: Every <link> by name.
        joints: Every <joint>, in the file's order.
        root: Name of the one link that nothing carries.
    """

    links: Mapping[str, Element]
    joints: tuple[Element, ...]
    root: str

    @classmethod
    def of(cls, robot: Element) -> Tree:
        """Check that a <robot> is one tree of links, and order it."""
        _refuse_other_dialects(robot)
        links = _by_name(robot, "link")
        joints = tuple(_by_name(robot, "joint").values())
        if not links:
            raise robot.error("has no <link>; an arm needs at least two.")
        carried: dict[str, Element] = {}
        for joint in joints:
            for end in ("parent", "child"):
                _require_known(joint, end, links)
            child = link_of(joint, "child")
            if child in carried:
                other = carried[child].attributes["name"]
                raise joint.error(
                    f'carries the link "{child}", which joint "{other}" carries too; '
                    "a tree has one joint per link."
                )
            carried[child] = joint
        roots = [name for name in links if name not in carried]
        if not roots:
            raise robot.error("is a cycle: every link hangs on another; cut one joint.")
        if len(roots) > 1:
            raise links[roots[1]].error(
                f'hangs on nothing, and so does "{roots[0]}"; join them by a joint.'
            )
        return cls(links, joints, roots[0])

    def joints_outwards(self) -> list[Element]:
        """Order the joints: parents first, else as they stand in the file."""
        waiting: dict[str, list[int]] = {}
        for i, joint in enumerate(self.joints):
            waiting.setdefault(link_of(joint, "parent"), []).append(i)
        ready = waiting.pop(self.root, [])
        heapq.heapify(ready)
        order: list[Element] = []
        while ready:
            joint = self.joints[heapq.heappop(ready)]
            order.append(joint)
            for i in waiting.pop(link_of(joint, "child"), []):
                heapq.heappush(ready, i)
        if waiting:
            stuck = self.joints[min(i for stuck in waiting.values() for i in stuck)]
            raise stuck.error("is part of a cycle of links; cut one of its joints.")
        return order


def link_of(joint: Element, end: str) -> str:
    """Name the parent or child link of a joint."""
    return joint.require(end).text("link")


def _by_name(robot: Element, tag: str) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in robot.all(tag):
        name = element.text("name")
        if name in found:
            raise element.error(
                f"has the name of the <{tag}> in line {found[name].line}; rename one."
            )
        found[name] = element
    return found


def _require_known(joint: Element, end: str, links: Mapping[str, Element]) -> None:
    name = link_of(joint, end)
    if name not in links:
        known = ", ".join(list(links)[:8]) + (", …" if len(links) > 8 else "")
        raise joint.error(
            f'has the {end} "{name}", which is no <link> of the file. It has: {known}.'
        )
