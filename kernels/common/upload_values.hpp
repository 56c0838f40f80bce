#pragma once
#include "gpu/upload_values.hpp"
