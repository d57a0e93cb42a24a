from __future__ import annotations

import io
import os
import struct
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pydicom.data import get_testdata_file
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import UID, JPEG2000Lossless, JPEGBaseline8Bit, RLELossless

from negatoscope.errors import BadInput
from negatoscope.studies.pixels import Pixels, Window, read_pixels, shown, to_8bit

GREY = (np.arange(48, dtype=np.uint8).reshape(6, 8) * 5).astype(np.uint8)


def encoded(picture: np.ndarray | Image.Image, form: str, **how: object) -> bytes:
    data = io.BytesIO()
    (Image.fromarray(picture) if isinstance(picture, np.ndarray) else picture).save(data, form, **how)
    return data.getvalue()


def real(name: str) -> Path:
    """A file of pydicom's own or of the package pydicom-data; never downloaded."""
    path = get_testdata_file(name, download=False)
    if path is None:
        pytest.skip(f"needs {name}: pip install pydicom-data")
    return Path(str(path))


def dicom(grey: np.ndarray, syntax: str = "1.2.840.10008.1.2.1", **elements: object) -> Dataset:
    """A radiograph of our own making."""
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = UID(syntax)
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = UID("1.2.840.10008.5.1.4.1.1.1")
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID = UID("1.2.3.4")
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID, dataset.Modality = "1.2.3", "1.2.3.1", "DX"
    dataset.PatientName, dataset.PatientID = "Nobody^Known", "P1"
    dataset.Rows, dataset.Columns = grey.shape[:2]
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated = dataset.BitsStored = 8 * grey.dtype.itemsize
    dataset.HighBit = dataset.BitsStored - 1
    dataset.PixelRepresentation = int(grey.dtype.kind == "i")
    dataset.PixelData = grey.tobytes()
    dataset["PixelData"].VR = "OW" if grey.dtype.itemsize > 1 else "OB"
    for name, value in elements.items():
        setattr(dataset, name, value)
    return dataset


def saved(dataset: Dataset) -> bytes:
    data = io.BytesIO()
    pydicom.dcmwrite(data, dataset, enforce_file_format=True)
    return data.getvalue()


# ---------------------------------------------------------------- ordinary images


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM", "GIF", "WEBP", "JPEG2000"])
def test_8_bit_images_keep_their_values(form: str) -> None:
    pixels = read_pixels(encoded(GREY, form, **({"lossless": True} if form == "WEBP" else {})))
    assert (pixels.bits, pixels.grey.dtype) == (8, np.uint8)
    # WebP stores colours, and grey to RGB to grey may round by one.
    np.testing.assert_allclose(pixels.grey.astype(int), GREY, atol=1 if form == "WEBP" else 0)
    np.testing.assert_array_equal(to_8bit(pixels), pixels.grey)


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_16_bit_images_keep_their_values(form: str) -> None:
    grey = np.array([[0, 1, 4095], [65535, 256, 7]], dtype=np.uint16)
    pixels = read_pixels(encoded(grey, form))
    assert (pixels.bits, pixels.grey.dtype) == (16, np.uint16)
    np.testing.assert_array_equal(pixels.grey, grey)


def test_palette_colour_and_transparency_become_grey() -> None:
    colour = Image.fromarray(np.dstack([GREY, GREY, GREY]))
    np.testing.assert_array_equal(read_pixels(encoded(colour, "PNG")).grey, GREY)
    np.testing.assert_array_equal(read_pixels(encoded(colour.quantize(256), "PNG")).grey, GREY)
    see_through = Image.fromarray(np.dstack([GREY, GREY, GREY, np.where(GREY > 99, 255, 0).astype(np.uint8)]))
    np.testing.assert_array_equal(read_pixels(encoded(see_through, "PNG")).grey, np.where(GREY > 99, GREY, 0))
    np.testing.assert_array_equal(read_pixels(encoded(Image.fromarray(GREY > 99), "PNG")).grey, 255 * (GREY > 99))


