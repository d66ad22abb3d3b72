#!/usr/bin/env python3
"""The Python package over the built library.

usage: plait_test.py SOURCE_DIR LIBRARY
"""
import json
import os
import pathlib
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError:
    print("NumPy is not installed: the Python package is not tested")
    sys.exit(77)

SOURCE = pathlib.Path(sys.argv[1])
os.environ["PLAIT_LIBRARY"] = sys.argv[2]
sys.path.insert(0, str(SOURCE / "python"))
import plait  # noqa: E402

MODEL = SOURCE / "examples" / "model.json"


def image():
    return (numpy.arange(16 * 16 * 3, dtype="float32").reshape(1, 16, 16, 3) % 17) / 17


def convolve(x, w, b, pad):
    """[H,W,Ci] by [Co,k,k,Ci], clamped at zero."""
    k = w.shape[1]
    x = numpy.pad(x, ((pad, pad), (pad, pad), (0, 0)))
    rows, columns = x.shape[0] - k + 1, x.shape[1] - k + 1
    out = sum(x[i:i + rows, j:j + columns] @ w[:, i, j].T for i in range(k) for j in range(k))
    return numpy.maximum(out + b, 0)


def expected():
    """The example model in NumPy."""
    weights = {t["name"]: numpy.array(t["values"], "float64").reshape(t["shape"]) for t in json.loads(MODEL.read_text())["tensors"] if "values" in t}
    stem = convolve(image()[0].astype("float64"), weights["stem.weight"], weights["stem.bias"], 1)
    total = convolve(stem, weights["left.weight"], 0, 0) + convolve(stem, weights["right.weight"], 0, 1)
    logits = weights["classes.weight"] @ total.mean(axis=(0, 1))
    powers = numpy.exp(logits - logits.max())
    return (powers / powers.sum())[None]


class Python(unittest.TestCase):
    def setUp(self):
        self.lanes = plait.Lanes(gpu=False)
        self.model = plait.load(MODEL)
        self.lane = self.lanes.names[0]

    def test_load_plan_run(self):
        outputs = plait.load(str(MODEL)).plan(self.lanes).run(image())
        numpy.testing.assert_allclose(outputs["probabilities"], expected(), atol=1e-5)

    def test_describes_models(self):
        self.assertEqual(self.model.name, "two_branches")
        self.assertEqual([(t.name, t.shape, t.dtype) for t in self.model.inputs], [("image", (1, 16, 16, 3), numpy.dtype("float32"))])
        self.assertEqual(self.model.outputs[0].shape, (1, 4))
        self.assertIn("resnet50", plait.zoo())
        self.assertRegex(plait.version(), r"^\d+\.\d+\.\d+$")
        self.assertLessEqual(set(plait.features()), {"xnnpack", "opencl", "onnx"})
        self.assertEqual(plait.load(MODEL.read_bytes()).macs, self.model.macs)

    def test_inputs_by_name_or_place_and_wrong_ones(self):
        session = self.model.plan(self.lanes, strategy="lane:" + self.lane).session()
        first = session.run(image())["probabilities"]
        numpy.testing.assert_array_equal(session.run(image=image())["probabilities"], first)
        numpy.testing.assert_array_equal(session.run(numpy.asfortranarray(image().astype("float64")))["probabilities"], first)
        for wrong in ([image()[0]], [image(), image()], [], [image().astype("complex64")]):
            with self.assertRaises(ValueError):
                session.run(*wrong)
        with self.assertRaisesRegex(ValueError, "unknown"):
            session.run(picture=image())
        with self.assertRaisesRegex(ValueError, "twice"):
            session.run(image(), image=image())
        self.assertEqual(session.stats["runs"], 3)

    def test_plans_are_kept_and_explained(self):
        plan = self.model.plan(self.lanes, strategy="random:2", annotations=[{"operators": "*", "whole": True}])
        self.assertEqual(plan.info["part_count"], 7)
        self.assertEqual(plan.info["strategy"], "random")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "plan.json"
            plan.save(file)
            loaded = self.model.plan(self.lanes, file=file)
            self.assertEqual(loaded.explain(), plan.explain())
            numpy.testing.assert_array_equal(loaded.run(image())["probabilities"], plan.run(image())["probabilities"])
            session = plan.session(timings=True)
            session.run(image())
            trace = pathlib.Path(folder) / "trace.json"
            session.trace(trace)
            self.assertTrue(json.loads(trace.read_text())["traceEvents"])
        self.assertEqual(json.loads(plan.explain_json())["parts"], 7)

    def test_errors_have_a_code_and_a_message(self):
        for code, attempt in (("not_found", lambda: plait.load("/no/such/file")), ("corrupt", lambda: plait.load(b"hello")),
                              ("not_found", lambda: self.model.plan(self.lanes, strategy="magic")),
                              ("not_found", lambda: self.model.plan(self.lanes, annotations=[{"operators": "nothing", "whole": True}])),
                              ("invalid_argument", lambda: plait.Lanes(clusters="x"))):
            with self.assertRaises(plait.Error) as caught:
                attempt()
            self.assertEqual(caught.exception.code, code)
            self.assertTrue(str(caught.exception))
        with self.assertRaises(ValueError):
            self.model.plan(self.lanes, annotations=[{"operator": "stem"}])

    def test_progress_may_stop_and_raise(self):
        with self.assertRaises(plait.Error) as caught:
            self.model.plan(self.lanes, progress=lambda what, done, left: True)
        self.assertEqual(caught.exception.code, "cancelled")

        def fail(what, done, left):
            raise KeyError(what)

        with self.assertRaises(KeyError):
            self.model.plan(self.lanes, progress=fail)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
