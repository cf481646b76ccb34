// A request by its model, cluster and recipe keys.
#pragma once

#include <map>
#include <string>

#include "src/adapt/request.hpp"

namespace preflop::test {

inline Request request(const std::string& model, const std::string& on,
                       std::map<std::string, std::string, std::less<>> keys) {
  Request r;
  r.model = model;
  r.on = on;
  r.keys = std::move(keys);
  return r;
}

}  // namespace preflop::test
