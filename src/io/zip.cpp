#include "io/zip.hpp"

#include <fmt/format.h>
#include <minizip/unzip.h>

#include <algorithm>
#include <memory>

#include "core/numbered.hpp"
#include "io/file.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

struct Close {
  void operator()(void* archive) const { (void)unzClose(archive); }
};
using Archive = std::unique_ptr<void, Close>;

constexpr std::size_t kMostNameBytes = 65536;         // the format counts them in 16 bits
constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes unpacked at a time
// deflate's best: 258 bytes of output for two bits of input (RFC 1951), rounded up.
constexpr std::size_t kMostExpansion = 1040;
// The methods and the flag of a member that are read or refused here (APPNOTE.TXT, 4.4.4
// and 4.4.5).
constexpr unsigned long kStored = 0, kDeflated = 8, kEncryptedFlag = 1;

// Where the members of these names stand; of several of one name the last, as NumPy takes it.
std::map<std::string, unz64_file_pos> last_places(unzFile archive,
                                                  const std::vector<std::string>& names) {
  std::map<std::string, unz64_file_pos> places;
  std::string name(kMostNameBytes, '\0');
  for (int at = unzGoToFirstFile(archive); at == UNZ_OK; at = unzGoToNextFile(archive)) {
    unz_file_info64 info{};
    unz64_file_pos place{};
    if (unzGetCurrentFileInfo64(archive, &info, name.data(), name.size(), nullptr, 0, nullptr, 0) !=
            UNZ_OK ||
        unzGetFilePos64(archive, &place) != UNZ_OK)
      break;
    const std::string found = name.substr(0, info.size_filename);
    if (std::find(names.begin(), names.end(), found) != names.end()) places[found] = place;
  }
  return places;
}

std::string read_current(unzFile archive, const std::string& label, std::size_t archive_bytes) {
  unz_file_info64 info{};
  if (unzGetCurrentFileInfo64(archive, &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK)
    throw Error(fmt::format("{}: corrupt zip archive", label));
  const std::size_t bytes = info.uncompressed_size;
  const std::size_t available = available_memory_bytes();
  if (bytes / kMostExpansion > archive_bytes || bytes > available)
    throw Error(fmt::format("{}: expected data that fit in memory, got {} unpacked, {} available",
                            label, format_bytes(static_cast<double>(bytes)),
                            format_bytes(static_cast<double>(available))));
  const bool readable = info.compression_method == kStored || info.compression_method == kDeflated;
  if (!readable || (info.flag & kEncryptedFlag) != 0 || unzOpenCurrentFile(archive) != UNZ_OK)
    throw Error(fmt::format("{}: expected a stored or deflated member without encryption", label));
  std::string out(bytes, '\0');
  std::size_t at = 0;
  int got = 1;
  while (at < bytes && got > 0) {
    got = unzReadCurrentFile(archive, out.data() + at,
                             static_cast<unsigned>(std::min(kPiece, bytes - at)));
    at += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  const int closed = unzCloseCurrentFile(archive);  // compares the CRC
  if (at != bytes || closed != UNZ_OK)
    throw Error(fmt::format("{}: truncated or corrupt: expected {}, got {}{}", label,
                            numbered(bytes, "byte"), at,
                            closed == UNZ_CRCERROR ? " with another checksum" : ""));
  return out;
}

}  // namespace

std::map<std::string, std::string> unzip_members(const std::string& path,
                                                 const std::vector<std::string>& names) {
  std::size_t archive_bytes = 0;
  {
    const MappedFile file(path);  // says what cannot be opened, or is no zip
    archive_bytes = file.bytes().size();
    if (!file.bytes().starts_with("PK"))
      throw Error(
          fmt::format("{}: expected a zip archive, got {}", path, describe_content(file.bytes())));
  }
  const Archive archive(unzOpen64(path.c_str()));
  if (!archive)
    throw Error(
        fmt::format("{}: expected a zip archive, got one without its end (truncated?)", path));
  std::map<std::string, std::string> out;
  for (auto& [name, place] : last_places(archive.get(), names))
    if (unzGoToFilePos64(archive.get(), &place) == UNZ_OK)
      out[name] = read_current(archive.get(), fmt::format("{}({})", path, name), archive_bytes);
  return out;
}

}  // namespace spmmbench
