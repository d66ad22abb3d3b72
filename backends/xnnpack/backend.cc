#include <fstream>
#include <string>

#include "backends/xnnpack/initialize.h"
#include "backends/xnnpack/kernels.h"
#include "backends/xnnpack/operands.h"
#include "backends/xnnpack/rules.h"
#include "backends/xnnpack/xnnpack.h"

namespace plait {
namespace xnn {
namespace {

constexpr int64_t kDefaultL2Bytes = 512 << 10;

// The size of core 0's level-2 cache from sysfs ("512K"); the default if the system does not say.
int64_t SystemL2Bytes() {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    int level = 0;
    int64_t size = 0;
    char unit = 0;
    if (!(std::ifstream(folder + "level") >> level) || level != 2) continue;
    std::ifstream file(folder + "size");
    if (!(file >> size) || size <= 0 || size > (1 << 20)) continue;
    file >> unit;
    return unit == 'M' ? size << 20 : unit == 'K' ? size << 10 : size;
  }
  return kDefaultL2Bytes;
}

// A kernel that needs dense operands, between copies from and to operands that are not.
class GatheredKernel final : public CpuKernel {
 public:
  Status Run() noexcept override {
    for (const std::unique_ptr<CpuKernel>& step : steps_) {
      Status status = step->Run();
      if (!status.ok()) return status;
    }
    return Status();
  }
  void Add(std::unique_ptr<CpuKernel> step) { steps_.push_back(std::move(step)); }
  AlignedBuffer* Allocate(int64_t bytes) { return &buffers_.emplace_back(AlignedBuffer::Allocate(bytes)); }

 private:
  std::vector<AlignedBuffer> buffers_;  // outlive steps_
  std::vector<std::unique_ptr<CpuKernel>> steps_;
};

KernelResult MakeKernel(const KernelEnv& env, const KernelRequest& request) {
  switch (request.graph->op(request.op).kind) {
    case OpKind::kConv2D:
    case OpKind::kDepthwiseConv2D: return MakeConvolution(env, request);
    case OpKind::kFullyConnected: return MakeFullyConnected(env, request);
    case OpKind::kMatMul: return MakeMatMul(env, request);
    case OpKind::kBinary: return MakeBinary(env, request);
    case OpKind::kUnary: return MakeUnary(env, request);
    case OpKind::kMaxPool2D:
    case OpKind::kAveragePool2D: return MakePool(env, request);
    case OpKind::kReduceMean: return MakeReduceMean(env, request);
    case OpKind::kSoftmax: return MakeSoftmax(env, request);
    case OpKind::kLayerNorm: return MakeLayerNorm(env, request);
    case OpKind::kBatchNorm: return MakeBatchNorm(env, request);
    case OpKind::kTranspose: return MakeTranspose(env, request);
    case OpKind::kPad: return MakePad(env, request);
    case OpKind::kConcat:
    case OpKind::kSlice:
    case OpKind::kReshape: break;
  }
  return Unsupported("a view has no kernel");
}

// The kernel on dense copies of whatever operands have gaps.
KernelResult MakeGathered(const KernelEnv& env, const KernelRequest& request) {
  auto kernel = std::make_unique<GatheredKernel>();
  KernelRequest dense = request;
  std::vector<View> views(request.reads.size() + 1);
  const auto gather = [&](const BoundView& from, View* view, BoundView* to) -> Status {
    *view = *from.view;
    view->strides = DenseStrides(from.view->extent());
    const AlignedBuffer* buffer = kernel->Allocate(from.view->extent().Count() * 4);
    if (buffer->data() == nullptr) return OutOfMemory("no memory to gather ", ToString(from.view->extent()), " elements");
    *to = {view, buffer->data()};
    return Status();
  };
  for (size_t i = 0; i < request.reads.size(); ++i) {
    const BoundView& read = request.reads[i];
    if (!IsPresent(request, i) || IsDense(*read.view) || request.graph->tensor(read.view->tensor).is_constant()) continue;
    PLAIT_RETURN_IF_ERROR(gather(read, &views[i], &dense.reads[i]));
    kernel->Add(MakeCopy(env, read.view->extent(), Floats(read), read.view->strides, Floats(dense.reads[i]), views[i].strides));
  }
  const bool scatter = !IsDense(*request.write.view);
  if (scatter) PLAIT_RETURN_IF_ERROR(gather(request.write, &views.back(), &dense.write));
  PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<CpuKernel> inner, MakeKernel(env, dense));
  if (inner == nullptr) return Internal("a kernel refuses dense operands");
  kernel->Add(std::move(inner));
  if (scatter) {
    const View& write = *request.write.view;
    kernel->Add(MakeCopy(env, write.extent(), Floats(dense.write), views.back().strides, Floats(request.write), write.strides));
  }
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

// Whether the request's operands are what the operator needs: views of the right tensors' ranks, with memory.
Status CheckRequest(const KernelRequest& request) {
  const Graph& graph = *request.graph;
  const Operator& op = graph.op(request.op);
  const Dims& shape = graph.output(op).shape;
  if (request.region.begin.rank() != shape.rank() || request.region.IsEmpty() || !Contains(Region::Whole(shape), request.region)) {
    return InvalidArgument("region ", ToString(request.region), " is empty or leaves the output ", ToString(shape));
  }
  if (request.reads.size() != op.inputs.size()) {
    return InvalidArgument(request.reads.size(), " read views for ", op.inputs.size(), " inputs");
  }
  const auto check = [&](const BoundView& v, TensorId tensor, const Region& needed, const char* what) -> Status {
    if (v.view == nullptr || v.data == nullptr) return InvalidArgument(what, " has no memory");
    const Dims& dims = graph.tensor(tensor).shape;
    if (v.view->region.begin.rank() != dims.rank() || v.view->strides.rank() != dims.rank() || v.view->dtype != DType::kF32 ||
        !Contains(v.view->region, needed)) {
      return InvalidArgument(what, ": the view of tensor \"", graph.tensor(tensor).name, "\" holds ", ToString(v.view->region), ", needed is ",
                             ToString(needed), " as f32");
    }
    if (dims.rank() > 0 && v.view->extent().back() > 1 && v.view->strides.back() != 1) {
      return InvalidArgument(what, ": the innermost stride of tensor \"", graph.tensor(tensor).name, "\" is ", v.view->strides.back(), ", not 1");
    }
    return Status();
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.inputs[i] == kNoTensor || graph.tensor(op.inputs[i]).is_constant()) continue;
    PLAIT_RETURN_IF_ERROR(check(request.reads[i], op.inputs[i], InputRegion(graph, op, static_cast<int>(i), request.region), "an input"));
  }
  PLAIT_RETURN_IF_ERROR(check(request.write, op.output, request.region, "the output"));
  if (!(request.write.view->region == request.region)) return InvalidArgument("the output view is not the part's region");
  return Status();
}

class Backend final : public XnnpackBackend {
 public:
  Backend(const Tiles& tiles, int64_t l2_bytes) : tiles_(tiles), rules_(tiles), l2_bytes_(l2_bytes) {}

