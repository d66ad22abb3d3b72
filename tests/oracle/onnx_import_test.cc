// What the importer makes of models that are wrong, unusual or beyond it. Models are written in protobuf's text form.
#include "src/formats/onnx_import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "tests/oracle/oracle.h"

namespace plait {
namespace {

constexpr char kNodeConv[] = R"(node { op_type: "Conv" name: "c1" input: "x" input: "w" output: "y" %s })";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string FloatType(const std::string& dims) {
  std::string shape, dim;
  std::istringstream in(dims);
  while (in >> dim) {
    const bool known = std::isdigit(static_cast<unsigned char>(dim[0])) || dim[0] == '-';
    shape += known ? "dim { dim_value: " + dim + " } " : "dim { dim_param: \"" + dim + "\" } ";
  }
  return "type { tensor_type { elem_type: 1 shape { " + shape + "} } }";
}

std::string Repeated(const std::string& field, int count, const std::string& value) {
  std::string out;
  for (int i = 0; i < count; ++i) out += field + ": " + value + " ";
  return out;
}

// x[1, 3, 8, 8] -> y; w[4, 3, 3, 3] is there.
std::string Text(const std::string& nodes, const std::string& more = "", int opset = 13) {
  return StrCat("ir_version: 7 opset_import { version: ", opset, " } graph { name: \"g\" input { name: \"x\" ",
                FloatType("1 3 8 8"), "} output { name: \"y\" ", FloatType(""),
                "} initializer { name: \"w\" data_type: 1 dims: 4 dims: 3 dims: 3 dims: 3 ",
                Repeated("float_data", 108, "0.5"), "} ", nodes, " ", more, " }");
}

std::string Ints(const std::string& name, const std::string& values) {
  std::string list, value;
  std::istringstream in(values);
  int64_t count = 0;
  for (; in >> value; ++count) list += "int64_data: " + value + " ";
  return StrCat("initializer { name: \"", name, "\" data_type: 7 dims: ", count, " ", list, "} ");
}

Result<Graph> Import(const std::string& text, const ImportOptions& options = {}) {
  const std::string bytes = OnnxFromText(text);
  EXPECT_FALSE(bytes.empty()) << "malformed test: " << text;
  return ImportOnnx(bytes, options);
}

void ExpectRefused(const std::string& text, plait_status code, const std::vector<std::string>& says) {
  const Result<Graph> graph = Import(text);
  ASSERT_FALSE(graph.ok()) << text;
  EXPECT_EQ(graph.status().code(), code) << graph.status().message();
  for (const std::string& s : says) {
    EXPECT_NE(graph.status().message().find(s), std::string::npos)
        << "'" << s << "' not in: " << graph.status().message();
  }
}

std::string Conv(const std::string& attributes) { return Replaced(kNodeConv, "%s", attributes); }

TEST(OnnxImport, KeepsNamesShapesAndOrderOfInputsAndOutputs) {
  const Result<Graph> graph = Import(
      Text(R"(node { op_type: "Relu" input: "x" output: "r" } node { op_type: "Identity" input: "r" output: "y" })",
           StrCat("input { name: \"second\" ", FloatType("5"), "} output { name: \"r\" ", FloatType("1 3 8 8"),
                  "} output { name: \"z\" ", FloatType("5"),
                  "} node { op_type: \"Abs\" input: \"second\" output: \"z\" }")));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  std::vector<std::string> inputs, outputs;
  for (const TensorId t : graph->inputs) {
    inputs.push_back(graph->tensor(t).name + " " + ToString(graph->tensor(t).shape));
  }
  for (const TensorId t : graph->outputs) {
    outputs.push_back(graph->tensor(t).name + " " + ToString(graph->tensor(t).shape));
  }
  EXPECT_EQ(inputs, (std::vector<std::string>{"x 1x3x8x8", "second 5"}));
  EXPECT_EQ(outputs, (std::vector<std::string>{"y 1x3x8x8", "r 1x3x8x8", "z 5"}));
}

TEST(OnnxImport, ConstantOutputsAreCopied) {
  const Result<Graph> graph = Import(Text(R"(node { op_type: "Identity" input: "w" output: "y" })"));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->tensor(graph->outputs[0]).name, "y");
}

TEST(OnnxImport, NeighbouringSpatialOperatorsShareTheirLayout) {
  const Result<Graph> graph = Import(Text(Replaced(Conv(""), "\"y\"", "\"a\"") + R"(
      node { op_type: "Relu" input: "a" output: "b" }
      node { op_type: "MaxPool" input: "b" output: "c" attribute { name: "kernel_shape" type: INTS ints: 2 ints: 2 } }
      node { op_type: "Concat" input: "c" input: "c" output: "y" attribute { name: "axis" type: INT i: 1 } })"));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(std::count_if(graph->ops.begin(), graph->ops.end(),
                          [](const Operator& op) { return op.kind == OpKind::kTranspose; }),
            2);
}

