"""Any image file to grey values: 8 bit where the file has 8, 16 where it has more; to what a screen shows on demand.

Bright stays bright and dense: a film stored the other way round (DICOM's MONOCHROME1) is turned as it is read. What a
DICOM file says about how to show its values travels along and is applied by `to_8bit`, not before: a look-up table or
a window throws grey values away, and who trains on 16 bit wants them.

A file that is damaged, too large once decoded, or not an image raises BadInput: one line with file and remedy.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, Literal

import numpy as np
from PIL import Image, ImageOps

from negatoscope.errors import BadInput

MAX_PIXELS = 100_000_000
"""Ten times the largest radiograph in use; a file that decodes to more is taken for an attack or an accident."""

# The formats in which radiographs are kept. Pillow knows forty more, some of which start other programs.
_FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "PPM", "GIF", "WEBP", "JPEG2000")
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ORIENTATION = 0x0112  # EXIF
# A pipe among the images would otherwise wait for a writer for ever.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class Window:
    """DICOM's VOI window: the range of values that is spread from black to white (PS3.3 C.11.2.1.2)."""

    centre: float
    width: float
    function: Literal["LINEAR", "LINEAR_EXACT", "SIGMOID"] = "LINEAR"

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Values of any shape -> 0 (black) to 1 (white), same shape."""
        if self.function == "SIGMOID":
            return 1 / (1 + np.exp(np.clip(-4 * (values - self.centre) / self.width, -700, 700)))
        if self.function == "LINEAR_EXACT":
            return np.clip((values - self.centre) / self.width + 0.5, 0, 1)
        # LINEAR counts grey steps, not distances: hence the halves and the width less one.
        return np.clip((values - (self.centre - 0.5)) / max(self.width - 1, 1e-9) + 0.5, 0, 1)


@dataclass(frozen=True, slots=True, eq=False)
class LookUpTable:
    """DICOM's VOI LUT: value `first` becomes `entries[0]`; what lies outside takes the nearest end."""

    first: int
    entries: np.ndarray
    bits: int

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Values of any shape -> 0 (black) to 1 (white), same shape."""
        index = np.clip(np.rint(values).astype(np.int64) - self.first, 0, len(self.entries) - 1)
        return np.clip(self.entries[index] / (2**self.bits - 1), 0, 1)


@dataclass(frozen=True, slots=True)
class DicomFacts:
    """What the importers need to know of a DICOM file. No name, no birth date, no accession number."""

    study: str = ""
    """Study Instance UID, and below the UIDs of its series and of this image."""
    series: str = ""
    instance: str = ""
    patient: str = ""
    """Patient ID as the file has it: a secret, to be hashed before it is written or printed."""
    modality: str = ""
    position: str = ""
    """View Position: PA, AP, LL, LATERAL ... as the file says it."""
    view_code: str = ""
    """Meaning of the View Code Sequence's first item: 'postero-anterior'."""
    laterality: str = ""
    body_part: str = ""
    series_description: str = ""
    number: int = 0
    """Instance Number."""
    photometric: str = ""
    rows: int = 0
    columns: int = 0
    frames: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Pixels:
    """One picture as grey values, bright where the body is dense."""

    grey: np.ndarray
    """(height, width), uint8 or uint16."""
    bits: int
    """How many bits the values use: 8 of 8, or 10 to 16 of 16."""
    turned: bool = False
    """Dark and bright changed places while reading; the scale below counts from the value that the file holds."""
    lowest: int = 0
    """The smallest value that the file could hold: negative where it holds signed values."""
    slope: float = 1.0
    intercept: float = 0.0
    """DICOM's Modality LUT where it is linear: what a window counts in is slope * stored + intercept."""
    shown_by: tuple[Window | LookUpTable, ...] = ()
    """How the file wants to be shown, the best way first."""
    padding: np.ndarray | None = None
    """(height, width) bool: where the file says that there is no picture."""
    dicom: DicomFacts | None = None

    @property
    def height(self) -> int:
        return self.grey.shape[0]

    @property
    def width(self) -> int:
        return self.grey.shape[1]

    def sha256(self) -> str:
        """Of the grey values and their shape: the same picture in two files, even of two formats, has the same."""
        told = hashlib.sha256(f"{self.grey.dtype.name} {self.height} {self.width}\n".encode())
        told.update(np.ascontiguousarray(self.grey, dtype=self.grey.dtype.newbyteorder("<")).data)
        return told.hexdigest()


def read_pixels(
    source: Path | str | bytes | BinaryIO,
    *,
    max_pixels: int = MAX_PIXELS,
    frame: int | None = None,
    where: object = None,
) -> Pixels:
    """Reads a PNG, JPEG, BMP, TIFF, PGM, GIF, WebP, JPEG 2000 or DICOM file, told apart by content and not by name.

    A file of several frames needs `frame` (from 0). `where` names bytes in errors. Raises BadInput.
    """
    name = where if where is not None else source if isinstance(source, str | Path) else "image in memory"
    data = _bytes_of(source, name, max_pixels)
    if looks_like_dicom(data):
        from negatoscope.studies import dicom_file  # pydicom takes its time to import

        return dicom_file.decode(data, max_pixels=max_pixels, frame=frame, where=name)
    return _decode_picture(data, max_pixels, frame, name)


