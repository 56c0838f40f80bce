#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <string_view>

#include "cli/program.hpp"
#include "io/output.hpp"

int main(int argc, char** argv) {
  using namespace spmmbench;
  reserve_standard_descriptors();
  const auto fail = [](std::string_view what, ExitCode code) {
    say("spmmbench: {}\n", what);
    return static_cast<int>(code);
  };
  try {
    return static_cast<int>(run_program(argc, argv));
  } catch (const ReaderLeft& left) {
    return static_cast<int>(left.code());
  } catch (const Error& error) {
    return fail(error.what(), error.code());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(fmt::format("{}: {}", error.path1().native(), error.code().message()),
                ExitCode::usage);
  } catch (const std::bad_alloc&) {
    return fail("out of host memory", ExitCode::usage);
  } catch (const std::exception& error) {
    return fail(error.what(), ExitCode::some_failed);
  }
}
