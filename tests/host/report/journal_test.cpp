// What a journal keeps of a run that ends at any moment, and what damage to it costs.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "io_fixtures.hpp"
#include "report/journal.hpp"
#include "report/journal_lines.hpp"
#include "report/json.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

ResultRow measured_row(const std::string& kernel, double hot_us,
                       const std::string& sha256 = "00ff") {
  ResultRow row;
  row.matrix = {"m", "m.mtx", sha256, 10, 20, 30, 3, 0.5, 9};
  row.n = 128;
  row.kernel = kernel;
  row.precision = "fp16";
  row.c_type = "fp32";
  row.layout = "row";
  row.reorder = "none";
  row.status = Status::ok;
  row.hot = summarise({hot_us, hot_us + 1, hot_us - 1}, 10);
  row.cold = summarise({hot_us * 2}, 1);
  return row;
}

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    context_.device.name = "device";
    context_.argv = {"spmmbench"};
    context_.copy_gb_per_s = 1;
    context_.tool_version = "0.2.0";
    context_.git_revision = "0123";
    context_.build_flags = "Release";
    context_.hostname = "host";
    context_.device.uuid = "GPU-1, GPU-2";
    context_.device.sm_count = 132;
    context_.device.driver_version = "580.1";
  }
  std::string json() const { return folder_.file("out.json"); }
  std::string journal() const { return json() + ".journal"; }
  Journal open(Earlier earlier) const { return {{json(), ""}, context_, earlier}; }
  // As a kill leaves it.
  void leave(const std::vector<ResultRow>& rows) const {
    Journal journal = open(Earlier::keep);
    for (const ResultRow& row : rows) journal.append(row);
  }
  std::vector<std::string> kernels_of(const ResultDocument& document) const {
    std::vector<std::string> names;
    for (const ResultRow& row : document.rows) names.push_back(row.kernel);
    return names;
  }

  test::ScratchFolder folder_;
  RunContext context_;
};

using Names = std::vector<std::string>;

