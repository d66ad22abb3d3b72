"""What the tests of the plait tool share: running it, .npy files and small ONNX files, with Python's standard library only."""
import ast
import array
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

PLAIT = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "build/release/plait"


class ToolTest(unittest.TestCase):
    """Each test has a folder of its own, which is also the tool's cache: nothing of the user's is read or written."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="plait_tool_test.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def plait(self, *arguments, timeout_s=300):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PLAIT_")}
        environment["XDG_CACHE_HOME"] = str(self.folder / "cache")
        done = subprocess.run([PLAIT, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", env=environment, cwd=self.folder, timeout=timeout_s)
        self.assertNotIn("Sanitizer", done.stderr)
        self.assertNotIn("runtime error", done.stderr)
        return done

    def succeed(self, *arguments):
        done = self.plait(*arguments)
        self.assertEqual(done.returncode, 0, f"plait {arguments}: {done.stderr}")
        return done.stdout

    def refuse(self, arguments, *says):
        """The command has to end with exit code 1 and one message on standard error that holds all of `says`."""
        done = self.plait(*arguments)
        self.assertEqual(done.returncode, 1, f"plait {arguments}: {done.stdout}{done.stderr}")
        self.assertTrue(done.stderr.startswith("plait: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for words in says:
            self.assertIn(str(words), done.stderr)

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path


def write_npy(path, shape, values, descr="<f4"):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.array("f", values).tobytes())
    return path


def read_npy(path):
    """(shape, values) of a float32 file of version 1."""
    content = path.read_bytes()
    assert content[:8] == b"\x93NUMPY\x01\x00", content[:8]
    (length,) = struct.unpack_from("<H", content, 8)
    header = ast.literal_eval(content[10:10 + length].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    values = array.array("f")
    values.frombytes(content[10 + length:])
    return header["shape"], list(values)


def _varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _field(number, value):
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    value = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(value)) + value


FLOAT32, INT64, FLOAT16, DOUBLE = 1, 7, 10, 11  # ONNX's numbers


def _tensor_info(name, shape, dtype):
    dims = b"".join(_field(1, _field(1 if isinstance(size, int) else 2, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, dtype) + _field(2, dims)))


def onnx_model(op_type, source="x", target="y", shape=(1, 4), opset=13, dtype=FLOAT32):
    """An ONNX file with one operator of one input and one output of the same shape, in which a name stands for an open size."""
    node = _field(1, source) + _field(2, target) + _field(3, "the_operator") + _field(4, op_type)
    graph = (_field(1, node) + _field(2, "g") + _field(11, _tensor_info(source, shape, dtype)) +
             _field(12, _tensor_info(target, shape, dtype)))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, opset))


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
