#include "multi/host_peer_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/output.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

[[noreturn]] void fail(const char* what) {
  throw Error(fmt::format("{}: {}", what, strerror(errno)));
}

class HostPeerMemory final : public PeerMemory {
 public:
  ~HostPeerMemory() override {
    if (data_ != nullptr) munmap(data_, bytes_);
  }

  std::size_t page_bytes() const override {
    return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }

  int make(std::size_t bytes) override {
    Descriptor part(memfd_create("spmmbench", MFD_CLOEXEC));
    if (part.get() < 0) fail("memfd_create");
    if (ftruncate(part.get(), static_cast<off_t>(bytes)) != 0) fail("ftruncate");
    return part.release();
  }

  void* map(std::span<const PeerPart> parts) override {
    for (const PeerPart& part : parts) bytes_ += part.bytes;
    void* const all = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) fail("mmap");
    data_ = static_cast<char*>(all);
    char* at = data_;
    for (const PeerPart& part : parts) {
      if (mmap(at, part.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, part.descriptor,
               0) == MAP_FAILED)
        fail("mmap");
      at += part.bytes;
    }
    return data_;
  }

 private:
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<PeerMemory> open_host_peer_memory() { return std::make_unique<HostPeerMemory>(); }

}  // namespace spmmbench
