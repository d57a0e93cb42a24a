"""The grammar's sentences: what a radiologist may say of a healthy chest, and of each finding.

`{a|b|}` chooses one alternative (braces nest); `<side>` and the like are filled from the finding. Each sentence carries
the CheXpert observations it speaks of, by that labeler's own conventions: "the heart is normal in size" speaks of
Cardiomegaly, "mediastinal contours" of Enlarged Cardiomediastinum, "lungs are clear" of none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Labels = dict[str, int]


@dataclass(frozen=True, slots=True)
class Healthy:
    """A sentence that denies disease, or calls something normal."""

    pattern: str
    topics: frozenset[str]
    """All of these must be healthy, and none spoken of before."""
    labels: Labels = field(default_factory=dict)
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Ill:
    """A sentence that tells a finding."""

    pattern: str
    labels: Labels
    kind: str = ""
    """Only for findings of this kind."""
    lobe: bool | None = None
    hedged: bool = False


_NO_EFFUSION_PTX = {"Pleural Effusion": 0, "Pneumothorax": 0}
_HEART, _CONTOUR = {"Cardiomegaly": 0}, {"Enlarged Cardiomediastinum": 0}


def _of(*topics: str) -> frozenset[str]:
    return frozenset(topics)


HEALTHY: tuple[Healthy, ...] = (
    # Heart and mediastinum.
    Healthy("{The heart|Heart} is normal in size.", _of("heart"), _HEART, 2),
    Healthy("{The heart|Heart} size is {normal|within normal limits}.", _of("heart"), _HEART, 2),
    Healthy("Normal heart size.", _of("heart"), _HEART),
    Healthy("The mediastinum is unremarkable.", _of("mediastinum"), _CONTOUR),
    Healthy("The mediastinal contours are {normal|unremarkable|within normal limits}.", _of("mediastinum"), _CONTOUR),
    Healthy(
        "{The cardiomediastinal|Cardiomediastinal} {silhouette is {normal|unremarkable|within normal limits|normal in size and contour}|contour is {normal|unremarkable|within normal limits}}.",
        _of("heart", "mediastinum"),
        _CONTOUR,
        3,
    ),
    Healthy(
        "Cardiac and mediastinal contours are {within normal limits|normal}.", _of("heart", "mediastinum"), _CONTOUR, 2
    ),
    Healthy(
        "{The heart|Heart} size and mediastinal contours are {within normal limits|normal}.",
        _of("heart", "mediastinum"),
        _HEART | _CONTOUR,
        2,
    ),
    Healthy("Normal heart size and mediastinal contours.", _of("heart", "mediastinum"), _HEART | _CONTOUR),
    Healthy(
        "{The heart|Heart} size and pulmonary vascularity are {within normal limits|normal}.",
        _of("heart", "vessels"),
        _HEART,
    ),
    # Lungs.
    Healthy("{The lungs|Lungs|Both lungs} are clear{| bilaterally}.", _of("lungs"), {}, 4),
    Healthy("{The lungs|Lungs} are clear and {well expanded|well aerated|expanded}.", _of("lungs", "volume"), {}),
    Healthy(
        "{No {focal|lobar} consolidation{| is seen| identified}|There is no {focal|lobar} consolidation}.",
        _of("airspace"),
        {"Consolidation": 0},
        2,
    ),
    Healthy(
        "No focal airspace {disease|opacity}{| is seen| identified}.", _of("airspace", "haze"), {"Lung Opacity": 0}, 2
    ),
    Healthy("{The lungs|Lungs} are free of focal airspace disease.", _of("airspace", "haze"), {"Lung Opacity": 0}, 1.5),
    Healthy(
        "{No|There is no} focal consolidation, pleural effusion{|,} or pneumothorax.",
        _of("airspace", "pleura", "pneumothorax"),
        {"Consolidation": 0} | _NO_EFFUSION_PTX,
        3,
    ),
    Healthy(
        "{The lungs|Lungs} are clear without focal consolidation, {pleural effusion|effusion}{|,} or pneumothorax.",
        _of("lungs", "airspace", "pleura", "pneumothorax"),
        {"Consolidation": 0} | _NO_EFFUSION_PTX,
        2,
    ),
    Healthy(
        "{No|There is no} evidence of {active|acute} {infection|pneumonia}.",
        _of("airspace", "haze", "infection"),
        {"Pneumonia": 0},
        0.7,
    ),
    Healthy(
        "{No suspicious {pulmonary nodules or masses|nodules or masses|nodules}{| identified| are seen}|There are no suspicious {pulmonary nodules or masses|nodules or masses|nodules}}.",
        _of("nodules"),
        {"Lung Lesion": 0},
    ),
    Healthy("{The lung|Lung} volumes are normal.", _of("volume"), {}, 0.6),
    # Pleura.
    Healthy(
        "{No {pleural effusion or pneumothorax|pneumothorax or pleural effusion}{| is seen| identified}|There is no {pleural effusion or pneumothorax|pneumothorax or pleural effusion}}.",
        _of("pleura", "pneumothorax"),
        _NO_EFFUSION_PTX,
        5,
    ),
    Healthy("{No|There is no} {|evidence of }pneumothorax.", _of("pneumothorax"), {"Pneumothorax": 0}, 1.5),
    Healthy(
        "{No {|evidence of }pleural effusion{| is seen}|There is no {|evidence of }pleural effusion}.",
        _of("pleura"),
        {"Pleural Effusion": 0},
        1.5,
    ),
    Healthy("{The costophrenic|Costophrenic} angles are sharp{| bilaterally}.", _of("pleura", "angles"), {}, 0.6),
    # Vessels.
    Healthy(
        "{The pulmonary|Pulmonary} {vascularity|vasculature} is {normal|within normal limits|unremarkable}.",
        _of("vessels"),
        {},
        1.5,
    ),
    Healthy("{No|There is no} {|evidence of }pulmonary edema.", _of("vessels", "haze"), {"Edema": 0}),
    Healthy("{The hila|The hilar contours} are {normal|unremarkable}.", _of("hila"), {}, 0.6),
    # Bones and the rest.
    Healthy("{The osseous|Osseous|The bony|Bony} structures are {intact|unremarkable}.", _of("bones"), {}, 2),
    Healthy(
        "{No acute {bony|osseous} abnormality{| is seen}|There is no acute {bony|osseous} abnormality}.",
        _of("bones"),
        {},
        2,
    ),
    Healthy(
        "{The visualized|Visualized} {osseous|bony} structures {of the thorax |}are without acute abnormality.",
        _of("bones"),
        {},
    ),
    Healthy("No displaced rib fracture{| is seen}.", _of("bones"), {"Fracture": 0}, 0.5),
    Healthy("The {visualized |}soft tissues are unremarkable.", _of("soft tissue"), {}, 0.6),
    Healthy("{The trachea|Trachea} is midline.", _of("trachea"), {}, 0.8),
    Healthy("The {diaphragm is|diaphragms are} {unremarkable|normal in contour}.", _of("diaphragm"), {}, 0.3),
    Healthy("The upper abdomen is unremarkable.", _of("abdomen"), {}, 0.3),
)

# What each finding forbids to be called healthy. A tube through the lungs forbids nothing.
FORBIDS: dict[str, frozenset[str]] = {
    "cardiomegaly": _of("heart", "mediastinum"),
    "effusion": _of("pleura", "angles", "diaphragm", "lungs"),
    "atelectasis": _of("lungs", "haze", "volume", "diaphragm"),
    "consolidation": _of("lungs", "airspace", "haze", "infection"),
    "hyperinflation": _of("volume", "diaphragm"),
    "nodule": _of("lungs", "nodules", "haze"),
    "mass": _of("lungs", "nodules", "haze", "airspace", "hila"),
    "edema": _of("lungs", "haze", "vessels", "hila", "airspace"),
    "pneumothorax": _of("pneumothorax", "lungs", "volume"),
    "fracture": _of("bones"),
    "central line": frozenset(),
    "surgical clips": _of("abdomen", "soft tissue"),
    "pacemaker": _of("soft tissue"),
    "endotracheal tube": _of("trachea"),
    "nasogastric tube": _of("abdomen"),
}

ILL: dict[str, tuple[Ill, ...]] = {
    "cardiomegaly": (
        Ill("{The heart|Heart} is <severely> enlarged.", {"Cardiomegaly": 1}),
        Ill("{There is <severe>|<Severe>} cardiomegaly.", {"Cardiomegaly": 1}),
        Ill("{The heart|Heart} size is <severely> enlarged.", {"Cardiomegaly": 1}),
        Ill("<Severe> {enlargement of the cardiac silhouette|cardiac enlargement}.", {"Cardiomegaly": 1}),
        Ill("{The cardiac|Cardiac} silhouette is <severely> enlarged.", {"Cardiomegaly": 1}),
    ),
    "effusion": (
        Ill("{There is a <severe>|<Severe>} <side> pleural effusion.", {"Pleural Effusion": 1}, kind="one"),
        Ill("A <severe> pleural effusion is {present|seen} on the <side>.", {"Pleural Effusion": 1}, kind="one"),
        Ill("{There are <severe>|<Severe>} bilateral pleural effusions.", {"Pleural Effusion": 1}, kind="two"),
        Ill("<Severe> pleural effusions {bilaterally|on both sides}.", {"Pleural Effusion": 1}, kind="two"),
        Ill(
            "Blunting of the <side> costophrenic {angle|sulcus} {consistent with|from} a <severe> {pleural |}effusion.",
            {"Pleural Effusion": 1},
            kind="little",
        ),
        Ill("Possible <severe> <side> pleural effusion.", {"Pleural Effusion": -1}, kind="one", hedged=True),
    ),
    "atelectasis": (
        Ill(
            "<Severe> {linear|platelike|subsegmental|streaky} atelectasis {in|at} the <side> {lung |}base.",
            {"Atelectasis": 1},
            kind="linear one",
        ),
        Ill("There is <severe> <side> basilar atelectasis.", {"Atelectasis": 1}, kind="linear one"),
        Ill(
            "{Streaky|Linear|Bandlike} opacities in the <side> lung base{,|} compatible with <severe> atelectasis.",
            {"Atelectasis": 1, "Lung Opacity": 1},
            kind="linear one",
        ),
        Ill(
            "{Streaky|Linear} <side> basilar opacities may represent atelectasis.",
            {"Atelectasis": -1, "Lung Opacity": 1},
            kind="linear one",
            hedged=True,
        ),
        Ill("<Severe> bibasilar atelectasis{| is present}.", {"Atelectasis": 1}, kind="linear two"),
        Ill(
            "There is <severe> {subsegmental |linear |}atelectasis in both lung bases.",
            {"Atelectasis": 1},
            kind="linear two",
        ),
        Ill(
            "{Streaky|Linear} bibasilar opacities{,|} compatible with <severe> atelectasis.",
            {"Atelectasis": 1, "Lung Opacity": 1},
            kind="linear two",
        ),
        Ill(
            "{There is|} <lobe> {collapse|atelectasis} with {associated |}volume loss.",
            {"Atelectasis": 1},
            kind="lobar",
        ),
        Ill(
            "{Collapse|Atelectasis} of the <lobe> with volume loss in the <side> lung.",
            {"Atelectasis": 1},
            kind="lobar",
        ),
    ),
    "consolidation": (
        Ill("{There is|} <severe> {|focal }consolidation in the <lobe>.", {"Consolidation": 1}),
        Ill("{Focal|Patchy} {airspace opacity|airspace disease} {in|within} the <lobe>.", {"Lung Opacity": 1}),
        Ill("{There is a |}<severe> <lobe> {airspace |}consolidation.", {"Consolidation": 1}),
        Ill(
            "<Lobe> consolidation{, suspicious for| that may represent} pneumonia.",
            {"Consolidation": 1, "Pneumonia": -1},
        ),
        Ill(
            "<Lobe> {airspace opacity|opacity|infiltrate} consistent with pneumonia.",
            {"Lung Opacity": 1, "Pneumonia": 1},
        ),
        Ill(
            "{Patchy opacity|Airspace disease} in the <lobe> may represent pneumonia.",
            {"Lung Opacity": 1, "Pneumonia": -1},
            hedged=True,
        ),
    ),
    "hyperinflation": (
        Ill(
            "{The lungs|Lungs} are <severely> hyperinflated{| with flattened diaphragms| with flattening of the diaphragm}.",
            {},
        ),
        Ill(
            "<Severe> hyperinflation of the lungs{|, suggestive of emphysema|, consistent with chronic obstructive disease}.",
            {},
        ),
        Ill("Flattened diaphragms and increased retrosternal space, compatible with <severe> hyperinflation.", {}),
    ),
    "nodule": (
        Ill("{There is a|} <mm> mm nodule in the <lobe>.", {"Lung Lesion": 1}),
        Ill("A <mm> mm {rounded |round |}nodule {is seen|projects} {in|over} the <lobe>.", {"Lung Lesion": 1}),
        Ill("<Lobe> {pulmonary |}nodule measuring <mm> mm.", {"Lung Lesion": 1}),
        Ill("Possible <mm> mm nodule in the <lobe>.", {"Lung Lesion": -1}, hedged=True),
    ),
    "mass": (
        Ill("{There is a|} <cm> cm mass in the <lobe>.", {"Lung Lesion": 1}),
        Ill("A large <lobe> mass measures <cm> cm.", {"Lung Lesion": 1}),
        Ill("Large lobulated mass in the <lobe>, <cm> cm in diameter.", {"Lung Lesion": 1}),
    ),
    "edema": (
        Ill("{There is|} <severe> pulmonary edema.", {"Edema": 1}),
        Ill("<Severe> {interstitial |}pulmonary edema{| with perihilar haze}.", {"Edema": 1}),
        Ill(
            "Bilateral perihilar {interstitial |}opacities consistent with <severe> pulmonary edema.",
            {"Edema": 1, "Lung Opacity": 1},
        ),
        Ill("<Severe> pulmonary vascular congestion and interstitial edema.", {"Edema": 1}),
        Ill("Perihilar opacities may represent <severe> edema.", {"Edema": -1, "Lung Opacity": 1}, hedged=True),
    ),
    "central line": (
        Ill(
            "<Side> internal jugular {central venous |central |}catheter {tip |}{terminates in|is in|overlies} the <end>.",
            {"Support Devices": 1},
            kind="jugular",
        ),
        Ill(
            "{There is a|} <side> {central venous catheter|internal jugular catheter} with tip in the <end>.",
            {"Support Devices": 1},
            kind="jugular",
        ),
        Ill("<Side> chest port catheter {with tip|terminates} in the <end>.", {"Support Devices": 1}, kind="port"),
        Ill(
            "{There is a |}<side> chest {|wall }port catheter{,| with its} tip in the <end>.",
            {"Support Devices": 1},
            kind="port",
        ),
        Ill("<Side> PICC {tip is|terminates} in the <end>.", {"Support Devices": 1}, kind="PICC"),
        Ill("<Side> upper extremity PICC with tip in the <end>.", {"Support Devices": 1}, kind="PICC"),
    ),
    "surgical clips": (
        Ill(
            "{There are surgical|Surgical} clips {in|overlie} the right upper quadrant.",
            {},
            kind="right upper quadrant",
        ),
        Ill(
            "Cholecystectomy clips {are noted|are present}{| in the right upper quadrant}.",
            {},
            kind="right upper quadrant",
        ),
        Ill(
            "{Median sternotomy wires|Sternotomy wires} and mediastinal {surgical |}clips {are noted|are present}.",
            {},
            kind="sternotomy",
        ),
        Ill(
            "{The patient is status|Status} post median sternotomy with mediastinal surgical clips.",
            {},
            kind="sternotomy",
        ),
        Ill("Surgical clips {are noted|are present} in the <side> axilla.", {}, kind="axilla"),
        Ill("<Side> axillary surgical clips.", {}, kind="axilla"),
    ),
    "pacemaker": (
        Ill("<Side> {chest wall |sided |}{pacemaker|cardiac pacemaker} with <leads>.", {"Support Devices": 1}),
        Ill(
            "{There is a|} <side> chest wall pacemaker with <leads> in {place|expected position}.",
            {"Support Devices": 1},
        ),
        Ill("A pacemaker overlies the <side> chest with <leads>.", {"Support Devices": 1}),
    ),
    "fracture": (
        Ill("{There is a|} displaced fracture of the <side> <rib>.", {"Fracture": 1}),
        Ill("<Side> <rib> fracture{| with displacement| is seen}.", {"Fracture": 1}),
        Ill("Displaced <side> <rib> fracture.", {"Fracture": 1}),
    ),
    "pneumothorax": (
        Ill("{There is a <severe>|<Severe>} <side> {apical |}pneumothorax.", {"Pneumothorax": 1}),
        Ill("A <severe> pneumothorax is {seen|present} on the <side>.", {"Pneumothorax": 1}),
        Ill("<Severe> <side> pneumothorax with visible pleural line.", {"Pneumothorax": 1}),
        Ill("Possible <severe> <side> apical pneumothorax.", {"Pneumothorax": -1}, hedged=True),
    ),
    "endotracheal tube": (
        Ill("{The endotracheal|Endotracheal} tube tip is <cm> cm above the carina.", {"Support Devices": 1}),
        Ill("Endotracheal tube terminates <cm> cm above the carina.", {"Support Devices": 1}),
    ),
    "nasogastric tube": (
        Ill("{The nasogastric|Nasogastric|Enteric} tube {tip is|terminates} in the stomach.", {"Support Devices": 1}),
        Ill(
            "{Nasogastric|Enteric} tube courses below the diaphragm with tip {in|overlying} the stomach.",
            {"Support Devices": 1},
        ),
    ),
}

CHANGES: dict[str, tuple[str, ...]] = {
    "new": ("new since the prior {exam|study}", "not present on the prior {exam|study}"),
    "unchanged": ("unchanged {from|compared to} the prior {exam|study}", "stable"),
    "larger": ("increased {from|compared to} the prior {exam|study}", "larger than on the prior {exam|study}"),
    "smaller": ("decreased {from|compared to} the prior {exam|study}", "improved {from|since} the prior {exam|study}"),
}

INDICATIONS = ("Chest pain.", "Shortness of breath.", "Dyspnea.", "Cough.", "Fever and cough.", "Preoperative evaluation.", "<Age>-year-old <man> with {chest pain|dyspnea|cough|shortness of breath}.", "Hypertension.", "Positive PPD.", "Annual exam.", "Weakness.", "Syncope.")  # fmt: skip
INDICATIONS_OF: dict[str, tuple[str, ...]] = {
    "endotracheal tube": ("Respiratory failure, intubated.", "Evaluate tube placement."),
    "nasogastric tube": ("Evaluate tube placement.",),
    "central line": ("Evaluate line placement.", "Chemotherapy.", "Sepsis."),
    "pacemaker": ("Syncope, pacemaker.", "Arrhythmia."),
    "fracture": ("Trauma.", "Fall with chest pain."),
    "pneumothorax": ("Acute chest pain and dyspnea.", "Trauma."),
    "edema": ("Dyspnea, history of heart failure.", "Shortness of breath and leg swelling."),
    "mass": ("Weight loss and hemoptysis.", "Smoker with cough."),
    "nodule": ("Smoker.", "History of malignancy."),
    "hyperinflation": ("Chronic obstructive disease.", "Smoker with dyspnea."),
    "consolidation": ("Fever and cough.", "Productive cough."),
}
ALL_CLEAR = ("No acute cardiopulmonary {abnormality|disease|process|findings}.", "No acute {disease|findings}.", "Normal chest.", "No {evidence of |}active disease.", "Negative {chest|for acute abnormality}.")  # fmt: skip