TEST(OnnxImport, OpenDimensionsNeedAShape) {
  const std::string text = Replaced(Text(R"(node { op_type: "Relu" input: "x" output: "y" })"), FloatType("1 3 8 8"),
                                    FloatType("batch 3 -1 8"));
  const Result<Graph> open = Import(text);
  EXPECT_EQ(open.status().code(), PLAIT_INVALID_ARGUMENT);
  EXPECT_NE(open.status().message().find("'x' has no fixed size in dimension 0 ('batch')"), std::string::npos)
      << open.status().message();
  ImportOptions options;
  options.shapes["x"] = {2, 3, 5, 8};
  const Result<Graph> fixed = Import(text, options);
  ASSERT_TRUE(fixed.ok()) << fixed.status().message();
  EXPECT_EQ(ToString(fixed->tensor(fixed->outputs[0]).shape), "2x3x5x8");
  options.shapes["x"] = {2, 4, 5, 8};
  EXPECT_NE(Import(text, options).status().message().find("contradicts"), std::string::npos);
  options.shapes["x"] = {2, 3, 5};
  EXPECT_FALSE(Import(text, options).ok());
  options.shapes["x"] = {2, 3, 5, 0};
  EXPECT_FALSE(Import(text, options).ok());
  options.shapes = {{"nothing", {1}}};
  EXPECT_NE(Import(Text(Conv("")), options).status().message().find("'nothing'"), std::string::npos);
}

TEST(OnnxImport, OneMessageListsAllThatIsUnsupported) {
  ExpectRefused(
      Text(
          R"(node { op_type: "LSTM" name: "l1" input: "x" output: "a" } node { op_type: "LSTM" name: "l2" input: "a" output: "b" }
                        node { op_type: "Fancy" domain: "my.ops" input: "b" output: "c" } node { op_type: "Relu" input: "c" output: "d" }
                        node { op_type: "Pow" name: "p" input: "x" input: "e" output: "q" } node { op_type: "Add" input: "d" input: "q" output: "y" })",
          R"(initializer { name: "e" data_type: 1 dims: 1 float_data: 1.7 })"),
      PLAIT_UNSUPPORTED, {"LSTM (2x: 'l1', 'l2')", "my.ops.Fancy (1x", "Pow 'p': the exponent 1.7"});
  // What no output needs is no obstacle.
  const Result<Graph> graph = Import(
      Text(R"(node { op_type: "LSTM" input: "x" output: "unused" } node { op_type: "Relu" input: "x" output: "y" })"));
  EXPECT_TRUE(graph.ok()) << graph.status().message();
}

TEST(OnnxImport, OrderIsRestoredAndCyclesAreNamed) {
  const Result<Graph> unsorted =
      Import(Text(R"(node { op_type: "Abs" input: "a" output: "y" } node { op_type: "Relu" input: "x" output: "a" })"));
  EXPECT_TRUE(unsorted.ok()) << unsorted.status().message();
  ExpectRefused(Text(R"(node { op_type: "Add" name: "loop" input: "x" input: "y" output: "y" })"), PLAIT_CORRUPT,
                {"cycle", "loop"});
  ExpectRefused(
      Text(
          R"(node { op_type: "Add" input: "x" input: "b" output: "a" } node { op_type: "Abs" input: "a" output: "b" } node { op_type: "Abs" input: "b" output: "y" })"),
      PLAIT_CORRUPT, {"cycle"});
}

