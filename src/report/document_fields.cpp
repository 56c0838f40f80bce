#include "report/document_fields.hpp"

namespace spmmbench {

namespace {

const FieldTable<DeviceInfo>& device_fields() {
  using D = DeviceInfo;
  static const FieldTable<D> table = {
      field("kind", &D::kind, ""),
      field("index", &D::index, "CUDA's number of it"),
      field("name", &D::name, ""),
      field("uuid", &D::uuid, "of a run on several GPUs all of them: a, b; empty on the host"),
      field("compute_capability", &D::compute_capability, "90 for 9.0; 0 on the host"),
      field("sm_count", &D::sm_count, "threads on the host"),
      field("l2_bytes", &D::l2_bytes, "last-level cache on the host"),
      field("memory_bytes", &D::memory_bytes, ""),
      field("driver_version", &D::driver_version, ""),
      field("runtime_version", &D::runtime_version, ""),
      field("cusparse_version", &D::cusparse_version, ""),
      field("cublas_version", &D::cublas_version, ""),
  };
  return table;
}

const FieldTable<ClockState>& clock_fields() {
  using C = ClockState;
  static const FieldTable<C> table = {
      field("sm_mhz", &C::sm_mhz, ""),
      field("memory_mhz", &C::memory_mhz, ""),
      field("temperature_c", &C::temperature_c, ""),
      field("power_w", &C::power_w, ""),
      field("throttle_reasons", &C::throttle_reasons, "NVML's bit mask"),
  };
  return table;
}

const FieldTable<RunContext>& context_fields() {
  using C = RunContext;
  static const FieldTable<C> table = {
      field("tool_version", &C::tool_version, ""),
      field("git_revision", &C::git_revision, ""),
      field("build_flags", &C::build_flags, ""),
      field("build_id", &C::build_id,
            "the linker's ID of the executable, which tells builds of one revision apart; empty "
            "where it is not known")
          .added_later(),
      field("started_utc", &C::started_utc, "",
            {{"pattern", "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}Z$"}}),
      field("hostname", &C::hostname, ""),
      field("argv", &C::argv, "the command", {{"minItems", 1}}),
      field("tags", &C::tags, "what --tag KEY=VALUE said of the run").added_later(),
      field("shards", &C::shards,
            "the parts of the inputs that --shard I/N named, after merge those that are complete; "
            "empty: all inputs")
          .added_later(),
      field("seed", &C::seed, "of B and of a pattern's values"),
      field("calls", &C::calls, "for which preparation is counted (run --calls); 0: it is not")
          .added_later(),
      group("device", &C::device, device_fields(), ""),
      field("ecc", &C::ecc,
            "the GPU's memory has error correction; null where the driver does not say")
          .added_later(),
      field("mig", &C::mig, "the GPU is divided into instances; null where the driver does not say")
          .added_later(),
      field("copy_gb_per_s", &C::copy_gb_per_s,
            "of a large copy on the device, read + written, 1e9 bytes", {{"exclusiveMinimum", 0}}),
      field("gather_gb_per_s", &C::gather_gb_per_s,
            "of whole rows at random places of the L2 cache, 1e9 bytes; null where no kernel "
            "predicts with it")
          .added_later(),
      field("dense_tflops", &C::dense_tflops,
            "of a large fp16 product in cuBLAS, 1e12 operations per second; null where no kernel "
            "predicts with it")
          .added_later(),
      field("timer_floor_us", &C::timer_floor_us,
            "two events with nothing between: every cold time includes it", kNotNegative),
      group("clocks_before", &C::clocks_before, clock_fields(), ""),
      group("clocks_after", &C::clocks_after, clock_fields(), ""),
      field(
          "protocol", &C::protocol, "sampling limits and how the data came to be",
          {{"required", {"noise_limit", "min_samples", "max_samples", "max_seconds", "isolated"}}}),
  };
  return table;
}

const FieldTable<AnswerStep>& step_fields() {
  using A = AnswerStep;
  static const FieldTable<A> table = {
      field("from_calls", &A::from_calls, "the first number of calls for which it is best",
            kAtLeastOne),
      field("kernel", &A::kernel, "", kNotEmpty),
      field("reorder", &A::reorder, "", kNotEmpty),
      field("prepare_ms", &A::prepare_ms, "once", kNotNegative),
      field("us", &A::us, "hot median, of every call", kNotNegative),
      field("of_bound", &A::of_bound, "the row's"),
  };
  return table;
}

Field<Answer> steps_field() {
  return {"steps",
          "what takes the least preparation + calls x hot median, the first from one call on; "
          "faster by less than 1 % is not faster",
          {{"type", "array"}, {"minItems", 1}, {"items", schema_of(step_fields())}},
          [](const Answer& answer) {
            Json steps = Json::array();
            for (const AnswerStep& step : answer.steps)
              steps.push_back(write_fields(step_fields(), step));
            return steps;
          },
          nullptr,
          {}};
}

// Derived from the rows, so it is written and never read.
const FieldTable<Answer>& answer_fields() {
  using A = Answer;
  static const FieldTable<A> table = {
      field("matrix", &A::matrix, "name"),
      field("source", &A::source, "", kNotEmpty),
      field("n", &A::n, "", kAtLeastOne),
      field("layout", &A::layout, ""),
      field("precision", &A::precision, ""),
      field("c_type", &A::c_type, ""),
      steps_field(),
  };
  return table;
}

// Which fields a row of each status has; the types of the fields cannot express that.
Json rules_of_status() {
  return Json::parse(R"({
    "if": {"properties": {"status": {"const": "ok"}}},
    "then": {
      "properties": {
        "reason": {"const": ""},
        "verify": {
          "type": "object",
          "properties": {"error_over_bound": {"type": "number", "maximum": 1}}
        },
        "hot": {"type": "object"},
        "cold": {"type": "object"},
        "gflops": {"type": "number"},
        "bound_us": {"type": "number"},
        "of_bound": {"type": "number"}
      }
    },
    "else": {
      "properties": {
        "reason": {"minLength": 1},
        "hot": {"type": "null"},
        "cold": {"type": "null"},
        "speedup": {"additionalProperties": {"type": "null"}},
        "break_even_calls": {"type": "null"},
        "break_even_against": {"type": "null"},
        "in_all_us": {"type": "null"}
      }
    }
  })");
}

}  // namespace

