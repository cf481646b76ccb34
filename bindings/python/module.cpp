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
  pybind11::class_<preflop::Session>(module, "Session", "Everything that the command line answers, call by call.")
      .def(pybind11::init<>())
      .def(
          "answer", [](preflop::Session& session, std::string_view call) { return session.answer(call); },
          pybind11::arg("call"),
          "Answers a JSON call such as {\"call\": \"explain\", \"term\": \"memory.weights\", \"request\": {...}} with\n"
          "the JSON that the command of that name prints, or with {\"error\": ...}.");
}