def test_a_photographed_film_is_set_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # taken with the telephone turned
    assert read_pixels(encoded(GREY, "PNG", exif=exif)).grey.shape == (8, 6)


def test_path_bytes_and_stream_are_the_same(tmp_path: Path) -> None:
    data = encoded(GREY, "PNG")
    (tmp_path / "a.jpg").write_bytes(data)  # by content, not by name
    every = [read_pixels(tmp_path / "a.jpg"), read_pixels(str(tmp_path / "a.jpg")), read_pixels(io.BytesIO(data))]
    assert {pixels.sha256() for pixels in every} == {read_pixels(data).sha256()}


def test_sha256_is_of_the_picture() -> None:
    assert read_pixels(encoded(GREY, "PNG")).sha256() == read_pixels(encoded(GREY, "BMP")).sha256()
    assert Pixels(GREY, 8).sha256() != Pixels(GREY.reshape(8, 6), 8).sha256()
    assert Pixels(GREY, 8).sha256() != Pixels(GREY.astype(np.uint16), 16).sha256()


def test_one_frame_of_several_has_to_be_asked_for() -> None:
    second = Image.fromarray(255 - GREY)
    film = encoded(GREY, "TIFF", save_all=True, append_images=[second])
    with pytest.raises(BadInput, match="2 frames"):
        read_pixels(film)
    np.testing.assert_array_equal(read_pixels(film, frame=1).grey, 255 - GREY)
    with pytest.raises(BadInput, match="no frame 2"):
        read_pixels(film, frame=2)


# ---------------------------------------------------------------- damaged, hostile, mistaken


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_that_says(width: int, height: int, idat: bytes = b"") -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [png_chunk(b"IHDR", header), png_chunk(b"IDAT", idat), png_chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def refusal(source: bytes | Path, **how: object) -> str:
    with pytest.raises(BadInput) as caught:
        read_pixels(source, **how)  # pyright: ignore[reportArgumentType]
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.remedy
    return message


def test_a_file_is_named_in_one_line_with_a_remedy(tmp_path: Path) -> None:
    broken = tmp_path / "x.png"
    broken.write_bytes(encoded(GREY, "PNG")[:60])
    assert refusal(broken).startswith(f"{broken}: ")
    assert refusal(b"hello, world", where="study 7").startswith("study 7: ")


@pytest.mark.parametrize("form", ["PNG", "JPEG", "TIFF", "BMP", "JPEG2000", "GIF"])
def test_a_truncated_image_is_no_image(form: str) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (64, 64), dtype=np.uint8)
    whole = encoded(noise, form)
    for share in (0.2, 0.5, 0.9):
        refusal(whole[: int(share * len(whole))])


def test_every_flipped_byte_of_a_png_is_seen() -> None:
    whole = encoded(GREY, "PNG")
    for at in range(len(whole)):
        spoilt = bytearray(whole)
        spoilt[at] ^= 0x40
        refusal(bytes(spoilt))


def test_a_bomb_is_refused_before_it_is_decoded() -> None:
    assert "60,000 x 60,000" in refusal(png_that_says(60_000, 60_000, zlib.compress(bytes(10**6))))
    assert "8 x 6" in refusal(encoded(GREY, "PNG"), max_pixels=47)
    read_pixels(encoded(GREY, "PNG"), max_pixels=48)
    for form in ("JPEG", "TIFF", "BMP"):
        assert "more than 10" in refusal(encoded(GREY, form), max_pixels=10)