TEST(OnnxImport, ContradictoryGraphsAreCorrupt) {
  ExpectRefused(Text(R"(node { op_type: "Abs" input: "gone" output: "y" })"), PLAIT_CORRUPT,
                {"'gone'", "nothing makes"});
  ExpectRefused(Text(R"(node { op_type: "Abs" input: "x" output: "a" })"), PLAIT_CORRUPT, {"'y'"});
  ExpectRefused(
      Text(R"(node { op_type: "Abs" input: "x" output: "y" } node { op_type: "Relu" input: "x" output: "y" })"),
      PLAIT_CORRUPT, {"written twice"});
  ExpectRefused(
      Text(R"(node { op_type: "Abs" input: "x" output: "w" } node { op_type: "Relu" input: "w" output: "y" })"),
      PLAIT_CORRUPT, {"'w'"});
  ExpectRefused(Text(R"(node { op_type: "Relu" input: "x" output: "y" })",
                     R"(initializer { name: "w" data_type: 1 dims: 1 float_data: 1 })"),
                PLAIT_CORRUPT, {"listed twice"});
  ExpectRefused(
      Text(R"(node { op_type: "Relu" input: "x" output: "y" })", "output { name: \"y\" " + FloatType("") + "}"),
      PLAIT_CORRUPT, {"'y' is listed twice"});
  ExpectRefused(Text(R"(node { op_type: "Relu" output: "y" })"), PLAIT_INVALID_ARGUMENT, {"no input 0"});
  ExpectRefused(Text(R"(node { op_type: "Relu" input: "x" })"), PLAIT_CORRUPT, {"'y'"});
  ExpectRefused("ir_version: 7 opset_import { version: 13 } graph { name: \"g\" }", PLAIT_CORRUPT, {"no outputs"});
  ExpectRefused("ir_version: 7 opset_import { version: 13 }", PLAIT_CORRUPT, {"no graph"});
}

TEST(OnnxImport, VersionsBeyondItAreNamed) {
  ExpectRefused(Text(Conv(""), "", 6), PLAIT_UNSUPPORTED, {"opset 6", "7 to"});
  ExpectRefused(Text(Conv(""), "", 99), PLAIT_UNSUPPORTED, {"opset 99"});
  ExpectRefused(Replaced(Text(Conv("")), "ir_version: 7", "ir_version: 99"), PLAIT_UNSUPPORTED, {"IR version 99"});
}

TEST(OnnxImport, ConvolutionAttributesAreChecked) {
  const auto ints = [](const char* name, const std::string& values) {
    std::string list, value;
    std::istringstream in(values);
    while (in >> value) list += "ints: " + value + " ";
    return StrCat("attribute { name: \"", name, "\" type: INTS ", list, "}");
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {ints("strides", "0 1"), "strides"},
      {ints("strides", "-1 1"), "strides"},
      {ints("strides", "1"), "strides"},
      {ints("strides", "4611686018427387904 1"), "strides"},
      {ints("dilations", "0 1"), "dilations"},
      {ints("dilations", "4611686018427387904 1"), "dilations"},
      {ints("dilations", "2147483647 1"), "does not fit"},
      {ints("pads", "-1 0 0 0"), "pads"},
      {ints("pads", "0 0 0"), "pads"},
      {ints("pads", "9223372036854775807 9223372036854775807 1 1"), "pads"},
      {ints("kernel_shape", "5 5"), "kernel_shape"},
      {"attribute { name: \"group\" type: INT i: 0 }", "groups"},
      {"attribute { name: \"group\" type: INT i: -1 }", "groups"},
      {"attribute { name: \"group\" type: INT i: 2 }", "groups"},
      {"attribute { name: \"group\" type: INT i: 4611686018427387904 }", "groups"},
      {"attribute { name: \"group\" type: FLOAT f: 1 }", "group"},
      {"attribute { name: \"strides\" type: INT i: 1 }", "strides"},
      {"attribute { name: \"auto_pad\" type: STRING s: \"%n%s\" }", "auto_pad"},
  };
  for (const auto& [attribute, says] : cases) {
    ExpectRefused(Text(Conv(attribute)), PLAIT_INVALID_ARGUMENT, {"c1", says});
  }
  // Enormous padding gives an enormous tensor, which is refused before it is made.
  EXPECT_FALSE(Import(Text(Conv(ints("pads", "2147483647 2147483647 2147483647 2147483647")))).ok());
  const std::string small = Replaced(Text(Conv("")), FloatType("1 3 8 8"), FloatType("1 3 2 8"));
  ExpectRefused(small, PLAIT_INVALID_ARGUMENT, {"does not fit"});
  ExpectRefused(Replaced(Text(Conv("")), FloatType("1 3 8 8"), FloatType("1 3 8")), PLAIT_INVALID_ARGUMENT,
                {"weights"});
}

