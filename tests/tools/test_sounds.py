from __future__ import annotations

import struct
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.graph.metadata import TensorMetadata
from delegraph.tools.sounds import sound_as_input
from support.tensor_details import details


def wav(
    path: Path, content: bytes, *, rate: int = 16_000, channels: int = 1, width: int = 2
) -> str:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(content)
    return str(path)


def pcm(values: list[float]) -> bytes:
    return (np.array(values) * 32768).astype("<i2").tobytes()


def heard(
    path: str, entry: dict[str, Any], rate: int | None = None, **said: Any
) -> tuple[NDArray[Any], list[str]]:
    notes: list[str] = []
    values = sound_as_input(path, entry, TensorMetadata(**said), rate, notes.append)
    return values, notes


def tone(rate: int) -> NDArray[np.float64]:
    """A second of 440 Hz."""
    return np.sin(2 * np.pi * 440 * np.arange(rate) / rate) / 2


QUARTERS = [0.25, -0.5, 0.75, -1.0]


@pytest.mark.parametrize(
    ("width", "content"),
    [
        (1, bytes([160, 64, 224, 0])),
        (2, pcm(QUARTERS)),
        (3, b"".join((int(v * 2**23) & 0xFFFFFF).to_bytes(3, "little") for v in QUARTERS)),
        (4, (np.array(QUARTERS) * 2**31).astype("<i4").tobytes()),
    ],
)
def test_samples_of_any_width_are_numbers_from_minus_1_to_1(
    tmp_path: Path, width: int, content: bytes
) -> None:
    path = wav(tmp_path / "x.wav", content, width=width)
    values, notes = heard(path, details(np.float32, 4))
    assert values.dtype == np.float32
    assert values.tolist() == QUARTERS
    assert notes == []