@pytest.mark.parametrize("kind", [b"zTXt", b"iTXt", b"iCCP"])
def test_a_bomb_beside_the_picture_is_refused(kind: bytes) -> None:
    bomb = zlib.compress(bytes(100 * 2**20), 9)
    head = {b"zTXt": b"k\0\0", b"iTXt": b"k\0\1\0\0\0", b"iCCP": b"k\0\0"}[kind]
    whole = encoded(GREY, "PNG")
    before_idat = whole.index(b"IDAT") - 4
    spoilt = whole[:before_idat] + png_chunk(kind, head + bomb) + whole[before_idat:]
    assert "too large" in refusal(spoilt)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "0 bytes"),
        (b"Dear colleague,\nthank you for this patient.\n" * 9, "it is text"),
        (b"%PDF-1.7 and so on and so on", "a PDF"),
        (b"PK\x03\x04 and so on and so on", "a zip archive"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (bytes(range(256)) * 4, "no image that can be read"),
    ],
)
def test_what_is_no_image_is_called_what_it_is(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "scan.dcm"
    path.write_bytes(data)
    assert said in refusal(path)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    assert "no such image file" in refusal(tmp_path / "not there.png")
    refusal(tmp_path)
    os.mkfifo(tmp_path / "pipe.png")
    assert "not an ordinary file" in refusal(tmp_path / "pipe.png")


def test_floating_point_images_are_not_guessed_at() -> None:
    assert "float32" in refusal(encoded(np.full((3, 3), 0.5, dtype=np.float32), "TIFF"))
    assert "int32" in refusal(encoded(np.full((3, 3), 70_000, dtype=np.int32), "TIFF"))
    assert read_pixels(encoded(np.full((3, 3), 70, dtype=np.int32), "TIFF")).grey.dtype == np.uint16


STARTS = (b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"\0" * 128 + b"DICM", b"II*\0")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(STARTS))
def test_any_bytes_are_read_or_refused(data: bytes, start: bytes) -> None:
    with suppress(BadInput):
        assert read_pixels(start + data, max_pixels=10_000).grey.ndim == 2


# ---------------------------------------------------------------- DICOM: real files


def test_a_real_radiograph_in_four_encodings() -> None:
    """RG1: MONOCHROME1, 15 bit. J2KR is UNCR without loss; J2KI lost something, and UNCI is what it decodes to."""
    grey = {form: read_pixels(real(f"RG1_{form}.dcm")) for form in ("UNCR", "J2KR", "UNCI", "J2KI")}
    np.testing.assert_array_equal(grey["UNCR"].grey, grey["J2KR"].grey)
    np.testing.assert_array_equal(grey["UNCI"].grey, grey["J2KI"].grey)
    difference = np.abs(grey["UNCR"].grey.astype(int) - grey["UNCI"].grey)
    assert difference.max() < 0.02 * 2**15
    pixels = grey["UNCR"]
    assert (pixels.bits, pixels.grey.shape, pixels.turned) == (15, (1955, 1841), True)
    assert pixels.dicom is not None
    assert (pixels.dicom.modality, pixels.dicom.position, pixels.dicom.photometric) == ("CR", "PA", "MONOCHROME1")


def test_monochrome1_is_turned_so_that_bone_is_bright() -> None:
    pixels = read_pixels(real("RG1_UNCR.dcm"))
    stored = pydicom.dcmread(real("RG1_UNCR.dcm")).pixel_array
    np.testing.assert_array_equal(pixels.grey, 2**15 - 1 - stored)
    picture = to_8bit(pixels).astype(float)
    height, width = picture.shape
    lung = picture[int(0.25 * height) : int(0.4 * height), int(0.62 * width) : int(0.68 * width)].mean()
    spine = picture[int(0.3 * height) : int(0.8 * height), int(0.46 * width) : int(0.5 * width)].mean()
    below_diaphragm = picture[int(0.8 * height) : int(0.9 * height), int(0.15 * width) : int(0.3 * width)].mean()
    assert lung < spine - 30
    assert lung < below_diaphragm - 30


