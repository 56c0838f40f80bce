#include "multi/peer_rows.hpp"

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
      // To one and from one at a time: no more wait at a socket than it holds.
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
  Device& device = team.device();
  const int own = team.group().rank(), ranks = team.group().ranks();
  const std::size_t line_bytes = static_cast<std::size_t>(b.ld) * bytes_of(b.type);
  std::unique_ptr<PeerMemory> rows, places;
  Pages pages;
  team.alone([&] {
    rows = open_peer_memory(device);
    places = open_peer_memory(device);
    place_bytes_ = places->page_bytes();
    pages = make_pages(ranges, line_bytes, rows->page_bytes());
  });
  rows_ = std::make_unique<PeerRange>(team, std::move(rows), pages.bytes);
  places_ = std::make_unique<PeerRange>(team, std::move(places),
                                        std::vector<std::size_t>(ranks, place_bytes_));
  b_.data = rows_->data() + pages.lead;
  team.alone([&] {
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
  cuda_meet(places_->data(), place_bytes_, team_.group().rank(), team_.group().ranks(), device);
}

}  // namespace spmmbench
