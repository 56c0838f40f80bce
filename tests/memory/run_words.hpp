#pragma once
// The program with some arguments, without the headers of its commands.

#include <string>
#include <utility>
#include <vector>

#include "cli/program.hpp"

namespace spmmbench::testing {

inline ExitCode run_words(std::vector<std::string> words) {
  words.insert(words.begin(), "spmmbench");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return run_program(static_cast<int>(words.size()), arguments.data());
}

}  // namespace spmmbench::testing