def looks_like_dicom(data: bytes) -> bool:
    """By content: `DICM` after 128 bytes, or the first element of a file that was written without that preamble."""
    if data[128:132] == b"DICM":
        return True
    if len(data) < 16:
        return False
    group, element = struct.unpack("<HH", data[:4])
    if group in (0x0002, 0x0008) and element < 0x0100:
        explicit = data[4:6] in (b"UL", b"UI", b"CS", b"OB", b"DA", b"SH", b"LO", b"TM")
        return explicit or struct.unpack("<I", data[4:8])[0] <= 128
    return struct.unpack(">H", data[:2])[0] == 0x0008 and data[4:6] in (b"UL", b"UI", b"CS", b"DA")


def to_8bit(pixels: Pixels, window: Window | None = None) -> np.ndarray:
    """(height, width) uint8 as a screen shows it: see `shown`."""
    return shown(pixels, 8, window)


def shown(pixels: Pixels, bits: int, window: Window | None = None) -> np.ndarray:
    """(height, width) of `bits` bits, uint8 or uint16: by `window`, else as the file says, else by robust percentiles.

    Every step from stored value to screen depends on the value alone, so the chain is one table of 2^bits entries.
    A window of the file that leaves a picture without contrast is passed over: such windows are mistakes.
    """
    kind = np.uint8 if bits <= 8 else np.uint16
    if pixels.grey.size == 0:
        return pixels.grey.astype(kind)
    counted = _what_counts(pixels)
    ways = (window,) if window is not None else pixels.shown_by
    if not ways and pixels.bits == bits == 8:
        return pixels.grey.copy()
    for way in ways:
        table = _table(pixels, way)
        if window is not None or not counted.size or np.ptp(counted) == 0:
            break
        if np.ptp(table[int(counted.min()) : int(counted.max()) + 1]) >= 1 / 255:
            break
    else:
        if pixels.bits <= 8:
            table = np.arange(2**pixels.bits) / (2**pixels.bits - 1)
        else:
            table = _table_by_percentiles(np.bincount(counted, minlength=2**pixels.bits))
    picture = np.rint(table * (2**bits - 1)).astype(kind)[pixels.grey]
    if pixels.padding is not None:
        picture[pixels.padding] = 0
    return picture


def _what_counts(pixels: Pixels) -> np.ndarray:
    """The values (n,) of real picture: without padding."""
    return pixels.grey.ravel() if pixels.padding is None else pixels.grey[~pixels.padding]


def _table(pixels: Pixels, way: Window | LookUpTable) -> np.ndarray:
    """(2^bits,) grey value -> 0 to 1, through stored value, Modality LUT and window."""
    grey = np.arange(2**pixels.bits, dtype=np.float64)
    stored = pixels.lowest + (grey[::-1] if pixels.turned else grey)
    bright = way(pixels.slope * stored + pixels.intercept)
    # A negative slope alone turns the scale as well; `turned` already holds both reasons, the window only one of them.
    film = pixels.turned != (pixels.slope < 0)
    return 1 - bright if film else bright


def _table_by_percentiles(counts: np.ndarray, low: float = 0.005, high: float = 0.995) -> np.ndarray:
    """(2^bits,) counts of grey values -> (2^bits,) 0 to 1, straight between two percentiles of the picture."""
    below = np.cumsum(counts)
    first, last = np.searchsorted(below, [low * below[-1], high * below[-1]], side="left")
    if last <= first:  # nearly one value everywhere
        used = np.flatnonzero(counts)
        first, last = (used[0], used[-1]) if len(used) else (0, 0)
    return np.clip((np.arange(len(counts)) - first) / max(last - first, 1), 0, 1)


def _bytes_of(source: Path | str | bytes | BinaryIO, name: object, max_pixels: int) -> bytes:
    # An honest file needs at most 8 bytes a pixel (16 bit RGBA), and some for its header.
    limit = 8 * max_pixels + 2**24
    try:
        if isinstance(source, bytes):
            data = source
        elif isinstance(source, str | Path):
            with os.fdopen(os.open(source, _READ), "rb") as file:
                status = os.fstat(file.fileno())
                if not S_ISREG(status.st_mode):
                    raise BadInput("is not an ordinary file", where=name, remedy="give the path of an image file")
                data = file.read(limit + 1)
        else:
            data = source.read(limit + 1)
    except FileNotFoundError as error:
        raise BadInput("no such image file", where=name, remedy="check the path, or fetch the file again") from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror or error})", where=name, remedy="check the file") from error
    if not data:
        raise BadInput("is empty (0 bytes)", where=name, remedy="fetch the file again")
    if len(data) > limit:
        raise BadInput(f"is larger than any image of {max_pixels:,} pixels", where=name, remedy="raise max_pixels")
    return data


