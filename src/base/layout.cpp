// Text in columns: UTF-8 widths, cutting, wrapping, tables.
#include <algorithm>
#include <numeric>

#include "src/base/text.hpp"

namespace preflop::text {
namespace {

struct Glyph {
  std::size_t bytes = 1;
  std::size_t columns = 1;
  bool valid = false;
};

// The code point at the front of `s` (not empty). Broken UTF-8 is one byte wide and not valid.
Glyph first_glyph(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, 1, true};
  const std::size_t n = lead >= 0xC2 && lead <= 0xDF   ? 2
                        : lead >= 0xE0 && lead <= 0xEF ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 0;
  if (n == 0 || s.size() < n) return {};
  unsigned point = lead & (0xFFu >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return {};
    point = (point << 6) | (byte(i) & 0x3Fu);
  }
  const bool overlong = (n == 3 && point < 0x800) || (n == 4 && point < 0x10000);
  if (overlong || (point >= 0xD800 && point <= 0xDFFF) || point > 0x10FFFF) return {};
  const bool combining = (point >= 0x300 && point <= 0x36F) || point == 0x200B || point == 0x200D || point == 0xFEFF;
  return {n, combining ? 0u : 1u, true};
}

// The bytes of at most `width` columns at the front of `s`.
std::size_t bytes_within(std::string_view s, std::size_t width) {
  std::size_t at = 0;
  for (std::size_t used = 0; at < s.size();) {
    const Glyph g = first_glyph(s.substr(at));
    if (used + g.columns > width) break;
    used += g.columns;
    at += g.bytes;
  }
  return at;
}

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(cell)), ' ');
  return right ? space + cell : cell + space;
}

constexpr std::size_t kGap = 2;        // spaces between columns
constexpr std::size_t kNarrowest = 4;  // a text column is not cut below this while another can give

}  // namespace

std::size_t display_width(std::string_view utf8) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < utf8.size();) {
    const Glyph g = first_glyph(utf8.substr(at));
    columns += g.columns;
    at += g.bytes;
  }
  return columns;
}

std::string truncated(std::string_view utf8, std::size_t width) {
  if (display_width(utf8) <= width) return std::string(utf8);
  if (width == 0) return "";
  return std::string(utf8.substr(0, bytes_within(utf8, width - 1))) + "…";
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kWidth = 40;
  std::string clean;
  const std::string_view head = text.substr(0, 4 * kWidth + 4);
  for (std::size_t at = 0; at < head.size();) {
    const Glyph g = first_glyph(head.substr(at));
    const auto c = static_cast<unsigned char>(head[at]);
    if (!g.valid || c < 0x20 || c == 0x7F) {
      clean += '?';
    } else {
      clean += head.substr(at, g.bytes);
    }
    at += g.bytes;
  }
  return "'" + truncated(clean, kWidth) + "'";
}

std::vector<std::string> wrapped(std::string_view utf8, std::size_t width) {
  width = std::max<std::size_t>(width, 1);
  std::vector<std::string> lines(1);
  std::size_t used = 0;
  for (std::size_t at = 0; at < utf8.size();) {
    if (utf8[at] == '\n') {
      lines.emplace_back();
      used = 0;
      ++at;
      continue;
    }
    if (utf8[at] == ' ') {
      ++at;
      continue;
    }
    std::string_view word = utf8.substr(at, std::min(utf8.find_first_of(" \n", at), utf8.size()) - at);
    at += word.size();
    if (used > 0 && used + 1 + display_width(word) <= width) {
      lines.back().append(" ").append(word);
      used += 1 + display_width(word);
      continue;
    }
    if (used > 0) lines.emplace_back();
    while (display_width(word) > width) {
      lines.back().append(word.substr(0, bytes_within(word, width)));
      word.remove_prefix(bytes_within(word, width));
      lines.emplace_back();
    }
    lines.back().append(word);
    used = display_width(word);
  }
  return lines;
}

Table& Table::column(std::string title, Align align) {
  columns_.push_back({std::move(title), align});
  return *this;
}

Table& Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
  return *this;
}

Table& Table::rule() {
  rows_.emplace_back();
  return *this;
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t w = display_width(columns_[c].title);
    for (const auto& cells : rows_) {
      if (!cells.empty()) w = std::max(w, display_width(cells[c]));
    }
    widths.push_back(w);
  }
  const std::size_t fixed = indent_ + kGap * (columns_.empty() ? 0 : columns_.size() - 1);
  std::size_t all = std::accumulate(widths.begin(), widths.end(), fixed);
  // Text columns give from the last to the first; first politely, then down to nothing.
  for (const std::size_t least : {kNarrowest, std::size_t{1}}) {
    for (std::size_t c = columns_.size(); c-- > 0 && all > width_;) {
      if (columns_[c].align != Align::left || widths[c] <= least) continue;
      const std::size_t give = std::min(widths[c] - least, all - width_);
      widths[c] -= give;
      all -= give;
    }
  }
  return widths;
}

std::string Table::str() const {
  const std::vector<std::size_t> width = widths();
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text(indent_, ' ');
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) text.append(kGap, ' ');
      text += padded(truncated(cell(c), width[c]), width[c], columns_[c].align == Align::right);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    // Numbers alone may pass the width: the line is then cut as a whole rather than left to spill.
    out += truncated(text, width_) + "\n";
  };
  const auto titled = [](const Column& c) { return !c.title.empty(); };
  if (std::any_of(columns_.begin(), columns_.end(), titled)) line([&](std::size_t c) { return columns_[c].title; });
  for (const auto& cells : rows_) {
    if (cells.empty()) {
      line([&](std::size_t c) { return std::string(width[c], '-'); });
    } else {
      line([&](std::size_t c) { return cells[c]; });
    }
  }
  return out;
}

}  // namespace preflop::text
