// What nearly every file of c10 reads (mps-build's; never part of a wheel).
#pragma once
#include <c10/util/Exception.h>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>
