#include "src/view/svg/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/decimal.hpp"
#include "src/base/text.hpp"

namespace preflop::svg {

namespace {

std::string num(double v) { return shortest(std::round(v * 100) / 100 + 0.0); }
bool all_finite(std::initializer_list<double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

std::string points_of(const std::vector<std::pair<double, double>>& points) {
  std::string out;
  for (const auto& [x, y] : points) {
    if (!all_finite({x, y})) continue;
    out += (out.empty() ? "" : " ") + num(x) + "," + num(y);
  }
  return out;
}

std::string marked(std::string_view term) {
  return term.empty() ? "" : fmt::format(R"( data-term="{}")", escaped(term));
}

std::string closed(std::string_view element, std::string_view tip) {
  return tip.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", escaped(tip), element);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

void Canvas::rect(double x, double y, double width, double height, std::string_view fill, std::string_view tip,
                  std::string_view term) {
  if (!all_finite({x, y, width, height}) || width <= 0 || height <= 0) return;
  body_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}")", num(x), num(y), num(width),
                       num(height), fill) +
           marked(term) + closed("rect", tip);
}

void Canvas::line(double x1, double y1, double x2, double y2, std::string_view stroke, double width, bool dashed) {
  if (!all_finite({x1, y1, x2, y2})) return;
  body_ += fmt::format(R"(<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}" stroke-width="{}"{}/>)", num(x1), num(y1),
                       num(x2), num(y2), stroke, num(width), dashed ? R"( stroke-dasharray="6 4")" : "") +
           "\n";
}

void Canvas::polyline(const std::vector<std::pair<double, double>>& points, std::string_view stroke, double width) {
  body_ += fmt::format(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="{}"/>)", points_of(points),
                       stroke, num(width)) +
           "\n";
}

void Canvas::area(const std::vector<std::pair<double, double>>& points, std::string_view fill) {
  body_ += fmt::format(R"(<polygon points="{}" fill="{}"/>)", points_of(points), fill) + "\n";
}

void Canvas::circle(double x, double y, double radius, std::string_view fill, std::string_view tip,
                    std::string_view term) {
  if (!all_finite({x, y})) return;
  body_ += fmt::format(R"(<circle cx="{}" cy="{}" r="{}" fill="{}")", num(x), num(y), num(radius), fill) +
           marked(term) + closed("circle", tip);
}

void Canvas::text(double x, double y, std::string_view words, const TextStyle& style) {
  if (!all_finite({x, y})) return;
  static constexpr const char* kAnchors[] = {"start", "middle", "end"};
  body_ += fmt::format(R"(<text x="{}" y="{}" font-size="{}" text-anchor="{}" fill="{}"{}>{}</text>)", num(x), num(y),
                       num(style.size), kAnchors[static_cast<int>(style.anchor)], style.colour,
                       style.bold ? R"( font-weight="bold")" : "", escaped(words)) +
           "\n";
}

double heading(Canvas& c, double width, std::string_view title, std::string_view says) {
  constexpr double kLeft = 12, kTitleEm = 9.2, kEm = 6.4, kTitleLine = 20, kLine = 17;
  double y = 24;
  for (const std::string& line : text::wrapped(title, static_cast<std::size_t>((width - 2 * kLeft) / kTitleEm))) {
    c.text(kLeft, y, line, {16, Anchor::start, kInk, true});
    y += kTitleLine;
  }
  for (const std::string& line : text::wrapped(says, static_cast<std::size_t>((width - 2 * kLeft) / kEm))) {
    c.text(kLeft, y, line);
    y += kLine;
  }
  return y + 3;
}

std::string document(const Picture& p) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"{}\" role=\"img\" viewBox=\"0 0 {} {}\" width=\"{}\" "
      "height=\"{}\" font-family=\"system-ui, 'DejaVu Sans', Arial, sans-serif\">\n<title>{}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
      escaped(p.name), num(p.width), num(p.height), num(p.width), num(p.height), escaped(p.title), p.body);
}

Picture sheet(const std::vector<Picture>& pictures, std::string_view title) {
  constexpr double kGap = 24;
  Picture out{"sheet", std::string(title), "", 0, 0};
  for (const Picture& p : pictures) {
    if (p.empty()) continue;
    if (!out.body.empty()) out.height += kGap;
    out.body +=
        fmt::format("<g id=\"{}\" transform=\"translate(0 {})\">\n{}</g>\n", escaped(p.name), num(out.height), p.body);
    out.height += p.height;
    out.width = std::max(out.width, p.width);
  }
  return out;
}

std::vector<double> ticks(double most, int count) {
  if (!(most > 0) || !std::isfinite(most) || count < 1) return {0};
  double step = 1;
  while (step * count < most) step *= 10;
  while (step * count / 10 >= most) step /= 10;
  for (const double part : {0.2, 0.25, 0.5}) {
    if (step * part * count >= most) {
      step *= part;
      break;
    }
  }
  std::vector<double> out;
  for (int i = 0; i <= count; ++i) {
    out.push_back(step * i);
    if (step * i >= most) break;
  }
  return out;
}

}  // namespace preflop::svg
