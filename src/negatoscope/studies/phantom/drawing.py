"""One picture: anatomy, disease, bones and vessels added up and developed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from negatoscope.studies.phantom import devices, disease
from negatoscope.studies.phantom.anatomy import Anatomy, Pose
from negatoscope.studies.phantom.exposure import develop
from negatoscope.studies.phantom.film import Field, Mask, grain
from negatoscope.studies.phantom.findings import Finding
from negatoscope.studies.phantom.frontal import frontal_gas, frontal_view
from negatoscope.studies.phantom.frontal_bones import frontal_bones
from negatoscope.studies.phantom.lateral import lateral_gas, lateral_view
from negatoscope.studies.phantom.lateral_bones import lateral_bones
from negatoscope.studies.phantom.vessels import Tree, vessel_shadow
from negatoscope.studies.phantom.view import FrontalView, LateralView, View

# Each changes the view and returns its mask. The order is that of work: what fills the lungs first, what lies on top
# last.
DRAWINGS: Mapping[str, Callable[[Any, Finding], Mask]] = {
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
_AERATED = 0.6  # what a ray through the longest path of lung is spared


def draw_picture(
    view_name: str, anatomy: Anatomy, pose: Pose, findings: tuple[Finding, ...], tree: Tree, size: int
) -> tuple[NDArray[np.uint8], dict[str, Mask]]:
    """One view, (size, size) grey values, and each finding's mask on it."""
    anatomy = disease.diseased(anatomy, findings)
    view: FrontalView | LateralView
    if view_name == "frontal":
        view = frontal_view(anatomy, pose, size, disease.mediastinal_shift(findings))
    else:
        view = lateral_view(anatomy, pose, size)
    present = {finding.name: finding for finding in findings}
    masks = {name: draw(view, present[name]) for name, draw in DRAWINGS.items() if name in present}
    return develop(view.film, _attenuation(view, tree), pose), masks


def _attenuation(view: FrontalView | LateralView, tree: Tree) -> Field:
    """Everything a ray meets, added up. (H, W)"""
    total = frontal_bones(view) if isinstance(view, FrontalView) else lateral_bones(view)
    total += view.body
    total += view.extra
    total -= view.air * (_AERATED * view.anatomy.lungs)
    branches = vessel_shadow(view, tree)
    # In a filled lung the vessels are as dense as what surrounds them; the bronchi beside them are not.
    branches *= view.air * view.vessels - 0.7 * view.filled * view.lung
    total += branches
    gas = frontal_gas(view) if isinstance(view, FrontalView) else lateral_gas(view)
    gas *= view.body
    total -= gas
    total += _texture(view)
    return total


def _texture(view: View) -> Field:
    """What is too fine to draw: the lungs' grain, the unevenness of soft tissue."""
    film, places = view.film, view.pose.places
    texture = 0.011 * grain(film, 1, places[2:4])
    texture += 0.007 * grain(film, 2, places[4:6])
    texture *= view.air * view.vessels
    texture += view.body * (0.016 * grain(film, 3, places[6:8]))
    return texture
