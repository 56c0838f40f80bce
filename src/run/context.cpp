#include "run/context.hpp"

#include <elf.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <span>

#include "core/this_build.hpp"
#include "gpu/nvml.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

std::string hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// The build ID among the notes of a segment; empty where it has none.
std::string build_id_in(std::span<const unsigned char> notes, std::size_t alignment) {
  const auto padded = [alignment](std::size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  };
  ElfW(Nhdr) note;
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t begin = padded(sizeof note + note.n_namesz);
    const std::size_t end = begin + note.n_descsz;
    if (end > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
        std::memcmp(notes.data() + sizeof note, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0)
      return hex(notes.subspan(begin, note.n_descsz));
    notes = notes.subspan(std::min(padded(end), notes.size()));
  }
  return {};
}

// What the linker made of all that is in the executable (--build-id): it tells two edits of one
// revision apart.
std::string build_id() {
  std::string id;
  const auto visit = [](dl_phdr_info* program, std::size_t, void* out) {
    for (const ElfW(Phdr) & part : std::span(program->dlpi_phdr, program->dlpi_phnum)) {
      const auto* begin = reinterpret_cast<const unsigned char*>(program->dlpi_addr + part.p_vaddr);
      if (std::string& found = *static_cast<std::string*>(out);
          part.p_type == PT_NOTE && found.empty())
        found = build_id_in({begin, part.p_memsz}, part.p_align == 8 ? 8 : 4);
    }
    return 1;  // the executable is the first; its libraries follow
  };
  dl_iterate_phdr(visit, &id);
  return id;
}

}  // namespace

RunContext collect_context(const std::vector<std::string>& argv, std::uint64_t seed, Device& device,
                           const DeviceRates& rates) {
  RunContext context;
  context.tool_version = this_build::version;
  context.git_revision = this_build::revision;
  context.build_flags = this_build::flags;
  context.build_id = build_id();
  context.started_utc = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) context.hostname = host.data();
  context.argv = argv;
  context.seed = seed;
  context.device = device.info();
  if (context.device.kind == DeviceKind::cuda) {
    const DeviceModes modes = nvml_modes(context.device.uuid);
    context.ecc = modes.ecc;
    context.mig = modes.mig;
  }
  context.clocks_before = device.clocks();
  context.copy_gb_per_s = rates.copy_bytes_per_second / 1e9;
  if (rates.gather_bytes_per_second > 0)
    context.gather_gb_per_s = rates.gather_bytes_per_second / 1e9;
  if (rates.dense_flops_per_second > 0) context.dense_tflops = rates.dense_flops_per_second / 1e12;
  std::array<double, 21> empty{};
  for (double& us : empty) us = device.time_us([] {}, 1);
  context.timer_floor_us = quantile(empty, 0.5);
  return context;
}

std::string tool_version() {
  return fmt::format("{} ({})", this_build::version, this_build::revision);
}

}  // namespace spmmbench
