"""DICOM files of eight by eight grey values, each in one call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import UID, ExplicitVRLittleEndian

GREY = (np.arange(64, dtype=np.uint16) * 60).reshape(8, 8)


def write(path: Path, study: str, number: int = 1, **elements: object) -> Path:
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID = UID("1.2.840.10008.5.1.4.1.1.1.1")
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID = study, f"{study}.1"
    dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID = UID(f"{study}.1.{number}")
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.Modality, dataset.InstanceNumber = "DX", number
    dataset.PatientName, dataset.PatientID, dataset.ViewPosition = "Known^Nobody", f"patient of {study}", "PA"
    dataset.Rows = dataset.Columns = 8
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 16, 12, 11, 0
    dataset.PixelData = (GREY + number).tobytes()
    dataset["PixelData"].VR = "OW"
    for name, value in elements.items():
        setattr(dataset, name, value)
    path.parent.mkdir(parents=True, exist_ok=True)
    pydicom.dcmwrite(path, dataset, enforce_file_format=True)
    return path