def test_windowing_agrees_with_pydicom() -> None:
    """Modality LUT, window and turning against pydicom's own chain, over every value of real files."""
    from pydicom.pixels import apply_modality_lut, apply_voi_lut

    for name in ("RG1_UNCR.dcm", "RG3_UNCR.dcm", "MR_small.dcm", "bad_sequence.dcm", "vlut_04.dcm", "MR2_UNCR.dcm"):
        dataset = pydicom.dcmread(real(name))
        values = apply_voi_lut(apply_modality_lut(dataset.pixel_array, dataset), dataset).astype(float)
        if "VOILUTSequence" in dataset:
            low, high = 0.0, 2.0 ** dataset.VOILUTSequence[0].LUTDescriptor[2] - 1
        else:  # pydicom spreads the window over the range of stored values after the Modality LUT
            bits, signed = dataset.BitsStored, dataset.PixelRepresentation
            slope, intercept = float(dataset.get("RescaleSlope", 1)), float(dataset.get("RescaleIntercept", 0))
            ends = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
            low, high = (slope * end + intercept for end in ends)
        expected = 255 * (values - low) / (high - low)
        if dataset.PhotometricInterpretation == "MONOCHROME1":
            expected = 255 - expected
        assert np.abs(to_8bit(read_pixels(real(name))) - expected).max() <= 0.51, name


COMPRESSED = [
    ("MR_small_RLE.dcm", "MR_small.dcm", 0),
    ("MR_small_jp2klossless.dcm", "MR_small.dcm", 0),
    ("MR_small_jpeg_ls_lossless.dcm", "MR_small.dcm", 0),
    ("MR_small_bigendian.dcm", "MR_small.dcm", 0),
    ("MR_small_implicit.dcm", "MR_small.dcm", 0),
    ("RG3_J2KR.dcm", "RG3_UNCR.dcm", 0),
    ("RG3_J2KI.dcm", "RG3_UNCI.dcm", 0),
    ("JPEG2000.dcm", "JPEG2000_UNC.dcm", 1),
    ("SC_rgb_rle.dcm", "SC_rgb.dcm", 0),
    ("US1_J2KR.dcm", "US1_UNCR.dcm", 0),
]


@pytest.mark.parametrize(("name", "uncompressed", "apart"), COMPRESSED)
def test_compressed_files_equal_the_uncompressed(name: str, uncompressed: str, apart: int) -> None:
    one, other = read_pixels(real(name)), read_pixels(real(uncompressed))
    assert np.abs(one.grey.astype(int) - other.grey).max() <= apart


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("JPGLosslessP14SV1_1s_1f_8b.dcm", (768, 1024)),  # JPEG lossless, first-order prediction
        ("JPEG-LL.dcm", (1024, 256)),  # JPEG lossless
        ("JPGExtended.dcm", (1024, 256)),  # JPEG extended, 12 bit
        ("JPEGLSNearLossless_16.dcm", (50, 10)),
        ("image_dfl.dcm", (512, 512)),  # deflated
        ("SC_rgb_jpeg_dcmtk.dcm", (100, 100)),  # JPEG baseline, colour
        ("OT-PAL-8-face.dcm", (480, 640)),  # palette
    ],
)
def test_other_transfer_syntaxes(name: str, shape: tuple[int, int]) -> None:
    pixels = read_pixels(real(name))
    assert pixels.grey.shape == shape
    assert np.ptp(to_8bit(pixels)) > 100


def test_12_bit_jpeg_has_the_values_that_its_makers_name() -> None:
    grey = read_pixels(real("JPGExtended.dcm")).grey
    assert (grey[420, 140], grey[230, 120]) == (244, 95)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("MR_truncated.dcm", "cut off"),
        ("test-SR.dcm", "without an image (SR)"),
        ("rtplan.dcm", "without an image (RTPLAN)"),
        ("emri_small.dcm", "10 frames"),
        ("rtdose_1frame.dcm", "more than 16 bit"),
    ],
)
def test_dicom_files_that_are_no_radiographs(name: str, said: str) -> None:
    assert said in refusal(real(name))


def test_a_frame_of_a_multi_frame_file() -> None:
    first, last = (read_pixels(real("emri_small.dcm"), frame=frame).grey for frame in (0, 9))
    every = pydicom.dcmread(real("emri_small.dcm")).pixel_array
    assert np.ptp(first.astype(int) - every[0]) == 0
    assert np.ptp(last.astype(int) - every[9]) == 0


