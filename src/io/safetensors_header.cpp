#include "io/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "io/file.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMetadata = "__metadata__";

// Receives the header event by event. nlohmann's parser defines the signatures; a function that
// returns false ends the parse, with `problem` set.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  std::vector<TensorInfo> tensors;
  std::string problem;

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a truth value"); }
  bool number_float(double, const std::string& text) override { return refuse(quote(text)); }
  bool number_integer(std::int64_t value) override { return refuse(fmt::format("{}", value)); }
  bool binary(Json::binary_t&) override { return refuse("binary data"); }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::in_list || value > std::numeric_limits<std::int64_t>::max())
      return refuse(fmt::format("{}", value));
    numbers_.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::in_metadata) return true;
    if (place_ != Place::in_tensor || key_ != "dtype") return refuse(quote(text));
    tensors.back().dtype = std::move(text);
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::outside: place_ = Place::in_header; return true;
      case Place::in_header:
        if (key_ == kMetadata) {
          place_ = Place::in_metadata;
          return true;
        }
        place_ = Place::in_tensor;
        tensors.emplace_back().name = key_;
        seen_ = {};
        return true;
      default: return refuse("an object");
    }
  }

  bool end_object() override {
    if (place_ == Place::in_tensor && seen_.size() < 3)
      return fail_tensor("dtype, shape and data_offsets");
    place_ = place_ == Place::in_header ? Place::outside : Place::in_header;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::in_tensor || key_ == "dtype") return refuse("a list");
    place_ = Place::in_list;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    place_ = Place::in_tensor;
    TensorInfo& tensor = tensors.back();
    if (key_ == "shape") {
      tensor.shape = numbers_;
      return true;
    }
    if (numbers_.size() != 2 || numbers_[0] > numbers_[1])
      return fail_tensor("two rising data_offsets");
    tensor.begin = static_cast<std::size_t>(numbers_[0]);
    tensor.end = static_cast<std::size_t>(numbers_[1]);
    return true;
  }

  bool key(std::string& text) override {
    key_ = std::move(text);
    if (place_ == Place::in_metadata) return true;
    if (std::any_of(key_.begin(), key_.end(), [](unsigned char c) { return c < ' '; }))
      return refuse(quote(key_));                      // names are shown in messages of one line
    if (place_ == Place::in_header && key_.empty()) {  // no PATH:NAME could stand for it
      problem = "expected a name of each tensor, got an empty one";
      return false;
    }
    if (place_ == Place::in_header && !names_.insert(key_).second) {
      problem = fmt::format("expected each tensor once, got {} twice", quote(key_));
      return false;
    }
    if (place_ == Place::in_tensor) {
      if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") return refuse(quote(key_));
      if (!seen_.insert(key_).second) return fail_tensor("each key once");
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    problem = fmt::format("expected JSON, got none at byte {}", position);
    return false;
  }

 private:
  enum class Place { outside, in_header, in_metadata, in_tensor, in_list };

  bool refuse(const std::string& got) {
    if (place_ == Place::in_metadata || (place_ == Place::in_header && key_ == kMetadata)) {
      problem = fmt::format("expected texts in {}, got {}", kMetadata, got);
      return false;
    }
    problem = fmt::format("expected {{name: {{dtype, shape, data_offsets}}}}, got {}", got);
    if (!tensors.empty()) problem += fmt::format(" at {}", quote(tensors.back().name));
    return false;
  }
  bool fail_tensor(std::string_view expected) {
    problem = fmt::format("expected {} of {}", expected, quote(tensors.back().name));
    return false;
  }

  Place place_ = Place::outside;
  std::string key_;
  std::set<std::string> names_, seen_;  // of the header, of the current tensor
  std::vector<std::int64_t> numbers_;
};

}  // namespace

std::vector<TensorInfo> parse_tensor_header(std::string_view json, const std::string& path) {
  HeaderReader reader;
  if (!Json::sax_parse(json, &reader))
    throw Error(fmt::format("{}: safetensors header: {}", path, reader.problem));
  return std::move(reader.tensors);
}

}  // namespace spmmbench