TEST(OnnxImport, OtherAttributesAreChecked) {
  const auto node = [](const char* type, const std::string& rest) {
    return StrCat("node { op_type: \"", type, "\" input: \"x\" output: \"y\" ", rest, " }");
  };
  const auto axis = [](int64_t a) { return StrCat("attribute { name: \"axis\" type: INT i: ", a, " }"); };
  const std::string kernel = "attribute { name: \"kernel_shape\" type: INTS ints: 3 ints: 3 }";
  const std::string i = "input: \"i\"";
  const std::vector<std::array<std::string, 2>> cases = {
      {Text(node("MaxPool", "")), "kernel_shape"},
      {Text(node("MaxPool", kernel + "attribute { name: \"pads\" type: INTS ints: 3 ints: 0 ints: 0 ints: 0 }")),
       "padding"},
      {Text(node("AveragePool", "attribute { name: \"kernel_shape\" type: INTS ints: 0 ints: 1 }")), "kernel_shape"},
      {Text(node("AveragePool", "attribute { name: \"kernel_shape\" type: INTS ints: 9 ints: 9 }")), "does not fit"},
      {Text(node("Softmax", axis(4))), "axis 4"},
      {Text(node("Softmax", axis(-5))), "axis -5"},
      {Text(node("Flatten", axis(5))), "axis 5"},
      {Text(node("Concat", axis(4))), "axis 4"},
      {Text(node("Concat", "")), "axis"},
      {Text(node("Concat", "input: \"w\"" + axis(0))), "joins"},
      {Text(node("Reshape", i), Ints("i", "-1 -1")), "two sizes"},
      {Text(node("Reshape", i), Ints("i", "5 -1")), "cannot make"},
      {Text(node("Reshape", i), Ints("i", "4611686018427387904 4611686018427387904")), "cannot make"},
      {Text(node("Reshape", i), Ints("i", "-2")), "-2"},
      {Text(node("Reshape", i), Ints("i", "1 1 1 1 0")), "dimension 4"},
      {Text(node("Reshape", i), Ints("i", "")), "cannot make"},
      {Text(node("Split", i + axis(1)), Ints("i", "1 1")), "add up"},
      {Text(node("Split", i + axis(1)), Ints("i", "4")), "add up"},
      {Text(node("Squeeze", i), Ints("i", "1")), "squeezes"},
      {Text(node("Unsqueeze", i), Ints("i", "0 0")), "twice"},
      {Text(node("Unsqueeze", i), Ints("i", "9")), "axis 9"},
      {Text(node("Transpose", "attribute { name: \"perm\" type: INTS ints: 0 ints: 1 ints: 2 ints: 2 }")), "perm"},
      {Text(node("Transpose", "attribute { name: \"perm\" type: INTS ints: 1 ints: 0 }")), "perm"},
      {Text(node("Gather", i + axis(1)), Ints("i", "3")), "index 3"},
      {Text(node("Gather", i + axis(1)), Ints("i", "-9223372036854775808")), "index"},
      {Text(node("Slice", i + i), Ints("i", "1 2 3 4 5")), "axis 4"},
      {Text(node("Slice", "input: \"i\" input: \"j\""), Ints("i", "1") + Ints("j", "1 2")), "entries"},
      {Text(node("Pad", i), Ints("i", "1 1")), "paddings"},
      {Text(node("Pad", i), Ints("i", "0 0 0 0 0 0 0 9223372036854775807")), "pads dimension 3"},
      {Text(node("Expand", i), Ints("i", "1 2 8 8")), "cannot expand"},
      {Text(node("ReduceMean", "attribute { name: \"axes\" type: INTS ints: 7 }")), "axis 7"},
      {Text(node("Gemm", "input: \"w\"")), "no matrices"},
      {Text(node("MatMul", "input: \"w\"")), "inner sizes"},
      {Text(node("LRN", "attribute { name: \"size\" type: INT i: 0 }")), "size is 0"},
      {Text(
           node("Clip", "input: \"a\" input: \"b\""),
           "initializer { name: \"a\" data_type: 1 float_data: 2 } initializer { name: \"b\" data_type: 1 float_data: 1 }"),
       "clips"},
      {Text(node("Add", "input: \"w\"")), "do not broadcast"},
      {Text(
           "node { op_type: \"Div\" input: \"i\" input: \"j\" output: \"k\" } node { op_type: \"Reshape\" input: \"x\" input: \"k\" output: \"y\" }",
           Ints("i", "1") + Ints("j", "0")),
       "zero"},
      {Text(
           "node { op_type: \"BatchNormalization\" input: \"x\" input: \"w\" input: \"w\" input: \"w\" input: \"w\" output: \"y\" }"),
       "instead of 3"},
  };
  for (const auto& [text, says] : cases) ExpectRefused(text, PLAIT_INVALID_ARGUMENT, {says});
}

