#include "multi/exchange.hpp"

#include <cstddef>

#include "spmmbench/error.hpp"

namespace spmmbench {

Exchange::Exchange(const Gather& gather, const std::vector<int>& ranks, int all_ranks,
                   const DenseView& b, Device& device, Transport& transport, PeerRows* peer)
    : gather_(gather),
      b_(peer != nullptr ? peer->b() : b),
      line_bytes_(static_cast<std::int64_t>(static_cast<std::size_t>(b.ld) * bytes_of(b.type))),
      device_(device),
      transport_(transport),
      peer_(peer) {
  constexpr std::int64_t kWord = 16;  // bytes; what Transport::pack copies at a time
  const bool all = gather.way == Way::all_gather;
  const auto parts = static_cast<int>(gather.from.size());
  if (gather.way == Way::none || (all && parts == all_ranks)) return;
  if (!all && device.info().kind == DeviceKind::cuda && line_bytes_ % kWord != 0)
    throw Unsupported("rows of B that are gathered must have whole 16 bytes");
  std::vector<std::int32_t> lines = gather.in_place;
  for (const auto& rows : gather.to) lines.insert(lines.end(), rows.begin(), rows.end());
  lines_ = device.upload(lines);
  packed_ = device.allocate(lines.size() * static_cast<std::size_t>(line_bytes_));
  if (peer != nullptr) return;
  send_.resize(all_ranks);
  receive_.resize(all_ranks);
  const auto bytes_of_lines = [&](std::int64_t count) {
    return static_cast<std::size_t>(count * line_bytes_);
  };
  char* packed = packed_.as<char>();
  for (int part = 0; part < parts; ++part) {
    const Range& from = gather.from[part];
    if (all && from.size() > 0)
      send_[ranks[part]] = {line(gather.own.begin), bytes_of_lines(gather.own.size())};
    if (!all) {
      const std::size_t bytes = bytes_of_lines(static_cast<std::int64_t>(gather.to[part].size()));
      send_[ranks[part]] = {packed, bytes};
      packed += bytes;
    }
    receive_[ranks[part]] = {line(from.begin), bytes_of_lines(from.size())};
  }
}

void Exchange::launch() {
  if (gather_.way == Way::none) return;
  if (peer_ != nullptr) return peer_->meet();
  if (send_.empty())
    return transport_.all_gather(b_.data,
                                 static_cast<std::size_t>(gather_.own.size() * line_bytes_));
  pack(line(gather_.own.begin));
  transport_.all_to_all(send_, receive_);
}

void Exchange::read_in_place() { pack(line(0)); }

void Exchange::pack(const void* from) {
  transport_.pack(from, lines_.as<std::int32_t>(),
                  static_cast<std::int64_t>(lines_.bytes() / sizeof(std::int32_t)),
                  static_cast<std::size_t>(line_bytes_), packed_.data());
}

void Exchange::begin() {
  transport_.fork();
  launch();
}

void Exchange::end() { transport_.join(); }

void Exchange::poison_received() {
  constexpr unsigned char kNan = 0xFF;  // all ones is a NaN in every element type
  for (const Range& rows : gather_.from)
    device_.fill_bytes(line(rows.begin), kNan, static_cast<std::size_t>(rows.size() * line_bytes_));
}

DenseView Exchange::own() const {
  DenseView view = b_;
  view.data = line(gather_.own.begin);
  view.rows = gather_.own.size();
  return view;
}

}  // namespace spmmbench
