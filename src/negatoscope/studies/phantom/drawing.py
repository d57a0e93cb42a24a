"""One picture: anatomy, disease, bones and vessels added up and developed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from negatoscope.studies.phantom import devices, disease
from negatoscope.studies.phantom.anatomy import Anatomy, Pose
from negatoscope.studies.phantom.exposure import develop
from negatoscope.studies.phantom.film import F, grain
from negatoscope.studies.phantom.findings import Finding
from negatoscope.studies.phantom.frontal import frontal_bones, frontal_gas, frontal_view
from negatoscope.studies.phantom.lateral import lateral_bones, lateral_gas, lateral_view
from negatoscope.studies.phantom.projection import View
from negatoscope.studies.phantom.vessels import Tree, vessel_shadow

Grey = NDArray[np.uint8]
Mask = NDArray[np.bool_]

# Every finding's drawing; the order is the order of work: what fills the lungs first, what lies on top last.
DRAWINGS = {
    "hyperinflation": disease.hyperinflation,
    "cardiomegaly": disease.cardiomegaly,
    "edema": disease.edema,
    "consolidation": disease.consolidation,
    "atelectasis": disease.atelectasis,
    "pneumothorax": disease.pneumothorax,
    "effusion": disease.effusion,
    "nodule": disease.nodule,
    "mass": disease.mass,
    "fracture": disease.fracture,
    "surgical clips": devices.surgical_clips,
    "central line": devices.central_line,
    "nasogastric tube": devices.nasogastric_tube,
    "endotracheal tube": devices.endotracheal_tube,
    "pacemaker": devices.pacemaker,
}


def draw_picture(
    view_name: str, anatomy: Anatomy, pose: Pose, findings: tuple[Finding, ...], tree: Tree, size: int
) -> tuple[Grey, dict[str, Mask]]:
    """One view, (size, size) grey values, and each finding's mask on it."""
    anatomy = disease.diseased(anatomy, findings)
    if view_name == "frontal":
        view = frontal_view(anatomy, pose, size, disease.mediastinal_shift(findings, anatomy))
    else:
        view = lateral_view(anatomy, pose, size)
    present = {finding.name: finding for finding in findings}
    masks = {name: draw(view, present[name]) for name, draw in DRAWINGS.items() if name in present}
    bones = frontal_bones(view) if view_name == "frontal" else lateral_bones(view)
    if "gap" in view.borders:
        bones *= view.borders["gap"]
    bones += view.extra
    return develop(view.film, _attenuation(view, bones, tree), pose), masks


def _attenuation(view: View, bones: NDArray[np.float32], tree: Tree) -> NDArray[np.float32]:
    """Everything a ray meets, added up."""
    pose, film = view.pose, view.film
    total = view.body + bones
    total -= view.air * F(0.6 * view.anatomy.lungs)
    branches = vessel_shadow(view, tree, view.fullness, view.upper)
    # Inside a filled lung the vessels are as dense as what surrounds them; the bronchi beside them are not.
    branches *= view.air * view.vessels - F(0.7) * view.filled * view.lung
    total += branches
    gas = frontal_gas(view) if view.name == "frontal" else lateral_gas(view)
    gas *= view.body
    total -= gas
    places = pose.places
    texture = grain(film, 1, places[2:4]) * F(0.011)  # type: ignore[arg-type]
    texture += grain(film, 2, places[4:6]) * F(0.007)  # type: ignore[arg-type]
    texture *= view.air * view.vessels
    total += texture
    total += view.body * (grain(film, 3, places[6:8]) * F(0.016))  # type: ignore[arg-type]
    return total