# ---------------------------------------------------------------- DICOM: written here


RAMP = (np.arange(256, dtype=np.uint16) * 16).reshape(16, 16)  # 12 bit


@pytest.mark.parametrize("syntax", [RLELossless, JPEG2000Lossless])
def test_what_is_compressed_here_is_read_as_it_was(syntax: UID) -> None:
    large = np.tile(RAMP, (4, 4))
    dataset = dicom(large, BitsStored=12, HighBit=11)
    plain = read_pixels(saved(dataset))
    dataset.compress(syntax, generate_instance_uid=False)
    packed = read_pixels(saved(dataset))
    np.testing.assert_array_equal(plain.grey, large)
    np.testing.assert_array_equal(packed.grey, large)
    assert packed.bits == plain.bits == 12


def test_files_without_preamble_are_known_by_content() -> None:
    whole = saved(dicom(GREY))
    np.testing.assert_array_equal(read_pixels(whole[132:]).grey, GREY)
    implicit = dicom(GREY, "1.2.840.10008.1.2")
    implicit["PixelData"].VR = "OW"
    data = io.BytesIO()
    pydicom.dcmwrite(data, implicit, implicit_vr=True, little_endian=True)
    np.testing.assert_array_equal(read_pixels(data.getvalue()[data.getvalue().index(b"\x08\x00\x16\x00") :]).grey, GREY)


def test_the_same_film_stored_both_ways_is_one_picture() -> None:
    straight = read_pixels(saved(dicom(GREY, WindowCenter="100", WindowWidth="50")))
    turned = dicom(255 - GREY, PhotometricInterpretation="MONOCHROME1", WindowCenter="156", WindowWidth="50")
    falling = dicom(255 - GREY, RescaleSlope="-1", RescaleIntercept="255", WindowCenter="100", WindowWidth="50")
    for film in (turned, falling):
        pixels = read_pixels(saved(film))
        np.testing.assert_array_equal(pixels.grey, GREY)
        assert (
            np.abs(to_8bit(pixels).astype(int) - to_8bit(straight)).max() <= 6
        )  # half a grey step of a 50-step window


def test_window_functions() -> None:
    values = np.array([-1e9, 90, 100, 110, 1e9])
    np.testing.assert_allclose(Window(100, 20)(values), [0, 0, 0.5 + 0.5 / 19, 1, 1])
    np.testing.assert_allclose(Window(100, 20, "LINEAR_EXACT")(values), [0, 0, 0.5, 1, 1])
    sigmoid = Window(100, 20, "SIGMOID")(values)
    np.testing.assert_allclose(sigmoid, [0, 1 / (1 + np.e**2), 0.5, 1 / (1 + np.e**-2), 1], atol=1e-12)


def test_a_window_asked_for_comes_before_that_of_the_file() -> None:
    pixels = read_pixels(saved(dicom(RAMP, BitsStored=12, HighBit=11, WindowCenter="2048", WindowWidth="4096")))
    assert to_8bit(pixels).mean() == pytest.approx(127, abs=2)
    assert to_8bit(pixels, Window(1e6, 10)).max() == 0


@pytest.mark.parametrize("window", [{}, {"WindowCenter": "90000", "WindowWidth": "5"}, {"WindowWidth": "-3"}])
def test_without_a_sound_window_percentiles_serve(window: dict[str, str]) -> None:
    grey = RAMP.copy()
    picture = to_8bit(read_pixels(saved(dicom(grey, BitsStored=12, HighBit=11, **window))))
    assert (picture.min(), picture.max()) == (0, 255)
    # One dead pixel of full brightness must not darken all others.
    big = np.tile(RAMP, (8, 8))
    big[0, 0] = 65535
    assert to_8bit(read_pixels(saved(dicom(big)))).mean() > 120


