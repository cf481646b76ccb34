#include "src/adapt/run_keys.hpp"

#include <algorithm>
#include <iterator>

#include "src/adapt/recipe_keys.hpp"
#include "src/adapt/run_reader.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"

namespace preflop {

namespace {

bool of_run(const Key& key) {
  constexpr std::string_view kTuning[] = {"samples", "epochs", "mean_length", "max_length", "packing"};
  return std::string_view(key.group) == "run" ||
         std::find(std::begin(kTuning), std::end(kTuning), key.name) != std::end(kTuning);
}

}  // namespace

const std::string* RunReader::given(std::string_view key) const { return text_of(request_, key); }

void RunReader::assume(std::string_view key, const std::string& value, const std::string& why) {
  recipe_.assumed.push_back(std::string(key) + "=" + value + (why.empty() ? "" : " (" + why + ")"));
  recipe_.run.words[std::string(key)] = value;
}

Result<std::optional<bool>> RunReader::on_off(std::string_view key) const { return switch_key(request_, key); }

Status RunReader::seconds(const char* key, Sourced& out) {
  const std::string* text = given(key);
  if (text == nullptr) {
    out = data_.value(key);
    assume(key, text::fixed(out.value, 0) + "s", out.source);
    return Nothing{};
  }
  const auto time = parse_duration(*text, flag_of(key));
  if (!time) return time.error();
  out = {time->number(), flag_of(key)};
  return Nothing{};
}

Status RunReader::share(const char* key, Sourced& out) {
  const std::string* text = given(key);
  if (text == nullptr) {
    out = data_.value(key);
    assume(key, text::fixed(out.value * 100, 1) + "%", out.source);
    return Nothing{};
  }
  const auto share = parse_fraction(*text, flag_of(key));
  if (!share) return share.error();
  out = {*share, flag_of(key)};
  return Nothing{};
}

Status RunReader::optional_seconds(const char* key, std::optional<Sourced>& out) {
  const std::string* text = given(key);
  if (text == nullptr) return Nothing{};
  const auto time = parse_duration(*text, flag_of(key));
  if (!time) return time.error();
  if (time->number() <= 0) return Error{flag_of(key), "a time of 0", "more than 0, e.g. 12h"};
  out = Sourced{time->number(), flag_of(key)};
  return Nothing{};
}

Result<Date> parse_date(std::string_view text, std::string_view where) {
  const Error wrong{std::string(where), text::quoted(text) + " is no day", "YEAR-MONTH-DAY, e.g. 2026-03-01"};
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return wrong;
  int parts[3] = {0, 0, 0};
  int part = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 4 || i == 7) {
      ++part;
      continue;
    }
    if (text[i] < '0' || text[i] > '9') return wrong;
    parts[part] = parts[part] * 10 + (text[i] - '0');
  }
  const Date date{parts[0], parts[1], parts[2]};
  const bool leap = (date.year % 4 == 0 && date.year % 100 != 0) || date.year % 400 == 0;
  const int days[] = {31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (date.year < 1970 || date.month < 1 || date.month > 12 || date.day < 1 || date.day > days[date.month - 1])
    return wrong;
  return date;
}

Status read_run(const Request& request, const RunData& data, const Cluster& cluster, const Model& model,
                Recipe& recipe) {
  RunReader in(request, data, cluster, recipe);
  for (const Key& key : request_keys()) {
    const std::string* text = in.given(key.name);
    if (text != nullptr && of_run(key)) recipe.run.words[key.name] = *text;
  }
  if (Status s = read_length(in, model); !s) return s;
  if (!recipe.tokens) {
    for (const Key& key : request_keys()) {
      const std::string_view name = key.name;
      if (std::string_view(key.group) == "run" && name != "mfu" && in.given(name) != nullptr)
        return Error{flag_of(name), "it needs a run: no --tokens are given", "--tokens N, or --samples N"};
    }
    return Nothing{};
  }
  Status s = read_hazards(in);
  if (s) s = read_checkpoints(in);
  if (s) s = read_overheads(in);
  if (s) s = read_money(in);
  return s;
}

}  // namespace preflop
