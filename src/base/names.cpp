// Names that people type: one spelling for comparison, and what they may have meant.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "src/base/text.hpp"

namespace preflop::text {
namespace {

constexpr std::size_t kLongest = 100;  // a longer name is nothing that was mistyped

// Insertions, deletions, substitutions and swaps of neighbours between two names (optimal string
// alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::string without_separators(std::string name) {
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
}

bool is_part(const std::string& name, std::size_t at, std::size_t size) {
  const auto word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  constexpr std::size_t kTelling = 4;
  return !word(name[at - 1]) && (size >= kTelling || at + size == name.size() || !word(name[at + size]));
}

// How far a candidate is from what was typed; nothing when it is not near. Both normalised.
constexpr std::size_t kFar = SIZE_MAX;
std::size_t badness(const std::string& typed, const std::string& candidate) {
  if (candidate.size() > kLongest) return kFar;
  const std::size_t allowed = std::max<std::size_t>(1, std::min<std::size_t>(typed.size(), candidate.size()) / 3);
  const std::size_t edits = distance(typed, candidate);
  if (edits <= allowed && edits < std::max(typed.size(), candidate.size())) return 2 * edits;
  if (without_separators(typed) == without_separators(candidate)) return 1;
  // The beginning, or a whole part, of a longer name: "h100" of "h100-sxm", "llama3-70b" of an id; not "foo" of
  // "footnote" within one.
  if (typed.size() >= 3) {
    const std::size_t at = candidate.find(typed);
    if (at == 0) return 20 + candidate.size() - typed.size();
    if (at != std::string::npos && is_part(candidate, at, typed.size())) return 60 + candidate.size() - typed.size();
    if (candidate.size() >= 3 && typed.rfind(candidate, 0) == 0) return 40 + typed.size() - candidate.size();
  }
  return kFar;
}

}  // namespace

std::string normalise_name(std::string_view name) {
  std::string out;
  bool gap = false;
  for (const char c : name) {
    if (c == '.' || c == '-' || c == '_' || c == ' ') {
      gap = !out.empty();
      continue;
    }
    if (gap) out += '-';
    gap = false;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }
  return out;
}

std::vector<std::string> did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > kLongest) return {};
  const std::string typed = normalise_name(name);
  if (typed.empty()) return {};
  struct Near {
    std::size_t badness;
    const std::string* candidate;
  };
  std::vector<Near> near;
  for (const std::string& candidate : candidates) {
    const std::size_t b = badness(typed, normalise_name(candidate));
    if (b != kFar) near.push_back({b, &candidate});
  }
  std::sort(near.begin(), near.end(), [](const Near& a, const Near& b) {
    return a.badness != b.badness ? a.badness < b.badness : *a.candidate < *b.candidate;
  });
  std::vector<std::string> out;
  for (const Near& n : near) {
    if (out.size() == 3) break;
    if (std::find(out.begin(), out.end(), *n.candidate) == out.end()) out.push_back(*n.candidate);
  }
  return out;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = did_you_mean(name, candidates);
  return near.empty() ? "" : "did you mean " + list(near) + "?";
}

Error unknown_name(std::string_view where, std::string_view kind, std::string_view name,
                   const std::vector<std::string>& candidates) {
  constexpr std::size_t kFew = 20;
  std::string valid = suggestion(name, candidates);
  if (valid.empty() && !candidates.empty() && candidates.size() <= kFew) valid = "valid are " + list(candidates, "and");
  return {std::string(where), fmt::format("unknown {} {}", kind, text::quoted(name)), valid};
}

}  // namespace preflop::text
