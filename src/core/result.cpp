#include "spmmbench/result.hpp"

namespace spmmbench {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::ok: return "ok";
    case Status::wrong: return "wrong";
    case Status::skipped: return "skipped";
    case Status::failed: return "failed";
    case Status::timeout: return "timeout";
  }
  return "?";
}

}  // namespace spmmbench