@pytest.mark.parametrize(
    ("declared", "shape"),
    [
        ((4,), (4,)),
        ((1, 4), (1, 4)),
        ((1, 4, 1), (1, 4, 1)),
        ((-1,), (4,)),
        ((1, -1), (1, 4)),
        ((-1, 4), (1, 4)),
        ((-1, -1), (1, 4)),
        ((-1, 4, 1), (1, 4, 1)),
        ((-1, 1), (4, 1)),
    ],
)
def test_the_samples_have_the_inputs_shape(
    tmp_path: Path, declared: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    values, _ = heard(wav(tmp_path / "x.wav", pcm(QUARTERS)), details(np.float32, *declared))
    assert values.shape == shape
    assert values.reshape(-1).tolist() == QUARTERS


def test_an_int16_input_gets_the_samples(tmp_path: Path) -> None:
    values, _ = heard(wav(tmp_path / "x.wav", pcm(QUARTERS)), details(np.int16, 4))
    assert values.tolist() == [8192, -16384, 24576, -32768]


def test_an_int16_input_with_a_scale_gets_quantized_values(tmp_path: Path) -> None:
    path = wav(tmp_path / "x.wav", pcm(QUARTERS))
    values, _ = heard(path, details(np.int16, 4, scale=1 / 1024))
    assert values.tolist() == [256, -512, 768, -1024]


def test_an_int8_input_of_sounds_gets_quantized_values(tmp_path: Path) -> None:
    path = wav(tmp_path / "x.wav", pcm(QUARTERS))
    entry = details(np.int8, 4, scale=1 / 64, zero_point=3)
    assert heard(path, entry, content="audio")[0].tolist() == [19, -29, 51, -61]
    with pytest.raises(ArgumentError, match="a sound can be given as float or int16"):
        heard(path, entry)


def test_a_long_sound_is_cut_and_a_short_one_filled_up(tmp_path: Path) -> None:
    path = wav(tmp_path / "x.wav", pcm([0.5] * 32), rate=16)
    values, notes = heard_at_16(path, 20)
    assert (values.tolist(), notes) == ([0.5] * 20, ["the first 1.25 of 2 s"])
    values, notes = heard_at_16(path, 48)
    assert values.tolist() == [0.5] * 32 + [0.0] * 16
    assert notes == ["zeros after its 2 s, up to 3 s"]


def heard_at_16(path: str, count: int) -> tuple[NDArray[Any], list[str]]:
    """Read a file whose rate, 16, a real one never has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("delegraph.tools.sounds.RATES", (1, 16))
        return heard(path, details(np.float32, count), 16)


@pytest.mark.parametrize(
    ("rate", "said", "note"),
    [
        (8000, {}, "resampled from 16000 to 8000 Hz"),
        (None, {"sample_rate": 8000}, "resampled from 16000 to 8000 Hz"),
        (8000, {"sample_rate": 44100}, "resampled from 16000 to 8000 Hz"),
    ],
)
def test_the_rate_is_the_users_or_the_authors(
    tmp_path: Path, rate: int | None, said: dict[str, Any], note: str
) -> None:
    pytest.importorskip("scipy")
    path = wav(tmp_path / "x.wav", pcm(tone(16_000).tolist()))
    values, notes = heard(path, details(np.float32, -1), rate, **said)
    assert notes == [note]
    assert len(values) == 8000
    np.testing.assert_allclose(values[100:-100], tone(8000)[100:-100], atol=2e-3)


def test_an_assumed_rate_is_told(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    path = wav(tmp_path / "x.wav", pcm([0.5] * 80), rate=8000)
    _, notes = heard(path, details(np.float32, 160))
    assert notes == [
        "resampled from 8000 to 16000 Hz (assumed, as the model does not say; --sample-rate sets "
        "another)"
    ]


def test_the_beginning_is_resampled_as_in_the_whole(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    noise = np.random.default_rng(0).uniform(-1, 1, 44_100).tolist()
    path = wav(tmp_path / "x.wav", pcm(noise), rate=44_100)
    whole, _ = heard(path, details(np.float32, -1))
    begin, _ = heard(path, details(np.float32, 4000))
    np.testing.assert_allclose(begin, whole[:4000], atol=1e-6)


def test_several_channels_are_averaged_for_one(tmp_path: Path) -> None:
    path = wav(tmp_path / "x.wav", pcm([0.5, 0.25, -0.5, 0.0]), channels=2)
    values, notes = heard(path, details(np.float32, 2))
    assert (values.tolist(), notes) == ([0.375, -0.25], ["2 channels mixed to 1"])


@pytest.mark.parametrize("shape", [(1, 2, 2), (1, 4), (-1,), (-1, 2, 2)])
def test_two_channels_go_to_an_input_that_takes_two(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = wav(tmp_path / "x.wav", pcm([0.5, 0.25, -0.5, 0.0]), channels=2)
    values, _ = heard(path, details(np.float32, *shape), content="audio", channels=2)
    assert values.reshape(-1).tolist() == [0.5, 0.25, -0.5, 0.0]
    assert values.shape == {(-1,): (4,), (-1, 2, 2): (1, 2, 2)}.get(shape, shape)


def test_channels_that_are_missing_are_not_made_up(tmp_path: Path) -> None:
    path = wav(tmp_path / "x.wav", pcm(QUARTERS))
    with pytest.raises(ArgumentError, match=r"takes a sound of 2 channels; '.*x.wav' has 1"):
        heard(path, details(np.float32, 1, 4, 2), content="audio", channels=2)


@pytest.mark.parametrize("shape", [(1, 49, 10, 1), (1, 1), (0,), (2, 2)])
def test_an_input_that_takes_no_sound_is_named(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match=r"input 'x' .* takes no sound, which needs \[n\]"):
        heard(wav(tmp_path / "x.wav", pcm(QUARTERS)), details(np.float32, *shape))


def test_channels_that_do_not_divide_the_input_are_refused(tmp_path: Path) -> None:
    path = wav(tmp_path / "x.wav", pcm(QUARTERS), channels=2)
    with pytest.raises(ArgumentError, match="takes no sound"):
        heard(path, details(np.float32, 5), content="audio", channels=2)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.bool_])
def test_an_input_of_another_type_takes_no_sound(tmp_path: Path, dtype: type) -> None:
    with pytest.raises(ArgumentError, match="a sound can be given as float or int16"):
        heard(wav(tmp_path / "x.wav", pcm(QUARTERS)), details(dtype, 4))


def riff(
    kind: int = 1, rate: int = 16_000, data: bytes = b"\0\0", channels: int = 1, bits: int = 16
) -> bytes:
    form = struct.pack("<HHIIHH", kind, channels, rate, 2 * rate & 0xFFFFFFFF, 2, bits)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form
    body += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it ends too early"),
        (b"ID3 this is an mp3", "file does not start with RIFF id"),
        (riff()[:30], "it ends too early"),
        (riff().replace(b"fmt \x10\0\0\0", b"fmt \x10\0\0\x80"), "it ends too early"),
        (
            riff().replace(b"fmt ", b"odd ").replace(b"\x10\0\0\0", b"\x80\0\0\0"),
            "it ends too early",
        ),
        (riff(data=b""), "it holds no samples"),
        (riff(bits=40), "samples of 40 bits; expected 8 to 32"),
        (riff(bits=65535), "samples of 65536 bits; expected 8 to 32"),
        (riff(bits=0), "bad sample width"),
        (riff(channels=0), "bad # of channels"),
        (riff(channels=9, data=b"\0\0"), "it holds no samples"),
        (riff(kind=3), "unknown format: 3, which is no PCM; save it as 16-bit PCM"),
    ],
)
def test_what_is_no_sound_is_told(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match=f"sound '.*x.wav' cannot be read: {reason}"):
        heard(str(path), details(np.float32, 4))


@pytest.mark.parametrize("rate", [0, 0xFFFFFFFF])
def test_a_rate_that_no_sound_has_is_refused(tmp_path: Path, rate: int) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(riff(rate=rate))
    with pytest.raises(ArgumentError, match=f"x.wav' has {rate} samples a second; expected 1000"):
        heard(str(path), details(np.float32, 4))
    path.write_bytes(riff())
    if rate:
        with pytest.raises(ArgumentError, match=rf"input 'x' .* has {rate} samples a second"):
            heard(str(path), details(np.float32, 4), sample_rate=rate)


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(ArgumentError, match=r"sound 'gone.wav' cannot be read: No such file"):
        heard("gone.wav", details(np.float32, 4))


def test_without_scipy_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.signal", None)
    path = wav(tmp_path / "x.wav", pcm(QUARTERS), rate=8000)
    with pytest.raises(ArgumentError, match=r"needs SciPy; .*pip install 'delegraph\[sounds\]'"):
        heard(path, details(np.float32, 4))
    assert heard(path, details(np.float32, 4), 8000)[0].tolist() == QUARTERS
