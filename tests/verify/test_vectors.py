"""Vectors files that fit a module are read; others are rejected in one line."""

import contextlib
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.core.errors import CheckFailedError, InputFileError
from mlfbuild.library import MainMemory, Module, ModuleTarget, TensorInfo
from mlfbuild.verify.vectors import load_vectors
from support.errors import raises

INPUTS = (TensorInfo("serving_default_x:0", "int8", 6, (1, 2, 3)), TensorInfo("y", "float32", 8))
OUTPUTS = (TensorInfo("Identity", "int8", 4, (1, 4)),)
MODULE = Module("net", "aot", (ModuleTarget("c"),), (MainMemory(0, 0, 18),), (), (), INPUTS, OUTPUTS)

X = np.arange(12, dtype=np.int8).reshape(2, 1, 2, 3)
Y = np.array([[1.5, -2.0], [0.25, 4.0]], np.float32)
Z = np.arange(8, dtype=np.int8).reshape(2, 1, 4)


def write(folder: Path, **arrays: np.ndarray) -> Path:
    path = folder / "v.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    "names",
    [
        ("in0", "in1", "out0"),
        ("in_serving_default_x:0", "in_y", "out_Identity"),
        ("in_serving_default_x_0", "in1", "out_Identity"),
    ],
)
def test_arrays_are_found_by_position_or_name(tmp_path: Path, names: tuple[str, str, str]) -> None:
    vectors = load_vectors(write(tmp_path, **dict(zip(names, (X, Y, Z), strict=True))), MODULE)
    assert vectors.cases == 2
    assert [array.tolist() for array in vectors.inputs] == [X.reshape(2, 6).tolist(), Y.tolist()]
    assert vectors.outputs[0].tolist() == Z.reshape(2, 4).tolist()


def test_batch_axis_can_be_omitted(tmp_path: Path) -> None:
    vectors = load_vectors(write(tmp_path, in0=X[:, 0], in1=Y, out0=Z[:, 0]), MODULE)
    assert vectors.inputs[0].tolist() == X.reshape(2, 6).tolist()


def test_big_endian_arrays_are_read(tmp_path: Path) -> None:
    vectors = load_vectors(write(tmp_path, in0=X, in1=Y.astype(">f4"), out0=Z), MODULE)
    assert vectors.inputs[1].tobytes() == Y.astype("<f4").tobytes()


@pytest.mark.parametrize(
    ("changes", "code", "place"),
    [
        ({"in1": None}, "array-missing", "v.npz"),
        ({"out0": None}, "array-missing", "v.npz"),
        ({"in2": Y, "other": Y}, "vectors-unknown-array", "v.npz: in2, other"),
        ({"in0": X.astype(np.uint8)}, "vectors-array-type", "v.npz: in0"),
        ({"in0": X.reshape(2, 6)}, "vectors-array-shape", "v.npz: in0"),
        ({"in1": Y[:, :1]}, "vectors-array-shape", "v.npz: in1"),
        ({"in1": np.float32(1)}, "vectors-array-shape", "v.npz: in1"),
        ({"out0": Z[:1]}, "vectors-case-counts", "v.npz"),
    ],
)
def test_arrays_that_do_not_fit_are_rejected(
    tmp_path: Path, changes: dict[str, np.ndarray | None], code: str, place: str
) -> None:
    arrays = {"in0": X, "in1": Y, "out0": Z, **changes}
    path = write(tmp_path, **{name: array for name, array in arrays.items() if array is not None})
    with raises(InputFileError, code, place):
        load_vectors(path, MODULE)


@pytest.mark.parametrize("tolerance", [2e-4, np.float32(0), 0, 1])
def test_vectors_may_set_the_tolerance_of_floats(tmp_path: Path, tolerance: float) -> None:
    assert load_vectors(write(tmp_path, in0=X, in1=Y, out0=Z), MODULE).tolerance is None
    vectors = load_vectors(write(tmp_path, in0=X, in1=Y, out0=Z, tolerance=tolerance), MODULE)
    assert vectors.tolerance == tolerance


