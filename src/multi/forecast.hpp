#pragma once
// What a product on several GPUs should take, before it is run.

#include <vector>

namespace spmmbench {

// The time of a transfer by the bytes that every GPU receives in it, as measured for some numbers
// of bytes. Latency and rate alone do not describe it: NCCL changes its protocol with the size.
class Link {
 public:
  struct Point {
    double bytes = 0, us = 0;
  };
  // Ascending by bytes, two at least. A larger transfer that seemed faster than a smaller one is
  // taken to be as slow.
  explicit Link(std::vector<Point> points = {{0, 0}, {1, 1}});

  // On the line between the points around it; beyond the last, on that of the last two.
  double us(double bytes) const;
  double latency_us() const { return points_.front().us; }
  double bytes_per_us() const;  // of large transfers

 private:
  std::vector<Point> points_;
};

// A gather of B in which each GPU's product of some rows can run meanwhile.
// What a second stream and a second launch of the product take beyond the work, and the share of a
// GPU that a gather takes from the product beside it, by NCCL and by a pull: of two H200.
inline constexpr double kForkUs = 3, kGatherShare = 0.35, kPullShare = 0.15;
struct Gathering {
  double us = 0;           // alone
  double inner_share = 0;  // of the time of a GPU's product, what needs none of the others' B
  double gpu_share = kGatherShare;
};
// The time of a part with its gather, which runs before it, or beside its inner rows.
double one_after_another_us(double product_us, const Gathering& gathering);
double overlapped_us(double product_us, const Gathering& gathering);

// The least time of one GPU's product from which it pays to divide it among `gpus`, in the faster
// of both ways. Each part is assumed to take 1 / gpus of it. Without latency and overlap this is f
// K N s / W: f is the share of the rows of others that a GPU receives, s the bytes of an element
// and W the bytes a second.
double pays_from_us(const Gathering& gathering, int gpus);

// The same if the product reads rows of others in place. It begins to read them `meet_us` after it
// was enqueued, and takes `read_us` for that at the least.
double pays_from_us_in_place(double meet_us, double read_us, int gpus);

}  // namespace spmmbench
