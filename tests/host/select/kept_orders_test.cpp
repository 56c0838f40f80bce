#include "select/kept_orders.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cache_fixture.hpp"
#include "matrices.hpp"

namespace spmmbench {
namespace {

class KeptOrders : public test::CacheTest {
 protected:
  static Permutation order_of(const CsrMatrix& matrix, const std::string& spec,
                              StageTimer& stages) {
    return make_row_orders(matrix, {"none", {}}, kept_order)->get(spec, stages);
  }
  Permutation order(StageTimer& stages) const { return order_of(matrix_, "rcm", stages); }

  const CsrMatrix matrix_ = testing::shuffled_grid(8);
};

TEST_F(KeptOrders, AreReadByALaterRunWithTheTimeThatComputingThemTook) {
  set_cache_folder(folder());
  StageTimer computing, reading;
  const Permutation computed = order(computing);
  EXPECT_EQ(order(reading), computed);
  EXPECT_TRUE(computing.kept().empty());
  EXPECT_EQ(reading.kept(), std::set<std::string>{"reorder"});
  EXPECT_EQ(reading.stages_ms(), computing.stages_ms());
}

TEST_F(KeptOrders, AreOfOneStructureAndOneOrder) {
  set_cache_folder(folder());
  StageTimer stages;
  order(stages);
  CsrMatrix values = matrix_;
  for (float& value : values.values) value *= 2;
  order_of(values, "rcm", stages);
  EXPECT_EQ(files().size(), 1U);
  order_of(testing::shuffled_grid(9), "rcm", stages);
  order_of(matrix_, "degree", stages);
  EXPECT_EQ(files().size(), 3U);
}

TEST_F(KeptOrders, AreComputedWhereThereIsNoFolder) {
  StageTimer stages;
  order(stages);
  order(stages);
  EXPECT_TRUE(stages.kept().empty());
}

TEST_F(KeptOrders, ThatAreDamagedAreComputedAnew) {
  set_cache_folder(folder());
  StageTimer computing, reading;
  const Permutation computed = order(computing);
  const auto measures = [&] {
    StageTimer anew;
    EXPECT_EQ(order(anew), computed);
    EXPECT_TRUE(anew.kept().empty());
  };
  const std::string first = std::to_string(computed[0]), second = std::to_string(computed[1]);
  const std::string rows = "\"rows\": \"" + first + " " + second;
  expect_replaced({{rows, "\"rows\": \"" + first + " " + first},
                   {rows, "\"rows\": \"" + first},
                   {rows, "\"rows\": \"" + first + "," + second},
                   {rows, "\"rows\": \"-1 " + second},
                   {rows, "\"rows\": \"x " + second},
                   {"\"rows\"", "\"row\""},
                   {"\"ms\": \"", "\"ms\": \"-"}},
                  measures, [&] { EXPECT_EQ(order(reading), computed); });
}

}  // namespace
}  // namespace spmmbench
