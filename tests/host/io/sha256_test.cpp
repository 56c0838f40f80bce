#include "io/sha256.hpp"
#include "io_fixtures.hpp"

namespace spmmbench::test {
namespace {

std::string sha256(const std::string& text, std::size_t piece, bool allow_instructions) {
  Sha256 hash(allow_instructions);
  for (std::size_t at = 0; at < text.size(); at += piece)
    hash.update(text.data() + at, std::min(piece, text.size() - at));
  return hash.hex();
}

TEST(Sha256, GivesTheDigestsOfFips180) {
  const std::pair<std::string, const char*> vectors[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmn"
       "opqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1000000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto& [text, digest] : vectors)
    for (const std::size_t piece : {1, 3, 55, 56, 63, 64, 65, 1000000})
      for (const bool allow_instructions : {false, true})
        EXPECT_EQ(sha256(text, piece, allow_instructions), digest);
}

TEST(Sha256, OfAMatrixCoversShapeColumnsAndValues) {
  const CsrMatrix csr = random_csr(20, 30, 100, 1);
  CsrMatrix wider = csr, other_value = csr;
  ++wider.cols;
  other_value.values[7] *= -2;
  EXPECT_NE(matrix_sha256(csr, false), matrix_sha256(wider, false));
  EXPECT_NE(matrix_sha256(csr, false), matrix_sha256(other_value, false));
  EXPECT_EQ(matrix_sha256(csr, true), matrix_sha256(other_value, true));
  // python3: hashlib.sha256(numpy.array([0, 0, 0], "<i8").tobytes()).hexdigest()
  EXPECT_EQ(matrix_sha256(CsrMatrix{}, false),
            "9d908ecfb6b256def8b49a7c504e6c889c4b0e41fe6ce3e01863dd7b61a20aa0");
}

}  // namespace
}  // namespace spmmbench::test