@pytest.mark.parametrize("tolerance", [-1e-5, np.nan, np.inf, [1e-5], "1e-5", True])
def test_a_tolerance_that_is_no_number_is_refused(tmp_path: Path, tolerance: object) -> None:
    with raises(InputFileError, "vectors-tolerance", "v.npz: tolerance"):
        load_vectors(write(tmp_path, in0=X, in1=Y, out0=Z, tolerance=np.array(tolerance)), MODULE)


def test_file_without_cases_fails_the_check(tmp_path: Path) -> None:
    with raises(CheckFailedError, "vectors-without-cases", "v.npz"):
        load_vectors(write(tmp_path, in0=X[:0], in1=Y[:0], out0=Z[:0]), MODULE)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with raises(InputFileError, "no-such-input", "none.npz"):
        load_vectors(tmp_path / "none.npz", MODULE)


class Evil:
    """An object that runs code if a reader unpickles it."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('unpickled')",)


def npy(header: bytes, data: bytes = b"") -> bytes:
    """Return a .npy file with any header."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def plain_npy() -> bytes:
    file = io.BytesIO()
    np.save(file, X)
    return file.getvalue()


UNREADABLE = {
    "empty": b"",
    "text": b"in0: [1, 2, 3]\n",
    "a single array": plain_npy(),
    "a pickle": pickle.dumps({"in0": [1]}),
    "no zip behind the magic": b"PK\x03\x04" + bytes(100),
    "an array of objects": zipped(
        in0=npy(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n", pickle.dumps(Evil()))
    ),
    "a header that is no dict": zipped(in0=npy(b"__import__('os').abort()\n")),
    "a header cut off": zipped(in0=b"\x93NUMPY\x01\x00\xff\xff{"),
    "data missing": zipped(in0=npy(b"{'descr': '<i4', 'fortran_order': False, 'shape': (1000,)}\n", bytes(8))),
    "a shape beyond all memory": zipped(in0=npy(b"{'descr': '<i4', 'fortran_order': False, 'shape': (%d,)}\n" % 2**61)),
    "a header without end": zipped(in0=npy(b"{'descr': ('<i4', 'shape': (1,)\n", bytes(8))),
    "a member that is no array": zipped(in0=b"hello"),
    "a shape of truth values": zipped(in0=npy(b"{'descr': '|i1', 'fortran_order': False, 'shape': (True,)}\n", b"1")),
    "a type of no parts": zipped(in0=npy(b"{'descr': (), 'fortran_order': False, 'shape': (1,)}\n", b"1")),
    "a negative shape": zipped(in0=npy(b"{'descr': '<i4', 'fortran_order': False, 'shape': (-1, 4)}\n", bytes(8))),
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_other_files_are_rejected_in_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "v.npz"
    path.write_bytes(data)
    with pytest.raises(InputFileError) as caught:
        load_vectors(path, MODULE)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_truncated_file_is_rejected(tmp_path: Path) -> None:
    whole = write(tmp_path, in0=X, in1=Y, out0=Z).read_bytes()
    path = tmp_path / "cut.npz"
    for size in range(0, len(whole), 13):
        path.write_bytes(whole[:size])
        with pytest.raises(InputFileError):
            load_vectors(path, MODULE)


def test_randomly_changed_bytes_give_arrays_or_one_line(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    np.savez_compressed(tmp_path / "v.npz", in0=X, in1=Y, out0=Z)
    whole = np.frombuffer((tmp_path / "v.npz").read_bytes(), np.uint8)
    path = tmp_path / "changed.npz"
    for _ in range(300):
        changed = whole.copy()
        changed[random.integers(0, whole.size, 3)] = random.integers(0, 256, 3)
        path.write_bytes(changed.tobytes())
        with contextlib.suppress(InputFileError, CheckFailedError):
            load_vectors(path, MODULE)


def test_zip_bomb_is_rejected_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with archive, archive.open("in0.npy", "w", force_zip64=True) as member:
        chunk = bytes(1 << 20)
        for _ in range(1025):
            member.write(chunk)
    with raises(InputFileError, "vectors-too-large", "bomb.npz"):
        load_vectors(path, MODULE)
