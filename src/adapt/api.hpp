// The whole library as functions over text, for the bindings: WebAssembly, Python, `preflop request`.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace preflop {

// A JSON request (see request_from_json) -> the text of preflop.estimate/1, or {"error": "..."}.
std::string estimate_json(std::string_view request_json);

// Everything that the command line answers, call by call. A call is {"call": NAME, ...}; what has no "call" is a
// request, as for estimate_json. Answers are the JSON that the command of that name prints, byte for byte, or
// {"error": "..."} with the command line's sentence; texts and files come as {"text": "..."}.
//
//   estimate, changes (choices that would change the verdict), terms            request
//   explain                                            request, term [, format: txt or lines [, everything]]
//   pictures                                                                    request [, width, gb]
//   report                                                                      request, format: html, md, svg or txt
//   timeline (memory through a step)                                           request [, format: csv]
//   export                                                                      request, to
//   plan-begin                                                                  request [, search {objective, ..}]
//   plan-advance, plan-result, plan-pictures, plan-cancel                       [ordinals | width, gb]
//   compare                                                                     a, b: two results
//   models, gpus, platforms, stacks, optimizers                                 [name]
//   keys, formats                                                               the recipe's keys, export's formats
//   read                                                                        text, name: a file as a request
//
// The session remembers the last problem and one plan on its way: plan-advance looks at about `ordinals` more
// layouts and says {done, progress, looked}.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::string answer(std::string_view call);

  struct State;  // src/adapt/session.hpp

 private:
  std::unique_ptr<State> state_;
};

}  // namespace preflop
