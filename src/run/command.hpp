#pragma once
// The command that repeats one case, for a person to copy into a shell. The program itself never
// reads it.

#include <string>

#include "run/options.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// PATH and every option that decides the result of the case, without the options of sampling.
// Quoted for a shell where needed.
std::string case_arguments(const Cases& cases, const ResultRow& row);

std::string case_command(const Cases& cases, const ResultRow& row);  // with `run`, alone

// One word, quoted where a shell would change it; bytes that cannot be shown are written as
// $'\xNN'.
std::string shell_word(const std::string& bytes);

}  // namespace spmmbench