TEST(OnnxImport, ConstantsAreMeasured) {
  const auto with = [](const std::string& tensor) {
    return Text(R"(node { op_type: "Add" input: "x" input: "t" output: "y" })",
                "initializer { name: \"t\" " + tensor + " }");
  };
  ExpectRefused(with("data_type: 1 dims: 4 raw_data: \"abcd\""), PLAIT_CORRUPT, {"'t'", "4 elements", "holds 1"});
  ExpectRefused(with("data_type: 1 dims: 1 raw_data: \"abcde\""), PLAIT_CORRUPT, {"5 bytes"});
  ExpectRefused(with("data_type: 1 dims: -1"), PLAIT_CORRUPT, {"negative"});
  ExpectRefused(with("data_type: 1 dims: 8589934592 dims: 8589934592"), PLAIT_CORRUPT, {"overflows"});
  ExpectRefused(with("data_type: 1 dims: 8589934592"), PLAIT_CORRUPT, {"holds 0"});
  ExpectRefused(with("data_type: 1 " + Repeated("dims", 9, "1") + "float_data: 1"), PLAIT_UNSUPPORTED,
                {"9 dimensions"});
  ExpectRefused(with("data_type: 10 dims: 1 int32_data: 1"), PLAIT_UNSUPPORTED, {"float16"});
  ExpectRefused(with("data_type: 8 dims: 1 string_data: \"a\""), PLAIT_UNSUPPORTED, {"string"});
  ExpectRefused(with("data_type: 77 dims: 1"), PLAIT_UNSUPPORTED, {"type 77"});
  ExpectRefused(with("data_type: 7 dims: 1 int64_data: 1"), PLAIT_UNSUPPORTED, {"integers"});
  ExpectRefused(with("data_type: 1 dims: 0"), PLAIT_INVALID_ARGUMENT, {"t"});
  ExpectRefused(
      with(
          "data_type: 1 dims: 1 data_location: EXTERNAL external_data { key: \"location\" value: \"../../etc/passwd\" }"),
      PLAIT_UNSUPPORTED, {"'t'", "another file"});
}

TEST(OnnxImport, MemoryIsBounded) {
  const auto filled = [](const std::string& shape) {
    return Text(
        "node { op_type: \"ConstantOfShape\" input: \"s\" output: \"c\" } node { op_type: \"Add\" input: \"x\" input: \"c\" output: \"y\" }",
        Ints("s", shape));
  };
  ExpectRefused(filled("2147483647 1 1 1"), PLAIT_UNSUPPORTED, {"max_generated_bytes"});
  ExpectRefused(filled("9223372036854775807 9223372036854775807"), PLAIT_UNSUPPORTED, {"max_generated_bytes"});
  ExpectRefused(filled("-1"), PLAIT_INVALID_ARGUMENT, {"-1"});
  // Nothing, but with sizes whose products overflow or whose loops would not end.
  const auto empty = [](const std::string& dims, const std::string& node) {
    return Text(
        node +
            " node { op_type: \"Size\" input: \"b\" output: \"n\" } node { op_type: \"Reshape\" input: \"x\" input: \"n\" output: \"y\" }",
        "initializer { name: \"a\" data_type: 1 " + dims + "}");
  };
  for (const std::string dims :
       {"dims: 0 dims: 4611686018427387904 dims: 4611686018427387904", "dims: 1099511627776 dims: 0 dims: 1"}) {
    EXPECT_FALSE(Import(empty(dims, R"(node { op_type: "Transpose" input: "a" output: "b" })")).ok());
    EXPECT_FALSE(
        Import(
            empty(
                dims,
                R"(node { op_type: "Concat" input: "a" input: "a" output: "b" attribute { name: "axis" type: INT i: 2 } })"))
            .ok());
  }
  ImportOptions options;
  options.max_generated_bytes = 0;
  std::string nodes;
  for (int i = 0; i < 100; ++i) {  // each doubles the constant
    nodes += StrCat("node { op_type: \"Concat\" input: \"c", i, "\" input: \"c", i, "\" output: \"c", i + 1,
                    "\" attribute { name: \"axis\" type: INT i: 0 } } ");
  }
  const Result<Graph> doubled =
      Import(Text(nodes + "node { op_type: \"Add\" input: \"x\" input: \"c100\" output: \"y\" }",
                  "initializer { name: \"c0\" data_type: 1 dims: 1 float_data: 1 }"),
             options);
  EXPECT_EQ(doubled.status().code(), PLAIT_UNSUPPORTED) << doubled.status().message();
}