TEST_F(JournalTest, BecomesADocumentAndACsv) {
  ResultRow baseline = measured_row("cusparse_csr_default", 100);
  baseline.precision = "fp32";
  baseline.baseline = true;
  Journal both({json(), folder_.file("new/out.csv")}, context_, Earlier::keep);
  both.append(baseline);
  both.append(measured_row("rsh", 20));
  EXPECT_TRUE(both.finish({}, Ending::complete));
  const ResultDocument document = read_document(json());
  EXPECT_EQ(kernels_of(document), (Names{"cusparse_csr_default", "rsh"}));
  EXPECT_TRUE(document.complete);
  EXPECT_DOUBLE_EQ(*document.rows[1].speedup.cusparse_default_fp32, 5);
  EXPECT_FALSE(std::filesystem::exists(journal()));
  const std::string csv = test::read_bytes(folder_.file("new/out.csv"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
}

TEST_F(JournalTest, IsGoneOnWithAndACutLineIsPassedOver) {
  ResultRow failed = measured_row("b", 2);
  failed.status = Status::failed;
  leave({measured_row("a", 1), failed});
  std::ofstream(journal(), std::ios::app) << "{\"matrix\": {\"na";
  Journal again = open(Earlier::take_over);
  EXPECT_TRUE(again.damaged().empty());
  EXPECT_EQ(again.find(measured_row("a", 1))->status, Status::ok);
  EXPECT_EQ(again.find(measured_row("b", 1))->status, Status::failed);
  EXPECT_FALSE(again.find(measured_row("c", 1)));
  again.append(measured_row("b", 3));
  EXPECT_TRUE(again.finish({}, Ending::complete));
  const ResultDocument document = read_document(json());
  ASSERT_EQ(kernels_of(document), (Names{"a", "b"}));
  EXPECT_DOUBLE_EQ(document.rows[1].hot->median_us, 3);
}

TEST_F(JournalTest, OfAnInterruptedRunStaysBesideAValidDocument) {
  Journal interrupted = open(Earlier::keep);
  interrupted.append(measured_row("a", 1));
  EXPECT_FALSE(interrupted.finish({}, Ending::interrupted));
  EXPECT_FALSE(read_document(json()).complete);
  EXPECT_EQ(kernels_of(read_journal(journal())), Names{"a"});
}

TEST_F(JournalTest, WithRowsIsGivenUpOnlyWhenThatIsAskedFor) {
  leave({measured_row("a", 1)});
  EXPECT_NE(test::error_of([&] { open(Earlier::keep); }).find("--overwrite"), std::string::npos);
  EXPECT_EQ(kernels_of(read_journal(journal())), Names{"a"});
  open(Earlier::give_up);
  EXPECT_TRUE(read_journal(journal()).rows.empty());
  open(Earlier::keep);  // nothing is lost with it
}

TEST_F(JournalTest, OfAnotherBuildDeviceSeedOrProtocolIsRefused) {
  context_.protocol["noise_limit"] = "0.01";
  leave({measured_row("a", 1)});
  const RunContext own = context_;
  const std::function<void()> changes[] = {
      [&] { context_.device.name = "another"; },         [&] { context_.git_revision = "4567"; },
      [&] { context_.build_flags = "Debug"; },           [&] { context_.seed = 9; },
      [&] { context_.tool_version = "9.9.9"; },          [&] { context_.hostname = "elsewhere"; },
      [&] { context_.device.uuid = "GPU-1"; },           [&] { context_.device.sm_count = 2; },
      [&] { context_.protocol["noise_limit"] = "0.02"; }};
  for (const auto& change : changes) {
    context_ = own;
    change();
    try {
      open(Earlier::take_over);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::not_comparable) << error.what();
    }
  }
  EXPECT_EQ(kernels_of(read_journal(journal())), Names{"a"});
}

TEST_F(JournalTest, OfAnotherMachineIsRefusedWithWhatDiffers) {
  leave({measured_row("a", 1)});
  context_.device.uuid = "GPU-2, GPU-1";    // the same GPUs
  context_.device.cublas_version = "13.1";  // not known of the earlier run
  EXPECT_TRUE(open(Earlier::take_over).find(measured_row("a", 1)));
  context_.device.driver_version = "610.2";
  EXPECT_EQ(test::error_of([&] { open(Earlier::take_over); }),
            journal() +
                ": was measured with device.driver_version '580.1', this run has '610.2': "
                "name another output file, or --overwrite to measure all of it again");
}

TEST_F(JournalTest, IsGoneOnWithWhetherCasesAreIsolatedOrNot) {
  context_.protocol["isolated"] = "no";
  leave({measured_row("a", 1)});
  context_.protocol["isolated"] = "yes";
  EXPECT_TRUE(open(Earlier::take_over).find(measured_row("a", 1)));
}

TEST_F(JournalTest, KeepsCasesApartThatDifferInAnything) {
  std::vector<ResultRow> rows(7, measured_row("a", 1));
  rows[1].n = 64;
  rows[2].precision = "bf16";
  rows[3].c_type = "fp16";
  rows[4].layout = "col";
  rows[5].reorder = "rcm";
  rows[6].matrix.name = "other";
  leave(rows);
  EXPECT_EQ(read_journal(journal()).rows.size(), rows.size());
}

TEST_F(JournalTest, OfARunThatEndedSaysSo) {
  const std::string csv = folder_.file("out.csv");
  Journal run({"", csv}, context_, Earlier::keep);
  run.append(measured_row("a", 1));
  EXPECT_FALSE(read_journal(csv + ".journal").complete);
  run.finish({}, Ending::complete);
  EXPECT_TRUE(read_journal(csv + ".journal").complete);
}

TEST_F(JournalTest, WithoutTheContextOfItsRunIsRefused) {
  std::ofstream(journal()) << "{}\n";
  EXPECT_TRUE(test::contains(test::error_of([&] { read_journal(journal()); }),
                             ":1: expected the run's context"));
  for (const Earlier earlier : {Earlier::keep, Earlier::take_over})
    EXPECT_TRUE(
        test::contains(test::error_of([&] { open(earlier); }), "expected the run's context"));
}

TEST_F(JournalTest, ADocumentOfAnotherRunIsNotGoneOnWith) {
  open(Earlier::keep).finish({}, Ending::complete);
  ASSERT_FALSE(std::filesystem::exists(journal()));
  context_.seed = 9;
  EXPECT_TRUE(
      test::contains(test::error_of([&] { open(Earlier::take_over); }), "was measured with seed "));
}

TEST_F(JournalTest, HasTheAnswersAndTheClocksOfItsEndInTheDocument) {
  Journal run = open(Earlier::keep);
  run.append(measured_row("a", 1));
  ClockState clocks;
  clocks.power_w = 700;
  run.finish(clocks, Ending::complete);
  const auto document = nlohmann::json::parse(test::read_bytes(json()));
  EXPECT_EQ(document.at("answers").size(), 1U);
  EXPECT_EQ(read_document(json()).context.clocks_after.power_w, 700);
}

TEST_F(JournalTest, GivesUpTheRowsOfAMatrixThatWasReplaced) {
  leave({measured_row("a", 1), measured_row("b", 1)});
  Journal again = open(Earlier::take_over);
  EXPECT_EQ(again.append(measured_row("c", 1, "11aa")), 2U);
  EXPECT_FALSE(again.find(measured_row("a", 1)));
  EXPECT_EQ(again.append(measured_row("b", 1, "11aa")), 0U);
  EXPECT_TRUE(again.finish({}, Ending::complete));
  EXPECT_EQ(kernels_of(read_document(json())), (Names{"c", "b"}));
}

ResultRow measured_at(const std::string& source, const std::string& sha256 = "00ff") {
  ResultRow row = measured_row("a", 1, sha256);
  row.matrix.source = source;
  return row;
}

TEST_F(JournalTest, KnowsAMatrixByItsContentAndNameWhateverThePath) {
  leave({measured_at("m.mtx"), measured_row("b", 1)});
  Journal again = open(Earlier::take_over);
  for (const std::string source : {"./m.mtx", "/data/m.mtx", "m.csr"})
    EXPECT_TRUE(again.find(measured_at(source))) << source;
  EXPECT_EQ(again.append(measured_at("elsewhere/m.csr")), 0U);
  EXPECT_TRUE(again.finish({}, Ending::complete));
  const ResultDocument document = read_document(json());
  ASSERT_EQ(document.rows.size(), 2U);
  for (const ResultRow& row : document.rows)
    EXPECT_EQ(row.matrix.source, "elsewhere/m.csr") << "a matrix is told one path, the last";
}

TEST_F(JournalTest, KeepsTheRowsOfARenamedFileUnderItsNewName) {
  leave({measured_row("a", 1), measured_row("b", 1)});
  Journal again = open(Earlier::take_over);
  ResultRow renamed = measured_row("b", 2);
  renamed.matrix.name = "new";
  again.append(renamed);
  const auto rename = [](ResultRow& row) { row.matrix.name = "new"; };
  EXPECT_EQ(again.take_renamed(renamed.matrix, {"m", "new"}, rename), "") << "it is there too";
  EXPECT_EQ(again.take_renamed(renamed.matrix, {"new"}, rename), "m");
  EXPECT_EQ(again.take_renamed(renamed.matrix, {"new"}, rename), "") << "done";
  EXPECT_TRUE(again.finish({}, Ending::complete));
  const ResultDocument document = read_document(json());
  EXPECT_EQ(kernels_of(document), (Names{"b", "a"}));
  for (const ResultRow& row : document.rows) {
    EXPECT_EQ(row.matrix.name, "new");
    EXPECT_EQ(row.hot->median_us, row.kernel == "b" ? 2 : 1) << "a later row counts";
  }
}

TEST_F(JournalTest, KeepsMatricesOfOneNameInTwoFoldersAndGivesUpTheChangedFile) {
  leave({measured_at("one/m.mtx"), measured_at("two/m.mtx", "11aa")});
  EXPECT_EQ(read_journal(journal()).rows.size(), 2U);
  Journal again = open(Earlier::take_over);
  EXPECT_EQ(again.cases_of("m").size(), 2U);
  EXPECT_EQ(again.append(measured_at("./two/../one/m.mtx", "22bb")), 1U);
  EXPECT_FALSE(again.find(measured_at("one/m.mtx")));
  EXPECT_TRUE(again.find(measured_at("two/m.mtx", "11aa")));
  EXPECT_EQ(read_journal(journal()).rows.size(), 2U);
}

TEST_F(JournalTest, GivesUpRowsEachTimeTheMatrixChanges) {
  Journal made = open(Earlier::keep);
  EXPECT_EQ(made.append(measured_row("a", 1)), 0U);
  EXPECT_EQ(made.append(measured_row("b", 1)), 0U);
  EXPECT_EQ(made.append(measured_row("a", 1, "11aa")), 2U);
  EXPECT_EQ(made.append(measured_row("a", 1)), 1U);
  EXPECT_EQ(made.append(measured_row("b", 1)), 0U);
}

TEST_F(JournalTest, GivesUpTheBaselinesOfAMatrixThatWasReplaced) {
  ResultRow baseline = measured_row("cusparse_csr_default", 10);
  baseline.baseline = true;
  leave({baseline});
  Journal again = open(Earlier::take_over);
  ResultRow mine = measured_row("a", 1, "11aa");
  again.append(mine);
  again.baselines().fill(mine);
  EXPECT_FALSE(mine.speedup.cusparse_best);
}

TEST_F(JournalTest, IsReadWithoutTheRowsOfAMatrixThatWasReplaced) {
  leave({measured_row("a", 1), measured_row("b", 1)});
  open(Earlier::take_over).append(measured_row("b", 2, "11aa"));
  EXPECT_EQ(kernels_of(read_journal(journal())), Names{"b"});
}

TEST_F(JournalTest, LosesOnlyTheLineThatIsDamagedAndNamesIt) {
  leave({measured_row("a", 1), measured_row("b", 2), measured_row("c", 3)});
  const std::string whole = test::read_bytes(journal());
  std::mt19937_64 random(5);
  for (int repetition = 0; repetition < 200; ++repetition) {
    std::string bytes = whole;
    const std::size_t at = random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    std::ofstream(journal(), std::ios::binary) << bytes;
    std::vector<std::string> damaged;
    const ResultDocument document = read_journal(journal(), &damaged);
    const auto line = std::count(whole.begin(), whole.begin() + at, '\n') + 1;
    const bool line_break = whole[at] == '\n';
    Names left = {"a", "b", "c"};
    if (line == 5 && line_break) {  // the last, without its end: as if it was still being written
      EXPECT_TRUE(damaged.empty());
      left.pop_back();
    } else {
      EXPECT_EQ(damaged.front().substr(journal().size()),
                fmt::format(":{}: damaged: the checksum does not match", line));
      if (line_break && line >= 2) left.erase(left.begin() + (line - 2));  // one with the next
      if (line > 2) left.erase(left.begin() + (line - 3));
    }
    EXPECT_EQ(kernels_of(document), left) << "byte " << at;
  }
}

TEST_F(JournalTest, ThatCannotBeReadBackLeavesNoCompleteDocument) {
  Journal run = open(Earlier::keep);
  run.append(measured_row("a", 1));
  run.append(measured_row("b", 2));
  std::string bytes = test::read_bytes(journal());
  bytes[bytes.size() - 100] ^= 1;
  {
    std::fstream file(journal(), std::ios::in | std::ios::out | std::ios::binary);
    file << bytes;
  }
  EXPECT_FALSE(run.finish({}, Ending::complete));
  EXPECT_EQ(run.damaged().size(), 1U);
  const ResultDocument document = read_document(json());
  EXPECT_FALSE(document.complete);
  EXPECT_EQ(kernels_of(document), Names{"a"});
}

TEST_F(JournalTest, OrItsDocumentTellsTheContextOfTheEarlierRun) {
  EXPECT_FALSE(earlier_context({json(), ""}));
  EXPECT_FALSE(earlier_context({"-", ""}));
  context_.tags = {{"night", "1"}};
  leave({measured_row("a", 1)});
  EXPECT_EQ(earlier_context({json(), ""})->tags, context_.tags);
  open(Earlier::take_over).finish({}, Ending::complete);
  ASSERT_FALSE(std::filesystem::exists(journal()));
  EXPECT_EQ(earlier_context({json(), ""})->tags, context_.tags);
}

TEST_F(JournalTest, ThatIsNotDurableIsRemovedFromAnIncompleteDocument) {
  Journal merged({json(), ""}, /*give_up=*/false);
  merged.set_context(context_);
  merged.append(measured_row("a", 1));
  for (const char* ending : {".journal", ".journal.part"})
    EXPECT_FALSE(std::filesystem::exists(json() + ending)) << "nothing can be left of it";
  EXPECT_FALSE(merged.finish({}, Ending::partly_read));
  EXPECT_FALSE(std::filesystem::exists(journal()));
  EXPECT_FALSE(read_document(json()).complete);
}

TEST_F(JournalTest, ThatIsNotDurableGivesUpAnotherRunOnlyAtItsEnd) {
  leave({measured_row("a", 1)});
  const auto merged = [&](bool give_up) { return Journal({json(), ""}, give_up); };
  const std::string error = test::error_of([&] { merged(false); });
  EXPECT_TRUE(error.ends_with("did not end: --overwrite gives it up")) << error;
  merged(true);
  EXPECT_EQ(kernels_of(read_journal(journal())), Names{"a"}) << "it failed";
  Journal ended = merged(true);
  ended.finish({}, Ending::complete);
  EXPECT_FALSE(std::filesystem::exists(journal()));
}

TEST_F(JournalTest, HasNoBaselineThatALaterRowHasReplaced) {
  ResultRow baseline = measured_row("cusparse_csr_default", 10);
  baseline.baseline = true;
  ResultRow slower = baseline;
  slower.hot = summarise({400, 400, 400}, 10);
  ResultRow mine = measured_row("a", 1);
  Journal run = open(Earlier::keep);
  for (const ResultRow& row : {baseline, mine, slower}) run.append(row);
  run.baselines().fill(mine);
  EXPECT_DOUBLE_EQ(*mine.speedup.cusparse_best, 400);
  slower.status = Status::wrong;
  run.append(slower);
  run.baselines().fill(mine);
  EXPECT_FALSE(mine.speedup.cusparse_best);
  EXPECT_FALSE(mine.break_even_against);
  run.finish({}, Ending::complete);
  EXPECT_FALSE(read_document(json()).rows.at(1).speedup.cusparse_best);
}

TEST_F(JournalTest, OfARunThatCouldNotReadAllIsRemovedAndItsDocumentGoneOnWith) {
  Journal run = open(Earlier::keep);
  run.append(measured_row("a", 1));
  EXPECT_FALSE(run.finish({}, Ending::partly_read));
  EXPECT_FALSE(std::filesystem::exists(journal()));
  EXPECT_FALSE(read_document(json()).complete);
  EXPECT_TRUE(open(Earlier::take_over).find(measured_row("a", 1)));
}

TEST_F(JournalTest, WithoutARowLeavesAnEarlierDocument) {
  EXPECT_EQ(open(Earlier::keep).leave_outputs(), "") << "there is none";
  folder_.write("out.json", "earlier");
  EXPECT_EQ(open(Earlier::keep).leave_outputs(), json());
  EXPECT_FALSE(std::filesystem::exists(journal()));
  EXPECT_EQ(test::read_bytes(json()), "earlier");
  Journal run = open(Earlier::keep);
  run.append(measured_row("a", 1));
  EXPECT_EQ(run.leave_outputs(), "");
}

TEST_F(JournalTest, AndTheOutputsAreDifferentFilesAndNoInputs) {
  const auto message = [](const RunOutputs& paths, const std::vector<std::string>& inputs) {
    return test::error_of([&] { require_own_files(paths, inputs); });
  };
  require_own_files({json(), folder_.file("out.csv")}, {folder_.file("a.mtx")});
  require_own_files({"-", "/dev/null"}, {});
  EXPECT_TRUE(test::contains(message({json(), journal()}, {}), "is the journal of " + json()));
  EXPECT_TRUE(test::contains(message({json() + ".part", json()}, {}), "NAME.part"));
  EXPECT_TRUE(test::contains(message({json(), ""}, {journal()}), "is the journal of the output"));
  EXPECT_TRUE(test::contains(message({json(), ""}, {json() + ".part"}), "which is the input"));
  EXPECT_TRUE(test::contains(message({"/dev/null", "/dev/null"}, {}), "different files"));
}

TEST_F(JournalTest, HasOneWriter) {
  const Journal first = open(Earlier::keep);
  EXPECT_NE(test::error_of([&] { open(Earlier::take_over); }).find("another run is writing it"),
            std::string::npos);
}

TEST_F(JournalTest, OfACsvAloneStaysSoThatTheCsvCanBeGoneOnWith) {
  const std::string csv = folder_.file("out.csv");
  for (const char* kernel : {"a", "b"}) {
    Journal run({"", csv}, context_, Earlier::take_over);
    run.append(measured_row(kernel, 1));
    EXPECT_TRUE(run.finish({}, Ending::complete));
  }
  const std::string text = test::read_bytes(csv);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  Journal fresh({"", csv}, context_, Earlier::keep);
  EXPECT_TRUE(fresh.finish({}, Ending::complete))
      << "a run that ended needs no leave to be replaced";
}

TEST_F(JournalTest, IsNamedWhereTheOutputCannotTakeItsName) {
  Journal run = open(Earlier::keep);
  run.append(measured_row("a", 1));
  folder_.write("out.json/in the way", "");
  const std::string error = test::error_of([&] { run.finish({}, Ending::complete); });
  EXPECT_TRUE(error.ends_with("; the rows are kept in " + journal())) << error;
  EXPECT_EQ(kernels_of(read_journal(journal())), Names{"a"});
}

TEST_F(JournalTest, ThatCannotBeBegunLeavesNoEmptyFile) {
  folder_.write("out.json.journal.part/in the way", "");
  EXPECT_TRUE(test::contains(test::error_of([&] { open(Earlier::keep); }), "is in the way"));
  EXPECT_FALSE(std::filesystem::exists(journal()));
  const std::string longest(245, 'x');  // with .journal.part it is longer than any name may be
  EXPECT_THROW(Journal({folder_.file(longest), ""}, context_, Earlier::keep), Error);
  EXPECT_FALSE(std::filesystem::exists(folder_.file(longest + ".journal")));
}

TEST_F(JournalTest, OfUnwritableOutputsIsNotBegun) {
  folder_.write("file", "");
  EXPECT_THROW(Journal({folder_.file("file/out.json"), ""}, context_, Earlier::keep), Error);
  EXPECT_THROW(Journal({folder_.path().string(), ""}, context_, Earlier::keep), Error);
}

}  // namespace
}  // namespace spmmbench
