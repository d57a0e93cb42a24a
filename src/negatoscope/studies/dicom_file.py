"""One DICOM file: told from other files, asked for what it is, decoded. `dicom.py` makes studies of a folder of them.

Stored value -> Modality LUT -> VOI LUT or window -> screen (PS3.3 C.11). The first is kept as grey values, the others
travel along in `Pixels` and are applied by `pixels.to_8bit`. Sizes are checked before anything is decoded, and so is
what a compressed image says of itself: ten rows in the header and sixty thousand in the JPEG is an old trick.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from pydicom import Dataset, dcmread
from pydicom.encaps import generate_frames
from pydicom.multival import MultiValue
from pydicom.pixels import apply_color_lut, pixel_array
from pydicom.pixels.utils import get_expected_length
from pydicom.uid import UID, DeflatedExplicitVRLittleEndian, JPEGExtended12Bit

from negatoscope.errors import BadInput
from negatoscope.studies.pixels import DicomFacts, LookUpTable, Pixels, Window
from negatoscope.studies.sections import section_name

_FACTS = (
    *("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "SOPClassUID", "PatientID", "Modality"),
    *("ViewPosition", "ViewCodeSequence", "ImageLaterality", "Laterality", "BodyPartExamined", "SeriesDescription"),
    *("InstanceNumber", "PhotometricInterpretation", "Rows", "Columns", "NumberOfFrames", "SpecificCharacterSet"),
)
_GREY, _COLOUR = (
    ("MONOCHROME1", "MONOCHROME2"),
    ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT", "PALETTE COLOR"),
)
_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)  # ITU-R BT.601, as Pillow's convert("L")
_DAMAGED = "fetch the file again"


def read_facts(source: Path | bytes, *, where: object = None) -> DicomFacts:
    """What the file says of itself, without its pixels. Raises BadInput."""
    name = where if where is not None else source if isinstance(source, Path) else "DICOM in memory"
    return facts_of(_read(source, name, pixels=False), name)


def read_report(path: Path) -> dict[str, str]:
    """The text of a structured report, by the headings over it ('findings', 'impression'). Raises BadInput."""
    try:
        dataset = dcmread(path, force=True)
        lines = list(_lines_of_report(dataset, "full report"))
    except Exception as error:  # a damaged file can raise anything at all out of the parser
        raise BadInput(_one_line("is a damaged DICOM report", error), where=path, remedy=_DAMAGED) from error
    sections: dict[str, str] = {}
    for heading, text in lines:
        sections[heading] = f"{sections[heading]}\n{text}" if heading in sections else text
    return sections


def _lines_of_report(item: Dataset, heading: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """(section, text) of every text item below a container, in the order of the document."""
    for child in item.get("ContentSequence") or ():
        kind, meaning = _text(child, "ValueType"), _meaning(child, "ConceptNameCodeSequence")
        known = section_name(meaning) if meaning else heading
        if kind == "TEXT" and (text := str(child.get("TextValue") or "").strip()):
            yield (known if known in ("findings", "impression") else heading), text
        elif kind == "CONTAINER" and depth < 20:
            yield from _lines_of_report(child, known, depth + 1)


def facts_of(dataset: Dataset, name: object) -> DicomFacts:
    return DicomFacts(
        study=_text(dataset, "StudyInstanceUID"),
        series=_text(dataset, "SeriesInstanceUID"),
        instance=_text(dataset, "SOPInstanceUID"),
        patient=_text(dataset, "PatientID"),
        modality=_text(dataset, "Modality").upper(),
        position=_text(dataset, "ViewPosition"),
        view_code=_meaning(dataset, "ViewCodeSequence"),
        laterality=_text(dataset, "ImageLaterality") or _text(dataset, "Laterality"),
        body_part=_text(dataset, "BodyPartExamined"),
        series_description=_text(dataset, "SeriesDescription"),
        number=_whole(dataset, "InstanceNumber", name, 0),
        photometric=_text(dataset, "PhotometricInterpretation"),
        rows=_whole(dataset, "Rows", name, 0),
        columns=_whole(dataset, "Columns", name, 0),
        frames=max(_whole(dataset, "NumberOfFrames", name, 1), 1),
    )


def decode(data: bytes, *, max_pixels: int, frame: int | None, where: object) -> Pixels:
    """The bytes of a DICOM file -> Pixels. Raises BadInput."""
    dataset = _read(data, where, pixels=True, max_pixels=max_pixels)
    facts = facts_of(dataset, where)
    frame = _check_before_decoding(dataset, facts, max_pixels, frame, where)
    try:
        stored, photometric = _stored_values(dataset, frame)
        if photometric in _GREY:
            return _grey(dataset, stored, facts, where)
        return Pixels(_luma(dataset, stored, photometric), 8, dicom=facts)
    except BadInput:
        raise
    except Exception as error:  # a damaged file can raise anything at all out of a decoder
        raise BadInput(_one_line("cannot be decoded", error), where=where, remedy=_DAMAGED) from error


def _read(source: Path | bytes, name: object, *, pixels: bool, max_pixels: int = 0) -> Dataset:
    try:
        if isinstance(source, bytes):
            if pixels:
                _check_deflated(source, 8 * max_pixels + 2**24, name)
            return dcmread(BytesIO(source), force=True, stop_before_pixels=not pixels)
        return dcmread(source, force=True, stop_before_pixels=True, specific_tags=list(_FACTS))
    except BadInput:
        raise
    except FileNotFoundError as error:
        raise BadInput("no such file", where=name, remedy="check the path") from error
    except Exception as error:
        raise BadInput(_one_line("is a damaged DICOM file", error), where=name, remedy=_DAMAGED) from error


def _check_deflated(data: bytes, limit: int, name: object) -> None:
    """A deflated file is inflated in pieces first: pydicom does it at once, and 1 MB may hold 1 GB."""
    head = data[132:2048]
    if DeflatedExplicitVRLittleEndian.encode() not in head or head[:8] != b"\x02\x00\x00\x00UL\x04\x00":
        return
    start = 132 + 12 + struct.unpack("<I", head[8:12])[0]
    inflate, rest, total = zlib.decompressobj(-zlib.MAX_WBITS), data[start:], 0
    while rest and not inflate.eof:
        total += len(inflate.decompress(rest, 2**22))
        rest = inflate.unconsumed_tail
        if total > limit:
            raise BadInput(f"inflates to more than {limit:,} bytes", where=name, remedy="leave the file out")


def _check_before_decoding(
    dataset: Dataset, facts: DicomFacts, max_pixels: int, frame: int | None, name: object
) -> int:
    """Raises where decoding would fail or would need more memory than an image may. Returns the frame to decode."""
    if "PixelData" not in dataset:
        what = facts.modality or UID(_text(dataset, "SOPClassUID")).name or "no image"
        raise BadInput(f"is DICOM without an image ({what})", where=name, remedy="leave the file out")
    if facts.photometric not in _GREY + _COLOUR:
        raise BadInput(f"has photometric interpretation {facts.photometric!r}", where=name, remedy="convert the file")
    if facts.rows < 1 or facts.columns < 1:
        raise BadInput(f"has no pixels ({facts.columns} x {facts.rows})", where=name, remedy=_DAMAGED)
    if frame is None and facts.frames > 1:
        raise BadInput(f"holds {facts.frames} frames", where=name, remedy="say which by frame=0, or split the file")
    if frame is not None and not 0 <= frame < facts.frames:
        raise BadInput(f"has no frame {frame}, only {facts.frames}", where=name, remedy="frames are counted from 0")
    _check_size(facts.columns, facts.rows, max_pixels, name)
    _name_syntax(dataset, name)
    syntax = dataset.file_meta.TransferSyntaxUID
    if not syntax.is_encapsulated:
        there, needed = len(dataset.PixelData), get_expected_length(dataset)
        if there < needed:
            raise BadInput(f"is cut off: {there:,} of {needed:,} bytes of image", where=name, remedy=_DAMAGED)
        return frame or 0
    try:
        pieces = generate_frames(dataset.PixelData, number_of_frames=facts.frames)
        inside = _codestream_size(next(islice(pieces, frame or 0, None)))
    except Exception as error:
        raise BadInput(_one_line("is damaged inside its image", error), where=name, remedy=_DAMAGED) from error
    if inside is not None:
        _check_size(*inside, max_pixels, name)
        if inside != (facts.columns, facts.rows):
            says = f"says {facts.columns} x {facts.rows} and holds an image of {inside[0]} x {inside[1]}"
            raise BadInput(says, where=name, remedy="leave the file out")
    return frame or 0


def _check_size(columns: int, rows: int, max_pixels: int, name: object) -> None:
    if columns * rows > max_pixels:
        raise BadInput(
            f"would decode to {columns:,} x {rows:,} pixels, more than {max_pixels:,}",
            where=name,
            remedy="leave the file out, or raise max_pixels if you trust it",
        )


def _name_syntax(dataset: Dataset, name: object) -> None:
    """A file without meta information says nothing of its transfer syntax: then it is as pydicom found it to read."""
    if not hasattr(dataset, "file_meta"):
        raise BadInput("has no DICOM file header", where=name, remedy="write it anew with a DICOM toolkit")
    if "TransferSyntaxUID" not in dataset.file_meta:
        implicit, little = dataset.original_encoding
        uid = "1.2.840.10008.1.2" + ("" if implicit else ".1" if little else ".2")
        dataset.file_meta.TransferSyntaxUID = UID(uid)


def _codestream_size(data: bytes) -> tuple[int, int] | None:
    """(columns, rows) that a JPEG, JPEG-LS or JPEG 2000 stream will decode to; None for RLE, which cannot lie."""
    start = data.find(b"\xff\x4f\xff\x51", 0, 4096)  # JPEG 2000: SOC, SIZ
    if start >= 0 and (start == 0 or data[4:8] == b"jP  "):
        x1, y1, x0, y0 = struct.unpack_from(">IIII", data, start + 8)
        return x1 - x0, y1 - y0
    if data[:2] != b"\xff\xd8":
        return None
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            return None
        marker, length = data[at + 1], struct.unpack_from(">H", data, at + 2)[0]
        if marker == 0xFF:
            at += 1
        elif marker == 0xF7 or (0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC)):  # start of frame
            rows, columns = struct.unpack_from(">HH", data, at + 5)
            return columns, rows
        else:
            at += 2 + length
    return None


def _stored_values(dataset: Dataset, frame: int) -> tuple[np.ndarray, str]:
    """(h, w) or (h, w, 3), and the photometric interpretation that these values really have."""
    photometric = _text(dataset, "PhotometricInterpretation")
    twelve_bit_jpeg = dataset.file_meta.TransferSyntaxUID == JPEGExtended12Bit and dataset.BitsStored > 8
    stored = _twelve_bit_jpeg(dataset, frame) if twelve_bit_jpeg else pixel_array(dataset, index=frame)
    return stored, "RGB" if photometric.startswith("YBR") else photometric


def _twelve_bit_jpeg(dataset: Dataset, frame: int) -> np.ndarray:
    """(h, w) uint16 of JPEG Extended, which pydicom gives to no decoder; this one reads it rightly."""
    import gdcm

    gdcm.Trace.WarningOff()  # it tries 8 bit first and says so
    gdcm.Trace.ErrorOff()
    pieces = generate_frames(dataset.PixelData, number_of_frames=int(dataset.get("NumberOfFrames") or 1))
    fragment = gdcm.Fragment()
    fragment.SetByteStringValue(next(islice(pieces, frame, None)))
    fragments = gdcm.SequenceOfFragments.New()
    fragments.AddFragment(fragment)
    element = gdcm.DataElement(gdcm.Tag(0x7FE0, 0x0010))
    element.SetValue(fragments.__ref__())
    image = gdcm.Image()
    image.SetNumberOfDimensions(2)
    image.SetDimensions((dataset.Columns, dataset.Rows, 1))
    image.SetDataElement(element)
    grey = gdcm.PhotometricInterpretation.GetPIType("MONOCHROME2")
    image.SetPhotometricInterpretation(gdcm.PhotometricInterpretation(grey))
    syntax = gdcm.TransferSyntax.GetTSType(str(dataset.file_meta.TransferSyntaxUID))
    image.SetTransferSyntax(gdcm.TransferSyntax(syntax))
    image.SetPixelFormat(gdcm.PixelFormat(1, 16, dataset.BitsStored, dataset.BitsStored - 1, 0))
    values = image.GetBuffer().encode("utf-8", "surrogateescape")
    return np.frombuffer(values, "<u2").reshape(dataset.Rows, dataset.Columns)


def _luma(dataset: Dataset, stored: np.ndarray, photometric: str) -> np.ndarray:
    """Colour to (h, w) uint8: secondary captures; no radiograph is coloured."""
    if photometric == "PALETTE COLOR":
        stored = apply_color_lut(stored, dataset)
        most = 2 ** (8 * stored.dtype.itemsize) - 1
    else:
        most = 2 ** int(dataset.BitsStored) - 1
    return np.clip(np.rint(stored[..., :3].astype(np.float32) @ _LUMA * (255 / most)), 0, 255).astype(np.uint8)


def _grey(dataset: Dataset, stored: np.ndarray, facts: DicomFacts, name: object) -> Pixels:
    if stored.dtype.kind == "f":
        raise BadInput("holds floating-point pixels, not a radiograph", where=name, remedy="leave the file out")
    padding = _padding(dataset, stored)
    stored, bits, signed = _after_modality_table(dataset, stored)
    slope, intercept = (1.0, 0.0) if "ModalityLUTSequence" in dataset else _rescale(dataset)
    lowest = -(2 ** (bits - 1)) if signed else 0
    if bits > 16:
        lowest, bits = int(stored.min()), 16
        if int(stored.max()) - lowest >= 2**16:
            raise BadInput("holds grey values of more than 16 bit", where=name, remedy="convert the file")
    # MONOCHROME1 means: small is bright. A Presentation LUT Shape of INVERSE only repeats it (PS3.3 C.8.11.3.1.2).
    turned = (facts.photometric == "MONOCHROME1") != (slope < 0)
    kind = np.uint8 if bits <= 8 else np.uint16
    grey = (stored.astype(np.int64) - lowest).astype(kind) if lowest else stored.astype(kind, copy=False)
    if turned:
        grey = kind(2**bits - 1) - grey
    elif padding is not None or not grey.flags.writeable:
        grey = grey.copy()
    if padding is not None:
        grey[padding] = 0
    return Pixels(
        grey,
        bits,
        turned=turned,
        lowest=lowest,
        slope=slope,
        intercept=intercept,
        shown_by=(*_tables(dataset), *_windows(dataset)),
        padding=padding,
        dicom=facts,
    )


def _after_modality_table(dataset: Dataset, stored: np.ndarray) -> tuple[np.ndarray, int, bool]:
    """Values, bits and whether they are signed, after the Modality LUT where it is a table and not a straight line."""
    if table := _table(dataset, "ModalityLUTSequence"):
        values = table.entries[np.clip(stored.astype(np.int64) - table.first, 0, len(table.entries) - 1)]
        return values, max(table.bits, _bits_needed(values, False)), False
    signed = stored.dtype.kind == "i"
    # A file that uses more bits than it says is common, and the values are right.
    return stored, max(int(dataset.BitsStored), _bits_needed(stored, signed)), signed


def _bits_needed(values: np.ndarray, signed: bool) -> int:
    low, high = int(values.min()), int(values.max())
    return max(high.bit_length(), (-low - 1).bit_length() if low < 0 else 0) + signed


def _padding(dataset: Dataset, stored: np.ndarray) -> np.ndarray | None:
    """(h, w) bool where the stored values say 'no picture here'; None where there is no such place."""
    first = _number(dataset, "PixelPaddingValue")
    if first is None:
        return None
    last = _number(dataset, "PixelPaddingRangeLimit")
    low, high = sorted((first, first if last is None else last))
    where = (stored >= low) & (stored <= high)
    return where if where.any() else None


def _rescale(dataset: Dataset) -> tuple[float, float]:
    slope, intercept = _number(dataset, "RescaleSlope"), _number(dataset, "RescaleIntercept")
    return (slope or 1.0), (intercept or 0.0)


def _windows(dataset: Dataset) -> tuple[Window, ...]:
    centres, widths = _numbers(dataset, "WindowCenter"), _numbers(dataset, "WindowWidth")
    function = _text(dataset, "VOILUTFunction") or "LINEAR"
    least = 1 if function == "LINEAR" else 0
    if function not in ("LINEAR", "LINEAR_EXACT", "SIGMOID"):
        return ()
    return tuple(Window(c, w, function) for c, w in zip(centres, widths) if w > least)


def _tables(dataset: Dataset) -> tuple[LookUpTable, ...]:
    table = _table(dataset, "VOILUTSequence")
    return (table,) if table else ()


def _table(dataset: Dataset, keyword: str) -> LookUpTable | None:
    """The first table of a LUT sequence. Entries of 8 bit may lie two to a word (PS3.3 C.11.1.1.1)."""
    items = dataset.get(keyword)
    if not items or "LUTDescriptor" not in items[0] or "LUTData" not in items[0]:
        return None
    count, first, bits = (int(value) for value in items[0].LUTDescriptor)
    count, data = count or 2**16, items[0].LUTData
    if isinstance(data, bytes):
        order = "<" if dataset.original_encoding[1] is not False else ">"
        entries = np.frombuffer(data, dtype=np.uint8 if len(data) < 2 * count else f"{order}u2")[:count]
    else:
        entries = np.asarray(data)[:count]
    if len(entries) == 0:
        return None
    return LookUpTable(first, entries.astype(np.uint16), bits if 1 <= bits <= 16 else 16)


def _text(dataset: Dataset, keyword: str) -> str:
    """A value as plain text. Patient IDs are read raw: pydicom would quote one that it finds odd in a warning."""
    element = dataset.get_item(keyword)
    if element is None or element.value is None:
        return ""
    if isinstance(element.value, bytes):
        return " ".join(element.value.decode("utf-8", "replace").replace("\0", " ").split())
    return " ".join(str(element.value).split())


def _meaning(dataset: Dataset, keyword: str) -> str:
    try:
        items: Any = dataset.get(keyword)
        return _text(items[0], "CodeMeaning") if items else ""
    except Exception:  # a sequence that cannot be parsed says nothing
        return ""


def _numbers(dataset: Dataset, keyword: str) -> list[float]:
    try:
        value: Any = dataset.get(keyword)
        values = list(value) if isinstance(value, MultiValue | list) else [] if value in (None, "") else [value]
        return [float(number) for number in values if np.isfinite(float(number))]
    except (TypeError, ValueError):
        return []


def _number(dataset: Dataset, keyword: str) -> float | None:
    return next(iter(_numbers(dataset, keyword)), None)


def _whole(dataset: Dataset, keyword: str, name: object, otherwise: int) -> int:
    try:
        value: Any = dataset.get(keyword)
        return otherwise if value in (None, "") else int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{keyword} is not a number", where=name, remedy=_DAMAGED) from error


def _one_line(what: str, error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{what} ({type(error).__name__}: {text[:120]})"
