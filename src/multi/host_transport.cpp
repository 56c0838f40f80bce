#include "multi/host_transport.hpp"

#include <cstring>
#include <string>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

class HostTransport final : public Transport {
 public:
  explicit HostTransport(Group& group) : group_(group) {}

  void all_gather(void* all, std::size_t part_bytes) override {
    auto* const parts = static_cast<char*>(all);
    const std::vector<std::string> texts =
        group_.exchange(std::string(parts + group_.rank() * part_bytes, part_bytes));
    for (int rank = 0; rank < group_.ranks(); ++rank)
      copy(texts[rank], 0, parts + rank * part_bytes, part_bytes);
  }

  // Every rank gets what all send, and takes what is for it: the blocks of a rank stand in the
  // order of those that they are for, behind their lengths.
  void all_to_all(const std::vector<Block>& send, const std::vector<Block>& receive) override {
    std::string own;
    for (const Block& block : send)
      own.append(reinterpret_cast<const char*>(&block.bytes), sizeof block.bytes);
    for (const Block& block : send) own.append(static_cast<const char*>(block.data), block.bytes);
    const std::vector<std::string> texts = group_.exchange(own);
    for (int from = 0; from < group_.ranks(); ++from) {
      if (from == group_.rank()) continue;
      std::size_t at = send.size() * sizeof(std::size_t), bytes = 0;
      for (int to = 0; to <= group_.rank(); ++to) {
        at += bytes;
        copy(texts[from], to * sizeof bytes, &bytes, sizeof bytes);
      }
      if (bytes != receive[from].bytes) throw Error("two ranks disagree on what they exchange");
      copy(texts[from], at, receive[from].data, bytes);
    }
  }

  void pack(const void* from, const std::int32_t* lines, std::int64_t count, std::size_t line_bytes,
            void* packed) override {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(static_cast<char*>(packed) + i * line_bytes,
                  static_cast<const char*>(from) + lines[i] * line_bytes, line_bytes);
  }

  void pull(const void* from, const std::int32_t* lines, std::int64_t count, std::size_t line_bytes,
            void* pulled) override {
    pack(from, lines, count, line_bytes, pulled);
  }
  Stream stream() const override { return {}; }
  void fork() override {}
  void join() override {}
  void align() override {}

 private:
  static void copy(const std::string& text, std::size_t at, void* to, std::size_t bytes) {
    if (text.size() < at + bytes) throw Error("two ranks disagree on what they exchange");
    if (bytes > 0) std::memcpy(to, text.data() + at, bytes);
  }

  Group& group_;
};

}  // namespace

std::unique_ptr<Transport> open_host_transport(Group& group) {
  return std::make_unique<HostTransport>(group);
}

}  // namespace spmmbench
