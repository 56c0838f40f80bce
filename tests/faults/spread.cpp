// A run over two workers, which a machine without GPUs has no option for: `spmmbench_spread OUT
// INPUT...` measures the inputs on the CPU twice at a time; as a child it is the program itself.
// Linked with --wrap=main, which gives these two names to this main and to the program's.

#include <string_view>

#include "run/runner.hpp"

extern "C" int __real_main(int argc, char** argv);

extern "C" int __wrap_main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "worker") return __real_main(argc, argv);
  spmmbench::RunOptions options;
  options.machines.devices = {-1, -1};
  options.outputs.json = argv[1];
  options.cases.inputs.assign(argv + 2, argv + argc);
  options.cases.kernels = {"cpu_csr", "planted_hang"};
  options.cases.baselines = false;
  options.protocol.isolate = true;
  options.protocol.timeout_s = 5;
  options.protocol.limits.max_samples = 10;
  return static_cast<int>(spmmbench::run_benchmark(options, {argv, argv + argc}));
}
