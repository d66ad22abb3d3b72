// Operators whose meaning or form changed between opsets, and lowerings that several operators share: each as a small model that
// ONNX Runtime computes as well.
#include <gtest/gtest.h>

#include <sstream>

#include "src/formats/onnx_import.h"
#include "src/graph/passes.h"
#include "tests/oracle/oracle.h"

namespace plait {
namespace {

constexpr double kTolerance = 1e-4;  // of the largest magnitude

std::string FloatType(const std::string& dims) {
  std::string shape, dim;
  std::istringstream in(dims);
  while (in >> dim) shape += "dim { dim_value: " + dim + " } ";
  return "type { tensor_type { elem_type: 1 shape { " + shape + "} } }";
}

struct Case {
  const char* what;
  int opset;
  const char* input;  // shape of x
  const char* nodes;  // make y
};

// The nodes may read these constants: w[6, 4, 3, 3], v[4, 6], k[5, 4, 3], b6[6]; the scalars low and high; axes13 and two_two.
std::string Model(const Case& c) {
  std::string text =
      StrCat("ir_version: 7 opset_import { version: ", c.opset, " } graph { name: \"g\" input { name: \"x\" ",
             FloatType(c.input), "} output { name: \"y\" type { tensor_type { elem_type: 1 } } } ", c.nodes);
  const auto floats = [&](const char* name, const std::vector<int64_t>& dims) {
    text += StrCat(" initializer { name: \"", name, "\" data_type: 1 ");
    int64_t count = 1;
    for (const int64_t d : dims) {
      text += StrCat("dims: ", d, " ");
      count *= d;
    }
    for (int64_t i = 0; i < count; ++i)
      text += StrCat("float_data: ", 0.25 * static_cast<double>(i * 7 % 11) - 1.0, " ");
    text += "}";
  };
  floats("w", {6, 4, 3, 3});
  floats("v", {4, 6});
  floats("k", {5, 4, 3});
  floats("b6", {6});
  text +=
      " initializer { name: \"low\" data_type: 1 float_data: -0.25 } initializer { name: \"high\" data_type: 1 float_data: 0.5 }";
  text += " initializer { name: \"axes13\" data_type: 7 dims: 2 int64_data: 1 int64_data: 3 }";
  text += " initializer { name: \"two_two\" data_type: 7 dims: 2 int64_data: 2 int64_data: 2 }";
  return text + " }";
}

#define INTS(name, values) "attribute { name: \"" name "\" type: INTS " values " } "
#define INT(name, value) "attribute { name: \"" name "\" type: INT i: " value " } "
#define FLOAT(name, value) "attribute { name: \"" name "\" type: FLOAT f: " value " } "
#define NODE(type, inputs, output, attributes) \
  "node { op_type: \"" type "\" " inputs " output: \"" output "\" " attributes "} "
#define X "input: \"x\" "

const Case kCases[] = {
    {"softmax flattens", 11, "2 4 3 2", NODE("Softmax", X, "y", INT("axis", "2"))},
    {"softmax default axis before 13", 11, "2 4 3", NODE("Softmax", X, "y", "")},
    {"softmax over channels", 13, "2 4 3 2", NODE("Softmax", X, "y", INT("axis", "1"))},
    {"softmax over rows", 13, "2 4 3 2", NODE("Softmax", X, "y", INT("axis", "2"))},
    {"softmax after a convolution, flattened", 9, "1 4 3 3",
     NODE("Conv", X "input: \"w\"", "a", "") NODE("Softmax", "input: \"a\"", "y", INT("axis", "1"))},
    {"clip by attributes", 7, "2 5", NODE("Clip", X, "y", FLOAT("min", "-0.3") FLOAT("max", "0.6"))},
    {"clip by inputs", 13, "2 5", NODE("Clip", X "input: \"low\" input: \"high\"", "y", "")},
    {"clip from above only", 13, "2 5", NODE("Clip", X "input: \"\" input: \"high\"", "y", "")},
    {"pad by attributes", 7, "1 4 5 5",
     NODE("Pad", X, "y",
          INTS("pads", "ints: 0 ints: 1 ints: 2 ints: 0 ints: 0 ints: 0 ints: 1 ints: 3") FLOAT("value", "0.5"))},
    {"slice by attributes", 9, "2 6 5",
     NODE("Slice", X, "y",
          INTS("starts", "ints: 1 ints: -4") INTS("ends", "ints: 9 ints: -1") INTS("axes", "ints: 1 ints: 2"))},
    {"squeeze by attributes", 11, "2 1 5 1", NODE("Squeeze", X, "y", INTS("axes", "ints: 1 ints: 3"))},
    {"squeeze by input", 13, "2 1 5 1", NODE("Squeeze", X "input: \"axes13\"", "y", "")},
    {"unsqueeze by attributes", 11, "2 5", NODE("Unsqueeze", X, "y", INTS("axes", "ints: 0 ints: 3"))},
    {"split by attribute", 11, "2 6 5",
     "node { op_type: \"Split\" " X "output: \"a\" output: \"y\" " INT("axis", "1")
         INTS("split", "ints: 2 ints: 4") "}"},
    {"split by input", 13, "4 6", "node { op_type: \"Split\" " X "input: \"two_two\" output: \"y\" output: \"b\" }"},
    {"reduce by attributes", 11, "2 4 3 5", NODE("ReduceMean", X, "y", INTS("axes", "ints: 1 ints: -1"))},
    {"reduce everything", 13, "2 4 3", NODE("ReduceMean", X, "y", INT("keepdims", "0"))},
    {"sum by input", 13, "2 4 3 5", NODE("ReduceSum", X "input: \"axes13\"", "y", INT("keepdims", "0"))},
    {"spatial mean after a convolution", 13, "1 4 5 5",
     NODE("Conv", X "input: \"w\"", "a", "")
         NODE("ReduceMean", "input: \"a\"", "y", INTS("axes", "ints: 2 ints: 3") INT("keepdims", "0"))},
    {"channel mean after a convolution", 13, "1 4 5 5",
     NODE("Conv", X "input: \"w\"", "a", "")
         NODE("ReduceMean", "input: \"a\"", "y", INTS("axes", "ints: 1") INT("keepdims", "0"))},
    {"one-dimensional convolution", 13, "2 4 9",
     NODE("Conv", X "input: \"k\"", "y",
          INTS("strides", "ints: 2") INTS("pads", "ints: 1 ints: 2") INTS("dilations", "ints: 2"))},
    {"one-dimensional chain", 13, "2 4 9",
     NODE("Conv", X "input: \"k\"", "a", "") NODE("Relu", "input: \"a\"", "b", "")
         NODE("AveragePool", "input: \"b\"", "y", INTS("kernel_shape", "ints: 3") INTS("strides", "ints: 2"))},
    {"same padding, upper", 13, "1 4 8 7",
     NODE("Conv", X "input: \"w\"", "y",
          "attribute { name: \"auto_pad\" type: STRING s: \"SAME_UPPER\" } " INTS("strides", "ints: 2 ints: 2"))},
    {"same padding, lower", 13, "1 4 8 7",
     NODE("Conv", X "input: \"w\"", "y",
          "attribute { name: \"auto_pad\" type: STRING s: \"SAME_LOWER\" } " INTS("strides", "ints: 3 ints: 2"))},
    {"max pool rounding up", 13, "1 4 8 7",
     NODE("MaxPool", X, "y",
          INTS("kernel_shape", "ints: 3 ints: 2") INTS("strides", "ints: 2 ints: 2")
              INTS("pads", "ints: 1 ints: 0 ints: 0 ints: 1") INT("ceil_mode", "1"))},
    {"max pool whose last window would lie in the padding", 13, "1 4 6 6",
     NODE("MaxPool", X, "y",
          INTS("kernel_shape", "ints: 2 ints: 2") INTS("strides", "ints: 3 ints: 3")
              INTS("pads", "ints: 1 ints: 1 ints: 1 ints: 1") INT("ceil_mode", "1"))},
    {"average pool rounding up", 13, "1 4 8 7",
     NODE("AveragePool", X, "y",
          INTS("kernel_shape", "ints: 3 ints: 3") INTS("strides", "ints: 2 ints: 2") INT("ceil_mode", "1"))},
    {"average pool rounding up, padding counted", 19, "1 4 8 8",
     NODE("AveragePool", X, "y",
          INTS("kernel_shape", "ints: 3 ints: 3") INTS("strides", "ints: 2 ints: 2")
              INTS("pads", "ints: 1 ints: 1 ints: 0 ints: 0") INT("count_include_pad", "1") INT("ceil_mode", "1"))},
    {"local response normalisation", 13, "2 7 3 4",
     NODE("LRN", X, "y", INT("size", "5") FLOAT("alpha", "0.3") FLOAT("beta", "0.6") FLOAT("bias", "1.5"))},
    {"gemm with a computed matrix", 13, "4 4", NODE("Gemm", X X, "y", INT("transA", "1") FLOAT("alpha", "0.5"))},
    {"gemm with everything", 13, "4 4",
     NODE("Gemm", X "input: \"v\" input: \"b6\"", "y", INT("transA", "1") FLOAT("alpha", "0.5") FLOAT("beta", "2"))},
    {"gemm with a computed bias", 13, "4 4",
     NODE("Relu", X, "c", "") NODE("Gemm", X X "input: \"c\"", "y", FLOAT("beta", "3"))},
    {"matrix product of a vector", 13, "4", NODE("MatMul", X "input: \"v\"", "y", "")},
    {"matrix product of batches", 13, "2 3 4", NODE("MatMul", X "input: \"v\"", "y", "")},
    {"a batch by one computed matrix", 13, "2 4 4",
     NODE("ReduceMean", X, "m", INTS("axes", "ints: 0") INT("keepdims", "0"))
         NODE("MatMul", X "input: \"m\"", "y", "")},
    {"leaky relu", 13, "3 5", NODE("LeakyRelu", X, "y", FLOAT("alpha", "0.2"))},
    {"leaky relu beyond one", 13, "3 5", NODE("LeakyRelu", X, "y", FLOAT("alpha", "1.5"))},
    {"hard sigmoid of another slope", 13, "3 5",
     NODE("HardSigmoid", X, "y", FLOAT("alpha", "0.7") FLOAT("beta", "0.4"))},
    {"sum of three", 13, "1 4 3 3",
     NODE("Conv", X "input: \"w\"", "a", INTS("pads", "ints: 1 ints: 1 ints: 1 ints: 1"))
         NODE("Relu", "input: \"a\"", "b", "") NODE("Sum", "input: \"a\" input: \"b\" input: \"a\"", "y", "")},
    {"an NHWC model", 13, "1 5 5 4",
     NODE("Transpose", X, "a", INTS("perm", "ints: 0 ints: 3 ints: 1 ints: 2"))
         NODE("Conv", "input: \"a\" input: \"w\"", "b", "")
             NODE("Transpose", "input: \"b\"", "c", INTS("perm", "ints: 0 ints: 2 ints: 3 ints: 1"))
                 NODE("Add", "input: \"c\" input: \"b6\"", "y", "")},
    {"layer normalisation of several axes", 17, "2 4 6",
     "node { op_type: \"LayerNormalization\" " X "input: \"v\" output: \"y\" " INT("axis", "1") "}"},
    {"gather of neighbours and of one", 13, "2 6 5",
     NODE("Constant", "", "i", "attribute { name: \"value_ints\" type: INTS ints: 2 ints: 3 }")
         NODE("Gather", X "input: \"i\"", "a", INT("axis", "1"))
             NODE("Constant", "", "j", "attribute { name: \"value_int\" type: INT i: -1 }")
                 NODE("Gather", "input: \"a\" input: \"j\"", "y", INT("axis", "2"))},
    {"channels split after a convolution", 13, "1 4 5 5",
     NODE("Conv", X "input: \"w\"", "a", "") "node { op_type: \"Split\" input: \"a\" output: \"b\" output: \"c\" " INT(
         "axis", "1") "} " NODE("Concat", "input: \"c\" input: \"b\"", "y", INT("axis", "1"))},
};

TEST(Opsets, SmallModelsAgreeWithOnnxRuntime) {
  if (!HasOracle()) GTEST_SKIP() << "built without ONNX Runtime";
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    const std::string bytes = OnnxFromText(Model(c));
    ASSERT_FALSE(bytes.empty()) << "malformed test";
    const Result<Graph> graph = ImportOnnx(bytes);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    if (!graph.ok()) continue;
    const std::vector<OracleTensor> inputs = RandomInputs(*graph, 7);
    const auto expected = RunOracle(bytes, inputs);
    const auto actual = RunReference(*graph, inputs);
    EXPECT_TRUE(expected.ok()) << expected.status().message();
    EXPECT_TRUE(actual.ok()) << actual.status().message();
    if (!expected.ok() || !actual.ok()) continue;
    EXPECT_LE(RelativeError(*expected, *actual), kTolerance);
    const Result<Graph> optimized = Optimize(*graph);
    ASSERT_TRUE(optimized.ok()) << optimized.status().message();
    const auto after = RunReference(*optimized, inputs);
    ASSERT_TRUE(after.ok()) << after.status().message();
    EXPECT_LE(RelativeError(*expected, *after), kTolerance);
  }
}

}  // namespace
}  // namespace plait
