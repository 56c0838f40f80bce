#include "multi/exchange.hpp"

#include <cstddef>
#include <limits>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

// Ascending rows that lie one behind the other can be sent from where they are.
bool in_one_run(const std::vector<std::int32_t>& rows) {
  return !rows.empty() && rows.back() - rows.front() + 1 == static_cast<std::int64_t>(rows.size());
}

}  // namespace

Exchange::Exchange(const Gather& gather, const std::vector<int>& ranks, int all_ranks,
                   const DenseView& b, Device& device, Transport& transport, PeerRows* peer,
                   AllBy all_by)
    : gather_(gather),
      b_(peer != nullptr ? peer->b() : b),
      line_bytes_(static_cast<std::int64_t>(static_cast<std::size_t>(b.ld) * bytes_of(b.type))),
      device_(device),
      transport_(transport),
      peer_(peer) {
  constexpr std::int64_t kWord = 16;  // bytes; what Transport::pack copies at a time
  const bool all = gather.way == Way::all_gather;
  const auto parts = static_cast<int>(gather.from.size());
  const bool in_one_call = all && parts == all_ranks && all_by == AllBy::one_call;
  if (gather.way == Way::none || in_one_call) return;
  if (!all && device.info().kind == DeviceKind::cuda && line_bytes_ % kWord != 0)
    throw Unsupported("rows of B that are gathered must have whole 16 bytes");
  if (gather.way == Way::pulled) {
    lines_ = device.upload(lines_to_pull(ranks));
    return;
  }
  std::vector<std::int32_t> lines = gather.in_place;
  for (const auto& rows : gather.to)
    if (!in_one_run(rows)) lines.insert(lines.end(), rows.begin(), rows.end());
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
      const std::vector<std::int32_t>& rows = gather.to[part];
      const std::size_t bytes = bytes_of_lines(static_cast<std::int64_t>(rows.size()));
      const bool in_place = in_one_run(rows);
      send_[ranks[part]] = {in_place ? line(gather.own.begin + rows.front()) : packed, bytes};
      if (!in_place) packed += bytes;
    }
    receive_[ranks[part]] = {line(from.begin), bytes_of_lines(from.size())};
  }
}

// In the memory of all, in the order in which the rows then lie in `b`.
std::vector<std::int32_t> Exchange::lines_to_pull(const std::vector<int>& ranks) const {
  std::vector<std::int32_t> lines;
  for (std::size_t part = 0; part < gather_.from.size(); ++part)
    for (std::int64_t at = gather_.from[part].begin; at < gather_.from[part].end; ++at) {
      const std::int64_t line = peer_->first_line(ranks[part]) + gather_.original[at];
      if (line > std::numeric_limits<std::int32_t>::max())
        throw Unsupported("B of all GPUs has more than 2^31 rows");
      lines.push_back(static_cast<std::int32_t>(line));
    }
  return lines;
}

void Exchange::launch() {
  if (gather_.way == Way::none) return;
  if (gather_.way == Way::pulled) return pull();
  if (peer_ != nullptr) return peer_->meet();
  if (send_.empty())
    return transport_.all_gather(b_.data,
                                 static_cast<std::size_t>(gather_.own.size() * line_bytes_));
  pack(line(gather_.own.begin));
  transport_.all_to_all(send_, receive_);
}

// Rows of the parts before this one lie before its own, the others' behind them.
void Exchange::pull() {
  std::int64_t before = 0;
  for (const Range& rows : gather_.from)
    if (rows.begin < gather_.own.begin) before += rows.size();
  const auto copy = [&](std::int64_t first, std::int64_t count, char* to) {
    transport_.pull(peer_->all(), lines_.as<std::int32_t>() + first, count,
                    static_cast<std::size_t>(line_bytes_), to);
  };
  peer_->meet();
  copy(0, before, line(0));
  copy(before, gather_.rows_received() - before, line(gather_.own.end));
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
