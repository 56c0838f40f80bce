#include "multi/peer_rows.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "multi/host_peer_memory.hpp"
#include "process/descriptor_socket.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

std::unique_ptr<PeerMemory> open_peer_memory(Device& device) {
  return device.info().kind == DeviceKind::cuda ? open_cuda_peer_memory(device)
                                                : open_host_peer_memory();
}

std::size_t line_bytes_of(const DenseView& b) {
  return static_cast<std::size_t>(b.ld) * bytes_of(b.type);
}

std::size_t round_up(std::size_t bytes, std::size_t step) {
  return (bytes + step - 1) / step * step;
}

}  // namespace

PeerRange::PeerRange(Team& team, std::unique_ptr<PeerMemory> memory,
                     const std::vector<std::size_t>& bytes)
    : memory_(std::move(memory)) {
  Group& group = team.group();
  const int own = group.rank(), ranks = group.ranks();
  std::optional<DescriptorSocket> socket;
  std::vector<Descriptor> parts(ranks);
  std::string address;
  team.alone([&] {
    parts[own] = Descriptor(memory_->make(bytes[own]));
    address = socket.emplace().address();
  });
  const std::vector<std::string> addresses = group.exchange(address);
  team.alone([&] {
    try {
      // Sends to one rank and receives from one at a time: a socket never has to hold more.
      for (int step = 1; step < ranks; ++step) {
        socket->send(addresses[(own + step) % ranks], own, parts[own].get());
        auto [from, descriptor] = socket->receive();
        parts.at(from) = std::move(descriptor);
      }
    } catch (const Error& error) {
      throw Unsupported(error.what());
    }
    std::vector<PeerPart> all(ranks);
    for (int rank = 0; rank < ranks; ++rank) all[rank] = {parts[rank].get(), bytes[rank]};
    data_ = static_cast<char*>(memory_->map(all));
  });
}

PeerRows::PeerRows(Team& team, const std::vector<Range>& ranges, const DenseView& b)
    : team_(team), b_(b) {
  std::unique_ptr<PeerMemory> memory;
  Pages pages;
  team.alone([&] {
    memory = open_peer_memory(team.device());
    pages = make_pages(ranges, line_bytes_of(b), memory->page_bytes());
  });
  rows_ = std::make_unique<PeerRange>(team, std::move(memory), pages.bytes);
  b_.data = rows_->data() + pages.lead;
  make_places();
}

PeerRows::PeerRows(Team& team, const Gather& gather, const DenseView& b) : team_(team), b_(b) {
  Group& group = team.group();
  const Range& own = gather.own;
  // From a row's number in the whole B to its place in that of its rank.
  const std::int64_t shift = own.size() > 0 ? own.begin - gather.original[own.begin] : 0;
  const std::vector<double> shifts = group.exchange(static_cast<double>(shift));
  const std::vector<double> rows = group.exchange(static_cast<double>(gather.rows));
  std::unique_ptr<PeerMemory> memory;
  team.alone([&] { memory = open_peer_memory(team.device()); });
  // Each rank's first row is a line of all the memory, and aligned as a Buffer is.
  constexpr std::size_t kAlign = 256;
  const std::size_t line_bytes = line_bytes_of(b), step = std::lcm(line_bytes, kAlign);
  std::size_t end = 0, own_begin = 0;
  std::vector<std::size_t> bytes;
  for (int rank = 0; rank < group.ranks(); ++rank) {
    const std::size_t begin = round_up(end, step);
    const std::size_t lines = std::max<std::size_t>(static_cast<std::size_t>(rows[rank]), 1);
    if (rank == group.rank()) own_begin = begin;
    first_lines_.push_back(static_cast<std::int64_t>(begin / line_bytes) +
                           static_cast<std::int64_t>(shifts[rank]));
    bytes.push_back(round_up(begin + lines * line_bytes, memory->page_bytes()) - end);
    end += bytes.back();
  }
  rows_ = std::make_unique<PeerRange>(team, std::move(memory), bytes);
  b_.data = rows_->data() + own_begin;
  make_places();
}

void PeerRows::make_places() {
  Device& device = team_.device();
  const int own = team_.group().rank(), ranks = team_.group().ranks();
  std::unique_ptr<PeerMemory> places;
  team_.alone([&] {
    places = open_peer_memory(device);
    place_bytes_ = places->page_bytes();
  });
  places_ = std::make_unique<PeerRange>(team_, std::move(places),
                                        std::vector<std::size_t>(ranks, place_bytes_));
  team_.alone([&] {
    device.fill_bytes(places_->data() + own * place_bytes_, 0, place_bytes_);
    device.synchronize();
  });
}

void PeerRows::meet() {
  Device& device = team_.device();
  if (device.info().kind == DeviceKind::host) {
    team_.group().exchange(0.0);
    return;
  }
  cuda_meet(places_->data(), place_bytes_, team_.group().rank(), team_.group().ranks(),
            team_.transport().stream());
}

}  // namespace spmmbench
