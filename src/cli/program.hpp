#pragma once
// The program: its subcommands, of which it runs the one that the arguments name.

#include "spmmbench/error.hpp"

namespace spmmbench {

// Throws Error, or ReaderLeft where the reader of the output has left.
ExitCode run_program(int argc, char** argv);

}  // namespace spmmbench
