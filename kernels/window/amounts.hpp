#pragma once
// Amounts of work (select/product.hpp) of kernels that multiply windows of rows.

#include "select/estimate.hpp"

namespace spmmbench::window {

// Whether kernels that can search for a row order do so on this matrix.
bool searches_order(const Product&);

// Amounts of a call.
double gather_window(const Product&);  // a row of B per column of a window, from the L2 cache; us
double tiles(const Product&);          // of 16 columns and 128 bytes of B, 100 per multiprocessor
double cut(const Product&);            // 1 where several CTAs add up one window, however many
double depth(const Product&);  // tens of tiles of one window that a warp walks one after the other
double filled_rows(const Product&);  // amounts::rows without empty rows, where they are left out
// gather_window and tiles once rows that resemble each other are brought together.
double ordered_gather(const Product&);
double ordered_tiles(const Product&);
// The same tiles as far as rows are equal (equal_rows), and those of the natural order where not.
double tiles_of_search(const Product&);

// Amounts of preparation; 0 unless a row order is searched for.
double search(const Product&);           // 1
double search_nonzeros(const Product&);  // millions
double search_rows(const Product&);      // millions
// Thousands of nonzeros of the longest row, at most 4: its window takes longest to build. It counts
// for all windows.
double windows_of_longest(const Product&);
std::vector<Amount> prepare();              // this and prepare_amounts::of_csr
std::vector<Amount> prepare_with_search();  // and the search

}  // namespace spmmbench::window
