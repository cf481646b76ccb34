#include "src/adapt/import/options.hpp"

#include <algorithm>

#include "src/base/csv.hpp"
#include "src/base/embedded.hpp"

namespace preflop {

Options::Options(const std::vector<std::string>& words, int depth) {
  // A command as one word: sh -c "torchrun pretrain_gpt.py ...".
  const auto command = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    const std::size_t script = word.find(".py");
    return script != std::string::npos && word.find_first_of(" \n\t", script) != std::string::npos;
  });
  if (command != words.end() && depth < 4) {
    std::vector<std::string> all(words.begin(), command);
    const std::vector<std::string> inner = shell_words(*command);
    all.insert(all.end(), inner.begin(), inner.end());
    all.insert(all.end(), command + 1, words.end());
    *this = Options(all, depth + 1);
    return;
  }
  std::size_t script = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].ends_with(".py")) script = i;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--") || words[i].size() == 2) continue;
    const std::size_t equals = words[i].find('=');
    std::string key = words[i].substr(0, equals);
    std::replace(key.begin() + 2, key.end(), '_', '-');
    if (i >= script) of_script_.insert(key);
    std::vector<std::string>& value = all_[key];
    value.clear();
    if (equals != std::string::npos) value.push_back(words[i].substr(equals + 1));
    while (equals == std::string::npos && i + 1 < words.size() && !words[i + 1].starts_with("--"))
      value.push_back(words[++i]);
  }
}

const std::vector<std::string>* Options::find(const std::string& key) const {
  asked_.insert(key);
  const auto at = all_.find(key);
  return at == all_.end() ? nullptr : &at->second;
}

bool Options::has(const std::string& key) const { return find(key) != nullptr; }

std::string Options::value(const std::string& key) const {
  const std::vector<std::string>* words = find(key);
  return words == nullptr || words->empty() ? "" : words->front();
}

std::vector<std::string> Options::values(const std::string& key) const {
  const std::vector<std::string>* words = find(key);
  return words == nullptr ? std::vector<std::string>{} : *words;
}

std::int64_t Options::number(const std::string& key) const {
  std::int64_t out = 0;
  for (const char c : value(key)) {
    if (c < '0' || c > '9' || out > (std::int64_t{1} << 53)) return 0;
    out = out * 10 + (c - '0');
  }
  return out;
}

std::string Options::either(const std::string& key, const std::string& other) const {
  return !has(key) && has(other) ? other : key;
}

std::vector<std::string> Options::not_read() const {
  std::vector<std::string> out(left_.begin(), left_.end());
  for (const std::string& key : of_script_) {
    if (!asked_.contains(key) && !ignored_option("megatron", key)) out.push_back(key);
  }
  return out;
}

std::vector<std::string> Options::all() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : all_) out.push_back(key);
  return out;
}

std::string place_of(std::string_view text, const std::string& file, std::string_view option) {
  std::size_t found = 0;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    std::replace(line.begin(), line.end(), '_', '-');
    const std::size_t begin = line.find_first_not_of(" \t"), at = line.find(option);
    if (at == std::string::npos || line[begin] == '#') continue;
    const std::size_t behind = at + option.size();
    const bool whole = behind >= line.size() || std::string_view(" =\t\\\"'\r").find(line[behind]) != std::string::npos;
    if (whole) found = number;
  }
  return found == 0 ? file : file + ":" + std::to_string(found);
}

bool ignored_option(std::string_view format, std::string_view option) {
  static const std::vector<std::pair<std::string, std::string>> kTable = [] {
    std::vector<std::pair<std::string, std::string>> out;
    const auto csv = Csv::parse(embedded("launch_ignored.csv"), "data/launch_ignored.csv");
    for (std::size_t i = 0; csv && i < csv->rows(); ++i)
      out.emplace_back(csv->at(i, std::string_view("format")), csv->at(i, std::string_view("option")));
    return out;
  }();
  return std::any_of(kTable.begin(), kTable.end(), [&](const auto& row) {
    const std::string_view known = row.second;
    const bool all = known.ends_with('*');  // "--log-*": every option that begins so
    return row.first == format && (all ? option.starts_with(known.substr(0, known.size() - 1)) : option == known);
  });
}

}  // namespace preflop
