#include "process/group.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/parse_number.hpp"
#include "core/steady_seconds.hpp"
#include "process/child.hpp"

namespace spmmbench {
namespace {

constexpr const char* kDefaultPort = "29500";             // torchrun's
constexpr std::size_t kMostBytes = std::size_t{1} << 40;  // more is no length but noise

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

std::optional<int> number_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : parse_number<int>(text);
}

// An address of a socket, of either family.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address address_of(const std::string& meeting) {
  Address address;
  if (meeting.starts_with('/')) {
    auto* const local = reinterpret_cast<sockaddr_un*>(&address.storage);
    local->sun_family = AF_UNIX;
    if (meeting.size() >= sizeof local->sun_path)
      throw Error(fmt::format("{}: the path of a socket has at most {} bytes", meeting,
                              sizeof local->sun_path - 1));
    std::memcpy(local->sun_path, meeting.c_str(), meeting.size() + 1);
    address.length = sizeof(sockaddr_un);
    return address;
  }
  const std::size_t colon = meeting.rfind(':');
  const std::string host = meeting.substr(0, colon), port = meeting.substr(colon + 1);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    throw Error(fmt::format("{}: {}", meeting, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  return address;
}

Descriptor open_socket(const Address& address) {
  Descriptor socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) throw Error(fmt::format("socket: {}", strerror(errno)));
  const int on = 1;
  if (address.storage.ss_family != AF_UNIX) {
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  return socket;
}

// Whether something can be read before the deadline.
bool wait_for(int fd, double deadline) {
  for (;;) {
    const double left_s = deadline - steady_seconds();
    if (left_s <= 0) return false;
    pollfd one = {fd, POLLIN, 0};
    constexpr double kMostSeconds = 3600;
    const int ready = poll(&one, 1, 1 + static_cast<int>(1e3 * std::min(left_s, kMostSeconds)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace

std::optional<Place> place_of_environment() {
  struct Launcher {
    const char *rank, *ranks, *on_host, *mark;  // the mark is set in processes that it started
  };
  constexpr Launcher kLaunchers[] = {
      {"RANK", "WORLD_SIZE", "LOCAL_RANK", "RANK"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_RANK"},
      {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID"}};
  for (const Launcher& launcher : kLaunchers) {
    const char* const rank_text = std::getenv(launcher.rank);
    const char* const ranks_text = std::getenv(launcher.ranks);
    if (rank_text == nullptr || ranks_text == nullptr || std::getenv(launcher.mark) == nullptr)
      continue;
    const auto rank = number_of(launcher.rank), ranks = number_of(launcher.ranks);
    if (!rank || !ranks)
      throw Error(fmt::format("{}={} and {}={}: expected integers", launcher.rank, rank_text,
                              launcher.ranks, ranks_text));
    if (*rank < 0 || *rank >= *ranks)
      throw Error(fmt::format("{}={}: expected less than {}={}", launcher.rank, *rank,
                              launcher.ranks, *ranks));
    const char* const host = std::getenv("MASTER_ADDR");
    const char* const port = std::getenv("MASTER_PORT");
    if (port != nullptr && parse_number<std::uint16_t>(port).value_or(0) == 0)
      throw Error(fmt::format("MASTER_PORT={}: expected a port from 1 to 65535", port));
    return Place{*rank, *ranks, number_of(launcher.on_host).value_or(*rank),
                 fmt::format("{}:{}", host == nullptr ? "127.0.0.1" : host,
                             port == nullptr ? kDefaultPort : port)};
  }
  return std::nullopt;
}

// Rank 0 knows which rank is missing. The others, who wait for rank 0, are more patient, so that it
// can say so.
Group::Group(const Place& place, double timeout_s)
    : place_(place), timeout_s_(timeout_s), hosts_(place.ranks) {
  restart_clock();
  hosts_[place.rank] = host_name();
  if (place.ranks == 1) return;
  meet();
  hosts_ = exchange(hosts_[place.rank]);
}

void Group::restart_clock() {
  constexpr double kPatience = 1.05;  // of the ranks that wait for rank 0
  deadline_ = steady_seconds() + timeout_s_ * (place_.rank == 0 ? 1 : kPatience);
}

void Group::meet() {
  const Address address = address_of(place_.meeting);
  if (place_.rank > 0) {
    for (;;) {
      Descriptor socket = open_socket(address);
      if (connect(socket.get(), address.get(), address.length) == 0) {
        sockets_.push_back(std::move(socket));
        return send(0, std::to_string(place_.rank));
      }
      if (steady_seconds() > deadline_)
        throw RankLost(fmt::format("rank 0 is not at {}: {}", place_.meeting, strerror(errno)));
      pause_briefly();
    }
  }
  const Descriptor listener = open_socket(address);
  if (bind(listener.get(), address.get(), address.length) != 0 ||
      listen(listener.get(), place_.ranks) != 0)
    throw Error(fmt::format("{}: {}", place_.meeting, strerror(errno)));
  sockets_.resize(place_.ranks);
  for (int missing = place_.ranks - 1; missing > 0;) {
    if (!wait_for(listener.get(), deadline_)) {
      int lost = 1;
      while (sockets_[lost].get() >= 0) ++lost;
      throw RankLost(fmt::format("rank {} did not come within {:g} s", lost, timeout_s_));
    }
    Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() < 0) continue;
    sockets_[0] = std::move(socket);  // until it has said who it is
    const int rank = parse_number<int>(receive(0)).value_or(0);
    if (rank < 1 || rank >= place_.ranks || sockets_[rank].get() >= 0)
      throw Error(
          fmt::format("{}: something else than the ranks of one run meets here", place_.meeting));
    sockets_[rank] = std::move(sockets_[0]);
    --missing;
  }
}

std::string Group::name_of(int rank) const {
  return hosts_[rank].empty() ? fmt::format("rank {}", rank)
                              : fmt::format("rank {} on {}", rank, hosts_[rank]);
}

void Group::send(int peer, const std::string& text) const {
  const std::uint64_t length = text.size();
  std::string message(reinterpret_cast<const char*>(&length), sizeof length);
  message += text;
  for (std::size_t done = 0; done < message.size();) {
    const ssize_t count =
        ::send(sockets_[peer].get(), message.data() + done, message.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw RankLost(fmt::format("{}: {}", name_of(peer), kItsProcessEnded));
    done += static_cast<std::size_t>(count);
  }
}

std::string Group::receive(int peer) const {
  const auto read_exactly = [&](char* to, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      if (!wait_for(sockets_[peer].get(), deadline_))
        throw RankLost(fmt::format("{}: no answer within {:g} s", name_of(peer), timeout_s_));
      const ssize_t count = recv(sockets_[peer].get(), to + done, bytes - done, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) throw RankLost(fmt::format("{}: {}", name_of(peer), kItsProcessEnded));
      done += static_cast<std::size_t>(count);
    }
  };
  std::uint64_t length = 0;
  read_exactly(reinterpret_cast<char*>(&length), sizeof length);
  if (length > kMostBytes)
    throw Error(fmt::format("{}: sent something else than a text", name_of(peer)));
  std::string text(length, '\0');
  read_exactly(text.data(), length);
  return text;
}

std::vector<std::string> Group::exchange(const std::string& own) {
  std::vector<std::string> all(place_.ranks);
  all[place_.rank] = own;
  if (place_.rank > 0) {
    send(0, own);
    for (std::string& text : all) text = receive(0);
    return all;
  }
  for (int peer = 1; peer < place_.ranks; ++peer) all[peer] = receive(peer);
  for (int peer = 1; peer < place_.ranks; ++peer)
    for (const std::string& text : all) send(peer, text);
  return all;
}

std::vector<double> Group::exchange(double own) {
  std::vector<double> all;
  for (const std::string& text : exchange(std::string(reinterpret_cast<char*>(&own), sizeof own))) {
    double value = 0;
    if (text.size() != sizeof value) throw Error("a rank of another build takes part");
    std::memcpy(&value, text.data(), sizeof value);
    all.push_back(value);
  }
  return all;
}

}  // namespace spmmbench