def _decode_picture(data: bytes, max_pixels: int, frame: int | None, name: object) -> Pixels:
    """Every format but DICOM, by Pillow. Size is checked before anything is decoded."""
    if data.startswith(_PNG_SIGNATURE):
        _check_png(data, max_pixels, name)
    try:
        with Image.open(BytesIO(data), formats=_FORMATS) as image:
            _check_size(*image.size, max_pixels, name)
            _choose_frame(image, frame, name)
            return _grey(image, name)
    except (BadInput, KeyboardInterrupt, SystemExit):
        raise
    except Image.UnidentifiedImageError as error:
        raise BadInput(
            f"is no image that can be read here{_what_it_is(data)}",
            where=name,
            remedy="give a PNG, JPEG, BMP, TIFF or DICOM file",
        ) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise BadInput("is too large once decoded", where=name, remedy="make the image smaller") from error
    except Exception as error:  # a damaged file can raise anything at all out of a decoder
        raise BadInput(f"is damaged ({_one_line(error)})", where=name, remedy="fetch the file again") from error


def _check_size(width: int, height: int, max_pixels: int, name: object) -> None:
    if width * height > max_pixels:
        raise BadInput(
            f"would decode to {width:,} x {height:,} pixels, more than {max_pixels:,}",
            where=name,
            remedy="leave the file out, or raise max_pixels if you trust it",
        )
    if width < 1 or height < 1:
        raise BadInput(f"has no pixels ({width} x {height})", where=name, remedy="fetch the file again")


def _choose_frame(image: Image.Image, frame: int | None, name: object) -> None:
    frames = getattr(image, "n_frames", 1)
    if frame is None and frames > 1:
        raise BadInput(f"holds {frames} frames", where=name, remedy="say which by frame=0, or split the file")
    if frame is not None and not 0 <= frame < frames:
        raise BadInput(f"has no frame {frame}, only {frames}", where=name, remedy="frames are counted from 0")
    if frame:
        image.seek(frame)


def _grey(image: Image.Image, name: object) -> Pixels:
    image.load()
    if image.mode.startswith("I") or image.mode == "F":
        return Pixels(*_more_than_8_bits(np.asarray(image), name))
    if "exif" in image.info and image.getexif().get(_ORIENTATION, 1) != 1:
        image = ImageOps.exif_transpose(image)  # a film photographed with a telephone
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        colour = image.convert("RGBA")  # what is transparent shows black, as an empty light box does in a dark room
        image = Image.alpha_composite(Image.new("RGBA", colour.size, (0, 0, 0, 255)), colour)
    return Pixels(np.asarray(image.convert("L")), 8)


def _more_than_8_bits(values: np.ndarray, name: object) -> tuple[np.ndarray, int]:
    """Values (h, w) of any number type -> uint16 and 16, where nothing is lost by it."""
    if values.dtype == np.uint16:
        return values.copy(), 16
    fits = bool(np.all((values >= 0) & (values <= 65535)) and np.all(values == np.rint(values)))
    if not fits:
        low, high = values.min(), values.max()
        raise BadInput(
            f"holds {values.dtype.name} values from {low} to {high}, not grey values of up to 16 bit",
            where=name,
            remedy="save it as 16 bit PNG or TIFF",
        )
    return values.astype(np.uint16), 16


def _check_png(data: bytes, max_pixels: int, name: object) -> None:
    """Size before decoding, and every chunk's checksum: Pillow leaves that of the image data unread."""
    ended = False
    for kind, body, checksum in _png_chunks(data):
        if kind == b"IHDR" and len(body) >= 8:
            _check_size(*struct.unpack(">II", body[:8]), max_pixels, name)
        if checksum is None:
            break
        if zlib.crc32(body, zlib.crc32(kind)) != checksum:
            label = kind.decode("ascii", "replace")
            raise BadInput(f"is damaged (checksum of {label!r} is wrong)", where=name, remedy="fetch the file again")
        ended = kind == b"IEND"
    if not ended:
        raise BadInput("is cut off: its end is missing", where=name, remedy="fetch the file again")


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, memoryview, int | None]]:
    """Each chunk's kind, body and checksum; the last is None where the file ends inside the chunk."""
    view, at = memoryview(data), len(_PNG_SIGNATURE)
    while at + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body, after = view[at + 8 : at + 8 + length], at + 8 + length
        checksum = struct.unpack_from(">I", data, after)[0] if after + 4 <= len(data) else None
        yield kind, body, checksum
        if kind == b"IEND":
            return
        at = after + 4


def _what_it_is(data: bytes) -> str:
    """Names what people most often take for an image by mistake."""
    head = data[:512]
    for start, what in (
        (b"%PDF", "a PDF"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"version https://git-lfs", "a Git LFS pointer, the image itself was never fetched"),
        (b"<!DOCTYPE", "a web page"),
        (b"<html", "a web page"),
        (b"RIFF", "a RIFF file"),
    ):
        if head.startswith(start):
            return f": it is {what}"
    printable = sum(32 <= byte < 127 or byte in (9, 10, 13) for byte in head)
    return ": it is text" if printable > 0.95 * len(head) else ""


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 120 else text[:117] + "..."
