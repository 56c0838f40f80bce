// Launches recorded as a CUDA graph that can be cut short.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/backend.hpp"
#include "gpu/batch_timer.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench {
namespace {

struct Destroy {
  void operator()(CUgraph_st* graph) const { SPMMBENCH_CUDA_NOEXCEPT(cudaGraphDestroy(graph)); }
  void operator()(CUgraphExec_st* graph) const {
    SPMMBENCH_CUDA_NOEXCEPT(cudaGraphExecDestroy(graph));
  }
};
using Recorded = std::unique_ptr<CUgraph_st, Destroy>;
using Executable = std::unique_ptr<CUgraphExec_st, Destroy>;
using Nodes = std::vector<cudaGraphNode_t>;

// The nodes on which depends what is enqueued next.
Nodes last_nodes(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  std::size_t count = 0;
#if CUDART_VERSION >= 13000
  SPMMBENCH_CUDA(
      cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, &edges, &count));
#else
  SPMMBENCH_CUDA(
      cudaStreamGetCaptureInfo_v3(stream, &status, nullptr, nullptr, &nodes, &edges, &count));
#endif
  return {nodes, nodes + count};
}

struct Edge {
  cudaGraphNode_t from, to;
  cudaGraphEdgeData data;
};

std::vector<Edge> edges_of(cudaGraph_t graph) {
  std::size_t count = 0;
#if CUDART_VERSION >= 13000
  constexpr auto kGet = cudaGraphGetEdges;
#else
  constexpr auto kGet = cudaGraphGetEdges_v2;
#endif
  SPMMBENCH_CUDA(kGet(graph, nullptr, nullptr, nullptr, &count));
  Nodes from(count), to(count);
  std::vector<cudaGraphEdgeData> data(count);
  SPMMBENCH_CUDA(kGet(graph, from.data(), to.data(), data.data(), &count));
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < count; ++i) edges.push_back({from[i], to[i], data[i]});
  return edges;
}

// Lets `to` begin when `from` has ended, and not before.
void wait_for_end(cudaGraph_t graph, const Edge& edge) {
#if CUDART_VERSION >= 13000
  constexpr auto kAdd = cudaGraphAddDependencies, kRemove = cudaGraphRemoveDependencies;
#else
  constexpr auto kAdd = cudaGraphAddDependencies_v2, kRemove = cudaGraphRemoveDependencies_v2;
#endif
  SPMMBENCH_CUDA(kRemove(graph, &edge.from, &edge.to, &edge.data, 1));
  SPMMBENCH_CUDA(kAdd(graph, &edge.from, &edge.to, nullptr, 1));
}

// Nodes that allocate memory stay in their graph.
bool can_be_left_out(cudaGraphNode_t node) {
  cudaGraphNodeType type{};
  SPMMBENCH_CUDA(cudaGraphNodeGetType(node, &type));
  return type != cudaGraphNodeTypeMemAlloc && type != cudaGraphNodeTypeMemFree;
}

class Recording final : public Replay {
 public:
  explicit Recording(Device& device) : device_(device) {}

  // Null where the launches do something that a capture forbids.
  static std::shared_ptr<Recording> make(const std::function<void()>& launch, int count,
                                         Device& device) {
    auto made = std::make_shared<Recording>(device);
    const cudaStream_t stream = made->stream();
    SPMMBENCH_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    bool captured = true;
    try {
      for (int i = 0; i < count; ++i) {
        launch();
        made->ends_.push_back(last_nodes(stream));
      }
    } catch (const std::exception&) {
      captured = false;
    }
    cudaGraph_t graph = nullptr;
    captured &= cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph != nullptr;
    made->graph_.reset(graph);
    captured = captured && (made->whole_ = instantiate(graph)) != nullptr;
    (void)cudaGetLastError();  // a forbidden call inside a capture is no fault of the device
    return captured ? made : nullptr;
  }

