// import preflop: the library as a Python module.
#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

#include "src/adapt/api.hpp"

PYBIND11_MODULE(preflop, module) {
  module.doc() = "preflop: memory, time and cost of a training run, before it starts";
  module.def(
      "estimate_json", [](std::string_view request) { return preflop::estimate_json(request); },
      pybind11::arg("request"),
      "Answers a JSON object such as {\"model\": \"llama3-70b\", \"on\": \"64xh100-sxm\", \"tp\": 8} with the\n"
      "preflop.estimate/1 document as text, or with {\"error\": ...}. Never raises for a bad request.");
}
