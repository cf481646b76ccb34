#include "apps/preflop/args.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "src/base/text.hpp"

namespace preflop::cli {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kShort = {
    {{"-q", "quiet"}, {"-v", "verbose"}, {"-o", "output"}, {"-h", "help"}}};

// Flags of the documentation that no command takes yet.
constexpr std::array kLaterFlags = {"csv", "rows", "worst", "source"};

struct Split {
  std::string name;
  std::string value;
  bool has_value = false;
};

Split split(const std::string& arg) {
  for (const auto& [brief, name] : kShort) {
    if (arg == brief) return {std::string(name), "", false};
  }
  const std::size_t equals = arg.find('=');
  if (equals == std::string::npos) return {arg.substr(2), "", false};
  return {arg.substr(2, equals - 2), arg.substr(equals + 1), true};
}

Error unknown(const Split& s, const std::vector<Flag>& flags) {
  std::vector<std::string> names;
  for (const Flag& flag : flags) {
    if (flag.name == s.name || !flag.later.empty()) continue;
    names.push_back("--" + flag.name);
  }
  if (std::find(kLaterFlags.begin(), kLaterFlags.end(), s.name) != kLaterFlags.end())
    return {"--" + s.name, "not built yet", "leave it out"};
  Error error = text::unknown_name("", "flag", "--" + s.name, names);
  error.what = "unknown flag " + text::quoted("--" + s.name);
  if (error.valid.empty()) error.valid = "--help lists the flags";
  return error;
}

// Stores one flag. `next` is the argument after it, null at the end; true in `took` when it was its value.
Status store(Args& out, Split s, const std::string* next, const std::vector<Flag>& flags, bool& took) {
  const bool negated = s.name.starts_with("no-");
  const auto flag = std::find_if(flags.begin(), flags.end(), [&](const Flag& f) {
    return f.name == s.name || (f.negatable && negated && f.name == s.name.substr(3));
  });
  if (flag == flags.end()) return unknown(s, flags);
  const std::string shown = "--" + s.name;
  if (flag->value.empty()) {
    if (s.has_value)
      return Error{shown, "takes no value, not " + text::quoted(s.value),
                   flag->negatable ? "--" + flag->name + " or --no-" + flag->name : shown + " alone"};
    if (flag->negatable) s.value = s.name == flag->name ? "true" : "false";
  } else if (!s.has_value) {
    if (next == nullptr || (next->size() > 1 && next->starts_with("--")))
      return Error{shown, "needs a value", shown + " " + flag->value};
    s.value = *next;
    took = true;
  }
  if (!flag->value.empty() && s.value.empty()) return Error{shown, "its value is empty", shown + " " + flag->value};
  std::vector<std::string>& values = out.values[flag->name];
  if (!values.empty() && !flag->repeatable) {
    if (flag->negatable && values.front() != s.value)
      return Error{"--" + flag->name, "contradicts --no-" + flag->name, "give one of them"};
    return Error{"--" + flag->name, "given twice", "give it once"};
  }
  values.push_back(std::move(s.value));
  return Nothing{};
}

}  // namespace

Result<Args> parse_args(const std::vector<std::string>& args, const std::vector<Flag>& flags,
                        const std::vector<std::string>& words) {
  Args out;
  bool flags_ended = false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--" && !flags_ended) {
      flags_ended = true;
    } else if (flags_ended || arg == "-" || !arg.starts_with('-')) {
      if (out.words.size() == words.size())
        return Error{"", "unexpected argument " + text::quoted(arg),
                     words.empty() ? "no argument without a flag"
                                   : text::list(words, "and") + (words.size() == 1 ? " alone" : "")};
      out.words.push_back(arg);
    } else {
      const bool is_short = std::any_of(kShort.begin(), kShort.end(), [&](const auto& s) { return s.first == arg; });
      if (!arg.starts_with("--") && !is_short)
        return Error{"", "unknown flag " + text::quoted(arg), "flags begin with two dashes, but for -q, -v, -o and -h"};
      bool took = false;
      const std::string* next = i + 1 < args.size() ? &args[i + 1] : nullptr;
      if (Status s = store(out, split(arg), next, flags, took); !s) return s.error();
      if (took) ++i;
    }
  }
  return out;
}

}  // namespace preflop::cli
