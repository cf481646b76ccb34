// The part of the shell that launch scripts use.
#include <map>

#include "src/adapt/import/import.hpp"

namespace preflop {

namespace {

bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

using Variables = std::map<std::string, std::vector<std::string>, std::less<>>;

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : " ") + w;
  return out;
}

// "$((8 * 4))" and the like: whole numbers, + - * / from left to right with * and / first.
std::int64_t arithmetic(const std::string& text, const Variables& variables) {
  std::int64_t sum = 0, product = 0;
  char last = '+';
  bool negative = false;
  const auto take = [&](std::int64_t v) {
    if (last == '*')
      product = product > 0 && v > INT64_MAX / product ? 0 : product * v;
    else if (last == '/')
      product = v == 0 ? 0 : product / v;
    else {
      sum += negative ? -product : product;
      product = v;
      negative = last == '-';
    }
  };
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c >= '0' && c <= '9') {
      std::int64_t v = 0;
      for (; i < text.size() && text[i] >= '0' && text[i] <= '9' && v < INT64_MAX / 100; ++i)
        v = v * 10 + (text[i] - '0');
      take(v);
    } else if (word_char(c)) {
      std::string name;
      for (; i < text.size() && word_char(text[i]); ++i) name += text[i];
      const auto at = variables.find(name);
      std::int64_t v = 0;
      if (at != variables.end()) {
        for (const char d : joined(at->second))
          v = d >= '0' && d <= '9' && v < INT64_MAX / 100 ? v * 10 + (d - '0') : v;
      }
      take(v);
    } else {
      if (c == '+' || c == '-' || c == '*' || c == '/') last = c;
      ++i;
    }
  }
  return sum + (negative ? -product : product);
}

class Shell {
 public:
  explicit Shell(std::string_view text) : text_(text) {}

  std::vector<std::string> run() {
    while (at_ < text_.size()) statement_word();
    end_word();
    return std::move(words_);
  }

 private:
  // One character or construct of the script.
  void statement_word() {
    const char c = text_[at_];
    if (c == '\\' && at_ + 1 < text_.size() && (text_[at_ + 1] == '\n' || text_[at_ + 1] == '\r')) {
      at_ += text_[at_ + 1] == '\r' && at_ + 2 < text_.size() && text_[at_ + 2] == '\n' ? 3 : 2;
      end_word();
    } else if (c == '#' && !open_) {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';') {
      ++at_;
      end_word();
    } else if (c == '(' && open_ && word_.ends_with('=')) {
      ++at_;
      begin_array();
    } else if (c == ')' && in_array_) {
      ++at_;
      end_word();
      in_array_ = false;
    } else if (c == '\'' || c == '"') {
      quoted(c);
    } else if (c == '$') {
      expand(false);
    } else {
      if (c == '\\' && at_ + 1 < text_.size()) ++at_;
      add(text_[at_++]);
    }
  }

  void add(char c) {
    word_ += c;
    open_ = true;
  }

  void begin_array() {
    array_ = word_.substr(0, word_.size() - 1);
    const bool append = array_.ends_with('+');
    if (append) array_.pop_back();
    if (!append) variables_[array_].clear();
    word_.clear();
    open_ = false;
    in_array_ = true;
  }

  void quoted(char quote) {
    ++at_;
    open_ = true;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (quote == '"' && text_[at_] == '$') {
        expand(true);
        continue;
      }
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      if (text_[at_] == '\n' && at_ > 0 && text_[at_ - 1] == '\\') word_.pop_back();
      word_ += text_[at_++];
    }
    if (at_ < text_.size()) ++at_;
  }

  // $NAME, ${NAME}, ${NAME:-default}, ${NAME[@]}, $((..)); $(..) is unknown.
  void expand(bool in_quotes) {
    ++at_;
    if (text_.substr(at_).starts_with("((")) {
      const std::size_t end = std::min(text_.find("))", at_), text_.size());
      put({std::to_string(arithmetic(std::string(text_.substr(at_ + 2, end - at_ - 2)), variables_))}, true);
      at_ = std::min(end + 2, text_.size());
      return;
    }
    if (at_ < text_.size() && text_[at_] == '(') {
      int depth = 0;
      for (; at_ < text_.size(); ++at_) {
        depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
        if (depth == 0) break;
      }
      if (at_ < text_.size()) ++at_;
      open_ = true;
      return;
    }
    std::string name, fallback;
    bool all = false;
    if (at_ < text_.size() && text_[at_] == '{') {
      const std::size_t end = std::min(text_.find('}', at_), text_.size());
      std::string inside(text_.substr(at_ + 1, end - at_ - 1));
      at_ = std::min(end + 1, text_.size());
      const std::size_t stop = inside.find_first_of(":[");
      name = inside.substr(0, stop);
      if (stop != std::string::npos && inside[stop] == ':' && inside.size() > stop + 1 &&
          (inside[stop + 1] == '-' || inside[stop + 1] == '='))
        fallback = inside.substr(stop + 2);
      all = stop != std::string::npos && inside[stop] == '[';
    } else {
      while (at_ < text_.size() && word_char(text_[at_])) name += text_[at_++];
    }
    const auto known = variables_.find(name);
    std::vector<std::string> value;
    if (known != variables_.end()) value = known->second;
    if (value.empty() && !fallback.empty()) value = {fallback};
    put(value, in_quotes && !all);
  }

  // An expansion: one word in quotes, else split at spaces.
  void put(const std::vector<std::string>& value, bool one) {
    open_ = true;
    if (one) {
      word_ += joined(value);
      return;
    }
    bool first = true;
    for (const std::string& v : value) {
      std::string part;
      for (std::size_t i = 0; i <= v.size(); ++i) {
        const bool space = i == v.size() || v[i] == ' ' || v[i] == '\n' || v[i] == '\t' || v[i] == '\\';
        if (!space) {
          part += v[i];
          continue;
        }
        if (part.empty()) continue;
        if (!first) end_word();
        word_ += part;
        open_ = true;
        first = false;
        part.clear();
      }
    }
  }

  void end_word() {
    if (!open_) return;
    const std::string word = std::move(word_);
    word_.clear();
    open_ = false;
    if (in_array_) {
      if (!word.empty()) variables_[array_].push_back(word);
      return;
    }
    std::size_t end = 0;
    while (end < word.size() && word_char(word[end])) ++end;
    if (end > 0 && word.substr(end).starts_with("+=")) {  // a list's first word takes it, as in bash
      std::vector<std::string>& value = variables_[word.substr(0, end)];
      if (value.empty()) value.emplace_back();
      value.front() += word.substr(end + 2);
      return;
    }
    if (end > 0 && end < word.size() && word[end] == '=') {
      variables_[word.substr(0, end)] = {word.substr(end + 1)};
      return;
    }
    if (!word.empty()) words_.push_back(word);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string word_, array_;
  bool open_ = false, in_array_ = false;
  Variables variables_;
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> shell_words(std::string_view script) { return Shell(script).run(); }

}  // namespace preflop
