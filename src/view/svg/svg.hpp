// Drawing: shapes in user units (px), text with escaped content, one palette. A picture is a body with a size;
// `document` makes it a file of its own, `sheet` puts several under one another.
//
// Colours are those of Okabe and Ito, told apart by every kind of colour vision; marks never differ by colour
// alone: bars are labelled or stand in the order of the legend. Text is 11 px or larger.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace preflop::svg {

inline constexpr std::array<std::string_view, 8> kPalette = {"#0072B2", "#E69F00", "#009E73", "#D55E00",
                                                             "#56B4E9", "#CC79A7", "#F0E442", "#999999"};
inline constexpr std::string_view kInk = "#1a1a1a";
inline constexpr std::string_view kFaint = "#6b6b6b";
inline constexpr std::string_view kGrid = "#dddddd";
inline constexpr std::string_view kEmpty = "#eeeeee";

enum class Anchor { start, middle, end };

struct TextStyle {
  double size = 12;
  Anchor anchor = Anchor::start;
  std::string_view colour = kInk;
  bool bold = false;
};

// Collects elements. Coordinates are rounded to 0.01 px; what is not finite is left out. `tip` is shown by browsers;
// `term` is the JSON path of the number that the mark shows, for pages that explain it on selection.
class Canvas {
 public:
  void rect(double x, double y, double width, double height, std::string_view fill, std::string_view tip = {},
            std::string_view term = {});
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width = 1, bool dashed = false);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view stroke, double width = 2);
  void area(const std::vector<std::pair<double, double>>& points, std::string_view fill);
  void circle(double x, double y, double radius, std::string_view fill, std::string_view tip = {},
              std::string_view term = {});
  void text(double x, double y, std::string_view words, const TextStyle& style = {});
  std::string take() { return std::move(body_); }

 private:
  std::string body_;
};

struct Picture {
  std::string name;   // "memory": its id in documents
  std::string title;  // what it says, in one line
  std::string body;
  double width = 0, height = 0;
  bool empty() const { return body.empty(); }
};

std::string escaped(std::string_view text);  // & < > " for XML

// A picture's title and what it says, wrapped to its width. Returns where the drawing may begin.
double heading(Canvas& canvas, double width, std::string_view title, std::string_view says);

// With the picture's title as accessible name. A document has a white ground.
std::string document(const Picture& picture);
// The pictures that are not empty, from top to bottom.
Picture sheet(const std::vector<Picture>& pictures, std::string_view title);

// Round values for an axis from 0 to `most`: at most `count` + 1 of them, the last >= most.
std::vector<double> ticks(double most, int count);

}  // namespace preflop::svg
