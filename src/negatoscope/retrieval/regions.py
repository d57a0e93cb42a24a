"""Which parts of the chest a sentence speaks of, by its words."""

from __future__ import annotations

import re

REGIONS: dict[str, str] = {
    "heart": r"hearts?|cardiac|cardiomegaly|cardio(?:mediastinal|thoracic|pulmonary|vascular)|ventric\w+|atri(?:al|um)",
    "mediastinum": (
        r"(?:cardio)?mediastin\w+|aort\w+|hil(?:ar|um|a|i)|trachea\w*|(?:para|pre)tracheal|thyroid|hernia\w*|goiter|"
        r"esophag\w+|sternotomy|lymphadenopathy|adenopathy"
    ),
    "lungs": (
        r"lungs?|pulmonary|cardiopulmonary|airspace\w*|air|consolidat\w+|infiltrat\w+|opacit\w+|opacif\w+|atelecta\w+|"
        r"nodul\w+|mass(?:es)?|parenchym\w+|interstiti\w+|granulom\w+|pneumonia\w*|edema|vascula\w+|hyper(?:inflat|expan)\w+|"
        r"emphysem\w+|copd|scar\w*|bronch\w+|lobes?|lobar|lingula\w*|bas(?:es|al|ilar|ilarly)|perihilar|apic\w+|apex|"
        r"fibro\w+|cavit\w+|bull(?:ae?|ous)|densit\w+|congestion|infectio\w+"
    ),
    "pleura": r"pleura\w*|effusions?|(?:hydro)?pneumothora\w+|costophrenic|sulc(?:us|i)|fissure\w*|blunt\w*",
    "bones": (
        r"bon(?:es?|y)|oss(?:eous|ification)|skelet\w+|spin(?:e|al)|vertebra\w*|ribs?|fractur\w+|degenerat\w+|scolio\w+|"
        r"kypho\w+|osteo\w+|clavic\w+|spondyl\w+|shoulders?|dis[ck]s?|humer\w+|arthri\w+|endplates?|t\d+|sternum|thorax"
    ),
    "diaphragm": r"(?:hemi)?diaphragm\w*|subdiaphragmatic|abdom\w+|eventration|bowel|gastric|stomach|quadrant|liver",
    "devices": (
        r"catheters?|tubes?|lines?|picc|pacemakers?|pacer|leads?|wires?|clips?|sutures?|stents?|prosthe\w+|port|"
        r"defibrillator|icd|device\w*|hardware|valves?|surg\w+"
    ),
}
_PATTERNS = {region: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for region, words in REGIONS.items()}


def regions_of(sentence: str) -> frozenset[str]:
    return frozenset(region for region, pattern in _PATTERNS.items() if pattern.search(sentence))