def test_16_bit_are_kept_until_they_are_shown() -> None:
    pixels = read_pixels(saved(dicom(RAMP, BitsStored=12, HighBit=11, WindowCenter="2048", WindowWidth="4096")))
    deep = shown(pixels, 16)
    assert deep.dtype == np.uint16
    assert len(np.unique(deep)) == len(np.unique(RAMP))
    np.testing.assert_allclose(deep / 65535, RAMP / 4095, atol=1e-4)


def test_voi_look_up_table_in_words_and_in_bytes() -> None:
    from pydicom.sequence import Sequence

    for bits, data in ((16, np.arange(0, 65536, 257, dtype="<u2")[::-1].tobytes()), (8, bytes(range(255, -1, -1)))):
        item = Dataset()
        item.LUTDescriptor, item.LUTData = [256, 0, bits], data
        item["LUTData"].VR = "OW"
        film = dicom(GREY, VOILUTSequence=Sequence([item]), WindowCenter="1", WindowWidth="2")
        np.testing.assert_array_equal(to_8bit(read_pixels(saved(film))), 255 - GREY)


def test_padding_is_black_and_does_not_count() -> None:
    grey = RAMP.astype(np.int16)
    grey[:4] = -2000
    film = dicom(grey, PixelPaddingValue=-2000, PhotometricInterpretation="MONOCHROME1")
    film["PixelPaddingValue"].VR = "SS"
    pixels = read_pixels(saved(film))
    picture = to_8bit(pixels)
    assert pixels.padding is not None
    assert (picture[:4] == 0).all()
    assert picture[4:].min() < 5
    assert picture[4:].max() > 250


def test_signed_values_and_values_of_more_bits_than_said() -> None:
    signed = read_pixels(saved(dicom(np.array([[-5, 0], [7, 99]], dtype=np.int16))))
    np.testing.assert_array_equal(signed.grey.astype(int) + signed.lowest, [[-5, 0], [7, 99]])
    film = dicom(RAMP, BitsStored=12, HighBit=11)
    film.PixelData = (RAMP // 16).tobytes()
    assert read_pixels(saved(film)).bits == 12


def test_bombs_in_dicom_are_refused_before_they_are_decoded() -> None:
    huge = dicom(GREY, "1.2.840.10008.1.2.5", Rows=60_000, Columns=60_000)
    huge.PixelData = encapsulate([b"\0" * 64])
    huge["PixelData"].VR = "OB"
    assert "60,000 x 60,000" in refusal(saved(huge))
    # Small in the header, large inside.
    liar = dicom(GREY, JPEGBaseline8Bit)
    liar.PixelData = encapsulate([encoded(np.zeros((300, 400), dtype=np.uint8), "JPEG")])
    liar["PixelData"].VR = "OB"
    assert "says 8 x 6 and holds an image of 400 x 300" in refusal(saved(liar))
    assert "400 x 300 pixels, more than" in refusal(saved(liar), max_pixels=1000)


def test_a_deflated_bomb_is_refused() -> None:
    film = dicom(GREY, "1.2.840.10008.1.2.1.99")
    whole = saved(film)
    meta = 132 + 12 + struct.unpack("<I", whole[140:144])[0]
    bomb = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = bomb.compress(bytes(64 * 2**20)) + bomb.flush()
    assert "inflates to more than" in refusal(whole[:meta] + packed, max_pixels=1000)
    np.testing.assert_array_equal(read_pixels(whole).grey, GREY)


def test_no_name_of_a_patient_travels_along() -> None:
    pixels = read_pixels(saved(dicom(GREY)))
    assert pixels.dicom is not None
    assert pixels.dicom.patient == "P1"
    assert "Nobody" not in repr(pixels)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_truncated_dicom(share: float) -> None:
    for syntax in (None, RLELossless, JPEG2000Lossless):
        film = dicom(np.random.default_rng(0).integers(0, 4000, (64, 64), dtype=np.uint16))
        if syntax:
            film.compress(syntax, generate_instance_uid=False)
        whole = saved(film)
        refusal(whole[: int(share * len(whole))])
