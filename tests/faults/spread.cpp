// A run over two workers, which a machine without GPUs has no option for: `spmmbench_spread OUT
// INPUT...` measures the inputs on the CPU twice at a time; as a child it is the program itself.

#define main spmmbench_main
#include "../../src/cli/main.cpp"
#undef main

#include "run/runner.hpp"

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "worker") return spmmbench_main(argc, argv);
  spmmbench::RunOptions options;
  options.devices = {-1, -1};
  options.json = argv[1];
  options.inputs.assign(argv + 2, argv + argc);
  options.kernels = {"cpu_csr", "planted_hang"};
  options.baselines = false;
  options.isolate = true;
  options.timeout_s = 8;
  options.limits.max_samples = 10;
  return static_cast<int>(spmmbench::run_benchmark(options, {argv, argv + argc}));
}