  // Finds out which nodes belong to which launch. False where a launch does not depend on all of
  // the one before, or has a node that cannot be left out.
  bool divide() {
    std::unordered_map<cudaGraphNode_t, Nodes> before;
    const std::vector<Edge> edges = edges_of(graph_.get());
    for (const Edge& edge : edges) before[edge.to].push_back(edge.from);
    std::unordered_map<cudaGraphNode_t, std::size_t> launch_of;
    for (const Nodes& ends : ends_) {
      Nodes& mine = launches_.emplace_back();
      for (Nodes next = ends; !next.empty();) {
        const cudaGraphNode_t node = next.back();
        next.pop_back();
        if (!launch_of.emplace(node, launches_.size() - 1).second) continue;
        if (!can_be_left_out(node)) return false;
        mine.push_back(node);
        next.insert(next.end(), before[node].begin(), before[node].end());
      }
    }
    std::size_t nodes = 0;
    SPMMBENCH_CUDA(cudaGraphGetNodes(graph_.get(), nullptr, &nodes));
    if (nodes != launch_of.size()) return false;  // some belong to no launch that is complete
    for (std::size_t i = 1; i < launches_.size(); ++i)
      for (const cudaGraphNode_t node : launches_[i]) {
        const Nodes& these = before[node];
        const auto waits_for = [&](cudaGraphNode_t end) {
          return std::ranges::find(these, end) != these.end();
        };
        const bool first =
            std::ranges::none_of(these, [&](cudaGraphNode_t b) { return launch_of[b] == i; });
        if (first && !std::ranges::all_of(ends_[i - 1], waits_for)) return false;
      }
    for (const Edge& edge : edges)
      if (launch_of[edge.from] != launch_of[edge.to] &&
          edge.data.type == cudaGraphDependencyTypeProgrammatic)
        early_.push_back(edge);
    return true;
  }

  // Lets no launch begin before the one before it has ended. Comes after divide(). False where that
  // graph cannot be made.
  bool set_apart() {
    if (early_.empty()) return true;
    for (const Edge& edge : early_) wait_for_end(graph_.get(), edge);
    whole_ = instantiate(graph_.get());
    return whole_ != nullptr;
  }

  // All launches.
  void upload() { SPMMBENCH_CUDA(cudaGraphUpload(whole_.get(), stream())); }
  void enqueue() { SPMMBENCH_CUDA(cudaGraphLaunch(whole_.get(), stream())); }

  double first(int launches, const std::function<void()>& meanwhile) override {
    cudaGraphExec_t graph = whole_.get();
    if (!is_whole(launches)) {
      make_ready(launches);
      before_ = std::exchange(running_, std::move(ready_.graph));
      graph = running_.get();
    }
    return cuda_time_beside_us([&] { SPMMBENCH_CUDA(cudaGraphLaunch(graph, stream())); }, 1,
                               [&] {
                                 before_.reset();  // takes the host a while
                                 meanwhile();
                               },
                               device_);
  }

  void make_ready(int launches) override {
    if (is_whole(launches) || (ready_.graph && ready_.launches == launches)) return;
    const auto count = static_cast<std::size_t>(launches);
    cudaGraph_t copy = nullptr;
    SPMMBENCH_CUDA(cudaGraphClone(&copy, graph_.get()));
    const Recorded part(copy);
    for (std::size_t i = count; i < launches_.size(); ++i)
      for (cudaGraphNode_t node : launches_[i]) {
        SPMMBENCH_CUDA(cudaGraphNodeFindInClone(&node, node, copy));
        SPMMBENCH_CUDA(cudaGraphDestroyNode(node));
      }
    ready_ = {launches, instantiate(copy)};
    if (!ready_.graph) throw DeviceError("a part of a CUDA graph cannot be made", false);
  }

 private:
  // The first launches.
  struct Part {
    int launches = 0;
    Executable graph;
  };

  cudaStream_t stream() const { return static_cast<cudaStream_t>(device_.stream().handle); }
  bool is_whole(int launches) const { return static_cast<std::size_t>(launches) == ends_.size(); }

  static Executable instantiate(cudaGraph_t graph) {
    cudaGraphExec_t executable = nullptr;
    // A node has the priority of the stream that it was captured from: else all would have that of
    // the stream that the graph is launched in.
    constexpr auto kFlags = cudaGraphInstantiateFlagUseNodePriority;
    if (cudaGraphInstantiate(&executable, graph, kFlags) != cudaSuccess) return nullptr;
    return Executable(executable);
  }

  Device& device_;
  Recorded graph_;
  Executable whole_, running_, before_;
  Part ready_;
  std::vector<Nodes> ends_;      // on which depends what follows a launch
  std::vector<Nodes> launches_;  // the nodes of each
  std::vector<Edge> early_;      // of launches that begin before the one before has ended
};

}  // namespace

std::shared_ptr<Replay> cuda_record(const std::function<void()>& launch, int count, GraphKind kind,
                                    Device& device) {
  std::shared_ptr<Recording> recording = Recording::make(launch, count, device);
  if (!recording || kind == GraphKind::any) return recording;
  if (!recording->divide() || (kind == GraphKind::apart && !recording->set_apart())) return nullptr;
  return recording;
}

std::function<void()> cuda_batch(const std::function<void()>& launch, int count, Device& device) {
  const std::shared_ptr<Recording> recording = Recording::make(launch, count, device);
  if (!recording) return nullptr;
  recording->upload();
  return [recording] { recording->enqueue(); };
}

}  // namespace spmmbench
