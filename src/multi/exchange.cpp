#include "multi/exchange.hpp"

#include <cstddef>

#include "spmmbench/error.hpp"

namespace spmmbench {

Exchange::Exchange(const Gather& gather, const DenseView& b, Device& device, Transport& transport)
    : gather_(gather),
      b_(b),
      line_bytes_(static_cast<std::int64_t>(static_cast<std::size_t>(b.ld) * bytes_of(b.type))),
      device_(device),
      transport_(transport),
      send_(gather.to.size()),
      receive_(gather.from.size()) {
  constexpr std::int64_t kWord = 16;  // bytes; what Transport::pack copies at a time
  if (gather.way != Way::needed_rows) return;
  if (device.info().kind == DeviceKind::cuda && line_bytes_ % kWord != 0)
    throw Unsupported("rows of B that are gathered must have whole 16 bytes");
  std::vector<std::int32_t> lines;
  for (const auto& rows : gather.to) lines.insert(lines.end(), rows.begin(), rows.end());
  lines_ = device.upload(lines);
  packed_ = device.allocate(lines.size() * static_cast<std::size_t>(line_bytes_));
  std::size_t at = 0;
  for (std::size_t rank = 0; rank < send_.size(); ++rank) {
    const std::size_t bytes = gather.to[rank].size() * static_cast<std::size_t>(line_bytes_);
    send_[rank] = {packed_.as<char>() + at, bytes};
    at += bytes;
    const Range& from = gather.from[rank];
    receive_[rank] = {line(from.begin), static_cast<std::size_t>(from.size() * line_bytes_)};
  }
}

void Exchange::launch() {
  if (gather_.way == Way::all_gather)
    transport_.all_gather(b_.data, static_cast<std::size_t>(gather_.own.size() * line_bytes_));
  if (gather_.way != Way::needed_rows) return;
  transport_.pack(line(gather_.own.begin), lines_.as<std::int32_t>(),
                  static_cast<std::int64_t>(lines_.bytes() / sizeof(std::int32_t)),
                  static_cast<std::size_t>(line_bytes_), packed_.data());
  transport_.all_to_all(send_, receive_);
}

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
