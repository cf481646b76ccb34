#include "src/adapt/command_line.hpp"

#include <algorithm>

#include "src/adapt/recipe_keys.hpp"
#include "src/adapt/recipe_words.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

bool planned(std::string_view key) {
  return std::find(kPlannedKeys.begin(), kPlannedKeys.end(), key) != kPlannedKeys.end();
}

// What `estimate` takes where a key of the layout is not given (src/adapt/pose.cpp).
std::string default_of(const std::string& key, const Offer& offer, const Recipe& r) {
  const Stack& stack = *offer.question.stack;
  const Layout& l = r.layout;
  const bool experts = has_experts(*offer.question.model);
  if (key == "etp") return experts && !stack.own_etp ? std::to_string(l.tp) : "1";
  if (key == "sp") return stack.sp_default ? "true" : "false";
  if (key == "schedule") return l.vpp > 1 ? "interleaved" : stack.schedules.front();
  if (key == "loss") return name(stack.losses.front().kind);
  if (key == "tp" || key == "pp" || key == "vpp" || key == "cp" || key == "ep") return "1";
  if (key == "dp") return std::to_string(l.dp);
  return "";  // said in any case
}

// A config.json of a JSON request has no path: the name that such files have.
std::string model_word(const Request& request) {
  if (!request.config) return request.model;
  const std::string& where = request.config->where;
  return where == "stdin" ? "-" : where == "config" ? "config.json" : where;
}

std::string flag_words(const Key& key, const std::string& value) {
  if (*key.value != '\0') return " " + flag_of(key.name) + " " + shell_word(value);
  const bool off = value == "false" || value == "off";
  return " --" + std::string(off ? "no-" : "") + flag_of(key.name).substr(2);
}

}  // namespace

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "_@%+=:,./-";
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return alphanumeric || kPlain.find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

namespace {

std::string model_and_cluster(const Request& request) {
  return shell_word(model_word(request)) + " --on " + shell_word(request.cluster ? request.cluster->where : request.on);
}

std::string assumptions(const Request& request) {
  std::string out;
  for (const auto& [key, value] : request.assume) out += " --assume " + shell_word(key + "=" + value);
  return out;
}

}  // namespace

std::string plan_command(const Request& request, const std::string& stack) {
  std::string out = "preflop plan " + model_and_cluster(request) + " --stack " + shell_word(stack);
  for (const Key& key : request_keys()) {
    const std::string* given = text_of(request, key.name);
    if (given != nullptr && std::string_view(key.name) != "stack") out += flag_words(key, *given);
  }
  return out + assumptions(request);
}

std::string command_line(const Offer& offer, const Recipe& recipe) {
  const Request& request = offer.request;
  std::string out = "preflop estimate " + model_and_cluster(request);
  const auto words = recipe_words(recipe);
  for (const Key& key : request_keys()) {
    const std::string k = key.name;
    const auto chosen = words.find(k);
    if (planned(k)) {
      if (chosen != words.end() && chosen->second != default_of(k, offer, recipe))
        out += flag_words(key, chosen->second);
    } else if (k == "global_batch" || k == "stack") {
      out += flag_words(key, chosen->second);
    } else if (const std::string* given = text_of(request, k)) {
      out += flag_words(key, *given);
    }
  }
  return out + assumptions(request);
}

std::vector<std::string> command_lines(const std::vector<Estimate>& plans,
                                       const std::vector<std::unique_ptr<Offer>>& offers) {
  std::vector<std::string> out;
  for (const Estimate& e : plans) {
    const Offer* of = offer_of(e, offers);
    out.push_back(of == nullptr ? "" : command_line(*of, e.recipe));
  }
  return out;
}

}  // namespace preflop