  const KernelRules& rules() const override { return rules_; }
  XnnpackStats stats() const override { return store_.stats(); }

  Result<std::unique_ptr<CpuContext>> CreateContext(int threads) override {
    PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<XnnContext> context, XnnContext::Create(threads));
    return std::unique_ptr<CpuContext>(std::move(context));
  }

  Result<std::unique_ptr<CpuKernel>> CreateKernel(CpuContext* context, const KernelRequest& request) override {
    const Operator& op = request.graph->op(request.op);
    const std::string name = StrCat("operator \"", op.name, "\" (", Name(op.kind), ")");
    const KernelSupport support = rules_.Supports(*request.graph, request.op);
    if (!support.supported) return Unsupported(name, ": ", support.reason);
    if (!request.kernel.empty() && request.kernel != support.kernel) {
      return Unsupported(name, ": kernel \"", request.kernel, "\" is planned, the XNNPACK backend has \"", support.kernel, "\"; plan again");
    }
    if (Status status = CheckRequest(request); !status.ok()) return status.Annotated(name);
    const KernelEnv env{&store_, &tiles_, l2_bytes_, static_cast<const XnnContext*>(context)};
    KernelResult kernel = MakeKernel(env, request);
    if (kernel.ok() && *kernel == nullptr) kernel = MakeGathered(env, request);
    if (!kernel.ok()) return kernel.status().Annotated(name);
    return kernel;
  }

 private:
  Tiles tiles_;
  XnnRules rules_;
  int64_t l2_bytes_;
  WeightStore store_;
};

}  // namespace

Status OperatorListKernel::Run() noexcept {
  for (const XnnOperator& op : ops_) {
    const xnn_status status = op.Run(pool_);
    if (status != xnn_status_success) [[unlikely]] return ToStatus(status, "xnn_run_operator");
  }
  return Status();
}

}  // namespace xnn

std::string DescribeXnnpack() { return xnn::UsesFourRowTiles() ? "XNNPACK (4x16 tiles)" : "XNNPACK"; }

Result<std::shared_ptr<XnnpackBackend>> CreateXnnpackBackend(const XnnpackOptions& options) {
  PLAIT_RETURN_IF_ERROR(xnn::InitializeXnnpack(options.owns_process));
  const Result<xnn::Tiles>& tiles = xnn::ProbedTiles();
  if (!tiles.ok()) return tiles.status();
  const int64_t l2_bytes = options.l2_bytes > 0 ? options.l2_bytes : xnn::SystemL2Bytes();
  return std::shared_ptr<XnnpackBackend>(std::make_shared<xnn::Backend>(*tiles, l2_bytes));
}

Result<std::shared_ptr<CpuBackend>> CreateXnnpackBackend() {
  PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<XnnpackBackend> backend, CreateXnnpackBackend(XnnpackOptions{}));
  return std::shared_ptr<CpuBackend>(std::move(backend));
}

}  // namespace plait