TEST(OnnxImport, EveryTruncationIsRefusedAndAnyByteMayBeWrong) {
  const std::string bytes = OnnxFromText(Text(
      Replaced(Conv("attribute { name: \"pads\" type: INTS ints: 1 ints: 1 ints: 1 ints: 1 }"), "\"y\"", "\"a\"") +
          "node { op_type: \"Flatten\" input: \"a\" output: \"b\" } node { op_type: \"Reshape\" input: \"b\" input: \"s\" output: \"y\" }",
      Ints("s", "0 -1 4")));
  ASSERT_TRUE(ImportOnnx(bytes).ok());
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(ImportOnnx(bytes.substr(0, n)).ok()) << n;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bad = bytes;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      const Result<Graph> graph = ImportOnnx(bad);
      if (!graph.ok()) {
        EXPECT_FALSE(graph.status().message().empty());
      }
    }
  }
}

TEST(OnnxImport, NestingAndLengthAreHarmless) {
  std::string nested = "type: GRAPH g { name: \"inner\" }";
  for (int i = 0; i < 80; ++i) {
    nested = "type: GRAPH g { node { op_type: \"If\" attribute { name: \"then_branch\" " + nested + " } } }";
  }
  const Result<Graph> deep = Import(
      Text("node { op_type: \"If\" input: \"x\" output: \"y\" attribute { name: \"then_branch\" " + nested + " } }"));
  EXPECT_EQ(deep.status().code(), PLAIT_CORRUPT);
  ExpectRefused(
      Text(
          "node { op_type: \"If\" input: \"x\" output: \"y\" attribute { name: \"then_branch\" type: GRAPH g { name: \"inner\" } } }"),
      PLAIT_UNSUPPORTED, {"If"});
  std::string chain;
  constexpr int kLength = 20000;
  for (int i = 0; i < kLength; ++i) {
    chain += StrCat("node { op_type: \"Relu\" input: \"", i == 0 ? "x" : StrCat("a", i - 1), "\" output: \"",
                    i + 1 == kLength ? "y" : StrCat("a", i), "\" }\n");
  }
  const Result<Graph> graph = Import(Text(chain));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->op_count(), kLength);
  const std::string name(1 << 20, 'n');
  const Status status =
      Import(Text("node { op_type: \"Quux\" name: \"" + name + "\\n\" input: \"x\" output: \"y\" }")).status();
  EXPECT_LT(status.message().size(), 4096u);
}

// The way exporters compute shapes: Shape, Gather, Concat, Cast, arithmetic, Where.
TEST(OnnxImport, ShapeArithmeticIsEvaluated) {
  const Result<Graph> graph = Import(Text(R"(
      node { op_type: "Shape" input: "x" output: "s" }
      node { op_type: "Gather" input: "s" input: "one" output: "c" }
      node { op_type: "Mul" input: "c" input: "two" output: "d" }
      node { op_type: "Div" input: "d" input: "two" output: "e" }
      node { op_type: "Cast" input: "e" output: "f" attribute { name: "to" type: INT i: 1 } }
      node { op_type: "Floor" input: "f" output: "g" }
      node { op_type: "Cast" input: "g" output: "h" attribute { name: "to" type: INT i: 7 } }
      node { op_type: "Equal" input: "h" input: "minus" output: "q" }
      node { op_type: "Where" input: "q" input: "two" input: "h" output: "i" }
      node { op_type: "Concat" input: "one" input: "i" input: "minus" output: "t" attribute { name: "axis" type: INT i: 0 } }
      node { op_type: "Reshape" input: "x" input: "t" output: "y" })",
                                          Ints("one", "1") + Ints("two", "2") + Ints("minus", "-1")));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(ToString(graph->tensor(graph->outputs[0]).shape), "1x3x64");
  EXPECT_EQ(graph->op_count(), 1);
}

}  // namespace
}  // namespace plait