Json to_json(const Answer& answer) { return write_fields(answer_fields(), answer); }
Json to_json(const RunContext& context) { return write_fields(context_fields(), context); }

RunContext context_from_json(const Json& json) try {
  return read_fields(context_fields(), json);
} catch (const Error& error) {
  throw Error(fmt::format("context: {}", error.what()));
}

Json result_schema() {
  Json row = schema_of(row_fields());
  row.update(rules_of_status());
  return {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "Result document of spmmbench"},
      {"description",
       "What `spmmbench run --json` and `spmmbench merge` write. Numbers are numbers, units are in "
       "the names, absent values are null. Written by `spmmbench list schema`."},
      {"type", "object"},
      {"required", {"schema_version", "context", "complete", "rows"}},
      {"additionalProperties", false},
      {"properties",
       {{"schema_version", {{"const", kSchemaVersion}}},
        {"context", {{"$ref", "#/$defs/context"}}},
        {"complete", {{"type", "boolean"}, {"description", "false after an interruption"}}},
        {"rows", {{"type", "array"}, {"items", {{"$ref", "#/$defs/row"}}}}},
        {"answers",
         {{"type", "array"},
          {"description",
           "one for each matrix, N, layout, precision and type of C with a verified row; absent in "
           "documents of version 0.1.0"},
          {"items", {{"$ref", "#/$defs/answer"}}}}}}},
      {"$defs",
       {{"number",
         {{"description", "a number, or a non-finite one by name"},
          {"anyOf", {{{"type", "number"}}, {{"enum", {"inf", "nan"}}}}}}},
        {"context", schema_of(context_fields())},
        {"row", row},
        {"answer", schema_of(answer_fields())}}}};
}

}  // namespace spmmbench
